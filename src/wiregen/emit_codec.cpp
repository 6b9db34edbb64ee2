#include "emit.hpp"

#include <algorithm>

namespace kanal::wiregen {
namespace {

std::string quoted(const std::string& text) {
  return "\"" + text + "\"";
}

/// The expression that reads one value which is not null and no array.
std::string read_value(const Field& field, const std::string& flexible) {
  const std::string name = quoted(field.name);
  switch (field.kind()) {
    case Kind::kBool:
      return "in.boolean(" + name + ")";
    case Kind::kString:
      return "in.text(" + flexible + ", " + name + ")";
    case Kind::kBytes:
      return "in.blob(" + flexible + ", " + name + ")";
    default:
      break;
  }
  const std::string raw = "in." + wire_name(field.kind()) + "(" + name + ")";
  switch (field.type->wrap) {
    case Wrap::kStrong:
    case Wrap::kMilliseconds:
      return field.type->cpp + "(" + raw + ")";
    case Wrap::kErrorCode:
      return "static_cast<ErrorCode>(" + raw + ")";
    case Wrap::kPlain:
      break;
  }
  return raw;
}

/// The statement that writes one value which is not null and no array.
std::string write_value(const Field& field, const std::string& flexible, const std::string& value) {
  switch (field.kind()) {
    case Kind::kBool:
      return "out.boolean(" + value + ");";
    case Kind::kString:
      return "out.text(" + flexible + ", " + value + ");";
    case Kind::kBytes:
      return "out.blob(" + flexible + ", " + value + ");";
    case Kind::kStruct:
      return "write(out, version, " + value + ");";
    default:
      break;
  }
  switch (field.type->wrap) {
    case Wrap::kStrong:
      return "out." + wire_name(field.kind()) + "(" + value + ".value());";
    case Wrap::kMilliseconds:
      return "out.milliseconds(" + value + ");";
    case Wrap::kErrorCode:
      return "out.int16(static_cast<std::int16_t>(" + value + "));";
    case Wrap::kPlain:
      break;
  }
  return "out." + wire_name(field.kind()) + "(" + value + ");";
}

/// Emits read() and write() of one struct.
class StructCodec {
 public:
  StructCodec(Lines& out, const Struct& structure, const Message& message)
      : out_(out), structure_(structure), message_(message) {}

  void emit_read() {
    open_function("void read(Reader& in, [[maybe_unused]] std::int16_t version, " +
                  structure_.qualified + "& value) {");
    for (const Field& field : structure_.fields) {
      if (!field.tagged()) in_versions(field, [&] { read_field(field); });
    }
    read_tags();
    out_.close();
    out_.line();
  }

  void emit_write() {
    open_function(
        "void write(Writer& out, [[maybe_unused]] std::int16_t version, [[maybe_unused]] const " +
        structure_.qualified + "& value) {");
    for (const Field& field : structure_.fields) {
      if (!field.tagged()) in_versions(field, [&] { write_field(field); });
    }
    write_tags();
    out_.close();
    out_.line();
  }

 private:
  [[nodiscard]] bool ever_flexible() const {
    return message_.flexible_from <= structure_.versions.max;
  }
  [[nodiscard]] bool always_flexible() const {
    return message_.flexible_from <= structure_.versions.min;
  }

  void open_function(const std::string& head) {
    out_.open(head);
    if (always_flexible())
      out_.line("[[maybe_unused]] constexpr bool flexible = true;");
    else if (!ever_flexible())
      out_.line("[[maybe_unused]] constexpr bool flexible = false;");
    else
      out_.line("const bool flexible = version >= " + std::to_string(message_.flexible_from) + ";");
  }

  [[nodiscard]] static std::string flexible_of(const Field& field) {
    return field.always_inflexible ? "false" : "flexible";
  }

  template <class Body>
  void in_versions(const Field& field, Body body) {
    const std::string when = condition(field.versions, structure_.versions);
    if (!when.empty()) out_.open("if (" + when + ") {");
    body();
    if (!when.empty()) out_.close();
  }

  // One or the other statement, depending on whether null is allowed in this version.
  template <class Null, class NotNull>
  void by_nullability(const Field& field, Null null, NotNull not_null) {
    const std::string when = condition(field.nullable, field.versions);
    if (when.empty()) return null();
    out_.open("if (" + when + ") {");
    null();
    out_.otherwise();
    not_null();
    out_.close();
  }

