// The table of docs/groups.md, by state: what a member, a stranger and a newcomer get for each
// request.
#include "group_support.hpp"

namespace kanal::coordinator {
namespace {

using enum ErrorCode;

/// A group that is brought into a state by its usual way; `member` belongs to it (but for Empty and
/// Dead, where it did once).
struct InState : LiveGroup {
  explicit InState(GroupState state) {
    if (state == GroupState::kDead) {
      member = "stranger";
      return;
    }
    if (state == GroupState::kCompletingRebalance) {
      const WaiterId first = join({.version = 3});
      (void)join({.version = 3});
      await(first);
      member = joined(first).member_id;
    } else {
      member = stable_alone();
    }
    if (state == GroupState::kPreparingRebalance) (void)enter({.version = 3});
    if (state == GroupState::kEmpty) (void)leave(member);
    generation = state == GroupState::kEmpty ? 2 : 1;
    EXPECT_EQ(group().state(), state);
  }
  std::string member;
  std::int32_t generation = 1;
};

struct Expected {
  GroupState state;
  std::optional<ErrorCode> join_new, join_member;  // nothing: parked
  std::optional<ErrorCode> sync;
  ErrorCode heartbeat, leave, commit, commit_outside, delete_group;
};

const Expected kTable[] = {
    {GroupState::kDead, std::nullopt, UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER_ID,
     UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, NONE, GROUP_ID_NOT_FOUND},
    {GroupState::kEmpty, std::nullopt, UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER_ID,
     UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER_ID, NONE, NONE},
    {GroupState::kPreparingRebalance, std::nullopt, NONE, REBALANCE_IN_PROGRESS,
     REBALANCE_IN_PROGRESS, NONE, NONE, UNKNOWN_MEMBER_ID, NON_EMPTY_GROUP},
    {GroupState::kCompletingRebalance, std::nullopt, NONE, NONE, NONE, NONE, REBALANCE_IN_PROGRESS,
     UNKNOWN_MEMBER_ID, NON_EMPTY_GROUP},
    {GroupState::kStable, std::nullopt, NONE, NONE, NONE, NONE, NONE, UNKNOWN_MEMBER_ID,
     NON_EMPTY_GROUP},
};

class GroupStates : public testing::TestWithParam<Expected> {};

TEST_P(GroupStates, GiveEachRequestItsAnswer) {
  const Expected& expected = GetParam();
  const auto fresh = [&] { return std::make_unique<InState>(expected.state); };
  const auto same = [](LiveGroup& live, WaiterId waiter, std::optional<ErrorCode> code) {
    EXPECT_EQ(live.parked(waiter), !code.has_value());
    if (code && !live.parked(waiter)) {
      EXPECT_EQ(live.joined(waiter).error_code, *code);
    }
  };
  auto live = fresh();
  same(*live, live->join({.version = 3}), expected.join_new);
  live = fresh();
  same(*live, live->join({.member = live->member}), expected.join_member);
  live = fresh();
  const WaiterId sync = live->sync({.member = live->member, .generation = live->generation});
  EXPECT_EQ(live->synced(sync).error_code, expected.sync.value_or(NONE));
  live = fresh();
  EXPECT_EQ(live->heartbeat({live->member, live->generation}), expected.heartbeat);
  live = fresh();
  EXPECT_EQ(live->leave(live->member), expected.leave);
  live = fresh();
  EXPECT_EQ(live->commit({live->member, live->generation}), expected.commit);
  live = fresh();
  EXPECT_EQ(live->commit_outside(1), expected.commit_outside);
  live = fresh();
  EXPECT_EQ(live->delete_group(), expected.delete_group);
}

TEST_P(GroupStates, SayWhichOffsetsMayBeDeleted) {
  const GroupState state = GetParam().state;
  InState live(state);
  const PartitionErrors errors = live.delete_offsets({{"orders", 0}, {"other", 0}});
  if (state == GroupState::kDead) {
    EXPECT_EQ(errors.group, GROUP_ID_NOT_FOUND);
    return;
  }
  EXPECT_EQ(errors.group, NONE);
  const ErrorCode subscribed = state == GroupState::kEmpty ? NONE : GROUP_SUBSCRIBED_TO_TOPIC;
  EXPECT_EQ(errors.partitions, (std::vector<ErrorCode>{subscribed, NONE}));
  EXPECT_EQ(live.group().state(), state) << "nobody is disturbed by it";
}

TEST_P(GroupStates, ShowMembersWithTheirMetadataOnlyWhenStable) {
  const GroupState state = GetParam().state;
  InState live(state);
  const auto described = live.group().describe();
  const bool stable = state == GroupState::kStable;
  EXPECT_EQ(described.group_state, to_string(state));
  const bool peopled = state != GroupState::kDead && state != GroupState::kEmpty;
  EXPECT_EQ(!described.members.empty(), peopled);
  EXPECT_EQ(!described.protocol_data.empty(), stable);
  for (const auto& member : described.members)
    EXPECT_EQ(!member.member_metadata.empty(), stable) << member.member_id;
}

TEST_P(GroupStates, LeadOutAsTheTableSays) {
  const GroupState state = GetParam().state;
  const auto after = [&](const auto& request) {
    InState live(state);
    request(live);
    return live.group().state();
  };
  using enum GroupState;
  const bool peopled = state != kDead && state != kEmpty;
  EXPECT_EQ(after([](InState& live) { (void)live.join({.version = 3}); }), kPreparingRebalance);
  EXPECT_EQ(after([](InState& live) { (void)live.commit_outside(1); }), peopled ? state : kEmpty);
  EXPECT_EQ(after([](InState& live) { (void)live.delete_group(); }), peopled ? state : kDead);
  EXPECT_EQ(after([](InState& live) { (void)live.heartbeat({live.member, live.generation}); }),
            state);
  EXPECT_EQ(after([](InState& live) { (void)live.commit({live.member, live.generation}); }), state);
  // One of one leaves Stable. In PreparingRebalance the other has joined, so the round is over; in
  // CompletingRebalance it has to join again.
  const GroupState left = state == kStable                ? kEmpty
                          : state == kPreparingRebalance  ? kCompletingRebalance
                          : state == kCompletingRebalance ? kPreparingRebalance
                                                          : state;
  EXPECT_EQ(after([](InState& live) { (void)live.leave(live.member); }), left);
  const GroupState expired = state == kEmpty ? kDead : state;
  EXPECT_EQ(after([](InState& live) { live.expire_offsets(); }), expired);
}

TEST_P(GroupStates, AStrangerIsUnknown) {
  if (GetParam().state == GroupState::kDead) return;
  InState live(GetParam().state);
  const MemberArgs stranger{.member = "stranger", .generation = live.generation};
  EXPECT_EQ(live.joined(live.join({.member = "stranger"})).error_code, UNKNOWN_MEMBER_ID);
  EXPECT_EQ(live.synced(live.sync(stranger)).error_code, UNKNOWN_MEMBER_ID);
  EXPECT_EQ(live.heartbeat(stranger), UNKNOWN_MEMBER_ID);
  EXPECT_EQ(live.leave("stranger"), UNKNOWN_MEMBER_ID);
  EXPECT_EQ(live.commit(stranger), UNKNOWN_MEMBER_ID);
}

INSTANTIATE_TEST_SUITE_P(Table, GroupStates, testing::ValuesIn(kTable),
                         [](const auto& each) { return std::string(to_string(each.param.state)); });

}  // namespace
}  // namespace kanal::coordinator
