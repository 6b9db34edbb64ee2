// Sync, heartbeat, leave, commits, deadlines; and what the group looks like from outside.
#include "membership.hpp"

#include "kanal/base/check.hpp"
#include "refusals.hpp"
#include "subscription.hpp"

namespace kanal::coordinator {
namespace {

constexpr std::string_view kConsumer = "consumer";

bool contradicts(const std::optional<std::string_view>& asked, std::string_view known) {
  return asked && *asked != known;
}

}  // namespace

Membership::Checked Membership::check_member(
    std::string_view id, const std::optional<std::string_view>& instance) const {
  if (instance) {
    const Member* owner = members_.find_static(*instance);
    if (owner == nullptr) return {.error = ErrorCode::UNKNOWN_MEMBER_ID};
    if (owner->id != id) return {.error = ErrorCode::FENCED_INSTANCE_ID};
  }
  Member* member = members_.find(id);
  if (member == nullptr) return {.error = ErrorCode::UNKNOWN_MEMBER_ID};
  return {.member = member};
}

void Membership::sync(const Turn& turn, const wire::SyncGroupRequest& request) {
  if (const ErrorCode error = check_sync(request); error != ErrorCode::NONE) {
    turn.reply(sync_refusal(error));
    return;
  }
  Member& member = *members_.find(request.member_id);
  synced(member);
  if (state_ == GroupState::kStable) {
    keep_session(turn.now, member);  // Kafka 4.4 does not: its heartbeat may come too late
    turn.reply(assignment_of(member));
    return;
  }
  // Repeated while parked: see update().
  if (const auto earlier = std::exchange(member.sync, turn.waiter)) {
    turn.reply_to(*earlier, sync_refusal(ErrorCode::COORDINATOR_NOT_AVAILABLE));
  }
  if (is_leader(member)) assign(turn, request);
}

ErrorCode Membership::check_sync(const wire::SyncGroupRequest& request) const {
  if (state_ == GroupState::kEmpty) return ErrorCode::UNKNOWN_MEMBER_ID;
  const Checked found = check_member(request.member_id, request.group_instance_id);
  if (found.error != ErrorCode::NONE) return found.error;
  if (request.generation_id != generation_) return ErrorCode::ILLEGAL_GENERATION;
  if (contradicts(request.protocol_type, protocol_type_) ||
      (protocol_name_ && contradicts(request.protocol_name, *protocol_name_))) {
    return ErrorCode::INCONSISTENT_GROUP_PROTOCOL;
  }
  if (state_ == GroupState::kPreparingRebalance) return ErrorCode::REBALANCE_IN_PROGRESS;
  return ErrorCode::NONE;
}

void Membership::assign(const Turn& turn, const wire::SyncGroupRequest& request) {
  for (auto& [id, member] : members_) member.assignment.clear();
  for (const auto& given : request.assignments) {
    if (Member* member = members_.find(given.member_id)) {
      member->assignment.assign(given.assignment.begin(), given.assignment.end());
    }
  }
  if (!store(turn)) {
    refuse_assignment(turn);
    return;
  }
  for (auto& [id, member] : members_) answer_sync(turn, member, ErrorCode::NONE);
  enter(turn, GroupState::kStable);
}

// Too large: the members are called together again, as in Kafka, and may bring less.
void Membership::refuse_assignment(const Turn& turn) {
  for (auto& [id, member] : members_) {
    member.assignment = {};
    answer_sync(turn, member, ErrorCode::UNKNOWN_SERVER_ERROR);
  }
  prepare_rebalance(turn);
}

wire::SyncGroupResponse Membership::assignment_of(const Member& member) const {
  wire::SyncGroupResponse response;
  response.protocol_type = protocol_type_;
  response.protocol_name = protocol_name_;
  response.assignment = member.assignment;
  return response;
}

// The session begins anew with the answer: had it ended while the request was parked, nothing would
// watch the member any more.
void Membership::answer_sync(const Turn& turn, Member& member, ErrorCode error) {
  if (!member.sync) return;
  turn.reply_to(*std::exchange(member.sync, std::nullopt),
                error == ErrorCode::NONE ? assignment_of(member) : sync_refusal(error));
  keep_session(turn.now, member);
}

void Membership::synced(Member& member) {
  if (!std::exchange(member.owes_sync, false)) return;
  if (--owed_syncs_ == 0) sync_deadline_ = kNever;
}

ErrorCode Membership::heartbeat(Time now, const wire::HeartbeatRequest& request) {
  const Checked found = check_member(request.member_id, request.group_instance_id);
  if (found.error != ErrorCode::NONE) return found.error;
  if (request.generation_id != generation_) return ErrorCode::ILLEGAL_GENERATION;
  keep_session(now, *found.member);
  return state_ == GroupState::kPreparingRebalance ? ErrorCode::REBALANCE_IN_PROGRESS
                                                   : ErrorCode::NONE;
}

void Membership::keep_session(Time now, Member& member) {
  member.deadline = now + member.facts.session_timeout;
  wake_by(member.deadline);
}

void Membership::leave(const Turn& turn, const wire::LeaveGroupRequest& request) {
  wire::LeaveGroupResponse response;
  response.members.reserve(request.members.size());
  bool left = false;
  for (const auto& asked : request.members) {
    auto& answer = response.members.emplace_back();
    answer.member_id = asked.member_id;
    answer.group_instance_id = asked.group_instance_id;
    answer.error_code = leave_one(turn, asked);
    left = left || answer.error_code == ErrorCode::NONE;
  }
  if (left && state_ != GroupState::kEmpty) rebalance_or_complete(turn);
  turn.reply(std::move(response));
}

ErrorCode Membership::leave_one(const Turn& turn, const wire::LeaveGroupRequest::Member& asked) {
  if (asked.member_id.empty()) {  // an operator removes an instance
    Member* member =
        asked.group_instance_id ? members_.find_static(*asked.group_instance_id) : nullptr;
    if (member == nullptr) return ErrorCode::UNKNOWN_MEMBER_ID;
    remove(turn, *member);
    return ErrorCode::NONE;
  }
  if (const auto at = pending_.find(asked.member_id); at != pending_.end()) {
    pending_.erase(at);
    return ErrorCode::NONE;
  }
  const Checked found = check_member(asked.member_id, asked.group_instance_id);
  if (found.error == ErrorCode::NONE) remove(turn, *found.member);
  return found.error;
}

ErrorCode Membership::check_commit(Time now, const CommitCommand& command) {
  // Generation -1: an operator's tool, or a consumer that assigns to itself.
  if (command.generation < 0 && state_ == GroupState::kEmpty) return ErrorCode::NONE;
  if (command.generation < 0 && command.member_id.empty() && !command.instance_id) {
    return ErrorCode::UNKNOWN_MEMBER_ID;
  }
  const Checked found = check_member(command.member_id, command.instance_id);
  if (found.error != ErrorCode::NONE) return found.error;
  if (command.generation != generation_) return ErrorCode::ILLEGAL_GENERATION;
  if (state_ == GroupState::kCompletingRebalance) return ErrorCode::REBALANCE_IN_PROGRESS;
  keep_session(now, *found.member);
  return ErrorCode::NONE;
}

// KIP-447. Who names neither generation nor member (below v3) is fenced by its producer alone.
ErrorCode Membership::check_commit(const TxnCommitCommand& command) const {
  const bool names_member = !command.member_id.empty() || command.instance_id;
  if (command.generation < 0 && (state_ == GroupState::kEmpty || !names_member)) {
    return ErrorCode::NONE;
  }
  const Checked found = check_member(command.member_id, command.instance_id);
  if (found.error != ErrorCode::NONE) return found.error;
  return command.generation == generation_ ? ErrorCode::NONE : ErrorCode::ILLEGAL_GENERATION;
}

void Membership::pass_time(const Turn& turn) {
  if (turn.now < next_) return;
  for (const Due& each : due(turn.now)) handle(turn, each);
  next_ = earliest_deadline();
}

std::vector<Membership::Due> Membership::due(Time now) const {
  std::vector<Due> due;
  for (const auto& [id, member] : members_) {
    if (member.deadline <= now) due.push_back({member.deadline, Due::What::kSession, id});
  }
  for (const auto& [id, deadline] : pending_) {
    if (deadline <= now) due.push_back({deadline, Due::What::kPending, id});
  }
  if (join_deadline_ <= now) due.push_back({join_deadline_, Due::What::kJoin, {}});
  if (sync_deadline_ <= now) due.push_back({sync_deadline_, Due::What::kSync, {}});
  std::ranges::sort(due);
  return due;
}

// What was due may have gone, or have got more time, by what was due before it.
void Membership::handle(const Turn& turn, const Due& due) {
  switch (due.what) {
    case Due::What::kSession:
      if (Member* member = members_.find(due.member); member && member->deadline == due.at) {
        expire_session(turn, *member);
      }
      break;
    case Due::What::kPending:
      if (const auto at = pending_.find(due.member); at != pending_.end() && at->second == due.at) {
        pending_.erase(at);
        if (state_ == GroupState::kPreparingRebalance && all_joined()) complete_join(turn);
      }
      break;
    case Due::What::kJoin:
      if (join_deadline_ != due.at) break;
      initial_ ? end_initial_delay(turn) : complete_join(turn);
      break;
    case Due::What::kSync:
      if (sync_deadline_ == due.at) expire_sync(turn);
      break;
  }
}

Time Membership::earliest_deadline() const noexcept {
  Time earliest = std::min(join_deadline_, sync_deadline_);
  for (const auto& [id, member] : members_) earliest = std::min(earliest, member.deadline);
  for (const auto& [id, deadline] : pending_) earliest = std::min(earliest, deadline);
  return earliest;
}

bool Membership::is_consumer_group() const noexcept {
  return protocol_type_ == kConsumer;
}

bool Membership::subscribed_to(std::string_view topic) const {
  return subscribed_ ? subscribed_->contains(topic) : is_consumer_group();
}

void Membership::learn_subscription() {
  subscribed_.reset();
  if (!is_consumer_group()) return;
  std::set<std::string, std::less<>> topics;
  for (const auto& [id, member] : members_) {
    if (!protocol_name_) return;
    const auto chosen = std::ranges::find(member.protocols, *protocol_name_, &GroupProtocol::name);
    CHECK(chosen != member.protocols.end(), "every member supports the group's protocol");
    auto named = subscribed_topics(chosen->metadata);
    if (!named) return;
    for (std::string& topic : *named) topics.insert(std::move(topic));
  }
  subscribed_ = std::move(topics);
}

void Membership::describe(wire::DescribeGroupsResponse::Group& into) const {
  const bool stable = state_ == GroupState::kStable;
  into.protocol_type = protocol_type_;
  if (stable) into.protocol_data = protocol_name_.value_or("");
  into.members.reserve(members_.size());
  for (const auto& [id, member] : members_) {
    auto& listed = into.members.emplace_back();
    listed.member_id = id;
    listed.group_instance_id = member.facts.instance_id;
    listed.client_id = member.facts.client_id;
    listed.client_host = member.facts.client_host;
    listed.member_assignment = member.assignment;
    if (!stable) continue;
    const auto chosen = std::ranges::find(member.protocols, *protocol_name_, &GroupProtocol::name);
    if (chosen != member.protocols.end()) listed.member_metadata = chosen->metadata;
  }
}

void Membership::restore(wire::GroupRecord record, const Turn& turn) {
  generation_ = record.generation;
  protocol_type_ = std::move(record.protocol_type);
  protocol_name_ = std::move(record.protocol_name);
  leader_ = std::move(record.leader);
  since_ = record.written;
  state_ = record.members.empty() ? GroupState::kEmpty : GroupState::kStable;
  for (auto& stored : record.members) {
    std::vector<GroupProtocol> protocols;
    protocols.reserve(stored.protocols.size());
    for (auto& protocol : stored.protocols) {
      protocols.push_back({std::move(protocol.name), std::move(protocol.metadata)});
    }
    Member& member =
        members_.add(std::move(stored.member_id),
                     MemberFacts{std::move(stored.instance_id), std::move(stored.client_id),
                                 std::move(stored.client_host), stored.rebalance_timeout,
                                 stored.session_timeout},
                     std::move(protocols));
    member.assignment = std::move(stored.assignment);
    if (!leader_) leader_ = member.id;
    keep_session(turn.now, member);
  }
  learn_subscription();
  if (members_.size() > static_cast<std::size_t>(std::max(limits_->max_size, 0))) {
    prepare_rebalance(turn);  // group.max.size was lowered
  }
}

}  // namespace kanal::coordinator