  void read_field(const Field& field) {
    const std::string target = "value." + field.name;
    const std::string arguments = "(" + flexible_of(field) + ", " + quoted(field.name) + ")";
    if (field.is_array) return read_array(field);
    switch (field.kind()) {
      case Kind::kRecords:
        return out_.line(target +
                         (message_.views ? " = in.nullable_blob" + arguments
                                         : " = inline_records(in.nullable_blob" + arguments + ")") +
                         ";");
      case Kind::kStruct:
        return read_struct(field);
      case Kind::kString:
      case Kind::kBytes:
        break;
      default:
        return out_.line(target + " = " + read_value(field, flexible_of(field)) + ";");
    }
    const bool text = field.kind() == Kind::kString;
    const std::string not_null =
        assign(field, target, std::string("in.") + (text ? "text" : "blob") + arguments);
    if (!field.can_be_null()) return out_.line(not_null);
    by_nullability(
        field,
        [&] {
          out_.line(assign(field, target,
                           std::string("in.nullable_") + (text ? "text" : "blob") + arguments));
        },
        [&] { out_.line(not_null); });
  }

  [[nodiscard]] std::string assign(const Field& field, const std::string& target,
                                   const std::string& read) const {
    const bool copies = field.kind() == Kind::kBytes && !message_.views;
    return target + " = " + (copies ? "copied(" + read + ")" : read) + ";";
  }

  void read_struct(const Field& field) {
    const std::string target = "value." + field.name;
    const auto plain = [&](const std::string& into) {
      out_.line("read(in, version, " + into + ");");
      out_.line("if (in.failed()) return in.inside(" + quoted(field.name) + ");");
    };
    if (!field.can_be_null()) return plain(target);
    const auto nullable = [&] {
      out_.line("if (in.int8(" + quoted(field.name) + ") < 0) " + target + ".reset();");
      out_.line("else read(in, version, " + target + ".emplace());");
      out_.line("if (in.failed()) return in.inside(" + quoted(field.name) + ");");
    };
    by_nullability(field, nullable, [&] { plain(target + ".emplace()"); });
  }

  void read_array(const Field& field) {
    const std::string element = cpp_element_type(field, message_.views);
    const std::string arguments = "(" + flexible_of(field) + ", {" +
                                  std::to_string(min_element_size(field)) + ", sizeof(" + element +
                                  ")}, " + quoted(field.name) + ")";
    const std::string target = "value." + field.name;
    if (!field.can_be_null()) {
      out_.open("{");
      out_.line("const std::size_t count = in.array_size" + arguments + ";");
      read_elements(field, target);
      out_.close();
      return;
    }
    out_.open("{");
    out_.line("std::optional<std::size_t> size;");
    by_nullability(
        field, [&] { out_.line("size = in.nullable_array_size" + arguments + ";"); },
        [&] { out_.line("size = in.array_size" + arguments + ";"); });
    out_.line("if (!size) " + target + ".reset();");
    out_.open("if (size) {");
    out_.line("const std::size_t count = *size;");
    out_.line("auto& items = " + target + ".emplace();");
    read_elements(field, "items");
    out_.close();
    out_.close();
  }

  void read_elements(const Field& field, const std::string& items) {
    out_.line(items + ".reserve(count);");
    out_.open("for (std::size_t i = 0; i < count; ++i) {");
    if (field.kind() == Kind::kStruct) {
      out_.line("read(in, version, " + items + ".emplace_back());");
      out_.line("if (in.failed()) return in.inside(" + quoted(field.name) + ", i);");
    } else {
      out_.line(items + ".emplace_back(" + read_value(field, flexible_of(field)) + ");");
      out_.line("if (in.failed()) return;");
    }
    out_.close();
  }

  /// The fewest bytes of an element in any version: bounds what a length may announce.
  [[nodiscard]] int min_element_size(const Field& field) const {
    int smallest = 1 << 30;
    for (int version = field.versions.min; version <= field.versions.max; ++version) {
      const bool flexible = version >= message_.flexible_from && !field.always_inflexible;
      int size = 0;
      if (field.kind() == Kind::kStruct) {
        size = min_size(*field.structure, message_, version);
      } else {
        Field element;
        element.type = field.type;
        element.versions = field.versions;
        element.always_inflexible = !flexible;
        size = min_size(element, message_, version);
      }
      smallest = std::min(smallest, size);
    }
    return std::max(smallest, 1);
  }

