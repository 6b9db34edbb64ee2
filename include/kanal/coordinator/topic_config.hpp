// Kafka's topic configs (all of 4.4's): their table, checks, the typed values of the hot path, and
// DescribeConfigs' answer for a topic. A topic stores its overlay (what was set on it); all else
// comes from the broker's layers through the broker synonyms (retention.ms <- log.retention.ms <-
// log.retention.minutes <- log.retention.hours). A TopicConfig is a plain value, made when the
// overlay or the broker's configs change and shared read-only.
#pragma once

#include "kanal/coordinator/broker_config.hpp"

namespace kanal::coordinator {

/// Every topic config that is shown, sorted by name. (internal.segment.bytes is accepted and not
/// shown, as in Kafka.)
[[nodiscard]] std::span<const ConfigRow> topic_config_rows() noexcept;

/// The row of a topic config, internal.segment.bytes included; null if unknown.
[[nodiscard]] const ConfigRow* find_topic_config(std::string_view name) noexcept;

/// The broker config that holds the default of a topic config; empty if there is none.
[[nodiscard]] std::string_view broker_name_of(std::string_view topic_config) noexcept;

/// INVALID_CONFIG for an unknown name, a bad type, a value out of range, or one that asks for what
/// is missing here.
[[nodiscard]] Result<void> check_topic_config(std::string_view name, std::string_view value);

/// Each value, then what must agree (max.compaction.lag.ms >= min.compaction.lag.ms), with the
/// broker's values below.
[[nodiscard]] Result<void> check_topic_configs(const BrokerConfig& broker,
                                               const ConfigMap& overlay);

enum class TimestampKind : std::uint8_t { kCreateTime, kLogAppendTime };
enum class TopicCompression : std::uint8_t {
  kProducer,
  kUncompressed,
  kGzip,
  kSnappy,
  kLz4,
  kZstd
};

/// The values in force for one topic.
struct TopicConfig {
  std::int32_t max_message_bytes = 1'048'588;
  std::int32_t max_decompressed_message_bytes = 2'147'483'639;
  TimestampKind timestamp_type = TimestampKind::kCreateTime;
  std::int64_t timestamp_before_max_ms = INT64_MAX;
  std::int64_t timestamp_after_max_ms = 3'600'000;
  TopicCompression compression_type = TopicCompression::kProducer;
  std::int32_t gzip_level = -1;  // -1: zlib's own default
  std::int32_t lz4_level = 9;
  std::int32_t zstd_level = 3;
  bool cleanup_delete = true;
  bool cleanup_compact = false;
  std::int64_t retention_ms = 604'800'000;  // -1: for ever
  std::int64_t retention_bytes = -1;        // -1: no limit
  std::int32_t segment_bytes = 1'073'741'824;
  std::int64_t segment_ms = 604'800'000;  // at most max_compaction_lag_ms on a compacted topic
  std::int64_t segment_jitter_ms = 0;
  std::int32_t index_interval_bytes = 4'096;
  bool preallocate = false;
  std::int64_t flush_messages = INT64_MAX;  // 1: acknowledge after fsync
  std::int64_t flush_ms = INT64_MAX;
  std::int64_t file_delete_delay_ms = 60'000;
  std::int64_t delete_retention_ms = 86'400'000;
  std::int64_t min_compaction_lag_ms = 0;
  std::int64_t max_compaction_lag_ms = INT64_MAX;
  double min_cleanable_dirty_ratio = 0.5;
  std::int32_t min_insync_replicas = 1;

  friend bool operator==(const TopicConfig&, const TopicConfig&) = default;
};

/// `overlay` has passed check_topic_configs; a value that has not (an older version's record) falls
/// back to the default.
[[nodiscard]] TopicConfig make_topic_config(const BrokerConfig& broker, const ConfigMap& overlay);

/// DescribeConfigs of TOPIC: every config in table order, and internal ones that are set.
[[nodiscard]] std::vector<ConfigEntry> describe_topic_configs(const BrokerConfig& broker,
                                                              const ConfigMap& overlay);

/// What CreateTopics 5+ answers: values as they were written, each with the layer it comes from.
[[nodiscard]] std::vector<ConfigEntry> created_topic_configs(const BrokerConfig& broker,
                                                             const ConfigMap& overlay);

}  // namespace kanal::coordinator
