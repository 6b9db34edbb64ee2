// load_config: gathers settings from file, environment and command line, checks each, and makes
// the Config of the ones that win.
#include "config.hpp"

#include "config_options.hpp"
#include "kanal/coordinator/topic_config.hpp"

#include <algorithm>
#include <cctype>
#include <set>

namespace kanal::server {
namespace {

using coordinator::ConfigRow;
using coordinator::Treatment;

constexpr std::string_view kKafka = "kafka.";

/// A setting's key as it is stored, and what checks it: an own option or a row of Kafka's.
struct Target {
  std::string key;
  const Option* option = nullptr;
  const ConfigRow* row = nullptr;
};

std::optional<Target> target_of(std::string_view key) {
  const bool kafka = key.starts_with(kKafka);
  const std::string_view name = kafka ? key.substr(kKafka.size()) : key;
  const Option* option = find_option(name);
  if (option != nullptr && (!kafka || option->alias == name)) {
    return Target{std::string(option->key), option, nullptr};
  }
  const ConfigRow* row = kafka ? coordinator::find_broker_config(name) : nullptr;
  if (row != nullptr) return Target{std::string(key), nullptr, row};
  return std::nullopt;
}

std::string unknown_key(std::string_view key) {
  const bool kafka = key.starts_with(kKafka);
  const std::string_view name = kafka ? key.substr(kKafka.size()) : key;
  const auto meant = [](std::string_view what) {
    return "unknown key; did you mean " + std::string(what) + "?";
  };
  if (!kafka && coordinator::find_broker_config(name) != nullptr) {
    return meant(std::string(name) + " under kafka:");
  }
  if (const auto broker = coordinator::broker_name_of(name); !broker.empty()) {
    return meant(std::string(broker) + (kafka ? "" : " under kafka:"));
  }
  std::vector<std::string_view> names;
  for (const Option& option : options()) names.push_back(option.key);
  if (const auto near = coordinator::nearest_name(name, names); !kafka && !near.empty()) {
    return meant(near);
  }
  std::vector<std::string_view> kafka_names;
  for (const ConfigRow& row : coordinator::broker_config_rows()) {
    if (row.treatment != Treatment::kRefused) kafka_names.push_back(row.name);
  }
  if (const auto near = coordinator::nearest_name(name, kafka_names); !near.empty()) {
    return meant(std::string(near) + (kafka ? "" : " under kafka:"));
  }
  const auto near = coordinator::nearest_name(name, names);
  return near.empty() ? "unknown key" : meant(near);
}

/// Why a setting is refused; nullopt if it is fine.
std::optional<std::string> refuse(const Target& target, const Setting& setting) {
  if (target.option != nullptr) {
    const bool list = !setting.listeners.empty();
    if (list || target.option->kind == OptionKind::kListeners ||
        target.option->kind == OptionKind::kAddresses) {
      return std::nullopt;  // resolve_listeners looks at them
    }
    return refuse_option(*target.option, setting.value);
  }
  const ConfigRow& row = *target.row;
  if (row.treatment == Treatment::kOwnKey) {
    return "is not set under kafka: here; use " + std::string(row.note);
  }
  if (row.treatment == Treatment::kRefused) {
    return "has no meaning here: " + std::string(row.note);
  }
  if (auto checked = coordinator::check_value(row, setting.value); !checked) {
    return checked.error().detail;
  }
  return std::nullopt;
}

class Loader {
 public:
  void add(Setting setting) {
    const auto target = target_of(setting.key);
    if (!target) return problem(setting, unknown_key(setting.key));
    if (const auto why = refuse(*target, setting)) return problem(setting, *why);
    if (setting.line != 0) {
      const auto [first, added] = lines_.emplace(target->key, setting.line);
      if (!added)
        return problem(setting, "is there twice, first in line " + std::to_string(first->second));
    }
    setting.key = target->key;
    chosen_.insert_or_assign(target->key, std::move(setting));
  }

  void add_file(const std::string& text, const std::string& file) {
    for (Setting& setting : read_yaml(text, file, problems_)) add(std::move(setting));
  }

  void add_environment(const Environment& environment);
  void add_command_line(const CommandLine& command);
  std::expected<Config, ConfigProblems> finish();

 private:
  void set_kafka(Config& config);
  void problem(const Setting& setting, std::string text) {
    problems_.push_back(
        {setting.origin, setting.line, setting.key.substr(0, 249), std::move(text)});
  }
  [[nodiscard]] const Setting* chosen(std::string_view key) const {
    const auto found = chosen_.find(key);
    return found == chosen_.end() ? nullptr : &found->second;
  }

