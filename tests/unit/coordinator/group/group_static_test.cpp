// Static members (KIP-345): an instance takes its own place, the older one is fenced.
#include "group_support.hpp"

namespace kanal::coordinator {
namespace {

using enum ErrorCode;

struct StaticGroup : LiveGroup {
  using LiveGroup::LiveGroup;
  std::vector<std::string> members = stable(2, {.instance = "i"});  // i0 leads, i1 follows
  std::string instance_of(const std::string& member) {
    for (const auto& each : group().describe().members) {
      if (each.member_id == member) return each.group_instance_id.value_or("");
    }
    return "";
  }
};

TEST(GroupStatic, AnInstanceIsTakenWithoutTheDetourForAnId) {
  LiveGroup live;
  const WaiterId waiter = live.join({.instance = "i"});
  EXPECT_TRUE(live.parked(waiter));
  live.pass(seconds{3});
  EXPECT_EQ(live.joined(waiter).member_id.substr(0, 2), "i-") << "named after the instance";
  EXPECT_EQ(live.joined(waiter).members.at(0).group_instance_id, "i");
}

TEST(GroupStatic, AFollowerThatRestartsTakesItsPlaceWithoutARebalance) {
  StaticGroup live;
  const std::string instance = live.instance_of(live.members[1]);
  const auto& answer = live.joined(live.join({.instance = instance}));
  EXPECT_EQ(answer.error_code, NONE);
  EXPECT_EQ(answer.generation_id, 1);
  EXPECT_EQ(answer.leader, live.members[0]);
  EXPECT_FALSE(answer.skip_assignment);
  EXPECT_NE(answer.member_id, live.members[1]);
  EXPECT_EQ(live.group().state(), GroupState::kStable);
  const auto& sync = live.synced(live.sync({.member = answer.member_id, .instance = instance}));
  EXPECT_EQ(as_text(sync.assignment), "of " + live.members[1]) << "its partitions are kept";
  EXPECT_EQ(live.heartbeat({.member = live.members[1], .instance = instance}), FENCED_INSTANCE_ID);
  EXPECT_EQ(live.heartbeat({.member = live.members[1]}), UNKNOWN_MEMBER_ID);
  EXPECT_EQ(live.heartbeat({.member = answer.member_id, .instance = instance}), NONE);
}

TEST(GroupStatic, ALeaderThatRestartsIsToldToSkipTheAssignment) {  // KIP-814
  StaticGroup live;
  const auto& answer = live.joined(live.join({.instance = live.instance_of(live.members[0])}));
  EXPECT_TRUE(answer.skip_assignment);
  EXPECT_EQ(answer.leader, answer.member_id);
  EXPECT_EQ(answer.members.size(), 2U);
  EXPECT_EQ(live.group().state(), GroupState::kStable);
}

TEST(GroupStatic, BeforeVersion9TheLeaderIsShownItsOldId) {
  StaticGroup live;
  const auto& answer =
      live.joined(live.join({.instance = live.instance_of(live.members[0]), .version = 8}));
  EXPECT_FALSE(answer.skip_assignment);
  EXPECT_EQ(answer.leader, live.members[0]) << "so that it does not assign";
  EXPECT_TRUE(answer.members.empty());
}

TEST(GroupStatic, TheNewMemberIdSurvivesARestart) {
  StaticGroup live;
  const std::string instance = live.instance_of(live.members[0]);
  const std::string id = live.joined(live.join({.instance = instance})).member_id;
  const auto restarted = live.restarted();
  EXPECT_EQ(restarted->heartbeat({.member = id, .instance = instance}), NONE);
  EXPECT_EQ(restarted->heartbeat({.member = live.members[0], .instance = instance}),
            FENCED_INSTANCE_ID);
}

TEST(GroupStatic, AChangedProtocolRebalances) {
  LiveGroup live;
  const std::string a =
      live.stable_alone({.instance = "i", .protocols = {{"range", ""}, {"sticky", ""}}});
  const WaiterId waiter =
      live.join({.instance = "i", .protocols = {{"sticky", ""}, {"range", ""}}});
  EXPECT_EQ(live.joined(waiter).generation_id, 2);
  EXPECT_EQ(live.joined(waiter).protocol_name, "sticky");
  EXPECT_NE(live.joined(waiter).member_id, a);
}

TEST(GroupStatic, ARestartDuringTheSyncRebalances) {
  LiveGroup live;
  const WaiterId first = live.join({.instance = "a"});
  const WaiterId second = live.join({.instance = "b"});
  live.await(first);
  const std::string b = live.joined(second).member_id;
  const WaiterId sync = live.sync({.member = b, .instance = "b"});
  ASSERT_TRUE(live.parked(sync));
  const WaiterId again = live.join({.instance = "b"});
  EXPECT_EQ(live.synced(sync).error_code, FENCED_INSTANCE_ID) << "the older one waits no longer";
  EXPECT_TRUE(live.parked(again));
  EXPECT_EQ(live.group().state(), GroupState::kPreparingRebalance);
  (void)live.join({.member = live.joined(first).member_id, .instance = "a"});
  EXPECT_EQ(live.joined(again).generation_id, 2);
}

TEST(GroupStatic, TwoOfOneInstanceThatJoinTogetherFenceEachOther) {
  LiveGroup live;
  const WaiterId first = live.join({.instance = "i"});
  const WaiterId second = live.join({.instance = "i"});
  EXPECT_EQ(live.joined(first).error_code, FENCED_INSTANCE_ID);
  EXPECT_EQ(live.joined(first).member_id.substr(0, 2), "i-");
  EXPECT_EQ(live.joined(first).protocol_name, std::nullopt);
  live.pass(seconds{3});
  EXPECT_EQ(live.joined(second).error_code, NONE);
}

TEST(GroupStatic, EveryRequestIsFenced) {
  StaticGroup live;
  const std::string stale = live.members[1];
  const std::string instance = live.instance_of(stale);
  const std::string id = live.joined(live.join({.instance = instance})).member_id;
  const MemberArgs old{.member = stale, .instance = instance};
  EXPECT_EQ(live.joined(live.join({.member = stale, .instance = instance})).error_code,
            FENCED_INSTANCE_ID);
  EXPECT_EQ(live.synced(live.sync(old)).error_code, FENCED_INSTANCE_ID);
  EXPECT_EQ(live.heartbeat(old), FENCED_INSTANCE_ID);
  EXPECT_EQ(live.commit(old), FENCED_INSTANCE_ID);
  EXPECT_EQ(live.leave(stale, instance), FENCED_INSTANCE_ID);
  const MemberArgs unknown{.member = id, .instance = "nobody"};
  EXPECT_EQ(live.joined(live.join({.member = id, .instance = "nobody"})).error_code,
            UNKNOWN_MEMBER_ID);
  EXPECT_EQ(live.synced(live.sync(unknown)).error_code, UNKNOWN_MEMBER_ID);
  EXPECT_EQ(live.heartbeat(unknown), UNKNOWN_MEMBER_ID);
  EXPECT_EQ(live.commit(unknown), UNKNOWN_MEMBER_ID);
  EXPECT_EQ(live.leave(id, "nobody"), UNKNOWN_MEMBER_ID);
  EXPECT_EQ(live.heartbeat({.member = id}), NONE) << "the instance id is not demanded";
}

TEST(GroupStatic, AnOperatorRemovesAnInstanceWithoutItsMemberId) {
  StaticGroup live;
  const std::string instance = live.instance_of(live.members[1]);
  const auto answer = live.leave({{.member = "", .instance = instance},
                                  {.member = "", .instance = instance},
                                  {.member = "", .instance = "nobody"},
                                  {.member = ""}});
  ASSERT_EQ(answer.members.size(), 4U);
  EXPECT_EQ(answer.error_code, NONE);
  EXPECT_EQ(answer.members[0].error_code, NONE);
  EXPECT_EQ(answer.members[0].group_instance_id, instance);
  EXPECT_EQ(answer.members[1].error_code, UNKNOWN_MEMBER_ID) << "gone already";
  EXPECT_EQ(answer.members[2].error_code, UNKNOWN_MEMBER_ID);
  EXPECT_EQ(answer.members[3].error_code, UNKNOWN_MEMBER_ID);
  EXPECT_EQ(live.group().state(), GroupState::kPreparingRebalance);
}

TEST(GroupStatic, StaticMembersExpireWithTheirSession) {
  StaticGroup live;
  live.pass(seconds{9});
  EXPECT_EQ(live.heartbeat({.member = live.members[0]}), NONE);
  live.pass(seconds{1});
  EXPECT_EQ(live.heartbeat({.member = live.members[0]}), REBALANCE_IN_PROGRESS);
  EXPECT_EQ(live.heartbeat({.member = live.members[1]}), UNKNOWN_MEMBER_ID);
}

TEST(GroupStatic, TheyStayInARebalanceTheyMiss) {
  StaticGroup live;
  const WaiterId again = live.join({.member = live.members[0], .session = seconds{600}});
  for (int i = 0; i < 12; ++i) {
    EXPECT_TRUE(live.parked(again));
    (void)live.heartbeat({.member = live.members[1]});
    live.pass(seconds{5});
  }
  EXPECT_EQ(live.joined(again).generation_id, 2);
  EXPECT_EQ(live.joined(again).members.size(), 2U);
}

TEST(GroupStatic, WhenOnlyAbsentStaticMembersAreLeftTheGroupWaitsForThem) {
  LiveGroup live;
  const std::string id = live.stable_alone({.instance = "i", .session = seconds{300}});
  (void)live.join({.protocols = {{"range", "x"}}, .version = 3});  // rebalances, then leaves
  const std::string newcomer = [&] {
    for (const auto& member : live.group().describe().members) {
      if (member.member_id != id) return member.member_id;
    }
    return std::string();
  }();
  EXPECT_EQ(live.leave(newcomer), NONE);
  live.pass(seconds{61});
  EXPECT_EQ(live.group().state(), GroupState::kPreparingRebalance);
  const WaiterId back = live.join({.member = id, .instance = "i"});
  EXPECT_EQ(live.joined(back).generation_id, 2);
}

TEST(GroupStatic, AReplacementBringsItsOwnPropertiesAndTimeouts) {
  StaticGroup live;
  const std::string instance = live.instance_of(live.members[1]);
  const std::string id =
      live.joined(live.join({.instance = instance, .session = seconds{30}, .client = "new"}))
          .member_id;
  for (const auto& member : live.group().describe().members) {
    EXPECT_EQ(member.client_id, member.member_id == id ? "new" : "app");
  }
  for (int i = 0; i < 5; ++i) {
    live.pass(milliseconds{5'800});
    EXPECT_EQ(live.heartbeat({.member = live.members[0]}), NONE);
  }
  live.pass(milliseconds{1'000});
  EXPECT_EQ(live.heartbeat({.member = live.members[0]}), REBALANCE_IN_PROGRESS);
}

TEST(GroupStatic, AReplacementThatHasNotSyncedYetOwesTheSync) {
  LiveGroup live;
  const WaiterId first = live.join({.instance = "a", .rebalance = seconds{8}});
  (void)live.join({.instance = "b", .rebalance = seconds{8}});
  live.pass(seconds{8});
  const std::string leader = live.joined(first).leader;
  const std::string mine = live.joined(first).member_id;
  ASSERT_EQ(leader, mine);
  (void)live.sync({.member = leader, .instance = "a"}, {{leader, "x"}});
  const std::string b = live.joined(live.join({.instance = "b"})).member_id;
  EXPECT_EQ(live.synced(live.sync({.member = b, .instance = "b"})).error_code, NONE);
  (void)live.heartbeat({.member = leader});
  live.pass(seconds{9});
  EXPECT_EQ(live.heartbeat({.member = leader}), NONE) << "no rebalance for a sync of the old id";
}

}  // namespace
}  // namespace kanal::coordinator
