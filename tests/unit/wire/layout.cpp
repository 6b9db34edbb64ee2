#include "layout.hpp"

#include <boost/json/parse.hpp>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

namespace kanal::wiregen {
namespace {

namespace json = boost::json;

// Fields that are called otherwise here. (milliseconds need no entry: they drop Kafka's "Ms".)
const std::map<std::string, std::string> kRenamed = {
    {"ProduceResponse.responses[].partition_responses[].log_append_time", "log_append_time_ms"},
};

// Nullable fields that start as null here, where Kafka's start empty and its broker sets null by
// hand. It makes no difference on the wire: none of them is tagged.
const std::vector<std::string> kNullHereByDefault = {
    "FetchResponse.responses[].partitions[].aborted_transactions",
    "CreateTopicsResponse.topics[].error_message",
    "DescribeConfigsResponse.results[].error_message",
    "DescribeConfigsResponse.results[].configs[].value",
    "DescribeConfigsResponse.results[].configs[].documentation",
    "LeaveGroupResponse.members[].group_instance_id",
    "AlterConfigsResponse.responses[].error_message",
    "IncrementalAlterConfigsResponse.responses[].error_message",
};

/// Orders one struct's lines: plain ones as they come, then the tagged by tag, each followed by
/// what is inside.
class Lines {
 public:
  void add(int tag, Layout lines) { entries_.push_back({tag, std::move(lines)}); }
  [[nodiscard]] Layout take() {
    std::ranges::stable_sort(entries_, {}, &Entry::tag);
    Layout all;
    for (Entry& entry : entries_) all.insert(all.end(), entry.lines.begin(), entry.lines.end());
    return all;
  }

 private:
  struct Entry {
    int tag;
    Layout lines;
  };
  std::vector<Entry> entries_;
};

struct Fact {
  std::string path;
  std::string type;
  bool nullable;
  std::string default_value;
  int tag;
  bool old_form;
};

std::string to_line(const Fact& fact) {
  return fact.path + ": " + fact.type + (fact.nullable ? " or null" : "") + " = " +
         fact.default_value + (fact.tag >= 0 ? " tag " + std::to_string(fact.tag) : "") +
         (fact.old_form ? " never compact" : "");
}

// Without a default: 0, false, "", an empty list, a struct of defaults.
std::string no_default(const std::string& type) {
  if (type.starts_with("[]")) return "[]";
  if (type == "string") return "''";
  if (type == "bool") return "false";
  if (type == "struct" || type == "uuid" || type == "bytes" || type == "records") return "-";
  return "0";
}

std::string our_default(const Field& field, const std::string& type, const std::string& full_path) {
  const auto known = std::ranges::find(kNullHereByDefault, full_path);
  if (known != kNullHereByDefault.end() && field.default_null && !field.tagged())
    return no_default(type);
  if (field.default_null) return "null";
  if (!field.default_text) return no_default(type);
  return field.default_text->empty() ? "''" : *field.default_text;
}

std::string kafka_name_of(const Field& field, const std::string& full_path) {
  if (const auto renamed = kRenamed.find(full_path); renamed != kRenamed.end())
    return renamed->second;
  const bool time = field.type != nullptr && field.type->wrap == Wrap::kMilliseconds;
  return time ? field.name + "_ms" : field.name;
}

struct OurWalk {
  const Message& message;
  int version;