  std::map<std::string, Setting, std::less<>> chosen_;
  std::map<std::string, int> lines_;
  ConfigProblems problems_;
};

/// Set by others: Kubernetes for a service called kanal, and this project's tests.
bool is_foreign(std::string_view variable) {
  return variable == "KANAL_PORT" || variable == "KANAL_BROKER" ||
         variable.starts_with("KANAL_TEST_") || variable.starts_with("KANAL_PORT_") ||
         variable.find("_SERVICE_HOST") != std::string_view::npos ||
         variable.find("_SERVICE_PORT") != std::string_view::npos ||
         variable.find("_PORT_") != std::string_view::npos || variable.ends_with("_PORT");
}

std::string key_of_variable(std::string_view variable) {
  for (const Option& option : options()) {
    if (environment_name(option.key) == variable) return std::string(option.key);
    if (!option.alias.empty() && environment_name(option.alias) == variable) {
      return std::string(option.key);
    }
  }
  std::string key(variable.substr(std::string_view("KANAL_").size()));
  for (char& c : key) {
    c = c == '_' ? '.' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return key;
}

void Loader::add_environment(const Environment& environment) {
  for (const auto& [variable, value] : environment) {
    if (!variable.starts_with("KANAL_") || value.empty()) continue;
    const std::string key = key_of_variable(variable);
    if (!target_of(key) && is_foreign(variable)) continue;
    add({key, value, "environment " + variable, 0, {}});
  }
}

void Loader::add_command_line(const CommandLine& command) {
  for (const auto& [key, value] : command.settings) {
    const bool bare_kafka = !target_of(key) && coordinator::find_broker_config(key) != nullptr;
    add({(bare_kafka ? std::string(kKafka) : "") + key, value, "command line", 0, {}});
  }
  if (command.listen.empty()) return;
  Setting listeners{"listeners", "", "command line --listen", 0, {}};
  for (const std::string& text : command.listen) {
    const auto parsed = parse_listeners(text);
    if (!parsed) return problem(listeners, parsed.error());
    for (ListenerText listener : *parsed) {
      const std::size_t number = listeners.listeners.size() + 1;
      if (!listener.name && number > 1) listener.name = "PLAINTEXT_" + std::to_string(number);
      listeners.listeners.push_back(std::move(listener));
    }
  }
  add(std::move(listeners));
}

std::string joined(const std::vector<ListenerOptions>& listeners,
                   HostPort ListenerOptions::* address) {
  std::string out;
  for (const ListenerOptions& listener : listeners) {
    if (!out.empty()) out += ',';
    out += listener.name + "://" + to_string(listener.*address);
  }
  return out;
}

/// What DescribeConfigs shows of our own options under Kafka's names.
void add_facts(const Config& config, coordinator::ConfigMap& fixed) {
  const std::string id = std::to_string(config.node_id.value());
  fixed["node.id"] = id;
  fixed["broker.id"] = id;
  fixed["process.roles"] = "broker,controller";
  fixed["log.dirs"] = resolved_data_dir(config.data_dir);
  fixed["listeners"] = joined(config.listeners, &ListenerOptions::bind);
  fixed["advertised.listeners"] = joined(config.listeners, &ListenerOptions::advertised);
  if (config.kafka.node.rack) fixed["broker.rack"] = *config.kafka.node.rack;
  std::string protocols;
  for (const ListenerOptions& listener : config.listeners) {
    protocols += (protocols.empty() ? "" : ",") + listener.name + ":PLAINTEXT";
  }
  fixed["listener.security.protocol.map"] = protocols;
}

void Loader::set_kafka(Config& config) {
  coordinator::ConfigLayers layers;
  for (const auto& [key, setting] : chosen_) {
    if (!key.starts_with(kKafka)) continue;
    const std::string name = key.substr(kKafka.size());
    layers.fixed[name] = shown_value(*coordinator::find_broker_config(name), setting.value);
  }
  for (const auto& conflict : coordinator::broker_config_conflicts(layers)) {
    const std::string key = std::string(kKafka) + std::string(conflict.name);
    const Setting* setting = chosen(key);
    problems_.push_back({setting != nullptr ? setting->origin : "configuration",
                         setting != nullptr ? setting->line : 0, key, conflict.text});
  }
  if (!problems_.empty()) return;
  add_facts(config, layers.fixed);
  auto made = coordinator::make_broker_config(std::move(layers), config.kafka.node);
  if (made) {
    config.kafka = std::move(*made);
  } else {
    problems_.push_back({"configuration", 0, "", made.error().detail});
  }
}

std::expected<Config, ConfigProblems> Loader::finish() {
  Config config;
  for (const Option& option : options()) {
    const Setting* setting = chosen(option.key);
    if (option.kind == OptionKind::kListeners || option.kind == OptionKind::kAddresses) continue;
    apply_option(option, setting != nullptr ? setting->value : option.default_text, config);
  }
  const Setting* listeners = chosen("listeners");
  const Setting standard{
      "listeners", std::string(find_option("listeners")->default_text), "configuration", 0, {}};
  resolve_listeners(listeners != nullptr ? *listeners : standard, chosen("advertised_listeners"),
                    config.listeners, problems_);
  set_kafka(config);
  if (!problems_.empty()) return std::unexpected(std::move(problems_));
  return config;
}

}  // namespace

std::string to_string(const ConfigProblem& problem) {
  std::string out = problem.origin;
  if (problem.line != 0) out += ":" + std::to_string(problem.line);
  if (!problem.key.empty()) out += ": " + problem.key;
  out += ": " + problem.text;
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < ' ') c = '?';  // one line, whatever the file holds
  }
  return out;
}

std::expected<Config, ConfigProblems> load_config(const CommandLine& command,
                                                  const Environment& environment,
                                                  const std::optional<std::string>& file_text) {
  Loader loader;
  if (file_text) loader.add_file(*file_text, command.config_file.value_or("configuration file"));
  loader.add_environment(environment);
  loader.add_command_line(command);
  return loader.finish();
}

}  // namespace kanal::server
