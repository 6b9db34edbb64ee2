#include "config_number.hpp"
#include "kanal/coordinator/resource_config.hpp"

#include <algorithm>

namespace kanal::coordinator {
namespace {

using enum ConfigType;
using enum Treatment;

constexpr std::string_view kNoteTelemetry = "In force once client telemetry is served";

constexpr ConfigRow kRows[] = {
    {"interval.ms", kInt, "300000", "", kStored, kNoteTelemetry,
     "How often clients push their metrics."},
    {"match", kList, "", "", kStored, kNoteTelemetry,
     "Which clients the subscription is for, as name=pattern pairs; empty for all."},
    {"metrics", kList, "", "", kStored, kNoteTelemetry,
     "Prefixes of the names of the metrics that are pushed; * for all."},
};

constexpr std::string_view kMatched[] = {"client_id",
                                         "client_instance_id",
                                         "client_software_name",
                                         "client_software_version",
                                         "client_source_address",
                                         "client_source_port"};

/// Whether it can be a regular expression: brackets closed, nothing repeated that is not there.
/// What clients match by it is checked once telemetry is served.
bool is_pattern(std::string_view text) {
  int groups = 0;
  bool bracket = false, nothing = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\') {
      if (++i == text.size()) return false;
      nothing = false;
    } else if (bracket) {
      bracket = c != ']';
    } else if (c == '[') {
      bracket = true;
      nothing = false;
    } else if (c == '(') {
      ++groups;
      nothing = true;
      if (i + 1 < text.size() && text[i + 1] == '?') ++i;
    } else if (c == ')') {
      if (--groups < 0) return false;
      nothing = false;
    } else if ((c == '*' || c == '+' || c == '?') && nothing) {
      return false;
    } else {
      nothing = c == '|';
    }
  }
  return !bracket && groups == 0;
}

/// "name=pattern", split where Java's split does: exactly one '=' with something on both sides.
bool is_match(std::string_view item) {
  const auto equals = item.find('=');
  if (equals == std::string_view::npos) return false;
  std::string_view pattern = item.substr(equals + 1);
  while (pattern.ends_with('=')) pattern.remove_suffix(1);
  if (pattern.empty() || pattern.find('=') != std::string_view::npos) return false;
  return std::ranges::find(kMatched, trimmed(item.substr(0, equals))) != std::end(kMatched) &&
         is_pattern(trimmed(pattern));
}

}  // namespace

std::span<const ConfigRow> client_metrics_rows() noexcept {
  return kRows;
}

const ConfigRow* find_client_metrics_config(std::string_view name) noexcept {
  return find_row(kRows, name);
}

Result<void> check_client_metrics_configs(const ConfigMap& overlay) {
  for (const auto& [name, value] : overlay) {
    if (find_client_metrics_config(name) == nullptr) {
      return fail(ErrorCode::INVALID_REQUEST,
                  "Unknown client metrics configuration: " + name.substr(0, 249));
    }
  }
  for (const auto& [name, value] : overlay) {
    if (auto checked = check_value(*find_client_metrics_config(name), value); !checked) {
      return checked;
    }
  }
  if (const auto set = overlay.find("interval.ms"); set != overlay.end()) {
    const auto interval = parse_number<std::int32_t>(trimmed(set->second));
    if (!interval || *interval < 100 || *interval > 3'600'000) {
      return fail(ErrorCode::INVALID_REQUEST,
                  "Invalid value " + std::to_string(interval.value_or(0)) +
                      " for interval.ms, interval must be between 100 and 3600000 (1 hour)");
    }
  }
  const auto match = overlay.find("match");
  if (match == overlay.end()) return {};
  for (const std::string_view item : list_items(match->second)) {
    if (is_match(item)) continue;
    return fail(ErrorCode::INVALID_CONFIG,
                "Illegal client matching pattern: " + std::string(item.substr(0, 249)));
  }
  return {};
}

std::vector<ConfigEntry> describe_client_metrics_configs(const ConfigMap& overlay) {
  std::vector<ConfigEntry> entries;
  for (const ConfigRow& row : kRows) {
    ConfigEntry& entry = entries.emplace_back();
    entry.name = row.name;
    entry.type = row.type;
    entry.documentation = row.documentation;
    const auto set = overlay.find(row.name);
    entry.value =
        shown_value(row, set != overlay.end() ? std::string_view(set->second) : *row.default_value);
    if (set == overlay.end()) continue;
    entry.synonyms.push_back({entry.name, entry.value, ConfigSource::kClientMetrics});
    entry.source = ConfigSource::kClientMetrics;
  }
  return entries;
}

}  // namespace kanal::coordinator