  [[nodiscard]] Layout walk(const Struct& structure, const std::string& prefix,
                            const std::string& full) const {
    Lines lines;
    for (const Field& field : structure.fields) {
      if (!field.versions.contains(version)) continue;
      const std::string brackets = field.is_array ? "[]" : "";
      const std::string full_path = full + "." + field.name;
      const std::string path = prefix + kafka_name_of(field, full_path);
      const std::string type = brackets + wire_name(field.kind());
      const bool flexible = version >= message.flexible_from;
      Layout own = {to_line({path, type, field.nullable.contains(version),
                             our_default(field, type, full_path), field.tag.value_or(-1),
                             flexible && field.always_inflexible})};
      if (field.structure != nullptr) {
        const Layout inner = walk(*field.structure, path + brackets + ".", full_path + brackets);
        own.insert(own.end(), inner.begin(), inner.end());
      }
      lines.add(field.tag.value_or(-1), std::move(own));
    }
    return lines.take();
  }
};

std::string snake_case(std::string_view name) {
  std::string snake;
  for (const char c : name) {
    if (std::isupper(static_cast<unsigned char>(c)) != 0 && !snake.empty()) snake += '_';
    snake += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return snake;
}

/// "3", "3-5", "3+", "none"; false where the key is missing.
bool covers(const json::object& field, std::string_view key, int version) {
  const json::value* found = field.if_contains(key);
  if (found == nullptr) return false;
  const std::string text(found->as_string());
  if (text == "none") return false;
  const auto dash = text.find('-');
  const int min = std::stoi(text);
  if (text.ends_with('+')) return version >= min;
  return version >= min &&
         version <= (dash == std::string::npos ? min : std::stoi(text.substr(dash + 1)));
}

std::string kafka_default(const json::object& field, const std::string& type) {
  const json::value* found = field.if_contains("default");
  if (found == nullptr) return no_default(type);
  if (found->is_int64()) return std::to_string(found->as_int64());
  if (found->is_bool()) return found->as_bool() ? "true" : "false";
  const std::string text(found->as_string());
  if (text.empty()) return type == "string" ? "''" : no_default(type);
  return text.starts_with("0x") ? std::to_string(std::stoll(text, nullptr, 16)) : text;
}

struct KafkaWalk {
  const json::object& definition;
  int version;

  [[nodiscard]] const json::array& fields_of(const json::object& field,
                                             const std::string& type) const {
    if (const json::value* own = field.if_contains("fields")) return own->as_array();
    for (const json::value& common : definition.at("commonStructs").as_array()) {
      if (common.at("name").as_string() == type) return common.at("fields").as_array();
    }
    throw std::runtime_error("no fields for " + type);
  }

  [[nodiscard]] Layout walk(const json::array& fields, const std::string& prefix) const {
    Lines lines;
    for (const json::value& value : fields) {
      const json::object& field = value.as_object();
      if (!covers(field, "versions", version)) continue;
      std::string type(field.at("type").as_string());
      const bool is_array = type.starts_with("[]");
      const std::string element = is_array ? type.substr(2) : type;
      const bool is_struct = std::isupper(static_cast<unsigned char>(element[0])) != 0;
      const std::string brackets = is_array ? "[]" : "";
      if (is_struct) type = brackets + "struct";
      const int tag = covers(field, "taggedVersions", version)
                          ? static_cast<int>(field.at("tag").as_int64())
                          : -1;
      const std::string path = prefix + snake_case(field.at("name").as_string());
      const bool old_form = covers(definition, "flexibleVersions", version) &&
                            field.contains("flexibleVersions") &&
                            !covers(field, "flexibleVersions", version);
      Layout own = {to_line({path, type, covers(field, "nullableVersions", version),
                             kafka_default(field, type), tag, old_form})};
      if (is_struct) {
        const Layout inner = walk(fields_of(field, element), path + brackets + ".");
        own.insert(own.end(), inner.begin(), inner.end());
      }
      lines.add(tag, std::move(own));
    }
    return lines.take();
  }
};

}  // namespace

Layout our_layout(const Message& message, int version) {
  Layout layout = {version >= message.flexible_from ? "flexible" : "not flexible"};
  const Layout fields = OurWalk{message, version}.walk(message.root, "", message.name);
  layout.insert(layout.end(), fields.begin(), fields.end());
  return layout;
}

Layout kafka_layout(const json::value& definition, int version) {
  const json::object& root = definition.as_object();
  if (!covers(root, "validVersions", version)) return {"no such version"};
  Layout layout = {covers(root, "flexibleVersions", version) ? "flexible" : "not flexible"};
  const Layout fields = KafkaWalk{root, version}.walk(root.at("fields").as_array(), "");
  layout.insert(layout.end(), fields.begin(), fields.end());
  return layout;
}

json::value kafka_definition(const std::string& message) {
  const std::string path =
      std::string(KANAL_GOLDEN_DIR) + "/kafka-4.4/messages/" + message + ".json";
  std::ifstream stream(path);
  if (!stream) throw std::runtime_error("no facts for " + message + ": " + path);
  std::ostringstream text;
  text << stream.rdbuf();
  json::parse_options options;
  options.allow_comments = true;
  return json::parse(text.str(), {}, options);
}

std::string difference(const Layout& kafka, const Layout& ours) {
  if (kafka == ours) return "";
  std::string text;
  for (const std::string& line : kafka) {
    if (std::ranges::find(ours, line) == ours.end()) text += "  - " + line + "\n";
  }
  for (const std::string& line : ours) {
    if (std::ranges::find(kafka, line) == kafka.end()) text += "  + " + line + "\n";
  }
  return text.empty() ? "  the same fields in another order\n" : text;
}

std::string difference(const Message& message, const json::value& definition) {
  std::string text;
  for (int version = message.versions.min; version <= message.versions.max; ++version) {
    const std::string one =
        difference(kafka_layout(definition, version), our_layout(message, version));
    if (!one.empty())
      text += message.name + " v" + std::to_string(version) + " (- Kafka, + here):\n" + one;
  }
  return text;
}

}  // namespace kanal::wiregen
