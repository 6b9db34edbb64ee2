// Produce (0): appends record batches.
//
// Behavior
// - Every partition fails alone: checked outside any lock, numbered and written under its own.
// - acks 0: no answer; an error closes the connection instead, so that the client learns of it.
// - acks 1 and -1 are the same on one node: written, and synced where flush.messages=1 asks for it.
//   Answered once the high watermark has passed it; a duplicate waits for its original.
// - A topic is not created here: clients create it through Metadata, which has the flag for it.
// Version notes
// - 3-6 refuse zstd; 8+ tell per-record errors; 10+ name the leader; 13 names topics by id.
#include "kanal/broker/broker.hpp"
#include "kanal/wire/messages/produce.hpp"
#include "produce_batches.hpp"

namespace kanal::handlers {
namespace {

using broker::Broker;
using broker::Context;
using Request = wire::ProduceRequest;
using Response = wire::ProduceResponse;

broker::Task<void> await_commits(Context& context, const Request& request,
                                 std::vector<PendingAnswer>& pending) {
  std::vector<broker::Ticket> tickets;
  tickets.reserve(pending.size());
  for (PendingAnswer& wait : pending) tickets.push_back(wait.ticket);
  const Time deadline = context.broker.clock().now() + request.timeout;
  co_await context.broker.committed(context, tickets, deadline);
  for (const PendingAnswer& wait : pending) {
    const ErrorCode outcome = Broker::outcome(wait.ticket);
    if (outcome != ErrorCode::NONE) refuse(*wait.answer, outcome);
  }
}

}  // namespace

broker::Task<Response> handle(Context& context, Request request) {
  ProduceBatches produce(context, request);
  produce.run();
  if (produce.has_large()) {
    auto work = [&produce] { produce.finish_large(); };
    co_await context.broker.on_helper(context, std::move(work));
  }
  if (!produce.pending().empty()) co_await await_commits(context, request, produce.pending());
  if (request.acks == 0) {
    context.suppress_response = true;
    context.close_connection = produce.failed();
  }
  co_return std::move(produce.response());
}

}  // namespace kanal::handlers
