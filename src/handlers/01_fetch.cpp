// Fetch (1): reads record batches, and waits for them.
//
// Behavior
// - Long poll without polling: each round reads every partition; too little, and it parks on a
// watch that was registered
//   in the same turn of the partition's lock as the read, until enough bytes came, an error, or
//   max_wait.
// - Batches go out whole, as stored; the first one of an answer always, however large.
// - An unknown topic beside idle partitions waits with them; alone it is answered at once (as Kafka
// does).
// - Cold bytes are loaded on a helper thread, then the read is repeated: a slow disk delays this
// answer only.
// - Sessions (KIP-227): fetch_plan.cpp.
// Version notes
// - 5 log start, 7 sessions, 9 leader epochs, 12 diverging epochs (KIP-595), 13 topic ids, 16 node
// endpoints.
#include <algorithm>

#include "authorize.hpp"
#include "fetch_round.hpp"
#include "kanal/broker/broker.hpp"

namespace kanal::handlers {
namespace {

using broker::Context;
using Request = wire::FetchRequest;
using Response = wire::FetchResponse;

broker::Task<bool> read_round(Context& context, FetchPlan& plan, const FetchWants& wants,
                              broker::FetchWait* wait) {
  FetchRound reading(context, plan, wants, wait);
  while (const std::optional<log::Miss> miss = reading.run()) {
    const Result<void> loaded = co_await context.broker.load(context, *miss);
    if (!loaded) reading.give_up(loaded.error());
  }
  co_return reading.enough();
}

broker::Task<void> read_until_enough(Context& context, FetchPlan& plan, const FetchWants& wants,
                                     Time deadline) {
  const Clock& clock = context.broker.clock();
  for (;;) {
    if (co_await read_round(context, plan, wants, nullptr)) co_return;
    if (context.cancelled || clock.now() >= deadline) co_return;
    const auto wait = std::make_shared<broker::FetchWait>(context.io, wants.min_bytes);
    const bool enough = co_await read_round(context, plan, wants, wait.get());
    if (!enough) co_await context.broker.park(context, *wait, deadline);
    wait->leave();
    if (enough) co_return;
  }
}

/// What Kafka answers to an isolation level it does not know: the error for the request and, by
/// name, for each partition.
Response refuse_request(const Context& context, const Request& request) {
  Response response;
  response.error_code = ErrorCode::UNKNOWN_SERVER_ERROR;
  response.session_id = request.session_id;
  if (context.api_version >= 13) return response;
  for (const auto& topic : request.topics) {
    auto& answered = response.responses.emplace_back();
    answered.topic = std::string(topic.topic);
    for (const auto& partition : topic.partitions) {
      answered.partitions.push_back(
          unreadable(partition.partition, ErrorCode::UNKNOWN_SERVER_ERROR));
    }
  }
  return response;
}

void add_endpoint(Context& context, Response& response) {
  for (const auto& topic : response.responses) {
    for (const auto& partition : topic.partitions) {
      if (partition.current_leader.leader_id != context.broker.node_id()) continue;
      auto& endpoint = response.node_endpoints.emplace_back();
      endpoint.node_id = context.broker.node_id();
      endpoint.host = context.peer.listener->host;
      endpoint.port = context.peer.listener->port;
      return;
    }
  }
}

}  // namespace

broker::Task<Response> handle(Context& context, Request request) {
  if (request.isolation_level < 0 || request.isolation_level > 1) {
    co_return refuse_request(context, request);
  }
  FetchPlan plan = make_plan(context, request);
  if (plan.error != ErrorCode::NONE) {
    Response refused;
    refused.error_code = plan.error;
    co_return refused;
  }
  const std::int32_t cap = context.broker.config()->fetch_max_bytes;
  FetchWants wants;
  wants.max_bytes = std::min(request.max_bytes, cap);
  wants.min_bytes = std::min<std::int64_t>(request.min_bytes, wants.max_bytes);
  wants.as_replica =
      request.replica_id.value() >= 0 || request.replica_state.replica_id.value() >= 0;
  wants.read_committed = request.isolation_level == 1;
  const Time deadline = context.broker.clock().now() + request.max_wait;
  co_await read_until_enough(context, plan, wants, deadline);
  Response response = settle(context, plan);
  if (context.api_version >= 16) add_endpoint(context, response);
  co_return response;
}

}  // namespace kanal::handlers
