#include "parse.hpp"

#include "check.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <set>
#include <sstream>
#include <string_view>

namespace kanal::wiregen {
namespace {

/// One YAML mapping, and where it is for messages.
class Map {
 public:
  Map(const std::string& file, const YAML::Node& node, std::initializer_list<std::string_view> keys)
      : file_(file), node_(node) {
    if (!node.IsMap()) fail("a mapping of key: value is expected here");
    std::set<std::string> seen;
    for (const auto& entry : node) {
      const auto key = entry.first.as<std::string>();
      const int line = entry.first.Mark().line + 1;
      if (std::ranges::find(keys, std::string_view(key)) == keys.end()) {
        throw SchemaError(file_, line, "unknown key '" + key + "'");
      }
      if (!seen.insert(key).second)
        throw SchemaError(file_, line, "key '" + key + "' is written twice");
    }
  }

  [[nodiscard]] int line() const { return node_.Mark().line + 1; }
  [[nodiscard]] bool has(const char* key) const { return node_[key].IsDefined(); }
  [[nodiscard]] YAML::Node at(const char* key) const {
    if (!has(key)) fail(std::string("'") + key + "' is missing");
    return node_[key];
  }
  [[nodiscard]] std::string text(const char* key) const {
    const YAML::Node node = at(key);
    if (!node.IsScalar())
      throw SchemaError(file_, node.Mark().line + 1, std::string("'") + key + "' must be a word");
    return node.Scalar();
  }
  [[nodiscard]] std::string text_or(const char* key, const std::string& other) const {
    return has(key) ? text(key) : other;
  }
  [[nodiscard]] int number(const char* key) const { return to_number(text(key), key); }
  [[nodiscard]] bool boolean(const char* key) const {
    const std::string value = text(key);
    if (value != "true" && value != "false") fail_key(key, "true or false", value);
    return value == "true";
  }
  /// "3", "3-13", "9+", "true" (all).
  [[nodiscard]] Versions versions(const char* key) const {
    const std::string value = text(key);
    if (value == "true") return {0, kForever};
    if (value.ends_with('+')) return {to_number(value.substr(0, value.size() - 1), key), kForever};
    const auto dash = value.find('-');
    if (dash == std::string::npos) return {to_number(value, key), to_number(value, key)};
    const Versions range{to_number(value.substr(0, dash), key),
                         to_number(value.substr(dash + 1), key)};
    if (range.empty()) fail_key(key, "a range from low to high", value);
    return range;
  }
  [[nodiscard]] std::map<int, std::string> notes() const {
    std::map<int, std::string> notes;
    if (!has("notes")) return notes;
    for (const auto& entry : at("notes")) {
      notes[to_number(entry.first.Scalar(), "notes")] = entry.second.Scalar();
    }
    return notes;
  }
  [[noreturn]] void fail(const std::string& what) const { throw SchemaError(file_, line(), what); }

 private:
  [[noreturn]] void fail_key(const char* key, const std::string& wanted,
                             const std::string& value) const {
    throw SchemaError(file_, node_[key].Mark().line + 1,
                      std::string("'") + key + "' must be " + wanted + ", not '" + value + "'");
  }
  [[nodiscard]] int to_number(const std::string& value, const char* key) const {
    int number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number < 0 ||
        number > kForever) {
      fail_key(key, "a small number", value);
    }
    return number;
  }

