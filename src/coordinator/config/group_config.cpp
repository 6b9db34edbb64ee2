#include "config_number.hpp"
#include "kanal/base/check.hpp"
#include "kanal/coordinator/resource_config.hpp"
#include "layers.hpp"

#include <algorithm>
#include <set>

namespace kanal::coordinator {
namespace {

/// Its default is the first of the broker's.
constexpr std::string_view kAssignor = "streams.assignor.name";

struct GroupSynonym {
  std::string_view group;
  std::string_view broker;
};
constexpr GroupSynonym kSynonyms[] = {
    {"consumer.assignment.interval.ms", "group.consumer.assignment.interval.ms"},
    {"consumer.heartbeat.interval.ms", "group.consumer.heartbeat.interval.ms"},
    {"consumer.session.timeout.ms", "group.consumer.session.timeout.ms"},
    {"share.assignment.interval.ms", "group.share.assignment.interval.ms"},
    {"share.delivery.count.limit", "group.share.delivery.count.limit"},
    {"share.heartbeat.interval.ms", "group.share.heartbeat.interval.ms"},
    {"share.partition.max.record.locks", "group.share.partition.max.record.locks"},
    {"share.record.lock.duration.ms", "group.share.record.lock.duration.ms"},
    {"share.session.timeout.ms", "group.share.session.timeout.ms"},
    {"streams.assignment.interval.ms", "group.streams.assignment.interval.ms"},
    {kAssignor, "group.streams.assignors"},
    {"streams.heartbeat.interval.ms", "group.streams.heartbeat.interval.ms"},
    {"streams.initial.rebalance.delay.ms", "group.streams.initial.rebalance.delay.ms"},
    {"streams.num.standby.replicas", "group.streams.num.standby.replicas"},
    {"streams.rack.aware.assignment.tags", "group.streams.rack.aware.assignment.tags"},
    {"streams.session.timeout.ms", "group.streams.session.timeout.ms"},
};

/// Where the broker's bounds of a group config stand; empty: none. In the order they are checked.
struct Bounds {
  std::string_view group;
  std::string_view lowest;
  std::string_view highest;
};
constexpr Bounds kBounds[] = {
    {"consumer.heartbeat.interval.ms", "group.consumer.min.heartbeat.interval.ms",
     "group.consumer.max.heartbeat.interval.ms"},
    {"consumer.session.timeout.ms", "group.consumer.min.session.timeout.ms",
     "group.consumer.max.session.timeout.ms"},
    {"consumer.assignment.interval.ms", "group.consumer.min.assignment.interval.ms",
     "group.consumer.max.assignment.interval.ms"},
    {"share.heartbeat.interval.ms", "group.share.min.heartbeat.interval.ms",
     "group.share.max.heartbeat.interval.ms"},
    {"share.session.timeout.ms", "group.share.min.session.timeout.ms",
     "group.share.max.session.timeout.ms"},
    {"share.record.lock.duration.ms", "group.share.min.record.lock.duration.ms",
     "group.share.max.record.lock.duration.ms"},
    {"share.delivery.count.limit", "group.share.min.delivery.count.limit",
     "group.share.max.delivery.count.limit"},
    {"share.partition.max.record.locks", "group.share.min.partition.max.record.locks",
     "group.share.max.partition.max.record.locks"},
    {"share.assignment.interval.ms", "group.share.min.assignment.interval.ms",
     "group.share.max.assignment.interval.ms"},
    {"streams.heartbeat.interval.ms", "group.streams.min.heartbeat.interval.ms",
     "group.streams.max.heartbeat.interval.ms"},
    {"streams.session.timeout.ms", "group.streams.min.session.timeout.ms",
     "group.streams.max.session.timeout.ms"},
    {"streams.num.standby.replicas", "", "group.streams.max.standby.replicas"},
    {"streams.assignment.interval.ms", "group.streams.min.assignment.interval.ms",
     "group.streams.max.assignment.interval.ms"},
};

std::unexpected<Error> invalid(std::string text) {
  return fail(ErrorCode::INVALID_CONFIG, std::move(text));
}

std::string_view broker_text(const BrokerConfig& broker, std::string_view name) {
  const ConfigRow* row = find_broker_config(name);
  CHECK(row != nullptr, "a group config's bound is a broker config");
  return value_in(broker.layers, *row).value_or("");
}

std::int64_t broker_number(const BrokerConfig& broker, std::string_view name) {
  return parse_number<std::int64_t>(trimmed(broker_text(broker, name))).value_or(0);
}

std::optional<std::int64_t> number_in(const ConfigMap& overlay, std::string_view name) {
  const auto set = overlay.find(name);
  if (set == overlay.end()) return std::nullopt;
  return parse_number<std::int64_t>(trimmed(set->second));
}

/// Digits with a unit behind, such as "12H"; taken off `text` where it begins so.
bool take_amount(std::string_view& text, char unit, bool fraction) {
  const auto end = text.find_first_not_of(fraction ? "0123456789." : "0123456789");
  if (end == 0 || end == std::string_view::npos || text[end] != unit || text[0] == '.') {
    return false;
  }
  text.remove_prefix(end + 1);
  return true;
}

/// ISO 8601 as PnDTnHnMn.nS; not negative.
bool is_duration(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  std::string_view left = text;
  if (!left.starts_with('P')) return false;
  left.remove_prefix(1);
  bool any = take_amount(left, 'D', false);
  if (left.empty()) return any;
  if (!left.starts_with('T')) return false;
  left.remove_prefix(1);
  any = take_amount(left, 'H', false);
  any |= take_amount(left, 'M', false);
  any |= take_amount(left, 'S', true);
  return any && left.empty();
}

Result<void> check_reset(const ConfigRow& row, std::string_view value) {
  constexpr std::string_view kByDuration = "by_duration:";
  value = trimmed(value);
  if (value == "latest" || value == "earliest") return {};
  if (value.starts_with(kByDuration) && is_duration(std::string(value.substr(12)))) return {};
  return invalid("Invalid value " + std::string(value.substr(0, 100)) + " for configuration " +
                 std::string(row.name) +
                 ": It must be latest, earliest or by_duration:PnDTnHnMn.nS");
}

Result<void> check_values(const ConfigMap& overlay) {
  for (const auto& [name, value] : overlay) {
    if (find_group_config(name) == nullptr) {
      return invalid("Unknown group config name: " + name.substr(0, 249));
    }
  }
  if (const auto tags = overlay.find("streams.rack.aware.assignment.tags"); tags != overlay.end()) {
    const auto items = list_items(tags->second);
    if (std::set(items.begin(), items.end()).size() != items.size()) {
      return invalid("streams.rack.aware.assignment.tags must not contain duplicate tag keys.");
    }
  }
  for (const auto& [name, value] : overlay) {
    const ConfigRow& row = *find_group_config(name);
    auto checked =
        name == "share.auto.offset.reset" ? check_reset(row, value) : check_value(row, value);
    if (!checked) return checked;
  }
  return {};
}

Result<void> check_bounds(const BrokerConfig& broker, const ConfigMap& overlay) {
  for (const Bounds& bounds : kBounds) {
    const auto value = number_in(overlay, bounds.group);
    if (!value) continue;
    const std::int64_t highest = broker_number(broker, bounds.highest);
    if (bounds.lowest.empty()) {
      if (*value <= highest) continue;
      return invalid(std::string(bounds.group) + " must be less than or equal to " +
                     std::to_string(highest));
    }
    const std::int64_t lowest = broker_number(broker, bounds.lowest);
    if (*value >= lowest && *value <= highest) continue;
    return invalid(std::string(bounds.group) + " must be in the range " + std::to_string(lowest) +
                   " to " + std::to_string(highest) + " inclusive.");
  }
  return {};
}

Result<void> check_assignor(const BrokerConfig& broker, const ConfigMap& overlay) {
  const auto set = overlay.find(kAssignor);
  if (set == overlay.end()) return {};
  const std::string_view wanted = trimmed(set->second);
  std::string registered;
  for (const auto item : list_items(broker_text(broker, "group.streams.assignors"))) {
    if (item == wanted) return {};
    registered.append(registered.empty() ? "" : ", ").append(item);
  }
  return invalid("streams.assignor.name '" + std::string(wanted.substr(0, 249)) +
                 "' is not a registered task assignor. Registered assignors are: [" + registered +
                 "].");
}

Result<void> check_session(const BrokerConfig& broker, const ConfigMap& overlay,
                           const std::string& kind) {
  const std::string session_name = kind + ".session.timeout.ms";
  const std::string heartbeat_name = kind + ".heartbeat.interval.ms";
  const auto session = number_in(overlay, session_name);
  const auto heartbeat = number_in(overlay, heartbeat_name);
  if (!session && !heartbeat) return {};
  if (session.value_or(broker_number(broker, "group." + session_name)) >
      heartbeat.value_or(broker_number(broker, "group." + heartbeat_name))) {
    return {};
  }
  return invalid(session_name + " must be greater than " + heartbeat_name);
}

/// The value in force as text; nullopt for null.
std::optional<std::string> value_of(const BrokerConfig& broker, const ConfigMap& overlay,
                                    const ConfigRow& row) {
  if (const auto set = overlay.find(row.name); set != overlay.end()) return set->second;
  const std::string_view synonym = group_broker_name_of(row.name);
  if (row.name == kAssignor) {
    const auto names = list_items(broker_text(broker, synonym));
    return names.empty() ? std::nullopt : std::optional(std::string(names.front()));
  }
  if (row.default_value && !synonym.empty()) return std::string(broker_text(broker, synonym));
  if (row.default_value) return std::string(*row.default_value);
  return std::nullopt;
}

}  // namespace

const ConfigRow* find_group_config(std::string_view name) noexcept {
  return find_row(group_config_rows(), name);
}

std::string_view group_broker_name_of(std::string_view group_config) noexcept {
  const auto* found = std::ranges::lower_bound(kSynonyms, group_config, {}, &GroupSynonym::group);
  return found != std::end(kSynonyms) && found->group == group_config ? found->broker : "";
}

Result<void> check_group_configs(const BrokerConfig& broker, const ConfigMap& overlay) {
  if (auto checked = check_values(overlay); !checked) return checked;
  if (auto checked = check_bounds(broker, overlay); !checked) return checked;
  if (auto checked = check_assignor(broker, overlay); !checked) return checked;
  for (const char* kind : {"consumer", "share", "streams"}) {
    if (auto checked = check_session(broker, overlay, kind); !checked) return checked;
  }
  const auto letters = overlay.find("errors.deadletterqueue.topic.name");
  if (letters != overlay.end() && trimmed(letters->second).starts_with("__")) {
    return invalid("errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'");
  }
  return {};
}

std::vector<ConfigEntry> describe_group_configs(const BrokerConfig& broker,
                                                const ConfigMap& overlay) {
  std::vector<ConfigEntry> entries;
  entries.reserve(group_config_rows().size());
  for (const ConfigRow& row : group_config_rows()) {
    ConfigEntry& entry = entries.emplace_back();
    entry.name = row.name;
    entry.type = row.type;
    entry.documentation = row.documentation;
    if (const auto value = value_of(broker, overlay, row)) entry.value = shown_value(row, *value);
    if (overlay.contains(row.name)) {
      entry.synonyms.push_back({entry.name, entry.value, ConfigSource::kGroup});
    }
    if (const auto synonym = group_broker_name_of(row.name); !synonym.empty()) {
      for (ConfigSynonym& listed : listed_synonyms(broker.layers, synonym)) {
        entry.synonyms.push_back(std::move(listed));
      }
    } else if (row.default_value) {
      entry.synonyms.push_back(
          {entry.name, std::string(*row.default_value), ConfigSource::kDefault});
    }
    if (!entry.synonyms.empty()) entry.source = entry.synonyms.front().source;
  }
  return entries;
}

}  // namespace kanal::coordinator
