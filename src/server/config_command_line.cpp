// The command line and --help.
#include "config.hpp"
#include "kanal/coordinator/config_table.hpp"

#include <array>

namespace kanal::server {
namespace {

struct Switch {
  std::string_view name;
  std::string_view argument;  // empty: takes none
  std::string_view doc;
};

constexpr Switch kSwitches[] = {
    {"--config", "FILE", "read this YAML file"},
    {"--data-dir", "DIR", "directory of everything the broker keeps (data_dir)"},
    {"--listen", "HOST:PORT",
     "accept connections here instead of on the listeners of the file; "
     "may be repeated, port 0 takes a free one"},
    {"--set", "KEY=VALUE",
     "set one option, such as threads.io=2 or num.partitions=3; may be repeated"},
    {"--ready-file", "FILE", "write host:port of each listener there once it serves"},
    {"--print-config", "", "print the configuration in force as YAML and stop"},
    {"--check-config", "", "check the configuration and stop"},
    {"--check-data", "DIR",
     "look over a data directory that no daemon uses and stop: every batch, every file; nothing "
     "is written. Exit code 0: sound, 1: damage, 2: it cannot be checked"},
    {"--snapshot", "DIR",
     "make DIR a copy of the data directory that --data-dir names, while its daemon goes on, and "
     "stop"},
    {"--version", "", "print the version and stop"},
    {"--help", "", "print this and stop"},
};

const Switch* find_switch(std::string_view name) {
  if (name == "-h") name = "--help";
  if (name == "-V") name = "--version";
  for (const Switch& known : kSwitches) {
    if (known.name == name) return &known;
  }
  return nullptr;
}

std::string unknown_switch(std::string_view name) {
  std::array<std::string_view, std::size(kSwitches)> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kSwitches[i].name;
  const auto near = coordinator::nearest_name(name, names);
  if (!near.empty()) return "unknown option; did you mean " + std::string(near) + "?";
  return name.starts_with('-') ? "unknown option; see --help" : "not an option; see --help";
}

/// Puts one option in its place; the reason if it cannot.
std::optional<std::string> apply(std::string_view name, const std::string& value,
                                 CommandLine& line) {
  if (name == "--config") {
    line.config_file = value;
  } else if (name == "--data-dir") {
    line.settings.emplace_back("data_dir", value);
  } else if (name == "--listen") {
    line.listen.push_back(value);
  } else if (name == "--set") {
    const auto equals = value.find('=');
    if (equals == 0 || equals == std::string::npos) return "it takes KEY=VALUE";
    line.settings.emplace_back(value.substr(0, equals), value.substr(equals + 1));
  } else if (name == "--ready-file") {
    line.ready_file = value;
  } else if (name == "--print-config") {
    line.print_config = true;
  } else if (name == "--check-config") {
    line.check_config = true;
  } else if (name == "--check-data") {
    line.check_data = value;
  } else if (name == "--snapshot") {
    line.snapshot = value;
  } else if (name == "--version" || name == "-V") {
    line.version = true;
  } else {
    line.help = true;
  }
  return std::nullopt;
}

}  // namespace

std::expected<CommandLine, ConfigProblems> parse_command_line(
    std::span<const char* const> arguments) {
  CommandLine line;
  ConfigProblems problems;
  const auto problem = [&](std::string_view name, std::string text) {
    problems.push_back({"command line", 0, std::string(name.substr(0, 100)), std::move(text)});
  };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    const auto equals = argument.starts_with("--") ? argument.find('=') : std::string_view::npos;
    const std::string_view name = argument.substr(0, equals);
    const Switch* known = find_switch(name);
    if (known == nullptr) {
      problem(name, unknown_switch(name));
      continue;
    }
    std::string value;
    if (equals != std::string_view::npos) {
      value = argument.substr(equals + 1);
      if (known->argument.empty()) problem(name, "it takes no value");
    } else if (!known->argument.empty()) {
      if (i + 1 == arguments.size()) {
        problem(name, "it takes " + std::string(known->argument));
        continue;
      }
      value = arguments[++i];
    }
    if (!known->argument.empty() && value.empty()) {
      problem(name, "it takes " + std::string(known->argument));
    } else if (const auto why = apply(name, value, line)) {
      problem(name, *why);
    }
  }
  if (!problems.empty()) return std::unexpected(std::move(problems));
  return line;
}

std::string help_text() {
  std::string out =
      "kanald: a broker that speaks Apache Kafka's protocol\n\n"
      "Usage: kanald [OPTION]...\n\n"
      "Without options it listens on 127.0.0.1:9092 and keeps its data in ./kanal-data.\n\n";
  for (const Switch& known : kSwitches) {
    std::string left = "  " + std::string(known.name);
    if (!known.argument.empty()) left += " " + std::string(known.argument);
    left.resize(std::max<std::size_t>(left.size() + 2, 26), ' ');
    out += left + std::string(known.doc) + "\n";
  }
  out +=
      "\nEvery option of the file can also be set by a KANAL_ variable of the environment\n"
      "(data_dir: KANAL_DATA_DIR, num.partitions under kafka: KANAL_KAFKA_NUM_PARTITIONS).\n"
      "Later ones win: defaults, file, environment, command line. docs/configuration.md has\n"
      "every option. Exit codes: 0 stopped as asked, 1 failed, 2 wrong configuration.\n";
  return out;
}

}  // namespace kanal::server
