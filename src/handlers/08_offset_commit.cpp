// OffsetCommit (8): stored before it is answered, and synced where the whole broker acknowledges
// after sync.
//
// Behavior
// - Each partition fails alone where its topic or itself does not exist; what is wrong with the
//   member or the group fails all others alike. Those that fail first stand first in the answer.
// - Without a generation (-1) anybody commits to a group without members; the group is made.
// Version notes
// - 2-4 may bring a retention time of their own; 7 an instance id (KIP-345).
// - 9 answers GROUP_ID_NOT_FOUND where earlier ones get ILLEGAL_GENERATION; 10 names topics by id.
#include "kanal/wire/messages/offset_commit.hpp"

#include "commit_answer.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/broker/groups.hpp"

namespace kanal::handlers {
namespace {

using broker::Context;
using Request = wire::OffsetCommitRequest;
using Response = wire::OffsetCommitResponse;

Response commit(Context& context, const Request& request) {
  CommitAnswer<Request, Response> answer(context, request, context.api_version >= 10);
  if (!authorize(context, Operation::kRead, ResourceType::kGroup, request.group_id)) {
    answer.refuse_all(ErrorCode::GROUP_AUTHORIZATION_FAILED);
    return answer.take({});
  }
  coordinator::CommitCommand command;
  command.offsets = answer.check();
  if (command.offsets.empty()) return answer.take({});
  command.generation = request.generation_id_or_member_epoch;
  command.member_id = request.member_id;
  command.instance_id = request.group_instance_id;
  command.knows_group_id_not_found = context.api_version >= 9;
  if (request.retention_time_ms != -1) command.retention_ms = request.retention_time_ms;
  const auto result = context.broker.groups().commit(request.group_id, std::move(command));
  return answer.take(result.partitions);
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
