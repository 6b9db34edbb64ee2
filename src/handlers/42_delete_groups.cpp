// DeleteGroups (42): groups without members go, with their offsets. Each fails alone:
// GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
//
// Behavior
// - A group named twice is deleted and answered once. The empty name is a group like others.
// Version notes
// - 3 may have a message; there is none to give for classic groups.
#include "kanal/wire/messages/delete_groups.hpp"

#include <algorithm>
#include <set>

#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/broker/groups.hpp"

namespace kanal::handlers {

broker::Task<wire::DeleteGroupsResponse> handle(broker::Context& context,
                                                wire::DeleteGroupsRequest request) {
  wire::DeleteGroupsResponse response;
  std::set<std::string_view> named;
  for (const std::string_view id : request.groups_names) {
    if (!named.insert(id).second) continue;
    auto& result = response.results.emplace_back();
    result.group_id = std::string(id);
    result.error_code = authorize(context, Operation::kDelete, ResourceType::kGroup, id)
                            ? context.broker.groups().remove(id)
                            : ErrorCode::GROUP_AUTHORIZATION_FAILED;
  }
  const auto is_gone = [](const auto& result) { return result.error_code == ErrorCode::NONE; };
  if (std::ranges::none_of(response.results, is_gone)) co_return response;
  const auto synced = co_await context.broker.reserved_synced(context);
  for (auto& result : response.results) {
    if (!synced && is_gone(result)) result.error_code = ErrorCode::COORDINATOR_NOT_AVAILABLE;
  }
  co_return response;
}

}  // namespace kanal::handlers
