#include "kanal/coordinator/dynamic_config.hpp"

#include "config_number.hpp"
#include "kanal/base/check.hpp"
#include "layers.hpp"

#include <algorithm>

namespace kanal::coordinator {
namespace {

using Names = std::vector<std::string_view>;

/// Dynamic only (KIP-73); the only ones a start-up file does not take.
constexpr ConfigRow kRateRows[] = {
    {"follower.replication.throttled.rate", ConfigType::kLong, "9223372036854775807", "[0,...]",
     Treatment::kFulfilled, "", "Bytes a second that followers may copy; one node copies none."},
    {"leader.replication.throttled.rate", ConfigType::kLong, "9223372036854775807", "[0,...]",
     Treatment::kFulfilled, "", "Bytes a second that leaders may send; one node sends none."},
    {"replica.alter.log.dirs.io.max.bytes.per.second", ConfigType::kLong, "9223372036854775807",
     "[0,...]", Treatment::kFulfilled, "",
     "Bytes a second moved between log directories; there is one."},
};

/// Pools that Kafka lets grow to twice and shrink to half their size at a time.
constexpr std::string_view kThreads[] = {
    "background.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
    "remote.log.reader.threads",
};
constexpr std::string_view kPositive[] = {"max.connection.creation.rate", "max.connections"};

std::unexpected<Error> refused(std::string text) {
  return fail(ErrorCode::INVALID_REQUEST, std::move(text));
}

/// As Kafka words what its parts object to.
std::unexpected<Error> objection(const std::string& text) {
  return refused("Invalid value org.apache.kafka.common.config.ConfigException: " + text +
                 " for configuration Invalid dynamic configuration");
}

std::string listed(const std::string& what, const Names& names) {
  std::string text = what + ": [";
  for (std::size_t i = 0; i < names.size(); ++i) {
    text.append(i ? ", " : "").append(names[i].substr(0, 249));
  }
  return text + "]";
}

/// "listener.name.<listener>.<config>" without its prefix; the name itself if it has none.
std::string_view without_listener(std::string_view name) {
  constexpr std::string_view kPrefix = "listener.name.";
  if (!name.starts_with(kPrefix)) return name;
  const auto dot = name.find('.', kPrefix.size());
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

bool is_listener_limit(std::string_view base) {
  return base == "max.connections" || base == "max.connection.creation.rate" ||
         base == "num.network.threads";
}

template <class Keep>
Names names_where(const ConfigMap& wanted, Keep keep) {
  Names names;
  for (const auto& [name, value] : wanted) {
    if (keep(name)) names.push_back(name);
  }
  return names;
}

Result<void> check_names(const ConfigMap& wanted) {
  const Names fixed = names_where(wanted, [](std::string_view name) {
    return find_broker_config(name) != nullptr && !is_dynamic(name);
  });
  if (!fixed.empty()) return refused(listed("Cannot update these configs dynamically", fixed));
  const Names security = names_where(wanted, [](std::string_view name) {
    return name.starts_with("ssl.keystore.") || name.starts_with("ssl.truststore.") ||
           name == "ssl.key.password";
  });
  if (security.empty()) return {};
  return refused(
      listed("These security configs can be dynamically updated only per-listener using the "
             "listener prefix",
             security));
}

Result<void> check_types(const ConfigMap& wanted) {
  for (const auto& [name, value] : wanted) {
    const ConfigRow* row = find_dynamic_config(without_listener(name));
    if (row == nullptr) continue;
    if (auto checked = check_value(*row, value); !checked) return refused(checked.error().detail);
  }
  return {};
}

Result<void> check_level(const ConfigMap& wanted) {
  const Names alone = names_where(wanted, [](std::string_view name) {
    const std::string_view base = without_listener(name);
    return is_per_broker(name) || (base != name && !is_listener_limit(base));
  });
  if (alone.empty()) return {};
  return refused(listed(
      "Cannot update these configs at default cluster level, broker id must be specified", alone));
}

/// What would need something this broker has not. A number or a switch of it may be set: it is
/// kept, shown and true of what does not exist.
Result<void> check_missing(const BrokerConfig& running, const ConfigMap& wanted) {
  for (const auto& [name, value] : wanted) {
    const std::string_view base = without_listener(name);
    const ConfigRow* row = find_dynamic_config(base);
    if (base != name && row != nullptr && base != "num.network.threads") {
      return refused(name.substr(0, 249) + ": settings of a single listener are not served" +
                     (is_listener_limit(base) ? "; set " + std::string(base) : "") + ".");
    }
    if (row == nullptr || row->treatment < Treatment::kOwnKey) continue;
    const bool word = row->type == ConfigType::kString || row->type == ConfigType::kList ||
                      row->type == ConfigType::kClass || row->type == ConfigType::kPassword;
    if (!word) continue;
    const bool nothing = row->type == ConfigType::kList && trimmed(value).empty();
    if (nothing && row->treatment == Treatment::kRefused) continue;
    const auto now = value_in(running.layers, *row);
    if (now && shown_value(*row, *now) == shown_value(*row, value)) continue;
    if (row->treatment == Treatment::kOwnKey) {
      return refused(name + " does not change while the broker runs; it is set by " +
                     std::string(row->note) + " in the start-up file.");
    }
    return refused(name + " cannot be changed: " + std::string(row->note) + ".");
  }
  return {};
}

std::int64_t number_of(const BrokerConfig& config, std::string_view name) {
  const ConfigRow* row = find_broker_config(name);
  const auto text = row != nullptr ? value_in(config.layers, *row) : std::nullopt;
  return parse_number<std::int64_t>(trimmed(text.value_or("0"))).value_or(0);
}

Result<void> check_steps(const BrokerConfig& running, const BrokerConfig& next) {
  for (const std::string_view name : kThreads) {
    const std::int64_t before = number_of(running, name), after = number_of(next, name);
    if (after == before) continue;
    const std::string text = "Dynamic thread count update validation failed for " +
                             std::string(name) + "=" + std::to_string(after);
    if (after < before / 2) {
      return objection(text + ", value should be at least half the current value " +
                       std::to_string(before));
    }
    if (after > before * 2) {
      return objection(text + ", value should not be greater than double the current value " +
                       std::to_string(before));
    }
  }
  const std::int64_t before = number_of(running, "log.cleaner.threads");
  const std::int64_t after = number_of(next, "log.cleaner.threads");
  if (after != before && after < 1) return objection("Log cleaner threads should be at least 1");
  if (after < before / 2) {
    return objection("Log cleaner threads cannot be reduced to less than half the current value " +
                     std::to_string(before));
  }
  if (after > before * 2) {
    return objection(
        "Log cleaner threads cannot be increased to more than double the current "
        "value " +
        std::to_string(before));
  }
  for (const std::string_view name : kPositive) {
    const std::int64_t value = number_of(next, name);
    if (value != number_of(running, name) && value <= 0) {
      return objection("Invalid " + std::string(name) + " " + std::to_string(value));
    }
  }
  return {};
}

/// Kafka's rule for what stays on local disk beside remote storage: -2 takes what is kept in all.
Result<void> check_local_retention(const BrokerConfig& next, std::string_view local_name,
                                   std::string_view all_name, std::int64_t all) {
  const std::int64_t local = number_of(next, local_name);
  if (all < 0 || local == -2) return {};
  const std::string text = "Invalid value " + std::to_string(local) + " for configuration " +
                           std::string(local_name) + ": Value must not be ";
  if (local == -1) {
    return objection(text + "-1 as " + std::string(all_name) + " value is set as " +
                     std::to_string(all) + ".");
  }
  if (local <= all) return {};
  return objection(text + "more than " + std::string(all_name) +
                   " property value: " + std::to_string(all));
}

std::int64_t retention_ms(const BrokerConfig& config) {
  for (const auto& [name, factor] :
       {std::pair<std::string_view, std::int64_t>{"log.retention.ms", 1},
        {"log.retention.minutes", 60'000},
        {"log.retention.hours", 3'600'000}}) {
    if (value_in(config.layers, *find_broker_config(name))) {
      return number_of(config, name) * factor;
    }
  }
  return -1;
}

Result<void> check_intervals(const BrokerConfig& next) {
  for (const std::string kind : {"group.consumer.", "group.share.", "group.streams."}) {
    const std::string name = kind + "assignment.interval.ms";
    for (const std::string bound : {"min.", "max."}) {
      const std::string other = kind + bound + "assignment.interval.ms";
      const std::int64_t value = number_of(next, name), limit = number_of(next, other);
      if (bound == "min." ? value >= limit : value <= limit) continue;
      return refused(name + " must be " + (bound == "min." ? "greater" : "less") +
                     " than or equal to " + other);
    }
  }
  constexpr std::int64_t kBufferOfThread = 1 << 20;
  const std::int64_t threads = std::max<std::int64_t>(number_of(next, "log.cleaner.threads"), 1);
  if (number_of(next, "log.cleaner.dedupe.buffer.size") / threads > kBufferOfThread) return {};
  return refused(
      "requirement failed: log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner "
      "thread.");
}

Result<void> check_effect(const BrokerConfig& running, BrokerConfig&& wanted) {
  const auto next = make_broker_config(std::move(wanted.layers), wanted.node);
  if (!next) return refused(next.error().detail);
  if (auto checked = check_intervals(*next); !checked) return checked;
  if (auto checked = check_steps(running, *next); !checked) return checked;
  if (auto checked = check_local_retention(*next, "log.local.retention.ms", "log.retention.ms",
                                           retention_ms(*next));
      !checked) {
    return checked;
  }
  return check_local_retention(*next, "log.local.retention.bytes", "log.retention.bytes",
                               number_of(*next, "log.retention.bytes"));
}

/// Kafka's text for appending to what is no list, at a broker.
Result<void> check_lists(std::span<const ConfigAlteration> changes) {
  for (const ConfigAlteration& change : changes) {
    const bool append = change.operation == ConfigOperation::kAppend;
    if (!append && change.operation != ConfigOperation::kSubtract) continue;
    const ConfigRow* row = find_broker_config(change.name);
    if (row == nullptr) {
      return fail(ErrorCode::INVALID_CONFIG, "Unknown config name: " + change.name.substr(0, 249));
    }
    if (row->type == ConfigType::kList) continue;
    return fail(ErrorCode::INVALID_CONFIG, std::string("Config value ") +
                                               (append ? "append" : "subtract") +
                                               " is not allowed for config key: " + change.name);
  }
  return {};
}

struct Candidate {
  std::string name;
  std::string value;
  bool per_broker;
  void put(ConfigLayers& layers) const {
    (per_broker ? layers.broker : layers.cluster_default).insert_or_assign(name, value);
  }
};

/// Adds all that goes together, and leaves in `left` what does not fit the rest.
void add_what_fits(ConfigLayers& layers, std::vector<Candidate>& left) {
  ConfigLayers all = layers;
  for (const Candidate& candidate : left) candidate.put(all);
  if (broker_config_conflicts(all).empty()) {
    layers = std::move(all);
    left.clear();
    return;
  }
  for (bool progress = true; progress;) {
    progress = false;
    std::erase_if(left, [&](const Candidate& candidate) {
      ConfigLayers with = layers;
      candidate.put(with);
      if (!broker_config_conflicts(with).empty()) return false;
      layers = std::move(with);
      return progress = true;
    });
  }
}

/// Whether this one value can be in force at all.
Result<void> check_alone(const std::string& name, const std::string& value, bool per_broker) {
  const ConfigMap one{{name, value}};
  if (auto checked = check_names(one); !checked) return checked;
  if (auto checked = check_types(one); !checked) return checked;
  return per_broker ? Result<void>{} : check_level(one);
}

}  // namespace

const ConfigMap& DynamicConfigs::of(ConfigResourceType type, std::string_view name) const {
  static const ConfigMap nothing;
  if (type == ConfigResourceType::kBroker) return name.empty() ? cluster_default : broker;
  const ByName* all = type == ConfigResourceType::kGroup           ? &groups
                      : type == ConfigResourceType::kClientMetrics ? &client_metrics
                                                                   : nullptr;
  if (all == nullptr) return nothing;
  const auto found = all->find(name);
  return found != all->end() ? found->second : nothing;
}

InForce in_force(const BrokerConfig& base, const DynamicConfigs& stored) {
  InForce result;
  std::vector<Candidate> left;
  for (const bool per_broker : {false, true}) {
    for (const auto& [name, value] : per_broker ? stored.broker : stored.cluster_default) {
      const auto checked = check_alone(name, value, per_broker);
      if (checked) {
        left.push_back({name, value, per_broker});
      } else {
        result.ignored.push_back({name, checked.error().detail});
      }
    }
  }
  ConfigLayers layers;
  layers.fixed = base.layers.fixed;
  add_what_fits(layers, left);
  for (const Candidate& candidate : left) {
    ConfigLayers with = layers;
    candidate.put(with);
    const auto conflicts = broker_config_conflicts(with);
    result.ignored.push_back(
        {candidate.name, std::string(conflicts[0].name) + ": " + conflicts[0].text});
  }
  auto made = make_broker_config(std::move(layers), base.node);
  CHECK(made, "what fits is a broker's configs");
  result.config = *std::move(made);
  return result;
}

const ConfigRow* find_dynamic_config(std::string_view name) noexcept {
  const ConfigRow* row = find_broker_config(name);
  return row != nullptr ? row : find_row(kRateRows, name);
}

Result<void> check_broker_change(const BrokerConfig& running, const ConfigMap& wanted,
                                 bool per_broker) {
  if (auto checked = check_names(wanted); !checked) return checked;
  if (auto checked = check_types(wanted); !checked) return checked;
  if (!per_broker) {
    if (auto checked = check_level(wanted); !checked) return checked;
  }
  if (auto checked = check_missing(running, wanted); !checked) return checked;
  BrokerConfig next;
  next.layers = running.layers;
  next.node = running.node;
  (per_broker ? next.layers.broker : next.layers.cluster_default) = wanted;
  return check_effect(running, std::move(next));
}

Result<ConfigMap> altered_broker(ConfigMap overlay, std::span<const ConfigAlteration> changes) {
  if (auto checked = check_lists(changes); !checked) return std::unexpected(checked.error());
  return altered(std::move(overlay), changes, &find_dynamic_config);
}

}  // namespace kanal::coordinator
