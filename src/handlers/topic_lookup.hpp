// How handlers find the topic that a request names, and the error where there is none.
#pragma once

#include "kanal/broker/broker.hpp"
#include "kanal/broker/topics.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kanal::handlers {

/// A partition a request named, or why it cannot be used.
struct Found {
  broker::TopicPtr topic;
  std::shared_ptr<broker::Partition> partition;
  ErrorCode error = ErrorCode::NONE;
};

inline Found find_partition(broker::TopicPtr topic, PartitionIndex index, ErrorCode missing) {
  if (topic == nullptr) return {nullptr, nullptr, missing};
  auto partition = topic->partition(index);
  if (partition == nullptr)
    return {std::move(topic), nullptr, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION};
  return {std::move(topic), std::move(partition), ErrorCode::NONE};
}

/// By name, or by id where the version names topics by id (UNKNOWN_TOPIC_ID if there is none).
inline broker::TopicPtr find_topic(const broker::Topics& topics, std::string_view name,
                                   const Uuid& id, bool by_id) {
  return by_id ? topics.find(id) : topics.find(name);
}
constexpr ErrorCode missing_topic(bool by_id) {
  return by_id ? ErrorCode::UNKNOWN_TOPIC_ID : ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
}

/// Why a partition cannot be used, in words; nothing where it is there.
inline std::optional<Error> missing_partition(const broker::Topics& topics, std::string_view name,
                                              PartitionIndex index) {
  const broker::TopicPtr topic = topics.find(name);
  if (topic == nullptr)
    return Error{ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                 "There is no topic " + std::string(name) + "."};
  if (topic->partition(index) == nullptr)
    return Error{
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        "There is no partition " + std::string(name) + "-" + std::to_string(index.value()) + "."};
  return std::nullopt;
}

/// Whether what is written to any of the named topics waits for a sync.
template <class Named>
bool any_acks_after_sync(const broker::Topics& topics, const std::vector<Named>& named) {
  return std::ranges::any_of(named, [&](const Named& topic) {
    const broker::TopicPtr found = topics.find(topic.name);
    return found != nullptr && found->config().flush_messages == 1;
  });
}

/// Kafka's own topics: not served here, and never made by a client's guess.
inline bool is_internal_topic(std::string_view name) {
  return name == "__consumer_offsets" || name == "__transaction_state" ||
         name == "__share_group_state";
}

}  // namespace kanal::handlers
