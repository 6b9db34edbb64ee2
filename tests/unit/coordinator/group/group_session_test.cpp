// From the answers of JoinGroup to the end of the session: SyncGroup, Heartbeat, LeaveGroup and
// the deadlines.
#include "group_support.hpp"

namespace kanal::coordinator {
namespace {

using enum ErrorCode;

/// Two members that have joined generation 1 and not synced yet.
struct Joined : LiveGroup {
  explicit Joined(milliseconds rebalance = seconds{60}) {
    const JoinArgs args{.rebalance = rebalance, .version = 3};
    const WaiterId first = join(args), second = join(args);
    pass(std::min<milliseconds>(rebalance, seconds{6}));
    leader = joined(first).member_id;
    follower = joined(second).member_id;
    EXPECT_EQ(joined(first).leader, leader);
    EXPECT_EQ(group().state(), GroupState::kCompletingRebalance);
  }
  std::string leader, follower;
};

TEST(GroupSync, FollowersWaitForTheLeadersAssignment) {
  Joined live;
  const WaiterId waiting = live.sync({.member = live.follower});
  EXPECT_TRUE(live.parked(waiting));
  const WaiterId leader =
      live.sync({.member = live.leader}, {{live.follower, "mine"}, {"stranger", "x"}});
  EXPECT_EQ(as_text(live.synced(waiting).assignment), "mine");
  EXPECT_EQ(live.synced(waiting).protocol_type, "consumer");
  EXPECT_EQ(live.synced(waiting).protocol_name, "range");
  EXPECT_TRUE(live.synced(leader).assignment.empty()) << "it gave itself nothing";
  EXPECT_EQ(live.group().state(), GroupState::kStable);
}

TEST(GroupSync, WhoComesLaterGetsItsAssignmentAtOnce) {
  Joined live;
  (void)live.sync({.member = live.leader}, {{live.follower, "mine"}});
  EXPECT_EQ(as_text(live.synced(live.sync({.member = live.follower})).assignment), "mine");
  EXPECT_EQ(as_text(live.synced(live.sync({.member = live.follower})).assignment), "mine");
}

TEST(GroupSync, WhoIsAnsweredByAStableGroupHasAWholeSession) {
  Joined live;
  (void)live.sync({.member = live.leader}, {{live.follower, "mine"}});
  (void)live.sync({.member = live.follower});
  const auto pass_most_of_a_session = [&] {
    live.pass(seconds{9});
    EXPECT_EQ(live.heartbeat({.member = live.leader}), NONE);
  };
  pass_most_of_a_session();
  EXPECT_EQ(live.synced(live.sync({.member = live.follower})).error_code, NONE);
  pass_most_of_a_session();
  EXPECT_EQ(live.joined(live.join({.member = live.follower})).generation_id, 1);
  pass_most_of_a_session();
  EXPECT_EQ(live.heartbeat({.member = live.follower}), NONE);
}

TEST(GroupSync, WhoJoinsAgainDuringTheSyncHasAWholeSession) {
  Joined live;
  for (int i = 0; i < 2; ++i) {
    live.pass(seconds{9});
    EXPECT_EQ(live.heartbeat({.member = live.leader}), NONE);
    EXPECT_EQ(live.joined(live.join({.member = live.follower})).generation_id, 1);
  }
  live.pass(seconds{9});
  EXPECT_EQ(live.heartbeat({.member = live.follower}), NONE);
}

TEST(GroupSync, ChecksInKafkasOrder) {
  LiveGroup nobody;
  EXPECT_EQ(nobody.synced(nobody.sync({.member = "m"})).error_code, UNKNOWN_MEMBER_ID);
  LiveGroup nameless({}, "");
  EXPECT_EQ(nameless.synced(nameless.sync({.member = "m"})).error_code, INVALID_GROUP_ID);
  Joined live;
  const auto code = [&](const MemberArgs& args, const std::string& type = "",
                        const std::string& protocol = "") {
    return live.synced(live.sync(args, {}, type, protocol)).error_code;
  };
  EXPECT_EQ(code({.member = "m", .generation = 9}, "connect"), UNKNOWN_MEMBER_ID);
  EXPECT_EQ(code({.member = live.leader, .generation = 9}, "connect"), ILLEGAL_GENERATION);
  EXPECT_EQ(code({.member = live.leader, .generation = 0}), ILLEGAL_GENERATION);
  EXPECT_EQ(code({.member = live.leader}, "connect", "range"), INCONSISTENT_GROUP_PROTOCOL);
  EXPECT_EQ(code({.member = live.leader}, "consumer", "sticky"), INCONSISTENT_GROUP_PROTOCOL);
  EXPECT_EQ(code({.member = live.leader}, "consumer", "range"), NONE);
  (void)live.join({.member = live.leader});
  EXPECT_EQ(code({.member = live.leader}, "consumer", "sticky"), INCONSISTENT_GROUP_PROTOCOL);
  EXPECT_EQ(code({.member = live.leader}), REBALANCE_IN_PROGRESS);
}

TEST(GroupSync, RepeatedWhileParkedTheLaterRequestGetsTheAnswer) {
  Joined live;
  const WaiterId first = live.sync({.member = live.follower});
  const WaiterId second = live.sync({.member = live.follower});
  EXPECT_EQ(live.synced(first).error_code, COORDINATOR_NOT_AVAILABLE);
  (void)live.sync({.member = live.leader}, {{live.follower, "mine"}});
  EXPECT_EQ(as_text(live.synced(second).assignment), "mine");
}

TEST(GroupSync, ANewRebalanceSendsTheWaitingBack) {
  Joined live;
  const WaiterId waiting = live.sync({.member = live.follower});
  (void)live.enter({.version = 3});
  EXPECT_EQ(live.synced(waiting).error_code, REBALANCE_IN_PROGRESS);
  EXPECT_TRUE(live.synced(waiting).assignment.empty());
  EXPECT_EQ(live.synced(waiting).protocol_name, std::nullopt);
}

TEST(GroupSync, ANewRebalanceDuringTheSyncTakesTheAssignmentsAway) {
  LiveGroup live;
  const std::string id = live.stable_alone({}, "old");
  (void)live.join({.member = id});
  EXPECT_EQ(as_text(live.group().describe().members.at(0).member_assignment), "old");
  (void)live.enter();
  EXPECT_TRUE(live.group().describe().members.at(0).member_assignment.empty());
}

TEST(GroupSync, WhoIsGivenNothingKeepsNothingOfTheGenerationBefore) {
  LiveGroup live;
  const std::string id = live.stable_alone({}, "old");
  (void)live.join({.member = id});
  const WaiterId sync = live.sync({.member = id, .generation = 2});
  EXPECT_EQ(live.synced(sync).error_code, NONE);
  EXPECT_TRUE(live.synced(sync).assignment.empty());
}

TEST(GroupSync, TheSessionEndsNotWhileTheRequestIsParked) {
  Joined live;
  const WaiterId waiting = live.sync({.member = live.follower});
  for (int i = 0; i < 6; ++i) {  // a slow assignor; the session timeout is 10 s
    live.pass(seconds{9});
    EXPECT_EQ(live.heartbeat({.member = live.leader}), NONE) << "heartbeats count in this state";
  }
  (void)live.sync({.member = live.leader}, {{live.follower, "mine"}});
  EXPECT_EQ(as_text(live.synced(waiting).assignment), "mine");
  live.pass(milliseconds{9'999});
  EXPECT_EQ(live.heartbeat({.member = live.follower}), NONE) << "anew with the answer";
}

TEST(GroupSync, WhoNeverSyncsIsRemovedAfterTheRebalanceTimeout) {  // KAFKA-12890
  Joined live(seconds{6});
  const WaiterId waiting = live.sync({.member = live.follower});
  live.pass(milliseconds{5'999});
  EXPECT_EQ(live.heartbeat({.member = live.leader}), NONE);
  EXPECT_TRUE(live.parked(waiting));
  live.pass(milliseconds{1});
  EXPECT_EQ(live.synced(waiting).error_code, REBALANCE_IN_PROGRESS);
  EXPECT_EQ(live.heartbeat({.member = live.leader}), UNKNOWN_MEMBER_ID);
  const WaiterId again = live.join({.member = live.follower, .rebalance = seconds{6}});
  EXPECT_EQ(live.joined(again).leader, live.follower);
}

TEST(GroupSync, AStableGroupRemovesThemToo) {
  Joined live(seconds{6});
  (void)live.sync({.member = live.leader}, {{live.leader, "x"}});
  live.pass(milliseconds{6'000});
  EXPECT_EQ(live.heartbeat({.member = live.leader}), REBALANCE_IN_PROGRESS);
  EXPECT_EQ(live.heartbeat({.member = live.follower}), UNKNOWN_MEMBER_ID);
}

TEST(GroupHeartbeat, ChecksInKafkasOrder) {
  LiveGroup nobody;
  EXPECT_EQ(nobody.heartbeat({.member = "m"}), UNKNOWN_MEMBER_ID);
  LiveGroup nameless({}, "");
  EXPECT_EQ(nameless.heartbeat({.member = "m"}), INVALID_GROUP_ID);
  LiveGroup live;
  const std::string id = live.stable_alone();
  EXPECT_EQ(live.heartbeat({.member = id}), NONE);
  EXPECT_EQ(live.heartbeat({.member = id, .generation = 0}), ILLEGAL_GENERATION);
  EXPECT_EQ(live.heartbeat({.member = id, .generation = 2}), ILLEGAL_GENERATION);
  EXPECT_EQ(live.heartbeat({.member = "m", .generation = 2}), UNKNOWN_MEMBER_ID);
  EXPECT_EQ(live.heartbeat({.member = id, .instance = "i"}), UNKNOWN_MEMBER_ID);
}

TEST(GroupHeartbeat, KeepsTheSession) {
  LiveGroup live;
  const std::string id = live.stable_alone();
  for (int i = 0; i < 100; ++i) {
    live.pass(milliseconds{9'999});
    ASSERT_EQ(live.heartbeat({.member = id}), NONE);
  }
  live.pass(milliseconds{10'000});
  EXPECT_EQ(live.heartbeat({.member = id}), UNKNOWN_MEMBER_ID);
  EXPECT_EQ(live.group().state(), GroupState::kEmpty);
  EXPECT_EQ(live.group().protocol_type(), "consumer");
}

TEST(GroupHeartbeat, CostsNoTimer) {
  LiveGroup live;
  const std::string id = live.stable_alone({.session = seconds{45}});
  live.pass(seconds{1});
  const auto deadline = live.group().next_deadline();
  for (int i = 0; i < 10; ++i) {
    live.skip(seconds{3});
    ASSERT_EQ(live.heartbeat({.member = id}), NONE);
    EXPECT_EQ(live.group().next_deadline(), deadline) << "a lower bound, corrected when it passes";
  }
  live.pass(seconds{20});
  EXPECT_GT(live.group().next_deadline(), live.now());
  EXPECT_EQ(live.heartbeat({.member = id}), NONE);
}

TEST(GroupHeartbeat, TheDeadlineIsExactOnceTightened) {
  LiveGroup live;
  const auto members = live.stable(2, {.session = seconds{45}});
  live.skip(seconds{30});
  ASSERT_EQ(live.heartbeat({.member = members[0]}), NONE);
  live.skip(seconds{5});
  ASSERT_EQ(live.heartbeat({.member = members[1]}), NONE);
  EXPECT_LT(live.group().next_deadline(), live.now() + seconds{40});
  EXPECT_EQ(live.group().tighten_deadline(), live.now() + seconds{40});
  EXPECT_EQ(live.group().next_deadline(), live.now() + seconds{40});
  LiveGroup nobody;
  EXPECT_EQ(nobody.group().tighten_deadline(), std::nullopt);
}

TEST(GroupHeartbeat, AGroupWithoutMembersWaitsForNothing) {
  LiveGroup live;
  EXPECT_EQ(live.group().next_deadline(), std::nullopt);
  (void)live.commit_outside(1);
  EXPECT_EQ(live.group().next_deadline(), std::nullopt);
  const std::string id = live.stable_alone();
  EXPECT_NE(live.group().next_deadline(), std::nullopt);
  (void)live.leave(id);
  live.pass(seconds{3'600});
  EXPECT_EQ(live.group().next_deadline(), std::nullopt);
}

TEST(GroupHeartbeat, AnExpiredMemberRebalancesTheOthers) {
  LiveGroup live;
  const auto members = live.stable(2);
  live.pass(seconds{9});
  (void)live.heartbeat({.member = members[0]});
  live.pass(seconds{1});
  EXPECT_EQ(live.heartbeat({.member = members[0]}), REBALANCE_IN_PROGRESS);
  const WaiterId again = live.join({.member = members[0]});
  EXPECT_EQ(live.joined(again).generation_id, 2);
  EXPECT_EQ(live.joined(again).members.size(), 1U);
}

TEST(GroupHeartbeat, WhenTheLastMembersExpireTheGroupIsEmpty) {
  LiveGroup live;
  (void)live.stable(3);
  live.pass(seconds{100});
  EXPECT_EQ(live.group().state(), GroupState::kEmpty);
  EXPECT_TRUE(live.group().describe().members.empty());
}

TEST(GroupHeartbeat, TheLastMemberExpiresWhileAnotherIsPending) {
  LiveGroup live;
  (void)live.stable_alone();
  (void)live.join({.session = seconds{60}});
  live.pass(seconds{10});
  EXPECT_EQ(live.group().state(), GroupState::kEmpty) << "nobody to wait for, so not at all";
  const WaiterId next = live.enter().second;
  live.pass(seconds{3});
  EXPECT_EQ(live.joined(next).error_code, NONE);
}

TEST(GroupHeartbeat, TimePassedInOneLeapExpiresEverybodyInOrder) {
  LiveGroup live;
  const auto members = live.stable(3);
  live.skip(seconds{100});
  live.pass(milliseconds{0});
  EXPECT_EQ(live.group().state(), GroupState::kEmpty);
}

TEST(GroupHeartbeat, WhatHappenedEarlierInTheLeapCountsFirst) {
  LiveGroup live;
  const auto members = live.stable(2, {.rebalance = seconds{8}});
  const WaiterId again = live.join({.member = members[0], .rebalance = seconds{8}});
  live.skip(seconds{20});  // the join ended after 8 s, the session would have after 10 s
  live.pass(milliseconds{0});
  EXPECT_EQ(live.joined(again).generation_id, 2);
  EXPECT_EQ(live.heartbeat({.member = members[0], .generation = 2}), NONE);
  EXPECT_EQ(live.heartbeat({.member = members[1], .generation = 2}), UNKNOWN_MEMBER_ID);
}

TEST(GroupLeave, TheLastOneLeavesAnEmptyGroupThatKeepsItsGeneration) {
  LiveGroup live;
  const std::string id = live.stable_alone();
  EXPECT_EQ(live.leave(id), NONE);
  EXPECT_EQ(live.group().state(), GroupState::kEmpty);
  const WaiterId next = live.enter().second;
  live.pass(seconds{3});
  EXPECT_EQ(live.joined(next).generation_id, 3) << "becoming empty was a generation too";
  const auto restarted = live.restarted();
  const WaiterId after = restarted->enter().second;
  restarted->pass(seconds{3});
  EXPECT_EQ(restarted->joined(after).generation_id, 3) << "2 is stored";
}

TEST(GroupLeave, AnEmptyGroupTakesAnotherProtocolType) {
  LiveGroup live;
  (void)live.leave(live.stable_alone());
  const WaiterId next = live.enter({.protocols = {{"default", "x"}}, .type = "connect"}).second;
  live.pass(seconds{3});
  EXPECT_EQ(live.joined(next).protocol_type, "connect");
}

TEST(GroupLeave, OfOneOfTwoRebalancesTheOther) {
  LiveGroup live;
  const auto members = live.stable(2);
  EXPECT_EQ(live.leave(members[0]), NONE);
  EXPECT_EQ(live.heartbeat({.member = members[1]}), REBALANCE_IN_PROGRESS);
  EXPECT_EQ(live.joined(live.join({.member = members[1]})).leader, members[1]);
}

TEST(GroupLeave, DuringTheJoinItFinishesIt) {  // streamnative/kop#380
  LiveGroup live;
  const auto members = live.stable(2);
  const WaiterId again = live.join({.member = members[0]});
  EXPECT_EQ(live.leave(members[1]), NONE);
  EXPECT_EQ(live.joined(again).generation_id, 2) << "at once, not after the rebalance timeout";
}

TEST(GroupLeave, AnswersWhatTheMemberStillWaitsFor) {
  LiveGroup live;
  const auto members = live.stable(2);
  const WaiterId again = live.join({.member = members[0]});
  EXPECT_EQ(live.leave(members[0]), NONE);
  EXPECT_EQ(live.joined(again).error_code, UNKNOWN_MEMBER_ID);
  Joined other;
  const WaiterId sync = other.sync({.member = other.follower});
  EXPECT_EQ(other.leave(other.follower), NONE);
  EXPECT_EQ(other.synced(sync).error_code, UNKNOWN_MEMBER_ID);
}

TEST(GroupLeave, APendingMemberMayLeave) {
  LiveGroup live;
  const std::string a = live.stable_alone();
  const std::string pending = live.joined(live.join({})).member_id;
  const WaiterId again = live.join({.member = a});
  EXPECT_TRUE(live.parked(again));
  EXPECT_EQ(live.leave(pending), NONE);
  EXPECT_EQ(live.joined(again).generation_id, 2);
}

TEST(GroupLeave, AnswersEveryMemberInOrder) {
  LiveGroup live;
  const auto members = live.stable(3);
  const auto answer =
      live.leave({{.member = "stranger"}, {.member = members[2]}, {.member = members[1]}});
  ASSERT_EQ(answer.members.size(), 3U);
  EXPECT_EQ(answer.members[0].member_id, "stranger");
  EXPECT_EQ(answer.members[0].error_code, UNKNOWN_MEMBER_ID);
  EXPECT_EQ(answer.members[1].member_id, members[2]);
  EXPECT_EQ(answer.members[1].error_code, NONE);
  EXPECT_EQ(answer.members[2].error_code, NONE);
  EXPECT_EQ(live.group().describe().members.size(), 1U);
}

TEST(GroupLeave, OfAGroupThatDoesNotExist) {
  LiveGroup live;
  EXPECT_EQ(live.leave("m"), UNKNOWN_MEMBER_ID);
  EXPECT_TRUE(live.group().vacant());
  LiveGroup nameless({}, "");
  EXPECT_EQ(nameless.leave({{.member = "m"}}).error_code, INVALID_GROUP_ID);
}

TEST(GroupDescribe, ShowsMetadataAndProtocolOfAStableGroupOnly) {
  LiveGroup live;
  EXPECT_EQ(live.group().describe().group_state, "Dead");
  EXPECT_EQ(live.group().describe().group_id, "g");
  const std::string id = live.stable_alone({.protocols = {{"range", "meta"}}}, "assigned");
  auto stable = live.group().describe();
  EXPECT_EQ(stable.group_state, "Stable");
  EXPECT_EQ(stable.protocol_type, "consumer");
  EXPECT_EQ(stable.protocol_data, "range");
  ASSERT_EQ(stable.members.size(), 1U);
  EXPECT_EQ(stable.members[0].member_id, id);
  EXPECT_EQ(stable.members[0].client_id, "app");
  EXPECT_EQ(stable.members[0].client_host, "/127.0.0.1");
  EXPECT_EQ(as_text(stable.members[0].member_metadata), "meta");
  EXPECT_EQ(as_text(stable.members[0].member_assignment), "assigned");
  (void)live.enter();
  const auto preparing = live.group().describe();
  EXPECT_EQ(preparing.group_state, "PreparingRebalance");
  EXPECT_EQ(preparing.protocol_data, "");
  for (const auto& member : preparing.members) EXPECT_TRUE(member.member_metadata.empty());
  Joined joined;
  EXPECT_EQ(joined.group().describe().group_state, "CompletingRebalance");
  (void)live.leave({{.member = id},
                    {.member = preparing.members[0].member_id},
                    {.member = preparing.members[1].member_id}});
  EXPECT_EQ(live.group().describe().group_state, "Empty");
  EXPECT_EQ(live.group().describe().protocol_type, "consumer");
}

}  // namespace
}  // namespace kanal::coordinator
