// DescribeCluster (60): the cluster's id and its one broker, at the address of the listener that
// was asked.
//
// Version notes
// - 1+ asks for brokers or controllers; this is an endpoint of brokers.
#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/wire/messages/describe_cluster.hpp"

namespace kanal::handlers {
namespace {

constexpr std::int8_t kBrokers = 1, kControllers = 2;

}  // namespace

broker::Task<wire::DescribeClusterResponse> handle(broker::Context& context,
                                                   wire::DescribeClusterRequest request) {
  wire::DescribeClusterResponse response;
  if (request.endpoint_type != kBrokers) {
    const bool controllers = request.endpoint_type == kControllers;
    response.error_code =
        controllers ? ErrorCode::MISMATCHED_ENDPOINT_TYPE : ErrorCode::UNSUPPORTED_ENDPOINT_TYPE;
    response.error_message = controllers ? "This endpoint is a broker's, not a controller's."
                                         : "The endpoint type is not known: 1 asks for brokers.";
    co_return response;
  }
  response.cluster_id = context.broker.cluster_id();
  response.controller_id = context.broker.node_id();
  auto& self = response.brokers.emplace_back();
  self.broker_id = context.broker.node_id();
  self.host = context.peer.listener->host;
  self.port = context.peer.listener->port;
  self.rack = context.broker.config()->node.rack;
  if (request.include_cluster_authorized_operations)
    response.cluster_authorized_operations = kClusterOperations;
  co_return response;
}

}  // namespace kanal::handlers
