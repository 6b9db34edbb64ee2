#include "kanal/base/channel.hpp"

#include <algorithm>
#include <charconv>

namespace kanal {
namespace {

constexpr std::string_view kTopicPrefix = "kafka.";
constexpr std::string_view kReservedPrefix = "_KAFKA_";
constexpr char kPartitionMark = '~';
constexpr std::size_t kMaxFileName = 255;
constexpr std::size_t kShortFormHead = 180;

bool is_legal(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

}  // namespace

Result<void> check_topic_name(std::string_view topic) {
  const auto refuse = [&](std::string why) {
    return fail(ErrorCode::INVALID_TOPIC_EXCEPTION, "The topic name " + std::move(why));
  };
  if (topic.empty()) return refuse("is empty.");
  if (topic == "." || topic == "..") return refuse("cannot be \".\" or \"..\".");
  if (topic.size() > kMaxTopicNameLength) return refuse("is longer than 249 characters.");
  if (!std::ranges::all_of(topic, is_legal)) {
    return refuse("'" + std::string(topic) +
                  "' has characters other than ASCII letters, digits, '.', '_' and '-'.");
  }
  return {};
}

std::string collision_form(std::string_view topic) {
  std::string form(topic);
  std::ranges::replace(form, '.', '_');
  return form;
}

std::string channel_name(std::string_view topic, PartitionIndex partition) {
  std::string name;
  name.reserve(kTopicPrefix.size() + topic.size() + 12);
  name.append(kTopicPrefix).append(topic);
  if (partition.value() > 0)
    name.append(1, kPartitionMark).append(std::to_string(partition.value()));
  return name;
}

std::optional<TopicPartition> parse_channel_name(std::string_view channel) {
  if (!channel.starts_with(kTopicPrefix)) return std::nullopt;
  std::string_view topic = channel.substr(kTopicPrefix.size());
  std::int32_t partition = 0;
  if (const auto mark = topic.find(kPartitionMark); mark != std::string_view::npos) {
    const std::string_view digits = topic.substr(mark + 1);
    topic = topic.substr(0, mark);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), partition);
    // One spelling a channel: no sign, no leading zero, and partition 0 has no mark.
    if (error != std::errc{} || end != digits.data() + digits.size() || partition < 1 ||
        digits[0] == '0') {
      return std::nullopt;
    }
  }
  if (!check_topic_name(topic)) return std::nullopt;
  return TopicPartition{std::string(topic), PartitionIndex(partition)};
}

bool is_reserved_channel(std::string_view channel) {
  return channel.starts_with(kReservedPrefix);
}

std::string directory_name(const ChannelId& channel) {
  if (channel.name.size() <= kMaxFileName) return channel.name;
  static constexpr char kHex[] = "0123456789abcdef";
  std::string name = channel.name.substr(0, kShortFormHead) + kPartitionMark;
  for (const std::uint8_t byte : channel.topic_id.bytes) {
    name += kHex[byte >> 4];
    name += kHex[byte & 15];
  }
  return name + kPartitionMark + std::to_string(channel.partition.value());
}

}  // namespace kanal
