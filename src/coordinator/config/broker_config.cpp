#include "kanal/coordinator/broker_config.hpp"

#include "broker_rows.hpp"
#include "config_number.hpp"
#include "kanal/base/check.hpp"
#include "kanal/coordinator/dynamic_config.hpp"
#include "layers.hpp"

#include <algorithm>
#include <iterator>

namespace kanal::coordinator {
namespace {

/// Accepted and in force, but not shown by DescribeConfigs, as in Kafka.
constexpr ConfigRow kInternalRows[] = {
    {"producer.id.expiration.check.interval.ms", ConfigType::kInt, "600000", "[1,...]",
     Treatment::kActs, "", "How often idle producer ids are looked for."},
};

std::vector<ConfigRow> gather_rows() {
  std::vector<ConfigRow> rows;
  for (const auto area : {network_rows(), topics_rows(), log_rows(), groups_rows(), cluster_rows(),
                          remote_rows(), security_rows()}) {
    rows.insert(rows.end(), area.begin(), area.end());
  }
  std::ranges::sort(rows, {}, &ConfigRow::name);
  return rows;
}

constexpr std::string_view kRoll[] = {"log.roll.ms", "log.roll.hours"};
constexpr std::string_view kRollJitter[] = {"log.roll.jitter.ms", "log.roll.jitter.hours"};
constexpr std::string_view kRetention[] = {"log.retention.ms", "log.retention.minutes",
                                           "log.retention.hours"};
constexpr std::string_view kFlush[] = {"log.flush.interval.ms", "log.flush.scheduler.interval.ms"};

/// Reads typed values; every value has been checked before, so a bad one is a bug.
class Reader {
 public:
  explicit Reader(const ConfigLayers& layers) : layers_(layers) {}

  template <class Number>
  void number(Number& into, std::string_view name) const {
    const auto parsed = parse_number<Number>(trimmed(text(name)));
    CHECK(parsed.has_value(), "a checked config is a number");
    into = *parsed;
  }
  void boolean(bool& into, std::string_view name) const {
    const auto parsed = parse_boolean(trimmed(text(name)));
    CHECK(parsed.has_value(), "a checked config is a boolean");
    into = *parsed;
  }
  [[nodiscard]] std::string_view text(std::string_view name) const {
    const ConfigRow* row = find_broker_config(name);
    CHECK(row != nullptr, "a broker config the table knows");
    return value_in(layers_, *row).value_or("");
  }

