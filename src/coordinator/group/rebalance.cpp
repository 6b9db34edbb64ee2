// The rebalance: from the first JoinGroup to the answers that begin a generation, and members that
// go.
#include "kanal/base/check.hpp"
#include "membership.hpp"
#include "records.hpp"
#include "refusals.hpp"

namespace kanal::coordinator {
namespace {

// When nobody came back and the clients asked for no time at all, wait a little all the same.
constexpr std::chrono::milliseconds kShortestRetry{100};

}  // namespace

void Membership::rebalance_or_complete(const Turn& turn) {
  if (state_ == GroupState::kPreparingRebalance) {
    complete_if_joined(turn);
  } else {
    prepare_rebalance(turn);
  }
}

void Membership::prepare_rebalance(const Turn& turn) {
  if (state_ == GroupState::kCompletingRebalance) {
    for (auto& [id, member] : members_) {
      member.assignment.clear();
      answer_sync(turn, member, ErrorCode::REBALANCE_IN_PROGRESS);
    }
  }
  forget_pending_syncs();
  if (state_ == GroupState::kEmpty) {
    using std::chrono::milliseconds;
    const milliseconds delay = limits_->initial_rebalance_delay;
    const milliseconds rest = members_.longest_rebalance_timeout() - delay;
    initial_ = InitialDelay{delay, std::max(rest, milliseconds{0})};
    join_deadline_ = turn.now + delay;
    wake_by(join_deadline_);
    enter(turn, GroupState::kPreparingRebalance);
    return;
  }
  enter(turn, GroupState::kPreparingRebalance);
  initial_.reset();
  if (all_joined()) {
    complete_join(turn);
  } else {
    join_deadline_ = turn.now + members_.longest_rebalance_timeout();
    wake_by(join_deadline_);
  }
}

// A group that was empty waits for its delay, whoever has joined.
void Membership::complete_if_joined(const Turn& turn) {
  if (state_ != GroupState::kPreparingRebalance || previous_ == GroupState::kEmpty) return;
  if (all_joined()) complete_join(turn);
}

bool Membership::all_joined() const noexcept {
  return members_.size() == members_.parked_joins() && pending_.empty();
}

// Members that start together should meet in one generation: each newcomer buys another delay, up
// to the rebalance timeout (KIP-134).
void Membership::end_initial_delay(const Turn& turn) {
  using std::chrono::milliseconds;
  if (!member_added_ || initial_->remaining == milliseconds{0}) {
    complete_join(turn);
    return;
  }
  member_added_ = false;
  const milliseconds delay = std::min(limits_->initial_rebalance_delay, initial_->remaining);
  const milliseconds rest = initial_->remaining - initial_->delay;
  initial_ = InitialDelay{delay, std::max(rest, milliseconds{0})};
  join_deadline_ = turn.now + delay;
  wake_by(join_deadline_);
}

void Membership::complete_join(const Turn& turn) {
  join_deadline_ = kNever;
  initial_.reset();
  drop_absent(turn);
  if (!elect_leader() && !members_.empty()) {
    // Static members only, none of them back: go on waiting until their sessions end.
    join_deadline_ = turn.now + std::max(members_.longest_rebalance_timeout(), kShortestRetry);
    wake_by(join_deadline_);
    return;
  }
  begin_generation(turn);
}

void Membership::drop_absent(const Turn& turn) {
  for (auto at = members_.begin(); at != members_.end();) {
    Member& member = (at++)->second;
    if (!member.join && !member.facts.instance_id) remove(turn, member);
  }
}

bool Membership::elect_leader() {
  if (!leader_) return false;
  const Member* leader = members_.find(*leader_);
  CHECK(leader != nullptr, "the leader is a member");
  if (leader->join) return true;
  for (const auto& [id, member] : members_) {
    if (!member.join) continue;
    leader_ = id;
    return true;
  }
  return false;
}

void Membership::begin_generation(const Turn& turn) {
  generation_ = generation_ == std::numeric_limits<std::int32_t>::max() ? 0 : generation_ + 1;
  forget_pending_syncs();
  if (members_.empty()) {
    protocol_name_.reset();
    learn_subscription();
    enter(turn, GroupState::kEmpty);
    const bool stored = store(turn);
    CHECK(stored, "a group without members always fits");
    return;
  }
  protocol_name_ = members_.elect_protocol();
  learn_subscription();
  enter(turn, GroupState::kCompletingRebalance);
  begin_sync(turn);
}

void Membership::begin_sync(const Turn& turn) {
  for (auto& [id, member] : members_) {
    if (const auto waiter = members_.take_join(member)) {
      turn.reply_to(*waiter, joined(member, is_leader(member)));
    }
    keep_session(turn.now, member);
    member.is_new = false;
    member.owes_sync = true;
    ++owed_syncs_;
  }
  sync_deadline_ = turn.now + members_.longest_rebalance_timeout();
  wake_by(sync_deadline_);
}

// KAFKA-12890: members that join and never sync would hold up the others for ever.
void Membership::expire_sync(const Turn& turn) {
  sync_deadline_ = kNever;
  if (owed_syncs_ == 0) return;
  for (auto at = members_.begin(); at != members_.end();) {
    Member& member = (at++)->second;
    if (member.owes_sync) remove(turn, member);
  }
  prepare_rebalance(turn);
}

void Membership::expire_session(const Turn& turn, Member& member) {
  member.deadline = kNever;
  // Who waits for our answer is alive as far as we know; but for newcomers see add_member().
  if (!member.is_new && (member.join || member.sync)) return;
  remove(turn, member);
  if (state_ == GroupState::kStable || state_ == GroupState::kCompletingRebalance) {
    prepare_rebalance(turn);
  } else if (state_ == GroupState::kPreparingRebalance && all_joined()) {
    complete_join(turn);
  }
}

void Membership::remove(const Turn& turn, Member& member) {
  if (const auto waiter = members_.take_join(member)) {
    turn.reply_to(*waiter, join_refusal({}, ErrorCode::UNKNOWN_MEMBER_ID));
  }
  answer_sync(turn, member, ErrorCode::UNKNOWN_MEMBER_ID);
  synced(member);
  const bool led = is_leader(member);
  members_.remove(member);
  if (!led) return;
  leader_.reset();
  if (!members_.empty()) leader_ = members_.begin()->first;
}

void Membership::forget_pending_syncs() {
  sync_deadline_ = kNever;
  if (owed_syncs_ == 0) return;
  owed_syncs_ = 0;
  for (auto& [id, member] : members_) member.owes_sync = false;
}

void Membership::enter(const Turn& turn, GroupState state) {
  previous_ = state_;
  state_ = state;
  since_ = turn.wall;
}

// Kafka keeps no protocols but the elected one. The others are kept where there is room for them,
// since a member that repeats its JoinGroup after a restart is then told from one that changed.
bool Membership::store(const Turn& turn) const {
  const auto fits = [&](Stored which) {
    return turn.group.size() + size_of(which) <= turn.max_bytes;
  };
  const Stored which = fits(Stored::kAll) ? Stored::kAll : Stored::kElected;
  if (which == Stored::kElected && !members_.empty() && !fits(which)) return false;
  turn.effects.records.push_back({turn.group, encode_group(record(which))});
  return true;
}

bool Membership::is_stored(Stored which, const GroupProtocol& protocol) const noexcept {
  return which == Stored::kAll || protocol.name == protocol_name_;
}

// Known before anything is copied: nobody else is served while a record of many megabytes is made.
std::size_t Membership::size_of(Stored which) const noexcept {
  constexpr std::size_t kNumbers = 32;  // and lengths, of a group or a member
  constexpr std::size_t kLengths = 6;   // of a protocol
  const auto length = [](const std::optional<std::string>& text) {
    return text ? text->size() : 0;
  };
  std::size_t size = kNumbers + protocol_type_.size() + length(protocol_name_) + length(leader_);
  for (const auto& [id, member] : members_) {
    const MemberFacts& facts = member.facts;
    size += kNumbers + id.size() + length(facts.instance_id) + facts.client_id.size() +
            facts.client_host.size() + member.assignment.size();
    for (const GroupProtocol& protocol : member.protocols) {
      if (!is_stored(which, protocol)) continue;
      size += kLengths + protocol.name.size() + protocol.metadata.size();
    }
  }
  return size;
}

wire::GroupRecord Membership::record(Stored which) const {
  wire::GroupRecord record;
  record.generation = generation_;
  record.protocol_type = protocol_type_;
  record.protocol_name = protocol_name_;
  record.leader = leader_;
  record.written = since_;
  record.members.reserve(members_.size());
  for (const auto& [id, member] : members_) {
    auto& stored = record.members.emplace_back();
    stored.member_id = id;
    stored.instance_id = member.facts.instance_id;
    stored.client_id = member.facts.client_id;
    stored.client_host = member.facts.client_host;
    stored.rebalance_timeout = member.facts.rebalance_timeout;
    stored.session_timeout = member.facts.session_timeout;
    for (const auto& protocol : member.protocols) {
      if (!is_stored(which, protocol)) continue;
      stored.protocols.push_back({protocol.name, protocol.metadata});
    }
    stored.assignment = member.assignment;
  }
  return record;
}

}  // namespace kanal::coordinator