  void read_tags() {
    if (!ever_flexible()) return;
    if (!always_flexible()) out_.line("if (!flexible) return;");
    const bool any = std::ranges::any_of(structure_.fields, &Field::tagged);
    if (!any) return out_.line("in.skip_tags();");
    out_.open("for (std::uint32_t left = in.tag_count(); left > 0 && !in.failed(); --left) {");
    out_.line("const Reader::Tag tag = in.tag();");
    out_.line("if (in.failed()) return;");
    out_.open("switch (tag.id) {");
    for (const Field& field : structure_.fields) {
      if (!field.tagged()) continue;
      out_.open("case " + std::to_string(*field.tag) + ": {");
      const std::string when = tag_condition(field);
      if (!when.empty())
        out_.line("if (!(" + when + ")) return in.fail_tag_version(" + quoted(field.name) + ");");
      read_field(field);
      out_.line("break;");
      out_.close();
    }
    out_.line("default: in.skip_tag(tag);");
    out_.close();
    out_.close();
  }

  void write_field(const Field& field) {
    const std::string source = "value." + field.name;
    const std::string flexible = flexible_of(field);
    if (field.is_array) return write_array(field);
    if (field.kind() == Kind::kRecords) {
      return out_.line(message_.views ? "out.nullable_blob(" + flexible + ", " + source + ");"
                                      : "out.records(" + flexible + ", " + source + ");");
    }
    if (!field.can_be_null()) return out_.line(write_value(field, flexible, source));
    if (field.kind() == Kind::kStruct) return write_nullable_struct(field);
    const bool text = field.kind() == Kind::kString;
    by_nullability(
        field,
        [&] {
          out_.line(std::string("out.nullable_") + (text ? "text(" : "blob(") + flexible +
                    ", view(" + source + "));");
        },
        [&] { out_.line(write_value(field, flexible, "or_empty(" + source + ")")); });
  }

  void write_nullable_struct(const Field& field) {
    const std::string source = "value." + field.name;
    by_nullability(
        field,
        [&] {
          out_.line("out.int8(" + source + " ? 1 : -1);");
          out_.line("if (" + source + ") write(out, version, *" + source + ");");
        },
        [&] {
          out_.line("write(out, version, " + source + ".value_or(" + field.structure->qualified +
                    "{}));");
        });
  }

  void write_array(const Field& field) {
    const std::string source = "value." + field.name;
    const std::string flexible = flexible_of(field);
    const auto elements = [&](const std::string& items) {
      out_.line("out.array_size(" + flexible + ", " + items + ".size());");
      out_.line("for (const auto& item : " + items + ") " + write_value(field, flexible, "item"));
    };
    if (!field.can_be_null()) return elements(source);
    out_.open("if (" + source + ") {");
    elements("(*" + source + ")");
    out_.otherwise();
    by_nullability(
        field, [&] { out_.line("out.null_array(" + flexible + ");"); },
        [&] { out_.line("out.array_size(" + flexible + ", 0);"); });
    out_.close();
  }

  /// Within the flexible versions.
  [[nodiscard]] std::string tag_condition(const Field& field) const {
    const Versions flexible{std::max(message_.flexible_from, structure_.versions.min),
                            structure_.versions.max};
    return condition(field.versions, flexible);
  }

  /// Kafka writes a tagged field only where it differs from its default.
  [[nodiscard]] static std::string differs(const Field& field) {
    const std::string source = "value." + field.name;
    if (field.can_be_null())
      return field.default_null ? source + ".has_value()"
                                : "!" + source + " || !" + source + "->empty()";
    if (field.is_array || field.kind() == Kind::kString || field.kind() == Kind::kBytes)
      return "!" + source + ".empty()";
    if (field.kind() == Kind::kUuid) return "!" + source + ".is_zero()";
    if (field.kind() == Kind::kStruct)
      return "!(" + source + " == " + field.structure->qualified + "{})";
    return source + " != " + default_value(field);
  }

