// What a topic's configuration asks of a produced record set. Plain functions: any thread.
#pragma once

#include <optional>

#include "kanal/broker/broker.hpp"
#include "kanal/records/validate.hpp"

namespace kanal::handlers {

inline std::optional<records::Codec> target_codec(coordinator::TopicCompression compression) {
  switch (compression) {
    case coordinator::TopicCompression::kProducer:
      return std::nullopt;
    case coordinator::TopicCompression::kUncompressed:
      return records::Codec::kNone;
    case coordinator::TopicCompression::kGzip:
      return records::Codec::kGzip;
    case coordinator::TopicCompression::kSnappy:
      return records::Codec::kSnappy;
    case coordinator::TopicCompression::kLz4:
      return records::Codec::kLz4;
    case coordinator::TopicCompression::kZstd:
      return records::Codec::kZstd;
  }
  return std::nullopt;
}

inline records::ProduceRules rules_for(const coordinator::TopicConfig& config,
                                       const broker::Context& context) {
  records::ProduceRules rules;
  rules.log_append_time = config.timestamp_type == coordinator::TimestampKind::kLogAppendTime;
  rules.before_max_ms = config.timestamp_before_max_ms;
  rules.after_max_ms = config.timestamp_after_max_ms;
  rules.now = context.broker.clock().wall();
  rules.max_message_bytes = config.max_message_bytes;
  rules.compacted = config.cleanup_compact;
  rules.max_decompressed_bytes = config.max_decompressed_message_bytes;
  rules.produce_version = context.api_version;
  rules.compression = target_codec(config.compression_type);
  rules.levels.gzip = config.gzip_level;
  rules.levels.lz4 = config.lz4_level;
  rules.levels.zstd = config.zstd_level;
  return rules;
}

}  // namespace kanal::handlers
