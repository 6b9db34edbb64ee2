// ListPartitionReassignments (46): what is on its way to other brokers (KIP-455). Nothing ever is;
// unknown topics and partitions are no error in Kafka either, they are only not listed.
#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/wire/messages/list_partition_reassignments.hpp"

namespace kanal::handlers {

broker::Task<wire::ListPartitionReassignmentsResponse> handle(
    broker::Context& context, wire::ListPartitionReassignmentsRequest) {
  wire::ListPartitionReassignmentsResponse response;
  response.error_message = std::nullopt;
  if (!authorize(context, Operation::kDescribe, ResourceType::kCluster, kClusterName))
    response.error_code = ErrorCode::CLUSTER_AUTHORIZATION_FAILED;
  co_return response;
}

}  // namespace kanal::handlers
