#include "emit.hpp"

#include <algorithm>

namespace kanal::wiregen {
namespace {

std::string plain_type(const Field& field, bool views) {
  switch (field.kind()) {
    case Kind::kString:
      return views ? "std::string_view" : "std::string";
    case Kind::kBytes:
      return views ? "Bytes" : "Buffer";
    case Kind::kRecords:
      return views ? "std::optional<MutableBytes>" : "ExternalRecords";
    case Kind::kStruct:
      return field.structure->name;
    default:
      return field.type->cpp;
  }
}

/// " = 5", "{-1}" or nothing, to stand behind a member's name.
std::string initialiser(const Field& field) {
  if (field.can_be_null() && !field.default_null) return "{std::in_place}";
  if (field.is_array || field.can_be_null()) return "";
  switch (field.kind()) {
    case Kind::kString:
    case Kind::kBytes:
    case Kind::kRecords:
    case Kind::kUuid:
    case Kind::kStruct:
      return "";
    default:
      break;
  }
  const std::string value = default_value(field);
  if (field.type->wrap == Wrap::kStrong || field.type->wrap == Wrap::kMilliseconds) {
    return "{" + field.default_text.value_or("0") + "}";
  }
  return " = " + value;
}

bool holds_raw_bytes(const Struct& structure, bool views) {
  return views && std::ranges::any_of(structure.fields, [](const Field& field) {
           return field.kind() == Kind::kBytes || field.kind() == Kind::kRecords;
         });
}

std::string version_comment(const Field& field, Versions served) {
  std::string text;
  const auto add = [&text](const std::string& part) {
    text += (text.empty() ? "  // " : ", ") + part;
  };
  if (field.versions.min > served.min) add("v" + std::to_string(field.versions.min) + "+");
  if (field.versions.max < served.max) add("up to v" + std::to_string(field.versions.max));
  if (field.tagged()) add("tag " + std::to_string(*field.tag));
  if (!field.notes.empty()) add(field.notes);
  return text;
}

void emit_equality(Lines& out, const Struct& structure, bool views) {
  if (!holds_raw_bytes(structure, views)) {
    out.line("friend bool operator==(const " + structure.name + "&, const " + structure.name +
             "&) = default;");
    return;
  }
  out.open("friend bool operator==(const " + structure.name + "& a, const " + structure.name +
           "& b) {");
  std::string same;
  for (const Field& field : structure.fields) {
    const bool raw = field.kind() == Kind::kBytes || field.kind() == Kind::kRecords;
    same += (same.empty() ? "" : " && ") +
            (raw ? "same_bytes(a." + field.name + ", b." + field.name + ")"
                 : "a." + field.name + " == b." + field.name);
  }
  out.line("return " + same + ";");
  out.close();
}

void emit_struct(Lines& out, const Struct& structure, const Message& message) {
  for (const Field& field : structure.fields) {
    if (!field.nested) continue;
    out.open("struct " + field.nested->name + " {");
    emit_struct(out, *field.nested, message);
    out.close("};");
  }
  for (const Field& field : structure.fields) {
    out.line(cpp_type(field, message.views) + " " + field.name + initialiser(field) + ";" +
             version_comment(field, structure.versions));
  }
  emit_equality(out, structure, message.views);
}

// Shared structs stand outside the message: a std::optional of a struct nested in a class that is
// not complete yet cannot be default-constructed for clang.
void emit_common(Lines& out, const Message& message) {
  if (message.common.empty()) return;
  out.line("namespace parts_of_" + message.name + " {");
  for (const auto& common : message.common) {
    out.open("struct " + common->name + " {");
    emit_struct(out, *common, message);
    out.close("};");
  }
  out.line("}  // namespace parts_of_" + message.name);
  out.line();
}

void emit_message(Lines& out, const Message& message, const Api* api) {
  emit_common(out, message);
  out.open("struct " + message.name + " {");
  if (api != nullptr)
    out.line("static constexpr std::int16_t kApiKey = " + std::to_string(api->key) + ";");
  if (message.role == Role::kRecord) {
    out.line("static constexpr std::int16_t kRecordType = " + std::to_string(message.record_type) +
             ";");
  }
  out.line("static constexpr std::int16_t kMinVersion = " + std::to_string(message.versions.min) +
           ";");
  out.line("static constexpr std::int16_t kMaxVersion = " + std::to_string(message.versions.max) +
           ";");
  out.line("static constexpr std::int16_t kFlexibleFrom = " +
           std::to_string(message.flexible_from) + ";");
  out.line();
  for (const auto& common : message.common) {
    out.line("using " + common->name + " = parts_of_" + message.name + "::" + common->name + ";");
  }
  emit_struct(out, message.root, message);
  out.close("};");
  out.line("[[nodiscard]] Result<void> decode(Reader& in, std::int16_t version, " + message.name +
           "& into);");
  out.line("void encode(Writer& out, std::int16_t version, const " + message.name + "& value);");
  out.line();
}

void begin_header(Lines& out, const std::string& what) {
  out.line(kGeneratedNotice);
  out.line("// " + what);
  out.line("#pragma once");
  out.line();
  out.line("#include \"kanal/wire/message.hpp\"");
  out.line();
}

}  // namespace

std::string cpp_type(const Field& field, bool views) {
  std::string type = plain_type(field, views);
  if (field.is_array) type = "std::vector<" + type + ">";
  if (field.can_be_null()) type = "std::optional<" + type + ">";
  return type;
}

std::string cpp_element_type(const Field& field, bool views) {
  return field.kind() == Kind::kStruct ? field.structure->qualified : plain_type(field, views);
}

std::string default_value(const Field& field) {
  std::string number = field.default_text.value_or(field.kind() == Kind::kBool ? "false" : "0");
  if (number == "-2147483648") number = "std::numeric_limits<std::int32_t>::min()";
  switch (field.type->wrap) {
    case Wrap::kStrong:
    case Wrap::kMilliseconds:
      return field.type->cpp + "(" + number + ")";
    case Wrap::kErrorCode:
      return number == "0" ? "ErrorCode::NONE" : "static_cast<ErrorCode>(" + number + ")";
    case Wrap::kPlain:
      break;
  }
  return number;
}

std::string condition(Versions range, Versions served) {
  std::string text;
  if (range.min > served.min) text = "version >= " + std::to_string(range.min);
  if (range.max < served.max)
    text += (text.empty() ? "" : " && ") + ("version <= " + std::to_string(range.max));
  return text;
}

std::string spoken_name(const Message& message) {
  if (message.role == Role::kRequest)
    return message.name.substr(0, message.name.size() - 7) + " request";
  if (message.role == Role::kResponse)
    return message.name.substr(0, message.name.size() - 8) + " response";
  return message.name;
}

std::string emit_api_header(const Api& api) {
  Lines out;
  begin_header(out, api.name + ", API key " + std::to_string(api.key) + ", versions " +
                        std::to_string(api.versions.min) + " to " +
                        std::to_string(api.versions.max) +
                        ". Views in a request point into its frame, which must outlive it.");
  out.line("namespace kanal::wire {");
  out.line();
  emit_message(out, api.request, &api);
  emit_message(out, api.response, &api);
  out.line("}  // namespace kanal::wire");
  return out.take();
}

std::string emit_headers_header(const std::vector<Message>& headers) {
  Lines out;
  begin_header(out, "The headers before every request and response body.");
  out.line("namespace kanal::wire {");
  out.line();
  for (const Message& message : headers) emit_message(out, message, nullptr);
  out.line("}  // namespace kanal::wire");
  return out.take();
}

std::string emit_stored_header(const std::vector<Message>& records) {
  Lines out;
  begin_header(out, "The records of the reserved channels: int16 type, int16 version, body.");
  out.line("#include <variant>");
  out.line();
  out.line("namespace kanal::wire {");
  out.line();
  std::string variants;
  for (const Message& message : records) {
    out.line("/// In " + message.channel + ".");
    emit_message(out, message, nullptr);
    out.line("/// Type, version and body of a record in the newest version.");
    out.line("void encode_stored(Writer& out, const " + message.name + "& value);");
    out.line();
    variants += (variants.empty() ? "" : ", ") + message.name;
  }
  out.line("using StoredRecord = std::variant<" + variants + ">;");
  out.line(
      "/// The reverse. KAFKA_STORAGE_ERROR for an unknown type, a newer version, damage or bytes "
      "left over.");
  out.line("[[nodiscard]] Result<StoredRecord> decode_stored(Bytes record);");
  out.line();
  out.line("}  // namespace kanal::wire");
  return out.take();
}

}  // namespace kanal::wiregen
