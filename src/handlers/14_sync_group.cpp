// SyncGroup (14): the leader brings everybody's assignment; the others wait for theirs.
//
// Version notes
// - 3+ static members (KIP-345); 5 must name the protocol it was told (KIP-559).
#include "kanal/wire/messages/sync_group.hpp"

#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/broker/groups.hpp"

namespace kanal::handlers {
namespace {

ErrorCode check(const broker::Context& context, const wire::SyncGroupRequest& request) {
  if (context.api_version >= 5 && (!request.protocol_type || !request.protocol_name))
    return ErrorCode::INCONSISTENT_GROUP_PROTOCOL;
  if (!authorize(context, Operation::kRead, ResourceType::kGroup, request.group_id))
    return ErrorCode::GROUP_AUTHORIZATION_FAILED;
  return ErrorCode::NONE;
}

}  // namespace

broker::Task<wire::SyncGroupResponse> handle(broker::Context& context,
                                             wire::SyncGroupRequest request) {
  if (const ErrorCode error = check(context, request); error != ErrorCode::NONE) {
    wire::SyncGroupResponse refused;
    refused.error_code = error;
    co_return refused;
  }
  co_return co_await context.broker.groups().sync(context, request);
}

}  // namespace kanal::handlers
