#include "model.hpp"

#include <algorithm>

namespace kanal::wiregen {
namespace {

const std::vector<Type>& types() {
  static const std::vector<Type> kTypes = {
      {"bool", Kind::kBool, "bool"},
      {"int8", Kind::kInt8, "std::int8_t"},
      {"int16", Kind::kInt16, "std::int16_t"},
      {"int32", Kind::kInt32, "std::int32_t"},
      {"int64", Kind::kInt64, "std::int64_t"},
      {"uint16", Kind::kUint16, "std::uint16_t"},
      {"uint32", Kind::kUint32, "std::uint32_t"},
      {"float64", Kind::kFloat64, "double"},
      {"uuid", Kind::kUuid, "Uuid"},
      {"string", Kind::kString, ""},
      {"bytes", Kind::kBytes, ""},
      {"records", Kind::kRecords, ""},
      {"ErrorCode", Kind::kInt16, "ErrorCode", Wrap::kErrorCode},
      {"Offset", Kind::kInt64, "Offset", Wrap::kStrong},
      {"LeaderEpoch", Kind::kInt32, "LeaderEpoch", Wrap::kStrong},
      {"ProducerId", Kind::kInt64, "ProducerId", Wrap::kStrong},
      {"ProducerEpoch", Kind::kInt16, "ProducerEpoch", Wrap::kStrong},
      {"PartitionIndex", Kind::kInt32, "PartitionIndex", Wrap::kStrong},
      {"NodeId", Kind::kInt32, "NodeId", Wrap::kStrong},
      {"Timestamp", Kind::kInt64, "Timestamp", Wrap::kStrong},
      {"milliseconds", Kind::kInt32, "std::chrono::milliseconds", Wrap::kMilliseconds},
  };
  return kTypes;
}

void collect(const Struct& structure, std::vector<const Struct*>& into) {
  for (const Field& field : structure.fields) {
    if (field.nested) collect(*field.nested, into);
  }
  into.push_back(&structure);
}

}  // namespace

const Type* find_type(const std::string& name) {
  const auto found = std::ranges::find(types(), name, &Type::name);
  return found == types().end() ? nullptr : &*found;
}

std::string wire_name(Kind kind) {
  if (kind == Kind::kStruct) return "struct";
  return std::ranges::find(types(), kind, &Type::kind)->name;
}

std::vector<const Struct*> structs_of(const Message& message) {
  std::vector<const Struct*> all;
  for (const auto& common : message.common) collect(*common, all);
  collect(message.root, all);
  return all;
}

int min_size(const Field& field, const Message& message, int version) {
  if (field.tagged() || !field.versions.contains(version)) return 0;
  const bool flexible = version >= message.flexible_from && !field.always_inflexible;
  if (field.is_array) return flexible ? 1 : 4;
  switch (field.kind()) {
    case Kind::kBool:
    case Kind::kInt8:
      return 1;
    case Kind::kInt16:
    case Kind::kUint16:
      return 2;
    case Kind::kInt32:
    case Kind::kUint32:
      return 4;
    case Kind::kInt64:
    case Kind::kFloat64:
      return 8;
    case Kind::kUuid:
      return 16;
    case Kind::kString:
      return flexible ? 1 : 2;
    case Kind::kBytes:
    case Kind::kRecords:
      return flexible ? 1 : 4;
    case Kind::kStruct:
      return field.nullable.empty() ? min_size(*field.structure, message, version) : 1;
  }
  return 1;
}

int min_size(const Struct& structure, const Message& message, int version) {
  int size = version >= message.flexible_from ? 1 : 0;
  for (const Field& field : structure.fields) size += min_size(field, message, version);
  return size;
}

}  // namespace kanal::wiregen
