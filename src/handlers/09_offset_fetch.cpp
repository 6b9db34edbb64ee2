// OffsetFetch (9): what a group has committed. No offset is -1 without an error, also where group,
// topic or partition do not exist.
//
// Behavior
// - An offset that was committed to a topic since deleted is never given, whether or not a topic of
//   that name exists again.
// - While a transaction is open that has an offset for the partition, RequireStable (7+, KIP-447)
//   gets UNSTABLE_OFFSET_COMMIT, so that who takes over waits for its end; else what is committed
//   is answered.
// - Member and epoch (9+) are for consumer groups and not looked at.
// Version notes
// - 1 has errors on partitions only; 2+ null asks for all topics and has an error for the group.
// - 8+ several groups (KIP-709); 10 names topics by id, unknown ones stand last.
#include "kanal/wire/messages/offset_fetch.hpp"

#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/broker/groups.hpp"
#include "topic_lookup.hpp"

namespace kanal::handlers {
namespace {

using broker::Context;
using Request = wire::OffsetFetchRequest;
using Response = wire::OffsetFetchResponse;
using Answer = Response::Group;
using coordinator::CommittedOffset;
using coordinator::Group;

void add(Answer::Topic& topic, PartitionIndex index, const CommittedOffset* committed,
         ErrorCode error = ErrorCode::NONE) {
  auto& partition = topic.partitions.emplace_back();
  partition.partition_index = index;
  partition.error_code = error;
  partition.committed_offset = kNoOffset;
  if (committed == nullptr) return;
  partition.committed_offset = committed->offset;
  partition.committed_leader_epoch = committed->leader_epoch;
  partition.metadata = committed->metadata;
}

void add_all(const broker::Topics& topics, const Group& group, bool stable, Answer& answer) {
  Uuid last;
  bool alive = false;
  group.for_each_offset(
      [&](std::string_view name, PartitionIndex index, const CommittedOffset& committed) {
        const bool same = !answer.topics.empty() && last == committed.topic_id;
        if (!same) {
          last = committed.topic_id;
          alive = topics.find(last) != nullptr;
        }
        if (!alive) return;
        if (answer.topics.empty() || answer.topics.back().topic_id != last) {
          auto& topic = answer.topics.emplace_back();
          topic.name = std::string(name);
          topic.topic_id = last;
        }
        if (stable && group.has_pending(name, last, index))
          add(answer.topics.back(), index, nullptr, ErrorCode::UNSTABLE_OFFSET_COMMIT);
        else
          add(answer.topics.back(), index, &committed);
      });
}

class Fetch {
 public:
  Fetch(Context& context, std::string_view group, bool stable)
      : context_(context), group_(group), stable_(stable), topics_(context.broker.topics()) {}

  /// Asked: a topic of the request, of a version before 8 or since.
  template <class Asked>
  Answer run(const std::optional<std::vector<Asked>>& asked) {
    Answer answer;
    answer.group_id = std::string(group_);
    if (!authorize(context_, Operation::kDescribe, ResourceType::kGroup, group_))
      return failed(std::move(answer), asked, ErrorCode::GROUP_AUTHORIZATION_FAILED);
    const ErrorCode error = context_.broker.groups().visit(group_, [&](const Group& group) {
      if (asked)
        add_asked(*asked, &group, answer);
      else
        add_all(*topics_, group, stable_, answer);
    });
    if (error == ErrorCode::GROUP_ID_NOT_FOUND) {
      if (asked) add_asked(*asked, nullptr, answer);
    } else if (error != ErrorCode::NONE) {
      return failed(std::move(answer), asked, error);
    }
    return answer;
  }

 private:
  template <class Asked>
  Answer failed(Answer answer, const std::optional<std::vector<Asked>>& asked, ErrorCode error) {
    if (context_.api_version >= 2) {
      answer.error_code = error;
    } else if (asked) {
      for (const Asked& topic : *asked) add_topic(topic, nullptr, answer, error);
    }
    return answer;
  }

  template <class Asked>
  void add_asked(const std::vector<Asked>& asked, const Group* group, Answer& answer) {
    std::vector<const Asked*> unknown;
    for (const Asked& topic : asked) {
      if (is_unknown_id(topic))
        unknown.push_back(&topic);
      else
        add_topic(topic, group, answer, ErrorCode::NONE);
    }
    for (const Asked* topic : unknown)
      add_topic(*topic, nullptr, answer, ErrorCode::UNKNOWN_TOPIC_ID);
  }

  template <class Asked>
  void add_topic(const Asked& asked, const Group* group, Answer& answer, ErrorCode error) {
    auto& topic = answer.topics.emplace_back();
    topic.name = std::string(asked.name);
    topic.topic_id = id_of(asked);
    const broker::TopicPtr found =
        find_topic(*topics_, asked.name, topic.topic_id, context_.api_version >= 10);
    const bool look = group != nullptr && found != nullptr;
    for (const PartitionIndex index : asked.partition_indexes) {
      if (look && stable_ && group->has_pending(found->name(), found->id(), index)) {
        add(topic, index, nullptr, ErrorCode::UNSTABLE_OFFSET_COMMIT);
        continue;
      }
      add(topic, index, look ? group->committed(found->name(), found->id(), index) : nullptr,
          error);
    }
  }

  static Uuid id_of(const Request::Topic&) { return {}; }
  static Uuid id_of(const Request::Group::Topic& topic) { return topic.topic_id; }
  template <class Asked>
  bool is_unknown_id(const Asked& topic) const {
    return context_.api_version >= 10 && topics_->find(id_of(topic)) == nullptr;
  }

  Context& context_;
  const std::string_view group_;
  const bool stable_;
  const std::shared_ptr<const broker::Topics> topics_;
};

/// The one group of versions before 8, in their shape.
void put_single(Answer answer, Response& response) {
  response.error_code = answer.error_code;
  for (Answer::Topic& from : answer.topics) {
    auto& topic = response.topics.emplace_back();
    topic.name = std::move(from.name);
    for (auto& partition : from.partitions) {
      topic.partitions.push_back({.partition_index = partition.partition_index,
                                  .committed_offset = partition.committed_offset,
                                  .committed_leader_epoch = partition.committed_leader_epoch,
                                  .metadata = std::move(partition.metadata),
                                  .error_code = partition.error_code});
    }
  }
}

}  // namespace

broker::Task<Response> handle(Context& context, Request request) {
  Response response;
  if (context.api_version < 8) {
    put_single(Fetch(context, request.group_id, request.require_stable).run(request.topics),
               response);
    co_return response;
  }
  for (const Request::Group& group : request.groups) {
    Fetch fetch(context, group.group_id, request.require_stable);
    response.groups.push_back(fetch.run(group.topics));
  }
  co_return response;
}

}  // namespace kanal::handlers
