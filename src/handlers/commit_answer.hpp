// What OffsetCommit and TxnOffsetCommit share: which of the partitions they name can be committed,
// and the answer in Kafka's order. Each partition fails alone where its topic or itself does not
// exist; those that fail first stand first. Used by the one request it is made for.
#pragma once

#include "authorize.hpp"
#include "kanal/coordinator/group.hpp"
#include "topic_lookup.hpp"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kanal::handlers {

/// Request and Response name topics and partitions alike in both APIs. The request outlives it.
template <class Request, class Response>
class CommitAnswer {
 public:
  CommitAnswer(broker::Context& context, const Request& request, bool by_id)
      : context_(context), request_(request), by_id_(by_id), topics_(context.broker.topics()) {}

  void refuse_all(ErrorCode error) {
    for (const auto& topic : request_.topics) refuse_all(topic, error);
  }
  /// What can be committed; the rest is refused.
  [[nodiscard]] std::vector<coordinator::OffsetToCommit> check() {
    for (const auto& topic : request_.topics) check(topic);
    return std::move(offsets_);
  }
  /// The answer, with these errors for what check() has let through.
  [[nodiscard]] Response take(const std::vector<ErrorCode>& errors) {
    const bool merged = !response_.topics.empty();
    std::size_t next = 0;
    for (const Asked& asked : asked_) {
      auto& answered = merged ? entry(*asked.topic) : add(*asked.topic);
      for (const PartitionIndex index : asked.partitions)
        answered.partitions.push_back({index, errors[next++]});
    }
    return std::move(response_);
  }

 private:
  using Topic = typename Request::Topic;
  struct Asked {
    explicit Asked(const Topic* named) : topic(named) {}
    const Topic* topic;
    std::vector<PartitionIndex> partitions;
  };

  void check(const Topic& topic) {
    const broker::TopicPtr found = find_topic(*topics_, topic.name, topic.topic_id, by_id_);
    if (found == nullptr) return refuse_all(topic, missing_topic(by_id_));
    if (!authorize(context_, Operation::kRead, ResourceType::kTopic, found->name()))
      return refuse_all(topic, ErrorCode::TOPIC_AUTHORIZATION_FAILED);
    bool first = true;
    for (const auto& partition : topic.partitions) {
      if (found->partition(partition.partition_index) == nullptr) {
        entry(topic).partitions.push_back(
            {partition.partition_index, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION});
        continue;
      }
      if (std::exchange(first, false)) asked_.emplace_back(&topic);
      asked_.back().partitions.push_back(partition.partition_index);
      offsets_.push_back({.topic = found->name(),
                          .topic_id = found->id(),
                          .partition = partition.partition_index,
                          .offset = partition.committed_offset,
                          .leader_epoch = partition.committed_leader_epoch,
                          .metadata = partition.committed_metadata.value_or("")});
    }
  }

  void refuse_all(const Topic& topic, ErrorCode error) {
    auto& answered = entry(topic);
    for (const auto& partition : topic.partitions)
      answered.partitions.push_back({partition.partition_index, error});
  }

  typename Response::Topic& entry(const Topic& topic) {
    const auto [at, added] =
        entries_.try_emplace({topic.name, topic.topic_id}, response_.topics.size());
    return added ? add(topic) : response_.topics[at->second];
  }
  typename Response::Topic& add(const Topic& topic) {
    auto& answered = response_.topics.emplace_back();
    answered.name = std::string(topic.name);
    answered.topic_id = topic.topic_id;
    return answered;
  }

  broker::Context& context_;
  const Request& request_;
  const bool by_id_;
  const std::shared_ptr<const broker::Topics> topics_;
  std::vector<coordinator::OffsetToCommit> offsets_;
  std::vector<Asked> asked_;  // whose partitions are in offsets_, in its order
  std::map<std::pair<std::string_view, Uuid>, std::size_t> entries_;
  Response response_;
};

/// Answers `code` where an offset was stored; whether one was.
template <class Response>
bool answer_stored(Response& response, ErrorCode code) {
  bool any = false;
  for (auto& topic : response.topics) {
    for (auto& partition : topic.partitions) {
      if (partition.error_code != ErrorCode::NONE) continue;
      partition.error_code = code;
      any = true;
    }
  }
  return any;
}

}  // namespace kanal::handlers
