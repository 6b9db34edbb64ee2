#include "emit.hpp"

namespace kanal::wiregen {
namespace {

std::string fill_value(const Field& field, bool views) {
  switch (field.kind()) {
    case Kind::kBool:
      return "fill.boolean()";
    case Kind::kString:
      return views ? "fill.text()" : "std::string(fill.text())";
    case Kind::kBytes:
      return views ? "Bytes(fill.blob())" : "fill.buffer()";
    case Kind::kRecords:
      return views ? "fill.blob()" : "fill.records()";
    case Kind::kUuid:
      return "fill.uuid()";
    case Kind::kFloat64:
      return "fill.float64()";
    default:
      break;
  }
  const std::string number = "fill.integer<std::" + wire_name(field.kind()) + "_t>()";
  switch (field.type->wrap) {
    case Wrap::kStrong:
    case Wrap::kMilliseconds:
      return field.type->cpp + "(" + number + ")";
    case Wrap::kErrorCode:
      return "static_cast<ErrorCode>(" + number + ")";
    case Wrap::kPlain:
      break;
  }
  return number;
}

void fill_array(Lines& out, const Field& field, bool views, const std::string& items) {
  out.open("for (std::size_t left = fill.count(); left > 0; --left) {");
  if (field.kind() == Kind::kStruct)
    out.line("fill_in(fill, version, " + items + ".emplace_back());");
  else
    out.line(items + ".push_back(" + fill_value(field, views) + ");");
  out.close();
}

void fill_field(Lines& out, const Field& field, bool views) {
  const std::string target = "value." + field.name;
  const bool nullable = !field.nullable.empty();
  if (nullable) {
    const std::string when = condition(field.nullable, field.versions);
    const std::string null = field.kind() == Kind::kRecords && !views ? "{}" : "std::nullopt";
    out.line("if (" + (when.empty() ? "" : when + " && ") + "fill.null()) " + target + " = " +
             null + ";");
    out.open("else {");
  }
  if (field.is_array) {
    if (field.can_be_null())
      out.line(target + ".emplace();");
    else
      out.line(target + ".clear();");
    fill_array(out, field, views, field.can_be_null() ? "(*" + target + ")" : target);
  } else if (field.kind() == Kind::kStruct) {
    out.line("fill_in(fill, version, " + target + (field.can_be_null() ? ".emplace()" : "") + ");");
  } else {
    out.line(target + " = " + fill_value(field, views) + ";");
  }
  if (nullable) out.close();
}

void emit_fill(Lines& out, const Struct& structure, const Message& message) {
  out.open(
      "static void fill_in([[maybe_unused]] Filler& fill, [[maybe_unused]] std::int16_t version, "
      "[[maybe_unused]] " +
      structure.qualified + "& value) {");
  for (const Field& field : structure.fields) {
    const std::string when = condition(field.versions, structure.versions);
    if (!when.empty()) out.open("if (" + when + ") {");
    fill_field(out, field, message.views);
    if (!when.empty()) out.close();
  }
  out.close();
  out.line();
}

void emit_case(Lines& cases, const Message& message, int key) {
  const int type = message.role == Role::kRecord ? message.record_type : -1;
  std::string numbers;
  for (const int number :
       {key, type, message.flexible_from, message.versions.min, message.versions.max}) {
    numbers += ", " + std::to_string(number);
  }
  cases.line("make_case<" + message.name + ">({\"" + message.name + "\", \"" +
             spoken_name(message) + "\"" + numbers + "}),");
}

}  // namespace

std::string emit_cases(const Protocol& protocol) {
  Lines out;
  Lines cases;
  out.line(kGeneratedNotice);
  for (const Api& api : protocol.apis)
    out.line("#include \"kanal/wire/messages/" + api.snake_name + ".hpp\"");
  out.line("#include \"kanal/wire/headers.hpp\"");
  out.line("#include \"kanal/wire/stored.hpp\"");
  out.line("#include \"unit/wire/message_case.hpp\"");
  out.line();
  out.line("namespace kanal::wire {");
  out.line();
  cases.open("std::span<const MessageCase> message_cases() {");
  cases.open("static const MessageCase kCases[] = {");
  const auto add = [&](const Message& message, int key) {
    for (const Struct* structure : structs_of(message)) emit_fill(out, *structure, message);
    out.line("void fill_message(Filler& fill, std::int16_t version, " + message.name +
             "& value) { fill_in(fill, version, value); }");
    out.line();
    emit_case(cases, message, key);
  };
  for (const Message& message : protocol.headers) add(message, -1);
  for (const Message& message : protocol.records) add(message, -1);
  for (const Api& api : protocol.apis) {
    add(api.request, api.key);
    add(api.response, api.key);
  }
  cases.close("};");
  cases.line("return kCases;");
  cases.close();
  return out.take() + cases.take() + "\n}  // namespace kanal::wire\n";
}

}  // namespace kanal::wiregen
