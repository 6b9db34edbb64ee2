// InitProducerId (22): a producer id, never the same twice (KIP-98). With a transactional id its
// producer: the epoch fences the one before, and what that left open is aborted.
//
// Behavior
// - Without a transactional id the answer is always a new id with epoch 0, whatever id the request
//   names (as in Kafka).
// Version notes
// - 3+ may name an id and epoch (KIP-360); one without the other is INVALID_REQUEST.
// - 4+ know PRODUCER_FENCED; before it is INVALID_PRODUCER_EPOCH.
#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/broker/transactions.hpp"
#include "kanal/wire/messages/init_producer_id.hpp"

namespace kanal::handlers {
namespace {

using broker::Context;
using Request = wire::InitProducerIdRequest;
using Response = wire::InitProducerIdResponse;

ErrorCode check(const Context& context, const Request& request) {
  if (request.transactional_id) {
    if (!authorize(context, Operation::kWrite, ResourceType::kTransactionalId,
                   *request.transactional_id))
      return ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
  } else if (!authorize(context, Operation::kIdempotentWrite, ResourceType::kCluster,
                        kClusterName)) {
    return ErrorCode::CLUSTER_AUTHORIZATION_FAILED;
  }
  if ((request.producer_id == kNoProducerId) != (request.producer_epoch == kNoProducerEpoch)) {
    return ErrorCode::INVALID_REQUEST;
  }
  return ErrorCode::NONE;
}

Response answer(ErrorCode error, ProducerId id = kNoProducerId,
                ProducerEpoch epoch = kNoProducerEpoch) {
  Response response;
  response.error_code = error;
  response.producer_id = id;
  response.producer_epoch = epoch;
  return response;
}

}  // namespace

broker::Task<Response> handle(Context& context, Request request) {
  const ErrorCode error = check(context, request);
  if (error != ErrorCode::NONE) co_return answer(error);
  if (!request.transactional_id) {
    const auto made = co_await context.broker.new_producer_id(context);
    // The disk may have room again: worth a repeat.
    co_return made ? answer(ErrorCode::NONE, made->id, made->epoch)
                   : answer(ErrorCode::COORDINATOR_NOT_AVAILABLE);
  }
  coordinator::InitProducerIdCommand command;
  command.timeout = request.transaction_timeout;
  command.producer_id = request.producer_id;
  command.producer_epoch = request.producer_epoch;
  command.knows_fenced = context.api_version >= 4;
  broker::Transactions& transactions = context.broker.transactions();
  const auto reply = co_await transactions.init(context, *request.transactional_id, command);
  co_return answer(reply.error, reply.producer_id, reply.producer_epoch);
}

}  // namespace kanal::handlers
