#include "check.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <set>

namespace kanal::wiregen {
namespace {

constexpr int kMaxDepth = 8;

bool is_snake_case(const std::string& name) {
  return !name.empty() && std::islower(static_cast<unsigned char>(name[0])) != 0 &&
         std::ranges::all_of(name, [](unsigned char c) {
           return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_';
         });
}

bool is_camel_case(const std::string& name) {
  return !name.empty() && std::isupper(static_cast<unsigned char>(name[0])) != 0 &&
         std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) != 0; });
}

struct Limits {
  std::int64_t min;
  std::int64_t max;
};
Limits limits_of(Kind kind) {
  switch (kind) {
    case Kind::kInt8:
      return {INT8_MIN, INT8_MAX};
    case Kind::kInt16:
      return {INT16_MIN, INT16_MAX};
    case Kind::kUint16:
      return {0, UINT16_MAX};
    case Kind::kInt32:
      return {INT32_MIN, INT32_MAX};
    case Kind::kUint32:
      return {0, UINT32_MAX};
    default:
      return {INT64_MIN, INT64_MAX};
  }
}

class Checker {
 public:
  explicit Checker(Message& message) : message_(message) {}

  void run() {
    if (!is_camel_case(message_.name))
      fail(message_.root.line, "'" + message_.name + "' is not CamelCase");
    for (auto& common : message_.common) {
      check_struct_name(*common);
      common->qualified = message_.name + "::" + common->name;
    }
    message_.root.qualified = message_.name;
    check_struct(message_.root, message_.versions, 0);
    // A shared struct may stand unused in one of the two bodies; it is left out there.
    std::erase_if(message_.common,
                  [this](const auto& common) { return !used_.contains(common.get()); });
  }

 private:
  [[noreturn]] void fail(int line, const std::string& what) const {
    throw SchemaError(message_.file, line, what);
  }

  void check_struct_name(const Struct& structure) {
    if (!is_camel_case(structure.name))
      fail(structure.line, "struct '" + structure.name + "' is not CamelCase");
    if (find_type(structure.name) != nullptr)
      fail(structure.line, "'" + structure.name + "' is a built-in type");
  }

  void check_struct(Struct& structure, Versions versions, int depth) {
    if (depth > kMaxDepth)
      fail(structure.line, "structs are nested deeper than " + std::to_string(kMaxDepth));
    structure.versions = versions;
    std::set<std::string> names;
    std::set<int> tags;
    for (Field& field : structure.fields) {
      if (!is_snake_case(field.name))
        fail(field.line, "field '" + field.name + "' is not snake_case");
      if (!names.insert(field.name).second)
        fail(field.line, "field '" + field.name + "' is there twice");
      check_versions(field, versions);
      check_tag(field, tags);
      resolve_type(structure, field, depth);
      check_nullable(field);
      check_default(field);
    }
  }

  void check_versions(Field& field, Versions outer) {
    field.versions = outer;
    if (field.since) {
      if (*field.since <= outer.min)
        fail(field.line, "'since' of '" + field.name + "' is not after the first version");
      if (*field.since > outer.max)
        fail(field.line, "'since' of '" + field.name + "' is after the last version");
      field.versions.min = *field.since;
    }
    if (field.until) {
      if (*field.until >= outer.max)
        fail(field.line, "'until' of '" + field.name + "' is not before the last version");
      field.versions.max = *field.until;
    }
    if (field.versions.empty()) fail(field.line, "'" + field.name + "' is in no version");
  }

  void check_tag(const Field& field, std::set<int>& tags) {
    if (!field.tag) return;
    if (!tags.insert(*field.tag).second)
      fail(field.line, "tag " + std::to_string(*field.tag) + " is used twice");
    if (field.versions.min < message_.flexible_from)
      fail(field.line, "a tagged field before the first flexible version");
  }

  void resolve_type(const Struct& owner, Field& field, int depth) {
    field.type = find_type(field.type_name);
    if (field.type != nullptr) {
      if (field.nested)
        fail(field.line, "'fields' given for the built-in type '" + field.type_name + "'");
      if (field.type->kind == Kind::kBytes && field.is_array)
        fail(field.line, "arrays of bytes are not supported");
      if (field.type->kind == Kind::kRecords && (field.is_array || field.tagged())) {
        fail(field.line, "records cannot be in an array or tagged");
      }
      return;
    }
    if (field.nested) {
      check_struct_name(*field.nested);
      for (const Field& other : owner.fields) {
        if (&other == &field) break;
        if (other.nested && other.nested->name == field.nested->name) {
          fail(field.line, "struct '" + field.nested->name + "' is defined twice here");
        }
      }
      field.structure = field.nested.get();
      field.nested->qualified = owner.qualified + "::" + field.nested->name;
      check_struct(*field.nested, field.versions, depth + 1);
      return;
    }
    const auto found = std::ranges::find_if(
        message_.common, [&](const auto& it) { return it->name == field.type_name; });
    if (found == message_.common.end()) fail(field.line, "unknown type '" + field.type_name + "'");
    field.structure = found->get();
    used_.insert(field.structure);
    check_struct(*field.structure, message_.versions, depth + 1);
  }

  void check_nullable(Field& field) {
    if (!field.nullable_text) return;
    const bool may = field.is_array || field.kind() == Kind::kString ||
                     field.kind() == Kind::kBytes || field.kind() == Kind::kRecords ||
                     field.kind() == Kind::kStruct;
    if (!may) fail(field.line, "type '" + field.type_name + "' has no null");
    if (field.nullable_text->max != kForever && field.nullable_text->max > message_.versions.max) {
      fail(field.line, "'nullable' of '" + field.name + "' ends after the last version");
    }
    if (field.kind() == Kind::kStruct && !field.is_array && field.tagged()) {
      fail(field.line, "a tagged struct cannot be null");
    }
    if (field.kind() == Kind::kStruct && !field.is_array && field.nested) {
      fail(field.line, "a struct that can be null must stand under 'structs'");
    }
    Versions range = *field.nullable_text;
    range = {std::max(range.min, field.versions.min), std::min(range.max, field.versions.max)};
    if (range.empty())
      fail(field.line, "'nullable' of '" + field.name + "' covers none of its versions");
    field.nullable = range;
  }

  void check_default(const Field& field) {
    if (field.default_null && field.nullable.empty())
      fail(field.line, "default null, but '" + field.name + "' has no null");
    if (!field.default_text) return;
    const std::string& text = *field.default_text;
    if (field.is_array || field.kind() == Kind::kStruct || field.kind() == Kind::kBytes ||
        field.kind() == Kind::kRecords || field.kind() == Kind::kUuid ||
        field.kind() == Kind::kFloat64) {
      fail(field.line, "type of '" + field.name + "' takes no default");
    }
    if (field.kind() == Kind::kString) {
      if (!text.empty()) fail(field.line, "a string's default can only be '' or null");
      return;
    }
    if (field.kind() == Kind::kBool) {
      if (text != "true" && text != "false")
        fail(field.line, "default of '" + field.name + "' must be true or false");
      return;
    }
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const Limits limits = limits_of(field.kind());
    if (error != std::errc() || end != text.data() + text.size() || value < limits.min ||
        value > limits.max) {
      fail(field.line, "default '" + text + "' does not fit " + wire_name(field.kind()));
    }
  }

  Message& message_;
  std::set<const Struct*> used_;
};

}  // namespace

void check(Message& message) {
  Checker(message).run();
}

}  // namespace kanal::wiregen
