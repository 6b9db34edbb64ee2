#include "kanal/coordinator/topic_config.hpp"

#include "config_number.hpp"
#include "kanal/base/check.hpp"
#include "layers.hpp"

#include <algorithm>

namespace kanal::coordinator {
namespace {

/// Accepted on a topic, shown only where set: segments below the smallest segment.bytes, for tests.
constexpr ConfigRow kInternalSegmentBytes = {
    "internal.segment.bytes",
    ConfigType::kInt,
    std::nullopt,
    "",
    Treatment::kActs,
    "",
    "Size at which a new segment is begun, below the smallest segment.bytes; for tests."};

/// Where a topic config's value comes from when the topic does not set it.
struct TopicSynonym {
  std::string_view topic;
  std::string_view broker;  // first of its broker_synonyms
};
constexpr TopicSynonym kSynonyms[] = {
    {"cleanup.policy", "log.cleanup.policy"},
    {"compression.gzip.level", "compression.gzip.level"},
    {"compression.lz4.level", "compression.lz4.level"},
    {"compression.type", "compression.type"},
    {"compression.zstd.level", "compression.zstd.level"},
    {"delete.retention.ms", "log.cleaner.delete.retention.ms"},
    {"file.delete.delay.ms", "log.segment.delete.delay.ms"},
    {"flush.messages", "log.flush.interval.messages"},
    {"flush.ms", "log.flush.interval.ms"},
    {"index.interval.bytes", "log.index.interval.bytes"},
    {"local.retention.bytes", "log.local.retention.bytes"},
    {"local.retention.ms", "log.local.retention.ms"},
    {"max.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"},
    {"max.decompressed.message.bytes", "max.decompressed.message.bytes"},
    {"max.message.bytes", "message.max.bytes"},
    {"message.timestamp.after.max.ms", "log.message.timestamp.after.max.ms"},
    {"message.timestamp.before.max.ms", "log.message.timestamp.before.max.ms"},
    {"message.timestamp.type", "log.message.timestamp.type"},
    {"min.cleanable.dirty.ratio", "log.cleaner.min.cleanable.ratio"},
    {"min.compaction.lag.ms", "log.cleaner.min.compaction.lag.ms"},
    {"min.insync.replicas", "min.insync.replicas"},
    {"preallocate", "log.preallocate"},
    {"remote.copy.lag.bytes", "log.remote.copy.lag.bytes"},
    {"remote.copy.lag.ms", "log.remote.copy.lag.ms"},
    {"retention.bytes", "log.retention.bytes"},
    {"retention.ms", "log.retention.ms"},
    {"segment.bytes", "log.segment.bytes"},
    {"segment.index.bytes", "log.index.size.max.bytes"},
    {"segment.jitter.ms", "log.roll.jitter.ms"},
    {"segment.ms", "log.roll.ms"},
    {"unclean.leader.election.enable", "unclean.leader.election.enable"},
};

std::string_view broker_synonym(std::string_view topic_config) {
  const auto found = std::ranges::lower_bound(kSynonyms, topic_config, {}, &TopicSynonym::topic);
  return found != std::end(kSynonyms) && found->topic == topic_config ? found->broker : "";
}

/// A value of log.retention.hours and its like as the milliseconds of the topic config.
std::string converted(std::string_view broker_name, std::string_view value) {
  const std::int64_t factor = broker_name.ends_with(".hours")     ? 3'600'000
                              : broker_name.ends_with(".minutes") ? 60'000
                                                                  : 1;
  const auto number = parse_number<std::int64_t>(trimmed(value));
  return factor == 1 || !number ? std::string(value) : std::to_string(*number * factor);
}

struct Sourced {
  std::string value;
  ConfigSource source = ConfigSource::kDefault;
};

ConfigSource source_in(const ConfigLayers& layers, std::string_view name) {
  if (layers.broker.contains(name)) return ConfigSource::kDynamicBroker;
  if (layers.cluster_default.contains(name)) return ConfigSource::kDynamicDefaultBroker;
  return layers.fixed.contains(name) ? ConfigSource::kStaticBroker : ConfigSource::kDefault;
}

/// The value in force, as it was written, and the layer it comes from.
Sourced value_of(const BrokerConfig& broker, const ConfigMap& overlay, const ConfigRow& row) {
  if (const auto set = overlay.find(row.name); set != overlay.end()) {
    return {set->second, ConfigSource::kTopic};
  }
  const std::string_view synonym = broker_synonym(row.name);
  if (synonym.empty()) return {std::string(row.default_value.value_or("")), ConfigSource::kDefault};
  for (const std::string_view name : broker_synonyms(synonym)) {
    const ConfigRow* broker_row = find_broker_config(name);
    CHECK(broker_row != nullptr, "a synonym is a broker config");
    if (const auto value = value_in(broker.layers, *broker_row)) {
      std::string text = converted(name, *value);
      if (row.name == "retention.ms" && text.starts_with('-'))
        text = "-1";  // any negative: for ever
      return {std::move(text), source_in(broker.layers, name)};
    }
  }
  return {std::string(row.default_value.value_or("")), ConfigSource::kDefault};
}

/// Reads the values in force; one that does not parse keeps the default of the field.
class Reader {
 public:
  Reader(const BrokerConfig& broker, const ConfigMap& overlay)
      : broker_(broker), overlay_(overlay) {}

