// ListTransactions (66): the transactional ids, by state, producer, duration and pattern where
// asked (KIP-664).
//
// Behavior
// - Names of states that do not exist are told, each once, and match nothing. Ids in their order.
// Version notes
// - 1+ longer than a duration (KIP-994), counted since the last beginning, also of what has ended.
// - 2 a pattern of the whole id (KIP-1152); INVALID_REGULAR_EXPRESSION tells nothing but that.
#include "kanal/wire/messages/list_transactions.hpp"

#include <algorithm>
#include <set>

#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/broker/transactions.hpp"

namespace kanal::handlers {
namespace {

using broker::Context;
using coordinator::TransactionFilter;
using Request = wire::ListTransactionsRequest;
using Response = wire::ListTransactionsResponse;

constexpr std::size_t kAtOnce = 1'000;  // more are gathered on a helper thread

TransactionFilter make_filter(const Request& request, Response& response) {
  TransactionFilter filter;
  filter.producer_ids = request.producer_id_filters;
  filter.by_state = !request.state_filters.empty();
  filter.duration_ms = request.duration_filter;
  std::set<std::string_view> unknown;
  for (const std::string_view name : request.state_filters) {
    if (const auto state = coordinator::transaction_state(name))
      filter.states.insert(*state);
    else
      unknown.insert(name);
  }
  response.unknown_state_filters.assign(unknown.begin(), unknown.end());
  if (!request.transactional_id_pattern || request.transactional_id_pattern->empty()) return filter;
  auto pattern = coordinator::NamePattern::compile(*request.transactional_id_pattern);
  if (pattern)
    filter.pattern = std::move(*pattern);
  else
    response.error_code = pattern.error().code;
  return filter;
}

void list(Context& context, const TransactionFilter& filter, Response& response) {
  const Timestamp wall = context.broker.clock().wall();
  context.broker.transactions().for_each([&](const coordinator::Transaction& transaction) {
    if (!transaction.listed(filter, wall)) return;
    if (!authorize(context, Operation::kDescribe, ResourceType::kTransactionalId, transaction.id()))
      return;
    auto& listed = response.transaction_states.emplace_back();
    listed.transactional_id = transaction.id();
    listed.producer_id = transaction.facts().producer_id;
    listed.transaction_state = std::string(to_string(transaction.facts().state));
  });
  std::ranges::sort(response.transaction_states, {}, &Response::State::transactional_id);
}

}  // namespace

broker::Task<Response> handle(Context& context, Request request) {
  Response response;
  const TransactionFilter filter = make_filter(request, response);
  if (response.error_code != ErrorCode::NONE) {
    response.unknown_state_filters.clear();
    co_return response;
  }
  if (context.broker.transactions().size() <= kAtOnce) {
    list(context, filter, response);
    co_return response;
  }
  auto work = [&] { list(context, filter, response); };
  co_await context.broker.on_helper(context, std::move(work));
  co_return response;
}

}  // namespace kanal::handlers
