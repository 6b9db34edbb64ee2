// JoinGroup: who comes in, in which state, and what it changes.
#include "kanal/base/check.hpp"
#include "membership.hpp"
#include "refusals.hpp"

namespace kanal::coordinator {
namespace {

// A new member cannot send heartbeats while its first JoinGroup is parked, and a dead one must not
// hold up the group for ever: Kafka's fixed five minutes.
constexpr std::chrono::minutes kNewMemberJoinTimeout{5};
// Ours: ids given out and not used yet (KIP-394) cost nothing to ask for.
constexpr std::size_t kMaxPendingMembers = 100'000;

std::string uuid_text(Uuid id) {
  id.bytes[6] = static_cast<std::uint8_t>((id.bytes[6] & 0x0FU) | 0x40U);  // version 4
  id.bytes[8] = static_cast<std::uint8_t>((id.bytes[8] & 0x3FU) | 0x80U);
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(36);
  for (std::size_t i = 0; i < id.bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kDigits[id.bytes[i] >> 4U];
    text += kDigits[id.bytes[i] & 0x0FU];
  }
  return text;
}

std::string new_member_id(const JoinCommand& command) {
  std::string id(command.request->group_instance_id.value_or(command.client_id));
  return id + '-' + uuid_text(command.fresh);
}

std::vector<GroupProtocol> copy_protocols(const wire::JoinGroupRequest& request) {
  std::vector<GroupProtocol> protocols;
  protocols.reserve(request.protocols.size());
  for (const auto& protocol : request.protocols) {
    protocols.push_back(
        {std::string(protocol.name), Buffer(protocol.metadata.begin(), protocol.metadata.end())});
  }
  return protocols;
}

std::chrono::milliseconds rebalance_timeout_of(const wire::JoinGroupRequest& request) {
  using std::chrono::milliseconds;
  return request.rebalance_timeout < milliseconds{0} ? request.session_timeout
                                                     : request.rebalance_timeout;
}

MemberFacts facts_of(const JoinCommand& command) {
  const wire::JoinGroupRequest& request = *command.request;
  MemberFacts facts;
  if (request.group_instance_id) facts.instance_id = std::string(*request.group_instance_id);
  facts.client_id = command.client_id;
  facts.client_host = command.client_host;
  facts.rebalance_timeout = rebalance_timeout_of(request);
  facts.session_timeout = request.session_timeout;
  return facts;
}

}  // namespace

void Membership::join(const Turn& turn, const JoinCommand& command) {
  const wire::JoinGroupRequest& request = *command.request;
  if (!has_room_for(request.member_id)) {
    if (Member* member = members_.find(request.member_id)) remove(turn, *member);
    if (const auto at = pending_.find(request.member_id); at != pending_.end()) pending_.erase(at);
    turn.reply(join_refusal({}, ErrorCode::GROUP_MAX_SIZE_REACHED));
  } else if (!supports(request)) {
    turn.reply(join_refusal(request.member_id, ErrorCode::INCONSISTENT_GROUP_PROTOCOL));
  } else if (request.member_id.empty()) {
    join_new(turn, command);
  } else {
    join_known(turn, command);
  }
}

// While joining, those who have asked count and not the members: when group.max.size was lowered,
// the last ones to rejoin are turned away.
bool Membership::has_room_for(std::string_view member_id) const {
  const Member* member = members_.find(member_id);
  const auto limit = static_cast<std::size_t>(std::max(limits_->max_size, 0));
  switch (state_) {
    case GroupState::kPreparingRebalance:
      return (member != nullptr && member->join) || members_.parked_joins() < limit;
    case GroupState::kCompletingRebalance:
    case GroupState::kStable:
      return member != nullptr || members_.size() < limit;
    case GroupState::kEmpty:
    case GroupState::kDead:
      break;
  }
  return true;
}

bool Membership::supports(const wire::JoinGroupRequest& request) const {
  if (state_ == GroupState::kEmpty) {
    return !request.protocol_type.empty() && !request.protocols.empty();
  }
  return request.protocol_type == protocol_type_ && members_.support(request.protocols);
}

void Membership::join_new(const Turn& turn, const JoinCommand& command) {
  const wire::JoinGroupRequest& request = *command.request;
  std::string id = new_member_id(command);
  if (request.group_instance_id) {
    if (Member* member = members_.find_static(*request.group_instance_id)) {
      replace_static(turn, command, *member, std::move(id));
    } else {
      add_member(turn, command, std::move(id));
    }
  } else if (command.needs_member_id) {
    give_member_id(turn, request, std::move(id));
  } else {
    add_member(turn, command, std::move(id));
  }
}

void Membership::give_member_id(const Turn& turn, const wire::JoinGroupRequest& request,
                                std::string id) {
  if (pending_.size() >= kMaxPendingMembers) {
    turn.reply(join_refusal({}, ErrorCode::COORDINATOR_NOT_AVAILABLE));
    return;
  }
  const Time deadline = turn.now + request.session_timeout;
  wake_by(deadline);
  turn.reply(join_refusal(id, ErrorCode::MEMBER_ID_REQUIRED));
  pending_.insert_or_assign(std::move(id), deadline);
}

void Membership::join_known(const Turn& turn, const JoinCommand& command) {
  const wire::JoinGroupRequest& request = *command.request;
  if (pending_.contains(request.member_id)) {
    if (request.group_instance_id) {
      // Only dynamic members are told to come back; Kafka fails on it just so.
      turn.reply(join_refusal({}, ErrorCode::UNKNOWN_SERVER_ERROR));
    } else {
      add_member(turn, command, std::string(request.member_id));
    }
    return;
  }
  const Checked found = check_member(request.member_id, request.group_instance_id);
  if (found.error != ErrorCode::NONE) {
    turn.reply(join_refusal(request.member_id, found.error));
    return;
  }
  join_again(turn, request, *found.member);
}

void Membership::join_again(const Turn& turn, const wire::JoinGroupRequest& request,
                            Member& member) {
  const bool same = same_protocols(member.protocols, request.protocols);
  // The same again during the sync: the first answer was lost. A leader of a stable group joins
  // again when something changed that its metadata does not show (topics).
  if (same && (state_ == GroupState::kCompletingRebalance ||
               (state_ == GroupState::kStable && !is_leader(member)))) {
    keep_session(turn.now, member);
    turn.reply(joined(member, is_leader(member)));
    return;
  }
  update(turn, request, member);
  rebalance_or_complete(turn);
}

void Membership::update(const Turn& turn, const wire::JoinGroupRequest& request, Member& member) {
  members_.set_protocols(member, copy_protocols(request));
  member.facts.rebalance_timeout = rebalance_timeout_of(request);
  member.facts.session_timeout = request.session_timeout;
  // The connection of the earlier one is gone, or its client gave up. Kafka lets it hang.
  if (const auto earlier = members_.take_join(member)) {
    turn.reply_to(*earlier, join_refusal(member.id, ErrorCode::COORDINATOR_NOT_AVAILABLE));
  }
  members_.park_join(member, turn.waiter);
}

void Membership::add_member(const Turn& turn, const JoinCommand& command, std::string id) {
  if (state_ == GroupState::kPreparingRebalance && previous_ == GroupState::kEmpty) {
    member_added_ = true;
  }
  if (members_.empty()) protocol_type_ = command.request->protocol_type;
  if (const auto at = pending_.find(id); at != pending_.end()) pending_.erase(at);
  Member& member = members_.add(std::move(id), facts_of(command), copy_protocols(*command.request));
  member.is_new = true;
  if (!leader_) leader_ = member.id;
  members_.park_join(member, turn.waiter);
  member.deadline = turn.now + kNewMemberJoinTimeout;
  wake_by(member.deadline);
  rebalance_or_complete(turn);
}

// KIP-345: an instance that comes back without its member id takes its own place.
void Membership::replace_static(const Turn& turn, const JoinCommand& command, Member& member,
                                std::string id) {
  const wire::JoinGroupRequest& request = *command.request;
  Replaced before{std::string(member.id), member.facts, member.protocols, leader_};
  if (const auto earlier = members_.take_join(member)) {
    turn.reply_to(*earlier, join_refusal(member.id, ErrorCode::FENCED_INSTANCE_ID));
  }
  answer_sync(turn, member, ErrorCode::FENCED_INSTANCE_ID);
  if (is_leader(member)) leader_ = id;
  members_.rename(member, std::move(id));
  member.is_new = false;
  member.facts.client_id = command.client_id;
  member.facts.client_host = command.client_host;
  update(turn, request, member);
  keep_session(turn.now, member);
  switch (state_) {
    case GroupState::kStable:
      if (members_.elect_protocol() == protocol_name_) {
        answer_replacement(turn, command, member, std::move(before));
      } else {
        rebalance_or_complete(turn);
      }
      break;
    case GroupState::kCompletingRebalance:  // the leader may be assigning to the old id
      prepare_rebalance(turn);
      break;
    case GroupState::kPreparingRebalance:
      complete_if_joined(turn);
      break;
    case GroupState::kEmpty:
    case GroupState::kDead:
      CHECK(false, "an empty group has no static members");
  }
}

// A leader that must not assign again: since v9 it is told so (KIP-814), before it is shown the old
// leader's id, so that it takes itself for a follower.
void Membership::answer_replacement(const Turn& turn, const JoinCommand& command, Member& member,
                                    Replaced before) {
  const bool skips = command.knows_skip_assignment && is_leader(member);
  wire::JoinGroupResponse response = joined(member, skips);
  response.skip_assignment = skips;
  if (!command.knows_skip_assignment) response.leader = before.leader.value_or("");
  (void)members_.take_join(member);
  if (store(turn)) {
    turn.reply(std::move(response));
    return;
  }
  put_back(turn, member, std::move(before));
  wire::JoinGroupResponse refused = joined(member, false);
  refused.error_code = ErrorCode::UNKNOWN_SERVER_ERROR;
  refused.member_id.clear();
  turn.reply(std::move(refused));
}

// The newcomer brought more than can be stored: the instance is again who it was.
void Membership::put_back(const Turn& turn, Member& member, Replaced before) {
  leader_ = std::move(before.leader);
  members_.rename(member, std::move(before.id));
  members_.set_protocols(member, std::move(before.protocols));
  member.facts = std::move(before.facts);
  keep_session(turn.now, member);
}

wire::JoinGroupResponse Membership::joined(const Member& member, bool with_members) const {
  wire::JoinGroupResponse response;
  response.generation_id = generation_;
  response.protocol_type = protocol_type_;
  response.protocol_name = protocol_name_;
  response.leader = leader_.value_or("");
  response.member_id = member.id;
  if (!with_members) return response;
  response.members.reserve(members_.size());
  for (const auto& [id, other] : members_) {
    auto& listed = response.members.emplace_back();
    listed.member_id = id;
    listed.group_instance_id = other.facts.instance_id;
    const auto chosen = std::ranges::find(other.protocols, *protocol_name_, &GroupProtocol::name);
    CHECK(chosen != other.protocols.end(), "every member supports the group's protocol");
    listed.metadata = chosen->metadata;
  }
  return response;
}

}  // namespace kanal::coordinator
