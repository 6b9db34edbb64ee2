// Channel names: the only place that builds or parses them. Partition 0 of topic "orders" is the
// channel "kafka.orders", partition n >= 1 is "kafka.orders~n". Plain functions: any thread.
#pragma once

#include "kanal/base/error.hpp"
#include "kanal/base/ids.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace kanal {

inline constexpr std::size_t kMaxTopicNameLength = 249;

/// INVALID_TOPIC_EXCEPTION with the reason, in the order Kafka checks: empty, "." or "..", too
/// long, characters.
[[nodiscard]] Result<void> check_topic_name(std::string_view topic);

/// Kafka's metric form of a name: '.' becomes '_'. Two topics must not be equal in it.
[[nodiscard]] std::string collision_form(std::string_view topic);

[[nodiscard]] std::string channel_name(std::string_view topic, PartitionIndex partition);

struct TopicPartition {
  std::string topic;
  PartitionIndex partition;
  friend bool operator==(const TopicPartition&, const TopicPartition&) = default;
};
/// The reverse; nothing for a reserved or foreign name.
[[nodiscard]] std::optional<TopicPartition> parse_channel_name(std::string_view channel);

/// Whether a name belongs to the reserved `_KAFKA_` channels, closed to everybody outside.
[[nodiscard]] bool is_reserved_channel(std::string_view channel);

/// Identity of one incarnation of a channel: the topic id tells a re-created topic from the deleted
/// one.
struct ChannelId {
  std::string name;  // channel_name(topic, partition)
  Uuid topic_id;
  PartitionIndex partition;
};

/// The directory name of a channel: the name itself, or for names over 255 bytes a documented short
/// form (first 180 bytes, '~', hex of the topic id, '~', partition).
[[nodiscard]] std::string directory_name(const ChannelId& channel);

}  // namespace kanal
