// The start-up file: YAML flattened to settings with their lines. Hostile input ends in a problem:
// depth, number of nodes (aliases multiply them) and size are bounded, duplicate keys are refused.
#include "config_options.hpp"

#include <yaml-cpp/yaml.h>

#include <map>

namespace kanal::server {
namespace {

constexpr int kMaxDepth = 8;
constexpr int kMaxNodes = 10'000;
constexpr std::size_t kMaxListeners = 64;

class Flattener {
 public:
  Flattener(const std::string& file, ConfigProblems& problems) : file_(file), problems_(problems) {}

  std::vector<Setting> run(const YAML::Node& root) {
    if (root.IsMap()) {
      map(root, "", 1);
    } else if (!root.IsNull()) {
      problem(root, "", "The file must be a map of options");
    }
    return std::move(settings_);
  }

 private:
  void map(const YAML::Node& node, const std::string& prefix, int depth) {
    std::map<std::string, int> lines;
    for (const auto& pair : node) {
      if (!counted(pair.second)) return;
      if (!pair.first.IsScalar()) {
        problem(pair.first, prefix, "A key must be plain text");
        continue;
      }
      const std::string key =
          prefix.empty() ? pair.first.Scalar() : prefix + "." + pair.first.Scalar();
      const int line = pair.first.Mark().line + 1;
      if (const auto [first, added] = lines.emplace(pair.first.Scalar(), line); !added) {
        problem(pair.first, key,
                "The key is there twice, first in line " + std::to_string(first->second));
        continue;
      }
      value(pair.second, key, line, depth);
    }
  }

  void value(const YAML::Node& node, const std::string& key, int line, int depth) {
    if (node.IsMap()) {
      if (depth >= kMaxDepth)
        return problem(node, key.substr(0, 100), "The file is nested too deep");
      map(node, key, depth + 1);
    } else if (key == "listeners" && node.IsSequence()) {
      listeners(node, line);
    } else if (node.IsScalar()) {
      settings_.push_back({key, node.Scalar(), file_, line, {}});
    } else if (node.IsSequence()) {
      list(node, key, line);
    } else if (!is_section(key)) {
      problems_.push_back({file_, line, key, "It has no value"});
    }
  }

  /// A section whose lines are all commented out is no mistake.
  static bool is_section(const std::string& key) {
    if (key == "kafka") return true;
    for (const Option& option : options()) {
      if (option.key.starts_with(key + ".")) return true;
    }
    return false;
  }

  void list(const YAML::Node& node, const std::string& key, int line) {
    std::string joined;
    for (const auto& item : node) {
      if (!counted(item)) return;
      if (!item.IsScalar()) return problem(item, key, "The items of a list must be plain values");
      if (!joined.empty()) joined += ',';
      joined += item.Scalar();
    }
    settings_.push_back({key, joined, file_, line, {}});
  }

  void listeners(const YAML::Node& node, int line) {
    Setting setting{"listeners", "", file_, line, {}};
    for (const auto& item : node) {
      if (!counted(item)) return;
      const std::string key = "listeners[" + std::to_string(setting.listeners.size()) + "]";
      if (setting.listeners.size() >= kMaxListeners)
        return problem(item, key, "There are too many listeners");
      ListenerText& listener = setting.listeners.emplace_back();
      listener.line = item.Mark().line + 1;
      if (item.IsMap()) {
        listener_map(item, key, listener);
      } else {
        problem(item, key, "A listener is a map of name, bind and advertised");
        listener.bind = "127.0.0.1:0";
      }
    }
    if (setting.listeners.empty())
      return problem(node, "listeners", "At least one listener is needed");
    settings_.push_back(std::move(setting));
  }

  void listener_map(const YAML::Node& node, const std::string& key, ListenerText& listener) {
    std::map<std::string, int> lines;
    for (const auto& pair : node) {
      const std::string field = pair.first.IsScalar() ? pair.first.Scalar() : "";
      const int line = pair.first.Mark().line + 1;
      if (field != "name" && field != "bind" && field != "advertised") {
        const std::string_view fields[] = {"name", "bind", "advertised"};
        const auto near = coordinator::nearest_name(field, fields);
        problem(pair.first, key + "." + field,
                "unknown key" + (near.empty() ? "; a listener has name, bind and advertised"
                                              : "; did you mean " + std::string(near) + "?"));
      } else if (!lines.emplace(field, line).second) {
        problem(pair.first, key + "." + field, "The key is there twice");
      } else if (!pair.second.IsScalar()) {
        problem(pair.first, key + "." + field, "It must be plain text");
      } else if (field == "name") {
        listener.name = pair.second.Scalar();
      } else if (field == "bind") {
        listener.bind = pair.second.Scalar();
      } else {
        listener.advertised = pair.second.Scalar();
      }
    }
  }

  bool counted(const YAML::Node& node) {
    if (++nodes_ == kMaxNodes) problem(node, "", "The file holds too many values");
    return nodes_ < kMaxNodes;
  }

  void problem(const YAML::Node& node, std::string key, std::string text) {
    problems_.push_back({file_, node.Mark().line + 1, std::move(key), std::move(text)});
  }

  const std::string& file_;
  ConfigProblems& problems_;
  std::vector<Setting> settings_;
  int nodes_ = 0;
};

}  // namespace

std::vector<Setting> read_yaml(const std::string& text, const std::string& file,
                               ConfigProblems& problems) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() > 1) {
      problems.push_back({file, 0, "", "The file must hold one document, without a line of ---"});
      return {};
    }
    if (documents.empty()) return {};
    return Flattener(file, problems).run(documents[0]);
  } catch (const YAML::Exception& error) {
    problems.push_back({file, error.mark.is_null() ? 0 : error.mark.line + 1, "",
                        "This is no YAML: " + error.msg});
  } catch (const std::exception& error) {
    problems.push_back({file, 0, "", std::string("This is no YAML: ") + error.what()});
  }
  return {};
}

}  // namespace kanal::server
