// ListGroups (16): every group, by state and type where asked.
//
// Version notes
// - 4+ filters by state (KIP-518), 5 by type (KIP-848), in any case; names that do not exist match
//   nothing.
#include "kanal/wire/messages/list_groups.hpp"

#include <algorithm>
#include <set>

#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/broker/groups.hpp"

namespace kanal::handlers {
namespace {

using Request = wire::ListGroupsRequest;
using Response = wire::ListGroupsResponse;

constexpr std::string_view kType = "classic";
constexpr std::size_t kAtOnce = 1'000;  // more are gathered on a helper thread

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return result;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && static_cast<unsigned char>(text.front()) <= ' ') text.remove_prefix(1);
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
  return text;
}

class Filter {
 public:
  explicit Filter(const Request& request) : any_state_(request.states_filter.empty()) {
    for (const std::string_view state : request.states_filter) states_.insert(lower(trim(state)));
    type_fits_ = request.types_filter.empty() ||
                 std::ranges::any_of(request.types_filter,
                                     [](std::string_view type) { return lower(type) == kType; });
  }
  [[nodiscard]] bool fits(const coordinator::Group& group) const {
    return type_fits_ && (any_state_ || states_.contains(lower(to_string(group.state()))));
  }

 private:
  bool any_state_;
  bool type_fits_ = true;
  std::set<std::string> states_;
};

void list(broker::Context& context, const Filter& filter, Response& response) {
  context.broker.groups().for_each([&](const coordinator::Group& group) {
    if (!filter.fits(group)) return;
    if (!authorize(context, Operation::kDescribe, ResourceType::kGroup, group.id())) return;
    auto& listed = response.groups.emplace_back();
    listed.group_id = group.id();
    listed.protocol_type = std::string(group.protocol_type());
    listed.group_state = std::string(to_string(group.state()));
    listed.group_type = std::string(kType);
  });
}

}  // namespace

broker::Task<Response> handle(broker::Context& context, Request request) {
  Response response;
  const Filter filter(request);
  if (context.broker.groups().size() <= kAtOnce) {
    list(context, filter, response);
    co_return response;
  }
  auto work = [&] { list(context, filter, response); };
  co_await context.broker.on_helper(context, std::move(work));
  co_return response;
}

}  // namespace kanal::handlers
