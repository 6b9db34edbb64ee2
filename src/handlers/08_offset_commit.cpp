// OffsetCommit (8): stored before it is answered, and synced where the whole broker acknowledges
// after sync.
//
// Behavior
// - Each partition fails alone where its topic or itself does not exist; what is wrong with the
//   member or the group fails all others alike. Those that fail first stand first in the answer.
// - Without a generation (-1) anybody commits to a group without members; the group is made.
// Version notes
// - 2-4 may bring a retention time of their own; 7 an instance id (KIP-345).
// - 9 answers GROUP_ID_NOT_FOUND where earlier ones get ILLEGAL_GENERATION; 10 names topics by id.
#include "kanal/wire/messages/offset_commit.hpp"

#include <map>

#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/broker/groups.hpp"
#include "topic_lookup.hpp"

namespace kanal::handlers {
namespace {

using broker::Context;
using Request = wire::OffsetCommitRequest;
using Response = wire::OffsetCommitResponse;

class Commit {
 public:
  Commit(Context& context, const Request& request)
      : context_(context),
        request_(request),
        by_id_(context.api_version >= 10),
        topics_(context.broker.topics()) {}

  Response run() {
    const bool allowed =
        authorize(context_, Operation::kRead, ResourceType::kGroup, request_.group_id);
    for (const Request::Topic& topic : request_.topics) {
      if (allowed)
        check(topic);
      else
        refuse_all(topic, ErrorCode::GROUP_AUTHORIZATION_FAILED);
    }
    if (!command_.offsets.empty()) commit();
    return std::move(response_);
  }

 private:
  void check(const Request::Topic& topic) {
    const broker::TopicPtr found = find_topic(*topics_, topic.name, topic.topic_id, by_id_);
    if (found == nullptr) return refuse_all(topic, missing_topic(by_id_));
    if (!authorize(context_, Operation::kRead, ResourceType::kTopic, found->name()))
      return refuse_all(topic, ErrorCode::TOPIC_AUTHORIZATION_FAILED);
    bool first = true;
    for (const Request::Topic::Partition& partition : topic.partitions) {
      if (found->partition(partition.partition_index) == nullptr) {
        refuse(topic, partition.partition_index, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        continue;
      }
      if (std::exchange(first, false)) asked_.emplace_back(&topic);
      command_.offsets.push_back({.topic = found->name(),
                                  .topic_id = found->id(),
                                  .partition = partition.partition_index,
                                  .offset = partition.committed_offset,
                                  .leader_epoch = partition.committed_leader_epoch,
                                  .metadata = partition.committed_metadata.value_or("")});
      ++asked_.back().partitions;
    }
  }

  void commit() {
    command_.generation = request_.generation_id_or_member_epoch;
    command_.member_id = request_.member_id;
    command_.instance_id = request_.group_instance_id;
    command_.knows_group_id_not_found = context_.api_version >= 9;
    if (request_.retention_time_ms != -1) command_.retention_ms = request_.retention_time_ms;
    std::vector<PartitionIndex> indexes;
    indexes.reserve(command_.offsets.size());
    for (const auto& offset : command_.offsets) indexes.push_back(offset.partition);
    const auto result = context_.broker.groups().commit(request_.group_id, std::move(command_));

    const bool merged = !response_.topics.empty();
    std::size_t next = 0;
    for (const Asked& asked : asked_) {
      auto& answered = merged ? entry(*asked.topic) : add(*asked.topic);
      for (std::size_t i = 0; i < asked.partitions; ++i, ++next) {
        answered.partitions.push_back({indexes[next], result.partitions[next]});
      }
    }
  }

  void refuse_all(const Request::Topic& topic, ErrorCode error) {
    auto& answered = entry(topic);
    for (const auto& partition : topic.partitions)
      answered.partitions.push_back({partition.partition_index, error});
  }
  void refuse(const Request::Topic& topic, PartitionIndex index, ErrorCode error) {
    entry(topic).partitions.push_back({index, error});
  }

  Response::Topic& entry(const Request::Topic& topic) {
    const auto [at, added] =
        entries_.try_emplace({topic.name, topic.topic_id}, response_.topics.size());
    return added ? add(topic) : response_.topics[at->second];
  }
  Response::Topic& add(const Request::Topic& topic) {
    auto& answered = response_.topics.emplace_back();
    answered.name = std::string(topic.name);
    answered.topic_id = topic.topic_id;
    return answered;
  }

  struct Asked {
    explicit Asked(const Request::Topic* named) : topic(named) {}
    const Request::Topic* topic;
    std::size_t partitions = 0;
  };

  Context& context_;
  const Request& request_;
  const bool by_id_;
  const std::shared_ptr<const broker::Topics> topics_;
  coordinator::CommitCommand command_;
  std::vector<Asked> asked_;  // whose partitions are in command_, in its order
  std::map<std::pair<std::string_view, Uuid>, std::size_t> entries_;
  Response response_;
};

/// Answers `code` where an offset was stored; whether one was.
bool answer_stored(Response& response, ErrorCode code) {
  bool any = false;
  for (Response::Topic& topic : response.topics) {
    for (auto& partition : topic.partitions) {
      if (partition.error_code != ErrorCode::NONE) continue;
      partition.error_code = code;
      any = true;
    }
  }
  return any;
}

}  // namespace

broker::Task<Response> handle(Context& context, Request request) {
  Commit commit(context, request);
  Response response = commit.run();
  if (!answer_stored(response, ErrorCode::NONE)) co_return response;
  const auto synced = co_await context.broker.reserved_synced(context);
  if (!synced) answer_stored(response, ErrorCode::COORDINATOR_NOT_AVAILABLE);
  co_return response;
}

}  // namespace kanal::handlers
