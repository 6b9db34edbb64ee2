// Heartbeat (12): keeps a member in its group and tells it of a rebalance.
//
// Version notes
// - 3+ static members (KIP-345).
#include "kanal/wire/messages/heartbeat.hpp"

#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/broker/groups.hpp"

namespace kanal::handlers {

broker::Task<wire::HeartbeatResponse> handle(broker::Context& context,
                                             wire::HeartbeatRequest request) {
  wire::HeartbeatResponse response;
  if (!authorize(context, Operation::kRead, ResourceType::kGroup, request.group_id))
    response.error_code = ErrorCode::GROUP_AUTHORIZATION_FAILED;
  else
    response.error_code = context.broker.groups().heartbeat(request);
  co_return response;
}

}  // namespace kanal::handlers
