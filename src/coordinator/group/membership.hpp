// The session of a group: its members, the rebalance they are in, who waits for which answer, until
// when. Runs ahead of what is stored between a rebalance's beginning and the leader's SyncGroup, as
// in Kafka; a restart goes back to the last stored generation. Used under the group's lock. The
// states are described in docs/groups.md.
#pragma once

#include "kanal/wire/stored.hpp"
#include "members.hpp"

namespace kanal::coordinator {

/// One step: when it is, and what comes of it.
struct Turn {
  Time now;
  Timestamp wall;
  WaiterId waiter;
  std::size_t max_bytes;  // see GroupCommand
  const std::string& group;
  Group::Effects& effects;

  template <class Answer>
  void reply_to(WaiterId to, Answer answer) const {
    effects.replies.push_back({to, std::move(answer)});
  }
  template <class Answer>
  void reply(Answer answer) const {
    reply_to(waiter, std::move(answer));
  }
};

class Membership {
 public:
  explicit Membership(const GroupLimits& limits) : limits_(&limits) {}
  /// As after a failover: stable, or empty.
  void restore(wire::GroupRecord record, const Turn& turn);

  void join(const Turn& turn, const JoinCommand& command);
  void sync(const Turn& turn, const wire::SyncGroupRequest& request);
  [[nodiscard]] ErrorCode heartbeat(Time now, const wire::HeartbeatRequest& request);
  void leave(const Turn& turn, const wire::LeaveGroupRequest& request);
  /// NONE: the offsets may be committed. Keeps the member's session.
  [[nodiscard]] ErrorCode check_commit(Time now, const CommitCommand& command);
  /// The same inside of a transaction: in any state, and no member's session is kept by it.
  [[nodiscard]] ErrorCode check_commit(const TxnCommitCommand& command) const;
  void pass_time(const Turn& turn);

  [[nodiscard]] GroupState state() const noexcept { return state_; }
  [[nodiscard]] std::string_view protocol_type() const noexcept { return protocol_type_; }
  [[nodiscard]] bool has_pending() const noexcept { return !pending_.empty(); }
  /// Whether OffsetDelete and the expiry must leave the topic alone.
  [[nodiscard]] bool subscribed_to(std::string_view topic) const;
  [[nodiscard]] bool knows_subscription() const noexcept { return subscribed_.has_value(); }
  [[nodiscard]] bool is_consumer_group() const noexcept;
  /// Since when the state is what it is, by the wall clock; kNoTimestamp if not known.
  [[nodiscard]] Timestamp since() const noexcept { return since_; }
  [[nodiscard]] Time next_deadline() const noexcept { return next_; }
  void tighten_deadline() noexcept { next_ = earliest_deadline(); }

  void describe(wire::DescribeGroupsResponse::Group& into) const;

 private:
  /// Of each member's protocols, which ones are stored.
  enum class Stored : std::uint8_t { kAll, kElected };
  /// What a static member was before another took its place.
  struct Replaced {
    std::string id;
    MemberFacts facts;
    std::vector<GroupProtocol> protocols;
    std::optional<std::string> leader;  // the group's
  };
  struct Checked {
    Member* member = nullptr;
    ErrorCode error = ErrorCode::NONE;
  };
  struct InitialDelay {  // how long the join phase still waits after this delay
    std::chrono::milliseconds delay, remaining;
  };
  struct Due {
    Time at;
    enum class What : std::uint8_t { kSession, kPending, kJoin, kSync } what;
    std::string member;
    friend auto operator<=>(const Due&, const Due&) = default;
  };