  void write_tags() {
    if (!ever_flexible()) return;
    if (!always_flexible()) out_.line("if (!flexible) return;");
    std::vector<const Field*> tagged;
    for (const Field& field : structure_.fields) {
      if (field.tagged()) tagged.push_back(&field);
    }
    if (tagged.empty()) return out_.line("out.uvarint(0);");
    std::ranges::sort(tagged, {}, [](const Field* field) { return *field->tag; });
    std::string count;
    for (const Field* field : tagged) {
      const std::string when = tag_condition(*field);
      out_.line("const bool has_" + field->name + " = " +
                (when.empty() ? "" : "(" + when + ") && ") + "(" + differs(*field) + ");");
      count += (count.empty() ? "" : " + ") + std::string("has_") + field->name;
    }
    out_.line("out.uvarint(static_cast<std::uint32_t>(" + count + "));");
    for (const Field* field : tagged) {
      out_.open("if (has_" + field->name + ") {");
      out_.line("const std::size_t tag = out.begin_tag(" + std::to_string(*field->tag) + ");");
      write_field(*field);
      out_.line("out.end_tag(tag);");
      out_.close();
    }
  }

  Lines& out_;
  const Struct& structure_;
  const Message& message_;
};

void emit_message(Lines& out, const Message& message) {
  out.line("namespace {");
  out.line();
  for (const Struct* structure : structs_of(message)) {
    StructCodec codec(out, *structure, message);
    codec.emit_read();
    codec.emit_write();
  }
  out.line("}  // namespace");
  out.line();
  const std::string spoken = quoted(spoken_name(message));
  const bool record = message.role == Role::kRecord;
  const std::string code = record ? ", ErrorCode::KAFKA_STORAGE_ERROR" : "";
  out.open("Result<void> decode(Reader& in, std::int16_t version, " + message.name + "& into) {");
  out.line("into = {};");
  out.line("if (version < " + message.name + "::kMinVersion || version > " + message.name +
           "::kMaxVersion) return wrong_version(" + spoken + ", version" + code + ");");
  out.line("read(in, version, into);");
  out.line("if (in.failed()) return std::unexpected(in.error(" + spoken + ", version" + code +
           "));");
  out.line("return {};");
  out.close();
  out.line();
  out.line("void encode(Writer& out, std::int16_t version, const " + message.name +
           "& value) { write(out, version, value); }");
  out.line();
}

}  // namespace

std::string emit_codecs(const std::vector<const Api*>& apis, const std::vector<Message>& headers) {
  Lines out;
  out.line(kGeneratedNotice);
  if (!headers.empty()) out.line("#include \"kanal/wire/headers.hpp\"");
  for (const Api* api : apis)
    out.line("#include \"kanal/wire/messages/" + api->snake_name + ".hpp\"");
  out.line("#include \"codec_support.hpp\"");
  out.line();
  out.line("namespace kanal::wire {");
  out.line();
  for (const Message& message : headers) emit_message(out, message);
  for (const Api* api : apis) {
    emit_message(out, api->request);
    emit_message(out, api->response);
  }
  out.line("}  // namespace kanal::wire");
  return out.take();
}

std::string emit_stored_codecs(const std::vector<Message>& records) {
  Lines out;
  out.line(kGeneratedNotice);
  out.line("#include \"kanal/wire/stored.hpp\"");
  out.line("#include \"codec_support.hpp\"");
  out.line();
  out.line("namespace kanal::wire {");
  out.line();
  for (const Message& message : records) {
    emit_message(out, message);
    out.open("void encode_stored(Writer& out, const " + message.name + "& value) {");
    out.line("out.int16(" + message.name + "::kRecordType);");
    out.line("out.int16(" + message.name + "::kMaxVersion);");
    out.line("encode(out, " + message.name + "::kMaxVersion, value);");
    out.close();
    out.line();
  }
  out.open("Result<StoredRecord> decode_stored(Bytes record) {");
  out.line("Reader in = Reader::read_only(record);");
  out.line("const std::int16_t type = in.int16(\"record type\");");
  out.line("const std::int16_t version = in.int16(\"record version\");");
  out.line(
      "if (in.failed()) return std::unexpected(in.error(\"stored record\", version, "
      "ErrorCode::KAFKA_STORAGE_ERROR));");
  out.open("switch (type) {");
  for (const Message& message : records) {
    out.line("case " + message.name + "::kRecordType: return decode_whole<StoredRecord, " +
             message.name + ">(in, version);");
  }
  out.line("default: return unknown_record(type);");
  out.close();
  out.close();
  out.line();
  out.line("}  // namespace kanal::wire");
  return out.take();
}

}  // namespace kanal::wiregen
