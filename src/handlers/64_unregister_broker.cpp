// UnregisterBroker (64): forgets a broker that is gone for good.
//
// Behavior
// - No other broker is ever registered: BROKER_ID_NOT_REGISTERED.
// - This one is refused with INVALID_REQUEST. Kafka obeys, and a cluster of one then has no broker
//   that may lead until it is restarted: a way to lose the service that nobody wants.
#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/wire/messages/unregister_broker.hpp"

namespace kanal::handlers {

broker::Task<wire::UnregisterBrokerResponse> handle(broker::Context& context,
                                                    wire::UnregisterBrokerRequest request) {
  wire::UnregisterBrokerResponse response;
  const std::string broker = "Broker " + std::to_string(request.broker_id.value());
  if (!authorize(context, Operation::kAlter, ResourceType::kCluster, kClusterName)) {
    response.error_code = ErrorCode::CLUSTER_AUTHORIZATION_FAILED;
    response.error_message = "Unregistering brokers is not allowed.";
  } else if (request.broker_id == context.broker.node_id()) {
    response.error_code = ErrorCode::INVALID_REQUEST;
    response.error_message = broker + " is the one that answers; it cannot be unregistered.";
  } else {
    response.error_code = ErrorCode::BROKER_ID_NOT_REGISTERED;
    response.error_message = broker + " is not registered.";
  }
  co_return response;
}

}  // namespace kanal::handlers
