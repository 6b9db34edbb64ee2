// DescribeTransactions (65): the producer and the transaction of each transactional id that is
// named (KIP-664).
//
// Behavior
// - Partitions as long as the transaction is not complete. Its groups are not listed: in Kafka they
//   are partitions of __consumer_offsets, which do not exist here.
#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/broker/transactions.hpp"
#include "kanal/wire/messages/describe_transactions.hpp"

namespace kanal::handlers {
namespace {

using broker::Context;
using Response = wire::DescribeTransactionsResponse;

Response::State described(const Context& context, const coordinator::Transaction& transaction) {
  const coordinator::TransactionFacts& facts = transaction.facts();
  Response::State state;
  state.transaction_state = std::string(to_string(facts.state));
  state.transaction_timeout = facts.timeout;
  state.transaction_start_time_ms = facts.started;
  state.producer_id = facts.producer_id;
  state.producer_epoch = facts.producer_epoch;
  for (const auto& [name, partitions] : facts.topics) {
    if (!authorize(context, Operation::kDescribe, ResourceType::kTopic, name)) continue;
    auto& topic = state.topics.emplace_back();
    topic.topic = name;
    topic.partitions = partitions;
  }
  return state;
}

Response::State describe(Context& context, std::string_view id) {
  Response::State state;
  if (!authorize(context, Operation::kDescribe, ResourceType::kTransactionalId, id)) {
    state.error_code = ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
  } else if (id.empty()) {
    state.error_code = ErrorCode::INVALID_REQUEST;
  } else {
    const auto visit = [&](const coordinator::Transaction& transaction) {
      state = described(context, transaction);
    };
    state.error_code = context.broker.transactions().visit(id, visit);
  }
  state.transactional_id = std::string(id);
  return state;
}

}  // namespace

broker::Task<Response> handle(Context& context, wire::DescribeTransactionsRequest request) {
  Response response;
  response.transaction_states.reserve(request.transactional_ids.size());
  for (const std::string_view id : request.transactional_ids)
    response.transaction_states.push_back(describe(context, id));
  co_return response;
}

}  // namespace kanal::handlers
