// AlterPartitionReassignments (45): which brokers hold a partition (KIP-455). With one broker the
// only assignment is the one that holds already, and nothing is ever under way.
//
// Behavior
// - Checked per partition, in Kafka's order: topic, partition, cancellation (null replicas), an
//   empty list, a broker that is not there, one named twice.
// - Cancelling where nothing moves is NO_REASSIGNMENT_IN_PROGRESS, a timeout of 0 or less
//   REQUEST_TIMED_OUT for the request and each partition; both without a message, as in Kafka.
// Version notes
// - 1+ may forbid to change the replication factor; it cannot change here. The answer repeats it.
#include <algorithm>

#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/wire/messages/alter_partition_reassignments.hpp"
#include "topic_lookup.hpp"

namespace kanal::handlers {
namespace {

using broker::Context;
using Request = wire::AlterPartitionReassignmentsRequest;
using Response = wire::AlterPartitionReassignmentsResponse;

Error invalid_assignment(std::string why) {
  return {ErrorCode::INVALID_REPLICA_ASSIGNMENT, std::move(why)};
}

Error check_replicas(std::vector<NodeId> replicas, NodeId self) {
  if (replicas.empty()) return invalid_assignment("The list of replicas is empty.");
  std::ranges::sort(replicas);
  for (std::size_t i = 0; i < replicas.size(); ++i) {
    const std::string broker =
        "The list of replicas names broker " + std::to_string(replicas[i].value());
    if (replicas[i] != self) return invalid_assignment(broker + ", which is not registered.");
    if (i > 0) return invalid_assignment(broker + " more than once.");
  }
  return {ErrorCode::NONE, ""};
}

Error reassign(const Context& context, const broker::Topics& topics, std::string_view name,
               const Request::Topic::Partition& asked) {
  if (auto missing = missing_partition(topics, name, asked.partition_index))
    return *std::move(missing);
  if (!asked.replicas) return {ErrorCode::NO_REASSIGNMENT_IN_PROGRESS, ""};
  return check_replicas(*asked.replicas, context.broker.node_id());
}

Error check(const Context& context, const Request& request) {
  if (!authorize(context, Operation::kAlter, ResourceType::kCluster, kClusterName))
    return {ErrorCode::CLUSTER_AUTHORIZATION_FAILED, "Reassigning partitions is not allowed."};
  if (!request.topics.empty() && request.timeout.count() <= 0)
    return {ErrorCode::REQUEST_TIMED_OUT, ""};
  return {ErrorCode::NONE, ""};
}

std::optional<std::string> message_of(const Error& error) {
  return error.detail.empty() ? std::nullopt : std::optional(error.detail);
}

}  // namespace

broker::Task<Response> handle(Context& context, Request request) {
  Response response;
  const Error refused = check(context, request);
  response.error_code = refused.code;
  response.error_message = message_of(refused);
  if (request.topics.empty() && refused.code == ErrorCode::NONE)
    response.error_message = "";  // not null
  if (!request.topics.empty() && refused.code == ErrorCode::NONE)
    response.allow_replication_factor_change = request.allow_replication_factor_change;
  const auto topics = context.broker.topics();
  for (const auto& topic : request.topics) {
    auto& result = response.responses.emplace_back();
    result.name = std::string(topic.name);
    for (const auto& asked : topic.partitions) {
      Error error =
          refused.code != ErrorCode::NONE ? refused : reassign(context, *topics, topic.name, asked);
      auto& answer = result.partitions.emplace_back();
      answer.partition_index = asked.partition_index;
      answer.error_code = error.code;
      answer.error_message = message_of(error);
    }
  }
  co_return response;
}

}  // namespace kanal::handlers