 private:
  const ConfigLayers& layers_;
};

void read_topic_settings(const Reader& read, BrokerConfig& config) {
  read.number(config.num_partitions, "num.partitions");
  std::int32_t replicas = 1;
  read.number(replicas, "default.replication.factor");
  config.default_replication_factor = static_cast<std::int16_t>(replicas);
  read.boolean(config.auto_create_topics, "auto.create.topics.enable");
  read.boolean(config.delete_topic, "delete.topic.enable");
  read.number(config.max_request_partition_size_limit, "max.request.partition.size.limit");
}

void read_network_settings(const Reader& read, BrokerConfig& config) {
  read.number(config.socket_request_max_bytes, "socket.request.max.bytes");
  read.number(config.socket_receive_buffer_bytes, "socket.receive.buffer.bytes");
  read.number(config.socket_send_buffer_bytes, "socket.send.buffer.bytes");
  read.number(config.socket_listen_backlog, "socket.listen.backlog.size");
  read.number(config.max_connections, "max.connections");
  read.number(config.max_connections_per_ip, "max.connections.per.ip");
  read.number(config.max_connection_creation_rate, "max.connection.creation.rate");
  read.number(config.connections_max_idle_ms, "connections.max.idle.ms");
  read.number(config.queued_max_request_bytes, "queued.max.request.bytes");
  read.number(config.fetch_max_bytes, "fetch.max.bytes");
  read.number(config.fetch_session_slots, "max.incremental.fetch.session.cache.slots");
}

void read_coordinator_settings(const Reader& read, BrokerConfig& config) {
  read.number(config.producer_id_expiration_ms, "producer.id.expiration.ms");
  read.number(config.producer_id_expiration_check_interval_ms,
              "producer.id.expiration.check.interval.ms");
  read.number(config.log_retention_check_interval_ms, "log.retention.check.interval.ms");
  read.boolean(config.log_cleaner_enable, "log.cleaner.enable");
  read.number(config.log_cleaner_threads, "log.cleaner.threads");
  read.number(config.log_cleaner_backoff_ms, "log.cleaner.backoff.ms");
  read.number(config.log_cleaner_dedupe_buffer_size, "log.cleaner.dedupe.buffer.size");
  read.number(config.log_cleaner_io_buffer_load_factor, "log.cleaner.io.buffer.load.factor");
  read.number(config.log_cleaner_io_max_bytes_per_second, "log.cleaner.io.max.bytes.per.second");
  read.number(config.offset_metadata_max_bytes, "offset.metadata.max.bytes");
  read.number(config.offsets_retention_minutes, "offsets.retention.minutes");
  read.number(config.offsets_retention_check_interval_ms, "offsets.retention.check.interval.ms");
  read.number(config.group_min_session_timeout_ms, "group.min.session.timeout.ms");
  read.number(config.group_max_session_timeout_ms, "group.max.session.timeout.ms");
  read.number(config.group_initial_rebalance_delay_ms, "group.initial.rebalance.delay.ms");
  read.number(config.group_max_size, "group.max.size");
  read.number(config.transaction_max_timeout_ms, "transaction.max.timeout.ms");
  read.number(config.transactional_id_expiration_ms, "transactional.id.expiration.ms");
  read.number(config.transaction_expired_cleanup_interval_ms,
              "transaction.remove.expired.transaction.cleanup.interval.ms");
}

/// "address:limit,…"; false if an item is neither. Addresses may hold colons themselves.
bool read_overrides(std::string_view text,
                    decltype(BrokerConfig::max_connections_per_ip_overrides)& into) {
  for (const std::string_view item : list_items(text)) {
    const auto colon = item.rfind(':');
    if (colon == std::string_view::npos || colon == 0) return false;
    const std::string_view address = trimmed(item.substr(0, colon));
    const auto limit = parse_number<std::int32_t>(trimmed(item.substr(colon + 1)));
    const bool numeric =
        address.find_first_not_of("0123456789abcdefABCDEF.:") == std::string_view::npos;
    if (!limit || *limit < 0 || !numeric) return false;
    into.insert_or_assign(std::string(address), *limit);
  }
  return true;
}

/// The first of `names` that has a value, in milliseconds.
std::int64_t milliseconds(const Reader& read, std::span<const std::string_view> names) {
  for (const std::string_view name : names) {
    const auto value = parse_number<std::int64_t>(trimmed(read.text(name)));
    if (!value) continue;
    if (name.ends_with(".hours")) return *value * 3'600'000;
    if (name.ends_with(".minutes")) return *value * 60'000;
    return *value;
  }
  return 0;
}

void add_log_conflicts(const Reader& read, std::vector<ConfigConflict>& conflicts) {
  if (milliseconds(read, kRoll) < 1) {
    conflicts.push_back({"log.roll.ms", "It must be at least 1"});
  }
  if (milliseconds(read, kRollJitter) < 0) {
    conflicts.push_back({"log.roll.jitter.ms", "It must be at least 0"});
  }
  if (milliseconds(read, kRetention) == 0) {
    conflicts.push_back({"log.retention.ms", "It must be -1 (for ever) or at least 1"});
  }
  std::int64_t shortest = 0, longest = 0;
  read.number(shortest, "log.cleaner.min.compaction.lag.ms");
  read.number(longest, "log.cleaner.max.compaction.lag.ms");
  if (shortest > longest) {
    conflicts.push_back({"log.cleaner.max.compaction.lag.ms",
                         "It must not be less than log.cleaner.min.compaction.lag.ms"});
  }
}

/// A config that is set while running and in no start-up file: a replication rate, or a name Kafka
/// does not know, whose value may be a secret.
ConfigEntry entry_outside(const ConfigLayers& layers, const std::string& name,
                          std::string_view value) {
  ConfigEntry entry;
  entry.name = name;
  const ConfigRow* row = find_dynamic_config(name);
  entry.sensitive = row == nullptr;
  entry.read_only = !is_dynamic(name);
  if (row != nullptr) {
    entry.type = row->type;
    entry.documentation = row->documentation;
    entry.value = shown_value(*row, value);
  }
  entry.synonyms = listed_synonyms(layers, name);
  if (!entry.synonyms.empty()) entry.source = entry.synonyms.front().source;
  return entry;
}

}  // namespace

std::span<const ConfigRow> broker_config_rows() noexcept {
  static const std::vector<ConfigRow> rows = gather_rows();
  return rows;
}

const ConfigRow* find_broker_config(std::string_view name) noexcept {
  const ConfigRow* row = find_row(broker_config_rows(), name);
  return row != nullptr ? row : find_row(kInternalRows, name);
}

std::span<const std::string_view> broker_synonyms(const std::string_view& name) {
  for (const std::span<const std::string_view> names :
       {std::span<const std::string_view>(kRoll), std::span<const std::string_view>(kRollJitter),
        std::span<const std::string_view>(kRetention)}) {
    if (std::ranges::find(names, name) != names.end()) return names;
  }
  if (name == kFlush[0]) return kFlush;
  return {&name, 1};
}

std::optional<std::string_view> value_in(const ConfigLayers& layers, const ConfigRow& row) {
  for (const ConfigMap* layer : {&layers.broker, &layers.cluster_default, &layers.fixed}) {
    if (const auto found = layer->find(row.name); found != layer->end()) return found->second;
  }
  return row.default_value;
}

std::vector<ConfigSynonym> listed_synonyms(const ConfigLayers& layers, std::string_view name) {
  const std::span<const std::string_view> names = broker_synonyms(name);
  const ConfigRow* described = find_dynamic_config(name);
  const bool secret = described == nullptr || described->type == ConfigType::kPassword;
  std::vector<ConfigSynonym> all;
  const auto add = [&](std::string_view synonym, std::string_view value, ConfigSource source) {
    auto& added = all.emplace_back(std::string(synonym), std::nullopt, source);
    if (!secret) added.value = std::string(value);
  };
  for (const auto& [layer, source] :
       {std::pair{&layers.broker, ConfigSource::kDynamicBroker},
        {&layers.cluster_default, ConfigSource::kDynamicDefaultBroker},
        {&layers.fixed, ConfigSource::kStaticBroker}}) {
    for (const std::string_view synonym : names) {
      if (const auto found = layer->find(synonym); found != layer->end()) {
        add(synonym, found->second, source);
      }
    }
  }
  for (const std::string_view synonym : names) {
    const ConfigRow* row = find_broker_config(synonym);
    if (row != nullptr && row->default_value)
      add(synonym, *row->default_value, ConfigSource::kDefault);
  }
  const auto first = std::ranges::find(all, name, &ConfigSynonym::name);
  all.erase(all.begin(), first);
  return all;
}

std::vector<ConfigConflict> broker_config_conflicts(const ConfigLayers& layers) {
  const Reader read(layers);
  std::vector<ConfigConflict> conflicts;
  add_log_conflicts(read, conflicts);
  std::int32_t replicas = 1;
  read.number(replicas, "default.replication.factor");
  if (replicas != 1)
    conflicts.push_back({"default.replication.factor", "One node holds one replica: it must be 1"});
  std::int64_t queued = -1;
  std::int32_t frame = 0, per_ip = 0;
  read.number(queued, "queued.max.request.bytes");
  read.number(frame, "socket.request.max.bytes");
  if (queued > 0 && queued < frame) {
    conflicts.push_back(
        {"queued.max.request.bytes", "It must not be less than socket.request.max.bytes"});
  }
  decltype(BrokerConfig::max_connections_per_ip_overrides) overrides;
  if (!read_overrides(read.text("max.connections.per.ip.overrides"), overrides)) {
    conflicts.push_back({"max.connections.per.ip.overrides",
                         "It must be a list of IP address:limit pairs, such as 10.0.0.7:100"});
  }
  read.number(per_ip, "max.connections.per.ip");
  if (per_ip == 0 && overrides.empty()) {
    conflicts.push_back(
        {"max.connections.per.ip",
         "It can be 0 only where max.connections.per.ip.overrides lets somebody in"});
  }
  return conflicts;
}

Result<BrokerConfig> make_broker_config(ConfigLayers layers, NodeOptions node) {
  for (const ConfigMap* layer : {&layers.broker, &layers.cluster_default, &layers.fixed}) {
    for (const auto& [name, value] : *layer) {
      const ConfigRow* row = find_dynamic_config(name);
      if (row == nullptr && layer != &layers.fixed) continue;  // taken for plug-ins, as Kafka does
      if (row == nullptr) {
        return fail(ErrorCode::INVALID_CONFIG,
                    "Unknown broker config name: " + name.substr(0, 249));
      }
      if (auto checked = check_value(*row, value); !checked)
        return std::unexpected(checked.error());
    }
  }
  if (const auto conflicts = broker_config_conflicts(layers); !conflicts.empty()) {
    return fail(ErrorCode::INVALID_CONFIG,
                std::string(conflicts[0].name) + ": " + conflicts[0].text);
  }
  BrokerConfig config;
  config.node = node;
  config.layers = std::move(layers);
  const Reader read(config.layers);
  read_topic_settings(read, config);
  read_network_settings(read, config);
  read_coordinator_settings(read, config);
  read_overrides(read.text("max.connections.per.ip.overrides"),
                 config.max_connections_per_ip_overrides);
  return config;
}

std::optional<std::string> effective_value(const BrokerConfig& config, std::string_view name) {
  const ConfigRow* row = find_broker_config(name);
  if (row == nullptr) return std::nullopt;
  const auto value = value_in(config.layers, *row);
  return value ? std::optional(std::string(*value)) : std::nullopt;
}

std::vector<ConfigEntry> describe_broker_configs(const BrokerConfig& config) {
  std::vector<ConfigEntry> entries;
  entries.reserve(broker_config_rows().size());
  for (const ConfigRow& row : broker_config_rows()) {
    ConfigEntry& entry = entries.emplace_back();
    entry.name = row.name;
    entry.type = row.type;
    entry.sensitive = row.type == ConfigType::kPassword;
    entry.read_only = !is_dynamic(row.name);
    entry.documentation = row.documentation;
    const auto value = value_in(config.layers, row);
    if (value && !entry.sensitive) entry.value = shown_value(row, *value);
    entry.synonyms = listed_synonyms(config.layers, row.name);
    if (!entry.synonyms.empty()) entry.source = entry.synonyms.front().source;
  }
  for (const ConfigMap* layer : {&config.layers.broker, &config.layers.cluster_default}) {
    for (const auto& [name, value] : *layer) {
      const bool again = layer != &config.layers.broker && config.layers.broker.contains(name);
      if (again || find_row(broker_config_rows(), name) != nullptr) continue;
      entries.push_back(entry_outside(config.layers, name, value));
    }
  }
  return entries;
}

std::vector<ConfigEntry> describe_cluster_default_configs(const BrokerConfig& config) {
  std::vector<ConfigEntry> entries;
  for (ConfigEntry& entry : describe_broker_configs(config)) {
    const auto set = config.layers.cluster_default.find(entry.name);
    if (set == config.layers.cluster_default.end()) continue;
    if (!entry.sensitive) entry.value = set->second;
    std::erase_if(entry.synonyms, [](const ConfigSynonym& synonym) {
      return synonym.source != ConfigSource::kDynamicDefaultBroker;
    });
    entry.source = ConfigSource::kDynamicDefaultBroker;
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace kanal::coordinator
