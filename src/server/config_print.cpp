// The configuration as text: --print-config and the commented default file.
#include "config_options.hpp"

#include <algorithm>

namespace kanal::server {
namespace {

using coordinator::ConfigRow;
using coordinator::Treatment;

/// A scalar that YAML reads back as this text.
std::string scalar(std::string_view text) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '/' || c == '_';
  };
  const auto inside = [&](char c) { return plain(c) || c == '-' || c == ':' || c == ','; };
  const bool bare = !text.empty() &&
                    (plain(text.front()) || (text.front() == '-' && text.size() > 1)) &&
                    plain(text.back()) && std::ranges::all_of(text, inside);
  if (bare && text != "null" && text != "Null" && text != "NULL") return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\t') {
      out += "\\t";
    } else {
      out += c;
    }
  }
  return out + "\"";
}

/// "threads" and "io" of threads.io; no section for data_dir.
std::pair<std::string_view, std::string_view> split(std::string_view key) {
  const auto dot = key.find('.');
  if (dot == std::string_view::npos) return {"", key};
  return {key.substr(0, dot), key.substr(dot + 1)};
}

void add_listeners(const Config& config, std::string& out) {
  out += "listeners:\n";
  for (const ListenerOptions& listener : config.listeners) {
    out += "  - name: " + listener.name + "\n";
    out += "    bind: " + scalar(to_string(listener.bind)) + "\n";
    out += "    advertised: " + scalar(to_string(listener.advertised)) + "\n";
  }
}

bool is_accepted(const ConfigRow& row) {
  return row.treatment != Treatment::kOwnKey && row.treatment != Treatment::kRefused;
}

std::string default_listeners() {
  return "listeners:\n"
         "  - name: PLAINTEXT\n"
         "    bind: 127.0.0.1:9092        # port 0 takes a free one; 0.0.0.0 or [::] is every "
         "address\n"
         "    advertised: 127.0.0.1:9092  # what clients are told; the bind address if left out\n";
}

std::string default_option(const Option& option, std::string_view section, std::string_view name) {
  const std::string indent = section.empty() ? "" : "  ";
  std::string out = indent + "# " + std::string(option.doc) + "\n";
  if (option.kind != OptionKind::kText && option.kind != OptionKind::kListeners &&
      option.kind != OptionKind::kAddresses) {
    out = indent + "# " + std::string(option.doc) + " (" + range_text(option) + ")\n";
  }
  if (option.kind == OptionKind::kListeners) return out + default_listeners();
  return out + indent + std::string(name) + ": " + scalar(option.default_text) + "\n";
}

}  // namespace

std::string print_config(const Config& config) {
  std::string out;
  std::string_view open;
  for (const Option& option : options()) {
    if (option.kind == OptionKind::kAddresses) continue;  // already in the listeners
    if (option.kind == OptionKind::kListeners) {
      add_listeners(config, out);
      continue;
    }
    const auto [section, name] = split(option.key);
    if (!section.empty() && section != open) out += std::string(section) + ":\n";
    open = section;
    out += (section.empty() ? "" : "  ") + std::string(name) + ": " +
           scalar(option_text(option, config)) + "\n";
  }
  out += "kafka:\n";
  for (const ConfigRow& row : coordinator::broker_config_rows()) {
    if (!is_accepted(row)) continue;
    const auto value = coordinator::effective_value(config.kafka, row.name);
    out += value ? "  " + std::string(row.name) + ": " + scalar(*value) + "\n"
                 : "  # " + std::string(row.name) + ": not set\n";
  }
  return out;
}

std::string default_config_file() {
  std::string out =
      "# Every option of kanald with its default. Later ones win: this file, KANAL_ variables of\n"
      "# the environment, the command line. What each one means at length: "
      "docs/configuration.md.\n";
  std::string_view open = "-";
  for (const Option& option : options()) {
    const auto [section, name] = split(option.key);
    if (section != open || section.empty()) out += "\n";
    if (!section.empty() && section != open) out += std::string(section) + ":\n";
    open = section;
    out += default_option(option, section, name);
  }
  out += "\n# Kafka's own broker settings, by their own names and with their own values.\nkafka:\n";
  for (const ConfigRow& row : coordinator::broker_config_rows()) {
    if (!is_accepted(row)) continue;
    out += "  # " + std::string(row.documentation);
    if (row.treatment == Treatment::kStored) out += " (" + std::string(row.note) + ".)";
    out += "\n  # " + std::string(row.name) + ":" +
           (row.default_value ? " " + scalar(*row.default_value) : "") + "\n";
  }
  return out;
}

}  // namespace kanal::server