  const std::string& file_;
  YAML::Node node_;
};

std::vector<Field> parse_fields(const std::string& file, const YAML::Node& list);

Struct parse_struct(const std::string& file, const std::string& name, const YAML::Node& fields,
                    int line) {
  Struct structure;
  structure.name = name;
  structure.line = line;
  structure.fields = parse_fields(file, fields);
  return structure;
}

Field parse_field(const std::string& file, const YAML::Node& node) {
  const Map map(file, node,
                {"name", "type", "since", "until", "nullable", "default", "tag", "flexible",
                 "fields", "notes"});
  Field field;
  field.line = map.line();
  field.name = map.text("name");
  field.type_name = map.text("type");
  if (field.type_name.starts_with("[]")) {
    field.is_array = true;
    field.type_name.erase(0, 2);
  }
  if (map.has("since")) field.since = map.number("since");
  if (map.has("until")) field.until = map.number("until");
  if (map.has("nullable") && map.text("nullable") != "false")
    field.nullable_text = map.versions("nullable");
  if (map.has("default")) {
    if (map.at("default").IsNull())
      field.default_null = true;
    else
      field.default_text = map.text("default");
  }
  if (map.has("tag")) field.tag = map.number("tag");
  if (map.has("flexible")) field.always_inflexible = !map.boolean("flexible");
  if (map.has("fields")) {
    field.nested =
        std::make_unique<Struct>(parse_struct(file, field.type_name, map.at("fields"), field.line));
  }
  field.notes = map.text_or("notes", "");
  return field;
}

std::vector<Field> parse_fields(const std::string& file, const YAML::Node& list) {
  if (!list.IsSequence())
    throw SchemaError(file, list.Mark().line + 1, "a list of fields is expected here");
  std::vector<Field> fields;
  for (const YAML::Node& node : list) fields.push_back(parse_field(file, node));
  return fields;
}

std::vector<std::unique_ptr<Struct>> parse_common(const std::string& file, const Map& map) {
  std::vector<std::unique_ptr<Struct>> common;
  if (!map.has("structs")) return common;
  for (const YAML::Node& node : map.at("structs")) {
    const Map entry(file, node, {"name", "fields"});
    common.push_back(std::make_unique<Struct>(
        parse_struct(file, entry.text("name"), entry.at("fields"), entry.line())));
  }
  return common;
}

YAML::Node parse_yaml(const std::string& file, const std::string& text) {
  try {
    return YAML::Load(text);
  } catch (const YAML::Exception& error) {
    throw SchemaError(file, error.mark.line + 1, error.msg);
  }
}

int flexible_from(const std::string& file, const Map& map, Versions served) {
  if (map.text("flexible") == "none") return kForever;
  const Versions flexible = map.versions("flexible");
  if (flexible.max != kForever || flexible.min > served.max) {
    throw SchemaError(file, map.line(),
                      "'flexible' must be none or like 3+, starting at a served version");
  }
  return flexible.min;
}

void check_notes(const Map& map, const std::map<int, std::string>& notes, Versions served) {
  for (const auto& [version, note] : notes) {
    if (!served.contains(version))
      map.fail("a note for version " + std::to_string(version) + ", which is not served");
  }
}

Message body_message(const Api& api, const Map& map, Role role) {
  Message message;
  message.role = role;
  message.name = api.name + (role == Role::kRequest ? "Request" : "Response");
  message.versions = api.versions;
  message.flexible_from = api.flexible_from;
  message.views = role == Role::kRequest;
  message.file = api.file;
  message.common = parse_common(api.file, map);
  const char* key = role == Role::kRequest ? "request" : "response";
  message.root = parse_struct(api.file, message.name, map.at(key), map.at(key).Mark().line + 1);
  check(message);
  return message;
}

/// "26_end_txn.yaml" -> 26 and "end_txn".
std::pair<int, std::string> split_file_name(const std::string& file) {
  const std::string stem = std::filesystem::path(file).stem().string();
  int key = 0;
  const auto [end, error] = std::from_chars(stem.data(), stem.data() + stem.size(), key);
  if (error != std::errc() || end == stem.data() + stem.size() || *end != '_') {
    throw SchemaError(file, 1, "the file must be named <api key>_<name>.yaml");
  }
  return {key, std::string(end + 1, stem.data() + stem.size())};
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream stream(path);
  if (!stream) throw SchemaError(path.string(), 1, "cannot be read");
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

}  // namespace

Api load_api(const std::string& file, const std::string& text) {
  const YAML::Node root = parse_yaml(file, text);
  const Map map(file, root,
                {"api", "versions", "advertise", "flexible", "response_header", "notes", "structs",
                 "request", "response"});
  Api api;
  api.file = file;
  std::tie(api.key, api.snake_name) = split_file_name(file);
  api.name = map.text("api");
  api.versions = map.versions("versions");
  if (api.versions.max == kForever) map.fail("'versions' must end");
  const Versions advertised = map.has("advertise") ? map.versions("advertise") : api.versions;
  if (advertised.max != api.versions.max || advertised.min > api.versions.min) {
    map.fail("'advertise' must end where 'versions' ends and not start later");
  }
  api.advertised_min = advertised.min;
  api.flexible_from = flexible_from(file, map, api.versions);
  if (map.has("response_header")) api.response_header = map.number("response_header");
  api.notes = map.notes();
  check_notes(map, api.notes, api.versions);
  api.request = body_message(api, map, Role::kRequest);
  api.response = body_message(api, map, Role::kResponse);
  for (const auto& common : parse_common(file, map)) {
    const auto uses = [&](const Message& message) {
      return std::ranges::any_of(message.common,
                                 [&](const auto& it) { return it->name == common->name; });
    };
    if (!uses(api.request) && !uses(api.response)) {
      throw SchemaError(file, common->line, "struct '" + common->name + "' is not used");
    }
  }
  return api;
}

std::vector<Message> load_messages(const std::string& file, const std::string& text) {
  const YAML::Node root = parse_yaml(file, text);
  const Map top(file, root, {"headers", "records"});
  const bool headers = top.has("headers");
  std::vector<Message> messages;
  std::set<int> types;
  for (const YAML::Node& node : top.at(headers ? "headers" : "records")) {
    const Map map(
        file, node,
        {"name", "type", "channel", "versions", "flexible", "notes", "structs", "fields"});
    Message message;
    message.role = headers ? Role::kHeader : Role::kRecord;
    message.name = map.text("name");
    message.versions = map.versions("versions");
    if (message.versions.max == kForever) map.fail("'versions' must end");
    message.flexible_from = flexible_from(file, map, message.versions);
    message.views = headers;
    message.file = file;
    message.notes = map.notes();
    check_notes(map, message.notes, message.versions);
    message.common = parse_common(file, map);
    message.root = parse_struct(file, message.name, map.at("fields"), map.line());
    if (!headers) {
      message.record_type = map.number("type");
      message.channel = map.text("channel");
      if (!types.insert(message.record_type).second) map.fail("record type used twice");
    }
    check(message);
    messages.push_back(std::move(message));
  }
  return messages;
}

Protocol load_directory(const std::string& directory) {
  Protocol protocol;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() == ".yaml") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  for (const auto& path : paths) {
    const std::string name = path.filename().string();
    if (name == "headers.yaml")
      protocol.headers = load_messages(path.string(), read_text(path));
    else if (name == "stored.yaml")
      protocol.records = load_messages(path.string(), read_text(path));
    else
      protocol.apis.push_back(load_api(path.string(), read_text(path)));
  }
  std::ranges::sort(protocol.apis, {}, &Api::key);
  const auto twice = std::ranges::adjacent_find(protocol.apis, {}, &Api::key);
  if (twice != protocol.apis.end())
    throw SchemaError(std::next(twice)->file, 1, "a second file for this API key");
  return protocol;
}

}  // namespace kanal::wiregen
