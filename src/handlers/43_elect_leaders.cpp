// ElectLeaders (43): a new leader for partitions whose preferred one does not lead, or that have
// none. With one replica each there is never anything to elect.
//
// Behavior
// - A partition that exists has its leader already: ELECTION_NOT_NEEDED. Asked for all (null), such
//   partitions are left out, so that every topic comes with an empty list.
// - A timeout of 0 or less is REQUEST_TIMED_OUT (without a message, as in Kafka), then an unknown
//   kind of election INVALID_REQUEST: for the request and for every partition it names. Asked for
//   none (an empty list), neither is looked at.
// Version notes
// - 1+ says which kind of election; 0 means the preferred leader.
#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/wire/messages/elect_leaders.hpp"
#include "topic_lookup.hpp"

namespace kanal::handlers {
namespace {

using broker::Context;
using Request = wire::ElectLeadersRequest;
using Response = wire::ElectLeadersResponse;

constexpr std::int8_t kPreferred = 0, kUnclean = 1;

Error elect(const broker::Topics& topics, std::string_view name, PartitionIndex index) {
  if (auto missing = missing_partition(topics, name, index)) return *std::move(missing);
  return {ErrorCode::ELECTION_NOT_NEEDED, "The partition has its leader already."};
}

void answer(Response::ReplicaElectionResult& result, PartitionIndex index, Error error) {
  auto& entry = result.partition_result.emplace_back();
  entry.partition_id = index.value();
  entry.error_code = error.code;
  entry.error_message = std::nullopt;
  if (!error.detail.empty()) entry.error_message = std::move(error.detail);
}

Error check(const Context& context, const Request& request) {
  if (!authorize(context, Operation::kAlter, ResourceType::kCluster, kClusterName))
    return {ErrorCode::CLUSTER_AUTHORIZATION_FAILED, "Electing leaders is not allowed."};
  if (request.topic_partitions && request.topic_partitions->empty()) return {ErrorCode::NONE, ""};
  if (request.timeout.count() <= 0) return {ErrorCode::REQUEST_TIMED_OUT, ""};
  const bool known = request.election_type == kPreferred || request.election_type == kUnclean;
  if (!known) {
    return {ErrorCode::INVALID_REQUEST, "The election type " +
                                            std::to_string(request.election_type) +
                                            " is not known: 0 is preferred, 1 unclean."};
  }
  return {ErrorCode::NONE, ""};
}

}  // namespace

broker::Task<Response> handle(Context& context, Request request) {
  Response response;
  const Error refused = check(context, request);
  response.error_code = refused.code;
  const auto topics = context.broker.topics();
  if (!request.topic_partitions) {
    if (refused.code != ErrorCode::NONE) co_return response;
    topics->for_each([&](const broker::TopicPtr& topic) {
      response.replica_election_results.emplace_back().topic = topic->name();
    });
    co_return response;
  }
  for (const auto& topic : *request.topic_partitions) {
    auto& result = response.replica_election_results.emplace_back();
    result.topic = std::string(topic.topic);
    for (const PartitionIndex index : topic.partitions) {
      answer(result, index,
             refused.code != ErrorCode::NONE ? refused : elect(*topics, topic.topic, index));
    }
  }
  co_return response;
}

}  // namespace kanal::handlers
