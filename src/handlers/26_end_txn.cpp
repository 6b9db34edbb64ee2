// EndTxn (26): commits or aborts a transaction; answered when all its markers are written (KIP-98).
//
// Version notes
// - 2+ know PRODUCER_FENCED; before it is INVALID_PRODUCER_EPOCH.
// - 5 raises the epoch and returns what to use next (KIP-890).
#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/broker/transactions.hpp"
#include "kanal/wire/messages/end_txn.hpp"

namespace kanal::handlers {

broker::Task<wire::EndTxnResponse> handle(broker::Context& context, wire::EndTxnRequest request) {
  wire::EndTxnResponse response;
  if (!authorize(context, Operation::kWrite, ResourceType::kTransactionalId,
                 request.transactional_id)) {
    response.error_code = ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
    co_return response;
  }
  using Version = coordinator::TransactionVersion;
  coordinator::EndTransactionCommand command;
  command.producer_id = request.producer_id;
  command.producer_epoch = request.producer_epoch;
  command.commit = request.committed;
  command.version = context.api_version >= 5 ? Version::k2 : Version::k1;
  command.knows_fenced = context.api_version >= 2;
  broker::Transactions& transactions = context.broker.transactions();
  const auto reply = co_await transactions.end(context, request.transactional_id, command);
  response.error_code = reply.error;
  response.producer_id = reply.producer_id;
  response.producer_epoch = reply.producer_epoch;
  co_return response;
}

}  // namespace kanal::handlers
