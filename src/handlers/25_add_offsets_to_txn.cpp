// AddOffsetsToTxn (25): a group whose offsets a producer is about to commit becomes part of its
// transaction (KIP-98). Whether there is such a group is not asked, as in Kafka: TxnOffsetCommit
// is. Clients of version 2 (KIP-890) do not send this.
//
// Version notes
// - 2+ know PRODUCER_FENCED; before it is INVALID_PRODUCER_EPOCH.
#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/broker/transactions.hpp"
#include "kanal/wire/messages/add_offsets_to_txn.hpp"

namespace kanal::handlers {
namespace {

using broker::Context;
using Request = wire::AddOffsetsToTxnRequest;
using Response = wire::AddOffsetsToTxnResponse;

ErrorCode add(Context& context, const Request& request) {
  if (!authorize(context, Operation::kWrite, ResourceType::kTransactionalId,
                 request.transactional_id))
    return ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
  if (!authorize(context, Operation::kRead, ResourceType::kGroup, request.group_id))
    return ErrorCode::GROUP_AUTHORIZATION_FAILED;
  coordinator::AddToTransactionCommand command;
  command.producer_id = request.producer_id;
  command.producer_epoch = request.producer_epoch;
  command.group = request.group_id;
  command.knows_fenced = context.api_version >= 2;
  return context.broker.transactions().add(request.transactional_id, std::move(command));
}

}  // namespace

broker::Task<Response> handle(Context& context, Request request) {
  Response response;
  response.error_code = add(context, request);
  if (response.error_code != ErrorCode::NONE) co_return response;
  const auto synced = co_await context.broker.reserved_synced(context);
  if (!synced) response.error_code = ErrorCode::COORDINATOR_NOT_AVAILABLE;
  co_return response;
}

}  // namespace kanal::handlers
