// TxnOffsetCommit (28): offsets inside of a transaction, shown by its end if
// that is a commit; synced where the whole broker acknowledges after sync.
//
// Behavior
// - Each partition fails alone where its topic or itself does not exist; what
// is wrong with the
//   transaction, the member or the group fails all others alike, in this order.
//   Those that fail first stand first in the answer.
// - The producer is checked and the offsets are stored in one hold of the
// transaction's lock, so
//   that no end comes between (KIP-890).
// - Of a partition the offset that was written last counts, within the
// transaction and beside it. Version notes
// - 0-1 get COORDINATOR_NOT_AVAILABLE for COORDINATOR_LOAD_IN_PROGRESS
// (KAFKA-7296).
// - 0-2 name no member: fenced by the producer's epoch alone. 3 names it
// (KIP-447).
// - 0-4 the group was added before (AddOffsetsToTxn), else
// TRANSACTION_ABORTABLE, below 4
//   INVALID_TXN_STATE; 5 adds it here (KIP-890).
// - 6 names topics by id, and answers GROUP_ID_NOT_FOUND where earlier ones get
// ILLEGAL_GENERATION.
#include "kanal/wire/messages/txn_offset_commit.hpp"

#include "commit_answer.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/broker/groups.hpp"
#include "kanal/broker/transactions.hpp"

namespace kanal::handlers {
namespace {

using broker::Context;
using coordinator::TransactionVersion;
using Request = wire::TxnOffsetCommitRequest;
using Response = wire::TxnOffsetCommitResponse;

ErrorCode check_allowed(const Context& context, const Request& request) {
  if (!authorize(context, Operation::kWrite, ResourceType::kTransactionalId,
                 request.transactional_id))
    return ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
  if (!authorize(context, Operation::kRead, ResourceType::kGroup, request.group_id))
    return ErrorCode::GROUP_AUTHORIZATION_FAILED;
  return ErrorCode::NONE;
}

/// The error of each partition.
std::vector<ErrorCode> write(Context& context, const Request& request,
                             std::vector<coordinator::OffsetToCommit> offsets) {
  const std::size_t partitions = offsets.size();
  if (request.group_id.empty()) return std::vector(partitions, ErrorCode::INVALID_GROUP_ID);
  const broker::TransactionWriter writer{
      .id = request.transactional_id,
      .producer_id = request.producer_id,
      .producer_epoch = request.producer_epoch,
      .version = context.api_version >= 5 ? TransactionVersion::k2 : TransactionVersion::k1};
  std::vector<ErrorCode> errors;
  const auto append = [&](std::span<const ErrorCode> refused) {
    const ErrorCode error = coordinator::writer_error(refused.front(), context.api_version >= 4);
    if (error != ErrorCode::NONE) {
      errors.assign(partitions, error);
      return;
    }
    coordinator::TxnCommitCommand command;
    command.producer_id = request.producer_id;
    command.producer_epoch = request.producer_epoch;
    command.generation = request.generation_id_or_member_epoch;
    command.member_id = request.member_id;
    command.instance_id = request.group_instance_id;
    command.knows_group_id_not_found = context.api_version >= 6;
    command.offsets = std::move(offsets);
    errors =
        context.broker.groups().commit_pending(request.group_id, std::move(command)).partitions;
  };
  context.broker.transactions().write_offsets(writer, request.group_id, append);
  return errors;
}

Response commit(Context& context, const Request& request) {
  CommitAnswer<Request, Response> answer(context, request, context.api_version >= 6);
  if (const ErrorCode error = check_allowed(context, request); error != ErrorCode::NONE) {
    answer.refuse_all(error);
    return answer.take({});
  }
  auto offsets = answer.check();
  if (offsets.empty()) return answer.take({});
  std::vector<ErrorCode> errors = write(context, request, std::move(offsets));
  if (context.api_version < 2) {
    std::ranges::replace(errors, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
                         ErrorCode::COORDINATOR_NOT_AVAILABLE);
  }
  return answer.take(errors);
}

}  // namespace

broker::Task<Response> handle(Context& context, Request request) {
  Response response = commit(context, request);
  if (!answer_stored(response, ErrorCode::NONE)) co_return response;
  const auto synced = co_await context.broker.reserved_synced(context);
  if (!synced) answer_stored(response, ErrorCode::COORDINATOR_NOT_AVAILABLE);
  co_return response;
}

}  // namespace kanal::handlers
