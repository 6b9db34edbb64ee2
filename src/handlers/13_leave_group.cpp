// LeaveGroup (13): members leave at once, or are taken out by their instance ids.
//
// Version notes
// - 0-2 one member, whose error is the answer's; 3+ several (KIP-345), each with an error of its
//   own; 5 a reason (KIP-800).
#include "kanal/wire/messages/leave_group.hpp"

#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/broker/groups.hpp"

namespace kanal::handlers {

broker::Task<wire::LeaveGroupResponse> handle(broker::Context& context,
                                              wire::LeaveGroupRequest request) {
  wire::LeaveGroupResponse response;
  const bool several = context.api_version >= 3;
  if (!authorize(context, Operation::kRead, ResourceType::kGroup, request.group_id)) {
    response.error_code = ErrorCode::GROUP_AUTHORIZATION_FAILED;
    co_return response;
  }
  if (!several) request.members.emplace_back().member_id = request.member_id;
  response = context.broker.groups().leave(request);
  if (!several && response.error_code == ErrorCode::NONE && !response.members.empty())
    response.error_code = response.members.front().error_code;
  co_return response;
}

}  // namespace kanal::handlers