  template <class Number>
  void number(Number& into, std::string_view name) const {
    if (const auto parsed = parse_number<Number>(trimmed(text(name)))) into = *parsed;
  }
  void boolean(bool& into, std::string_view name) const {
    if (const auto parsed = parse_boolean(trimmed(text(name)))) into = *parsed;
  }
  [[nodiscard]] std::string text(std::string_view name) const {
    const ConfigRow* row = find_topic_config(name);
    CHECK(row != nullptr, "a topic config the table knows");
    return value_of(broker_, overlay_, *row).value;
  }

 private:
  const BrokerConfig& broker_;
  const ConfigMap& overlay_;
};

TopicCompression compression_named(std::string_view word) {
  if (word == "uncompressed") return TopicCompression::kUncompressed;
  if (word == "gzip") return TopicCompression::kGzip;
  if (word == "snappy") return TopicCompression::kSnappy;
  if (word == "lz4") return TopicCompression::kLz4;
  if (word == "zstd") return TopicCompression::kZstd;
  return TopicCompression::kProducer;
}

void read_record_settings(const Reader& read, TopicConfig& config) {
  read.number(config.max_message_bytes, "max.message.bytes");
  read.number(config.max_decompressed_message_bytes, "max.decompressed.message.bytes");
  const std::string kind = read.text("message.timestamp.type");
  config.timestamp_type =
      trimmed(kind) == "LogAppendTime" ? TimestampKind::kLogAppendTime : TimestampKind::kCreateTime;
  read.number(config.timestamp_before_max_ms, "message.timestamp.before.max.ms");
  read.number(config.timestamp_after_max_ms, "message.timestamp.after.max.ms");
  config.compression_type = compression_named(trimmed(read.text("compression.type")));
  read.number(config.gzip_level, "compression.gzip.level");
  read.number(config.lz4_level, "compression.lz4.level");
  read.number(config.zstd_level, "compression.zstd.level");
  read.number(config.min_insync_replicas, "min.insync.replicas");
}

void read_log_settings(const Reader& read, TopicConfig& config) {
  const std::string policy = read.text("cleanup.policy");
  const auto policies = list_items(policy);
  config.cleanup_delete = std::ranges::find(policies, "delete") != policies.end();
  config.cleanup_compact = std::ranges::find(policies, "compact") != policies.end();
  read.number(config.retention_ms, "retention.ms");
  read.number(config.retention_bytes, "retention.bytes");
  read.number(config.segment_bytes, "segment.bytes");
  read.number(config.segment_bytes, kInternalSegmentBytes.name);
  read.number(config.segment_ms, "segment.ms");
  read.number(config.segment_jitter_ms, "segment.jitter.ms");
  read.number(config.index_interval_bytes, "index.interval.bytes");
  read.boolean(config.preallocate, "preallocate");
  read.number(config.flush_messages, "flush.messages");
  read.number(config.flush_ms, "flush.ms");
  read.number(config.file_delete_delay_ms, "file.delete.delay.ms");
  read.number(config.delete_retention_ms, "delete.retention.ms");
  read.number(config.min_compaction_lag_ms, "min.compaction.lag.ms");
  read.number(config.max_compaction_lag_ms, "max.compaction.lag.ms");
  read.number(config.min_cleanable_dirty_ratio, "min.cleanable.dirty.ratio");
  if (config.cleanup_compact) {
    config.segment_ms = std::min(config.segment_ms, config.max_compaction_lag_ms);
  }
}

ConfigEntry entry_for(const BrokerConfig& broker, const ConfigMap& overlay, const ConfigRow& row) {
  ConfigEntry entry;
  entry.name = row.name;
  entry.type = row.type;
  entry.documentation = row.documentation;
  entry.value = shown_value(row, value_of(broker, overlay, row).value);
  if (overlay.contains(row.name)) {
    entry.synonyms.push_back({entry.name, entry.value, ConfigSource::kTopic});
  }
  if (const auto synonym = broker_synonym(row.name); !synonym.empty()) {
    for (ConfigSynonym& listed : listed_synonyms(broker.layers, synonym)) {
      entry.synonyms.push_back(std::move(listed));
    }
  }
  if (!entry.synonyms.empty()) entry.source = entry.synonyms.front().source;
  return entry;
}

}  // namespace

const ConfigRow* find_topic_config(std::string_view name) noexcept {
  if (name == kInternalSegmentBytes.name) return &kInternalSegmentBytes;
  return find_row(topic_config_rows(), name);
}

std::string_view broker_name_of(std::string_view topic_config) noexcept {
  return broker_synonym(topic_config);
}

Result<void> check_topic_config(std::string_view name, std::string_view value) {
  const ConfigRow* row = find_topic_config(name);
  if (row == nullptr) {
    return fail(ErrorCode::INVALID_CONFIG,
                "Unknown topic config name: " + std::string(name.substr(0, 249)));
  }
  if (auto checked = check_value(*row, value); !checked) return checked;
  if (name == "remote.storage.enable" && parse_boolean(trimmed(value)) == true) {
    return fail(ErrorCode::INVALID_CONFIG,
                "remote.storage.enable: this broker has no remote storage");
  }
  return {};
}

Result<void> check_topic_configs(const BrokerConfig& broker, const ConfigMap& overlay) {
  for (const auto& [name, value] : overlay) {
    if (auto checked = check_topic_config(name, value); !checked) return checked;
  }
  const Reader read(broker, overlay);
  std::int64_t shortest = 0, longest = 0;
  read.number(shortest, "min.compaction.lag.ms");
  read.number(longest, "max.compaction.lag.ms");
  if (shortest > longest) {
    return fail(ErrorCode::INVALID_CONFIG, "min.compaction.lag.ms (" + std::to_string(shortest) +
                                               ") is greater than max.compaction.lag.ms (" +
                                               std::to_string(longest) + ")");
  }
  return {};
}

TopicConfig make_topic_config(const BrokerConfig& broker, const ConfigMap& overlay) {
  TopicConfig config;
  const Reader read(broker, overlay);
  read_record_settings(read, config);
  read_log_settings(read, config);
  return config;
}

std::vector<ConfigEntry> describe_topic_configs(const BrokerConfig& broker,
                                                const ConfigMap& overlay) {
  std::vector<ConfigEntry> entries;
  entries.reserve(topic_config_rows().size() + 1);
  if (overlay.contains(kInternalSegmentBytes.name)) {
    entries.push_back(entry_for(broker, overlay, kInternalSegmentBytes));
  }
  for (const ConfigRow& row : topic_config_rows())
    entries.push_back(entry_for(broker, overlay, row));
  return entries;
}

std::vector<ConfigEntry> created_topic_configs(const BrokerConfig& broker,
                                               const ConfigMap& overlay) {
  std::vector<ConfigEntry> entries = describe_topic_configs(broker, overlay);
  for (ConfigEntry& entry : entries) {
    Sourced sourced = value_of(broker, overlay, *find_topic_config(entry.name));
    entry.value = std::move(sourced.value);
    entry.source = sourced.source;
    entry.synonyms.clear();
  }
  return entries;
}

}  // namespace kanal::coordinator
