// JoinGroup (11): a member joins or comes back; the answer waits until the group's members are
// there or their time is up. The rules are the machine's (coordinator/group.hpp, docs/groups.md).
//
// Version notes
// - 0 has no rebalance timeout: its session timeout counts. 4+ a new member is sent away once with
//   its id (KIP-394), 5+ static members (KIP-345), 7 the protocol type, 8 a reason (KIP-800),
//   9 a leader that comes back may be told to skip the assignment (KIP-814).
#include "kanal/wire/messages/join_group.hpp"

#include "authorize.hpp"
#include "client_host.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/broker/groups.hpp"

namespace kanal::handlers {

broker::Task<wire::JoinGroupResponse> handle(broker::Context& context,
                                             wire::JoinGroupRequest request) {
  if (!authorize(context, Operation::kRead, ResourceType::kGroup, request.group_id)) {
    wire::JoinGroupResponse refused;
    refused.error_code = ErrorCode::GROUP_AUTHORIZATION_FAILED;
    refused.protocol_name = std::nullopt;
    co_return refused;
  }
  if (context.api_version == 0) request.rebalance_timeout = request.session_timeout;
  const std::string host = client_host(context.peer.address);
  const coordinator::JoinCommand command{.request = &request,
                                         .client_id = context.client_id,
                                         .client_host = host,
                                         .fresh = fresh_uuid(context.broker.random()),
                                         .needs_member_id = context.api_version >= 4,
                                         .knows_skip_assignment = context.api_version >= 9};
  co_return co_await context.broker.groups().join(context, command);
}

}  // namespace kanal::handlers