  // join.cpp
  [[nodiscard]] bool has_room_for(std::string_view member_id) const;
  [[nodiscard]] bool supports(const wire::JoinGroupRequest& request) const;
  void join_new(const Turn& turn, const JoinCommand& command);
  void join_known(const Turn& turn, const JoinCommand& command);
  void join_again(const Turn& turn, const wire::JoinGroupRequest& request, Member& member);
  void give_member_id(const Turn& turn, const wire::JoinGroupRequest& request, std::string id);
  void add_member(const Turn& turn, const JoinCommand& command, std::string id);
  void replace_static(const Turn& turn, const JoinCommand& command, Member& member, std::string id);
  void answer_replacement(const Turn& turn, const JoinCommand& command, Member& member,
                          Replaced before);
  void put_back(const Turn& turn, Member& member, Replaced before);
  void update(const Turn& turn, const wire::JoinGroupRequest& request, Member& member);
  [[nodiscard]] wire::JoinGroupResponse joined(const Member& member, bool with_members) const;

  // rebalance.cpp
  void rebalance_or_complete(const Turn& turn);
  void prepare_rebalance(const Turn& turn);
  void complete_if_joined(const Turn& turn);
  void end_initial_delay(const Turn& turn);
  void complete_join(const Turn& turn);
  void drop_absent(const Turn& turn);
  [[nodiscard]] bool elect_leader();
  void begin_generation(const Turn& turn);
  void begin_sync(const Turn& turn);
  void expire_sync(const Turn& turn);
  void expire_session(const Turn& turn, Member& member);
  void remove(const Turn& turn, Member& member);
  void forget_pending_syncs();
  [[nodiscard]] bool all_joined() const noexcept;
  void enter(const Turn& turn, GroupState state);
  [[nodiscard]] bool store(const Turn& turn) const;
  [[nodiscard]] bool is_stored(Stored which, const GroupProtocol& protocol) const noexcept;
  [[nodiscard]] std::size_t size_of(Stored which) const noexcept;
  [[nodiscard]] wire::GroupRecord record(Stored which) const;

  // membership.cpp
  [[nodiscard]] Checked check_member(std::string_view id,
                                     const std::optional<std::string_view>& instance) const;
  [[nodiscard]] ErrorCode check_sync(const wire::SyncGroupRequest& request) const;
  void assign(const Turn& turn, const wire::SyncGroupRequest& request);
  void refuse_assignment(const Turn& turn);
  [[nodiscard]] ErrorCode leave_one(const Turn& turn,
                                    const wire::LeaveGroupRequest::Member& member);
  [[nodiscard]] wire::SyncGroupResponse assignment_of(const Member& member) const;
  void answer_sync(const Turn& turn, Member& member, ErrorCode error);
  void synced(Member& member);
  void learn_subscription();
  void keep_session(Time now, Member& member);
  void wake_by(Time deadline) { next_ = std::min(next_, deadline); }
  [[nodiscard]] std::vector<Due> due(Time now) const;
  void handle(const Turn& turn, const Due& due);
  [[nodiscard]] Time earliest_deadline() const noexcept;
  [[nodiscard]] bool is_leader(const Member& member) const noexcept { return leader_ == member.id; }

  const GroupLimits* limits_;
  GroupState state_ = GroupState::kEmpty;
  GroupState previous_ = GroupState::kDead;
  Timestamp since_ = kNoTimestamp;
  std::int32_t generation_ = 0;
  std::string protocol_type_;  // kept by an empty group
  std::optional<std::string> protocol_name_;
  std::optional<std::string> leader_;
  Members members_;
  std::map<std::string, Time, std::less<>> pending_;  // KIP-394: ids given out, not used yet
  std::size_t owed_syncs_ = 0;
  // What the members of a consumer group subscribe to; nothing if that is not known.
  std::optional<std::set<std::string, std::less<>>> subscribed_ = std::nullopt;
  bool member_added_ = false;  // since the initial delay was last looked at
  std::optional<InitialDelay> initial_ = std::nullopt;
  Time join_deadline_ = kNever;
  Time sync_deadline_ = kNever;
  Time next_ = kNever;  // no deadline is earlier; corrected when it has passed
};

}  // namespace kanal::coordinator
