// DescribeGroups (15): state, protocol and members of each group that is named.
//
// Version notes
// - 3+ what the client may do with it (KIP-430), 4 instance ids.
// - A group that does not exist is Dead; since 6 with GROUP_ID_NOT_FOUND and a message (KIP-1043).
#include "kanal/wire/messages/describe_groups.hpp"

#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/broker/groups.hpp"

namespace kanal::handlers {
namespace {

using Request = wire::DescribeGroupsRequest;
using Response = wire::DescribeGroupsResponse;

Response::Group describe(broker::Context& context, std::string_view id) {
  Response::Group answer;
  ErrorCode error = ErrorCode::GROUP_AUTHORIZATION_FAILED;
  if (authorize(context, Operation::kDescribe, ResourceType::kGroup, id)) {
    const auto visit = [&](const coordinator::Group& group) { answer = group.describe(); };
    error = context.broker.groups().visit(id, visit);
  }
  answer.group_id = std::string(id);
  if (error == ErrorCode::GROUP_ID_NOT_FOUND) {
    answer.group_state = to_string(coordinator::GroupState::kDead);
    if (context.api_version < 6) return answer;
    answer.error_message = "Group " + answer.group_id + " not found.";
  }
  answer.error_code = error;
  return answer;
}

}  // namespace

broker::Task<Response> handle(broker::Context& context, Request request) {
  Response response;
  response.groups.reserve(request.groups.size());
  for (const std::string_view id : request.groups) {
    auto& group = response.groups.emplace_back(describe(context, id));
    if (request.include_authorized_operations && group.error_code == ErrorCode::NONE)
      group.authorized_operations = kGroupOperations;
  }
  co_return response;
}

}  // namespace kanal::handlers
