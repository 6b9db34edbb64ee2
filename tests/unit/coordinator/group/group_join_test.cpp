// JoinGroup: who gets in, the first rebalance, the choice of protocol and leader, the size limit.
#include "group_support.hpp"

namespace kanal::coordinator {
namespace {

using enum ErrorCode;

TEST(GroupJoin, ANewDynamicMemberIsSentBackForItsId) {
  LiveGroup live;
  const WaiterId first = live.join({.client = "app"});
  EXPECT_EQ(live.joined(first).error_code, MEMBER_ID_REQUIRED);
  EXPECT_EQ(live.joined(first).generation_id, -1);
  EXPECT_EQ(live.joined(first).protocol_name, std::nullopt);
  const std::string id = live.joined(first).member_id;
  ASSERT_EQ(id.size(), 3U + 1U + 36U) << id;
  EXPECT_EQ(id.substr(0, 4), "app-");
  EXPECT_EQ(id[4 + 14], '4') << "a random UUID says so: " << id;
  EXPECT_EQ(live.group().state(), GroupState::kEmpty);

  const WaiterId second = live.join({.member = id});
  EXPECT_TRUE(live.parked(second));
  EXPECT_EQ(live.group().state(), GroupState::kPreparingRebalance);
  live.pass(seconds{3});
  EXPECT_EQ(live.joined(second).member_id, id);
  EXPECT_EQ(live.joined(second).generation_id, 1);
}

TEST(GroupJoin, BeforeVersion4ANewMemberIsTakenAtOnce) {
  LiveGroup live;
  const WaiterId waiter = live.join({.version = 3});
  EXPECT_TRUE(live.parked(waiter));
  live.pass(seconds{3});
  EXPECT_EQ(live.joined(waiter).error_code, NONE);
  EXPECT_EQ(live.joined(waiter).leader, live.joined(waiter).member_id);
}

TEST(GroupJoin, TheLeaderGetsTheMembersTheOthersNone) {
  LiveGroup live;
  const WaiterId a = live.join({.protocols = {{"range", "A"}}, .version = 3});
  const WaiterId b = live.join({.protocols = {{"range", "B"}}, .version = 3});
  live.await(a);
  const auto& leader = live.joined(a);
  ASSERT_EQ(leader.leader, leader.member_id) << "the first to join leads";
  ASSERT_EQ(leader.members.size(), 2U);
  std::map<std::string, std::string> metadata;
  for (const auto& member : leader.members) {
    metadata[member.member_id] = as_text(member.metadata);
  }
  EXPECT_EQ(metadata[leader.member_id], "A");
  EXPECT_EQ(metadata[live.joined(b).member_id], "B");
  EXPECT_EQ(leader.protocol_type, "consumer");
  EXPECT_EQ(leader.protocol_name, "range");
  EXPECT_FALSE(leader.skip_assignment);
  EXPECT_TRUE(live.joined(b).members.empty());
  EXPECT_EQ(live.joined(b).leader, leader.member_id);
}

TEST(GroupJoin, ChecksTheRequestFirst) {
  LiveGroup nameless({}, "");
  EXPECT_EQ(nameless.joined(nameless.join({.member = "m"})).error_code, INVALID_GROUP_ID);
  LiveGroup live;
  const auto code = [&](const JoinArgs& args) { return live.joined(live.join(args)).error_code; };
  EXPECT_EQ(code({.session = milliseconds{5'999}}), INVALID_SESSION_TIMEOUT);
  EXPECT_EQ(code({.session = milliseconds{1'800'001}}), INVALID_SESSION_TIMEOUT);
  EXPECT_TRUE(live.group().vacant()) << "a refused request makes no group";
  EXPECT_EQ(code({.member = "m"}), UNKNOWN_MEMBER_ID) << "nobody has a member id of no group";
  EXPECT_EQ(code({.member = "m", .protocols = {}}), UNKNOWN_MEMBER_ID);
  EXPECT_TRUE(live.group().vacant());
  EXPECT_EQ(code({.protocols = {}}), INCONSISTENT_GROUP_PROTOCOL);
  EXPECT_FALSE(live.group().vacant()) << "as in Kafka the group exists from here on";
  EXPECT_EQ(code({.type = ""}), INCONSISTENT_GROUP_PROTOCOL);
  EXPECT_EQ(code({.member = "m", .protocols = {}}), INCONSISTENT_GROUP_PROTOCOL);
  EXPECT_EQ(code({.member = "m"}), UNKNOWN_MEMBER_ID);
}

TEST(GroupJoin, TheFirstRebalanceWaitsForMoreMembers) {
  LiveGroup live;  // 3 s at a time, up to the rebalance timeout
  const JoinArgs args{.rebalance = seconds{8}, .version = 3};
  const WaiterId first = live.join(args);
  live.pass(seconds{2});
  const WaiterId second = live.join(args);  // buys the delay from 3 s to 6 s
  live.pass(seconds{2});
  EXPECT_TRUE(live.parked(first));
  const WaiterId third = live.join(args);  // from 6 s to 8 s
  live.pass(milliseconds{3'999});
  EXPECT_TRUE(live.parked(first));
  const WaiterId fourth = live.join(args);
  live.pass(milliseconds{1});
  for (const WaiterId waiter : {first, second, third, fourth}) {
    EXPECT_EQ(live.joined(waiter).generation_id, 1) << "8 s have passed, nothing more to buy";
  }
}

TEST(GroupJoin, WithoutADelayTheFirstGenerationBeginsAtOnce) {
  LiveGroup live(without_delay());
  const WaiterId waiter = live.join({.version = 3});
  ASSERT_EQ(live.group().next_deadline(), live.now());
  live.pass(milliseconds{0});
  EXPECT_EQ(live.joined(waiter).generation_id, 1);
}

TEST(GroupJoin, ALaterMemberRebalancesTheOthers) {
  LiveGroup live;
  const std::string a = live.stable_alone();
  const auto [b, waiter] = live.enter();
  EXPECT_TRUE(live.parked(waiter));
  EXPECT_EQ(live.group().state(), GroupState::kPreparingRebalance);
  EXPECT_EQ(live.heartbeat({.member = a}), REBALANCE_IN_PROGRESS);
  const WaiterId again = live.join({.member = a});
  EXPECT_EQ(live.joined(again).generation_id, 2) << "all are there: no waiting";
  EXPECT_EQ(live.joined(waiter).generation_id, 2);
  EXPECT_EQ(live.joined(waiter).leader, a) << "the leader keeps its place";
}

TEST(GroupJoin, TheLeaderKeepsItsPlaceWhateverTheOrderOfTheIds) {
  LiveGroup live;
  const std::string leader = live.stable_alone({.client = "z"});
  const WaiterId newcomer = live.enter({.client = "a"}).second;
  (void)live.join({.member = leader});
  EXPECT_EQ(live.joined(newcomer).leader, leader);
}

TEST(GroupJoin, WhoDoesNotComeBackInTimeIsOut) {
  LiveGroup live;
  const auto members = live.stable(2, {.rebalance = seconds{20}});
  const WaiterId newcomer = live.enter({.rebalance = seconds{5}}).second;
  const WaiterId back = live.join({.member = members[1], .rebalance = seconds{20}});
  for (int i = 0; i < 4; ++i) {  // a member whose client is alive but busy
    EXPECT_EQ(live.heartbeat({.member = members[0]}), REBALANCE_IN_PROGRESS);
    live.pass(milliseconds{4'999});
  }
  EXPECT_TRUE(live.parked(back)) << "the longest rebalance timeout counts";
  live.pass(milliseconds{4});
  EXPECT_EQ(live.joined(back).generation_id, 2);
  EXPECT_EQ(live.heartbeat({.member = members[0], .generation = 1}), UNKNOWN_MEMBER_ID);
  const std::string leader = live.joined(back).leader;
  EXPECT_TRUE(leader == members[1] || leader == live.joined(newcomer).member_id);
  EXPECT_EQ(live.group().describe().members.size(), 2U);
}

TEST(GroupJoin, PendingMembersHoldUpTheRebalanceUntilTheirSessionEnds) {
  LiveGroup live;
  const std::string a = live.stable_alone();
  const std::string pending = live.joined(live.join({.session = seconds{7}})).member_id;
  EXPECT_EQ(live.group().state(), GroupState::kStable) << "a pending id is no member";
  const WaiterId again = live.join({.member = a});  // the leader asks for a rebalance
  live.pass(milliseconds{6'999});
  EXPECT_TRUE(live.parked(again));
  live.pass(milliseconds{1});
  EXPECT_EQ(live.joined(again).generation_id, 2);
  EXPECT_EQ(live.joined(live.join({.member = pending})).error_code, UNKNOWN_MEMBER_ID);
}

TEST(GroupJoin, AClientThatDropsItsIdAsksForAnother) {  // librdkafka#5569
  LiveGroup live;
  (void)live.join({.session = seconds{45}});
  const WaiterId waiter = live.enter({.session = seconds{45}}).second;
  live.pass(seconds{3});
  EXPECT_EQ(live.joined(waiter).generation_id, 1) << "the delay of a new group ends all the same";
}

TEST(GroupJoin, APendingMemberCannotTurnStatic) {
  LiveGroup live;
  const std::string pending = live.joined(live.join({})).member_id;
  const auto& answer = live.joined(live.join({.member = pending, .instance = "i"}));
  EXPECT_EQ(answer.error_code, UNKNOWN_SERVER_ERROR) << "Kafka fails on it";
  EXPECT_EQ(answer.member_id, "");
}

TEST(GroupJoin, TheProtocolIsElectedAmongThoseAllSupport) {
  LiveGroup live;
  const JoinArgs a{.protocols = {{"range", "1"}, {"sticky", "2"}}, .version = 3};
  const JoinArgs b{.protocols = {{"sticky", "3"}, {"range", "4"}}, .version = 3};
  const JoinArgs c{.protocols = {{"sticky", "5"}}, .version = 3};
  const WaiterId first = live.join(a);
  (void)live.join(b);
  (void)live.join(c);
  const auto& refused = live.joined(live.join({.protocols = {{"roundrobin", ""}}}));
  EXPECT_EQ(refused.error_code, INCONSISTENT_GROUP_PROTOCOL);
  EXPECT_EQ(live.joined(live.join({.protocols = {{"sticky", ""}}, .type = "connect"})).error_code,
            INCONSISTENT_GROUP_PROTOCOL);
  live.await(first);
  EXPECT_EQ(live.joined(first).protocol_name, "sticky");
  EXPECT_EQ(as_text(live.joined(first).members.at(0).metadata).size(), 1U);
}

TEST(GroupJoin, MostVotesWin) {
  LiveGroup live;
  const JoinArgs x{.protocols = {{"a", ""}, {"b", ""}}, .version = 3};
  const JoinArgs y{.protocols = {{"b", ""}, {"a", ""}}, .version = 3};
  const WaiterId first = live.join(x);
  (void)live.join(y);
  (void)live.join(y);
  live.await(first);
  EXPECT_EQ(live.joined(first).protocol_name, "b");
}

TEST(GroupJoin, AmongEqualVotesTheOrderIsThatOfAJavaHashMap) {
  // "sticky" hashes to bucket 8 of 16, "range" to 9: neither the alphabet nor the first to join.
  LiveGroup live;
  const WaiterId first = live.join({.protocols = {{"range", ""}, {"sticky", ""}}, .version = 3});
  (void)live.join({.protocols = {{"sticky", ""}, {"range", ""}}, .version = 3});
  live.await(first);
  EXPECT_EQ(live.joined(first).protocol_name, "sticky");
}

TEST(GroupJoin, AProtocolListedTwiceCountsOnce) {
  LiveGroup live;
  const WaiterId waiter = live.join({.protocols = {{"a", "1"}, {"a", "2"}}, .version = 3});
  live.pass(seconds{3});
  EXPECT_EQ(live.joined(waiter).protocol_name, "a");
}

TEST(GroupJoin, AFollowerThatAsksAgainLearnsTheCurrentGeneration) {
  LiveGroup live;
  const auto members = live.stable(2);
  const auto& answer = live.joined(live.join({.member = members[1]}));
  EXPECT_EQ(answer.error_code, NONE);
  EXPECT_EQ(answer.generation_id, 1);
  EXPECT_EQ(answer.leader, members[0]);
  EXPECT_EQ(live.group().state(), GroupState::kStable);
}

TEST(GroupJoin, AFollowerWithOtherMetadataRebalances) {
  LiveGroup live;
  const auto members = live.stable(2);
  const WaiterId waiter = live.join({.member = members[1], .protocols = {{"range", "other"}}});
  EXPECT_TRUE(live.parked(waiter));
  EXPECT_EQ(live.group().state(), GroupState::kPreparingRebalance);
}

TEST(GroupJoin, ALeaderThatAsksAgainRebalances) {
  LiveGroup live;
  const auto members = live.stable(2);
  EXPECT_TRUE(live.parked(live.join({.member = members[0]})));
  EXPECT_EQ(live.group().state(), GroupState::kPreparingRebalance);
}

TEST(GroupJoin, DuringTheSyncALostAnswerIsGivenAgain) {
  LiveGroup live;
  const WaiterId first = live.join({.version = 3});
  const WaiterId second = live.join({.version = 3});
  live.await(first);
  const std::string leader = live.joined(first).member_id;
  const std::string follower = live.joined(second).member_id;
  EXPECT_EQ(live.joined(live.join({.member = leader})).members.size(), 2U);
  EXPECT_TRUE(live.joined(live.join({.member = follower})).members.empty());
  EXPECT_EQ(live.group().state(), GroupState::kCompletingRebalance);
  EXPECT_TRUE(live.parked(live.join({.member = follower, .protocols = {{"range", "new"}}})));
  EXPECT_EQ(live.group().state(), GroupState::kPreparingRebalance);
}

TEST(GroupJoin, RepeatedWhileParkedTheLaterRequestGetsTheAnswer) {
  LiveGroup live;
  const auto members = live.stable(2);
  const WaiterId first = live.join({.member = members[0]});
  const WaiterId second = live.join({.member = members[0]});
  EXPECT_EQ(live.joined(first).error_code, COORDINATOR_NOT_AVAILABLE);
  EXPECT_TRUE(live.parked(second));
  (void)live.join({.member = members[1]});
  EXPECT_EQ(live.joined(second).generation_id, 2);
}

TEST(GroupJoin, NewMembersThatNeverGetAnAnswerAreDroppedAfterFiveMinutes) {
  LiveGroup quiet;
  const std::string old = quiet.stable_alone({.rebalance = seconds{1'000}});
  const WaiterId waiter = quiet.enter({.rebalance = seconds{1}}).second;
  for (int i = 0; i < 59; ++i) {
    quiet.pass(seconds{5});
    (void)quiet.heartbeat({.member = old});
  }
  EXPECT_TRUE(quiet.parked(waiter)) << "its session timeout of 10 s does not count yet";
  quiet.pass(seconds{5});
  EXPECT_EQ(quiet.joined(waiter).error_code, UNKNOWN_MEMBER_ID);
  EXPECT_EQ(quiet.joined(waiter).member_id, "");
}

TEST(GroupJoin, AFullGroupTakesNoMore) {
  GroupLimits limits;
  limits.max_size = 2;
  LiveGroup live(limits);
  const auto members = live.stable(2);
  const auto& refused = live.joined(live.join({}));
  EXPECT_EQ(refused.error_code, GROUP_MAX_SIZE_REACHED);
  EXPECT_EQ(refused.member_id, "");
  EXPECT_EQ(live.joined(live.join({.member = members[1]})).error_code, NONE) << "members may";
  EXPECT_EQ(live.group().state(), GroupState::kStable);
}

TEST(GroupJoin, WhileJoiningTheSizeCountsThoseWhoHaveAsked) {
  GroupLimits limits;
  limits.max_size = 2;
  LiveGroup live(limits);
  const WaiterId a = live.join({.version = 3});
  (void)live.join({.version = 3});
  EXPECT_EQ(live.joined(live.join({.version = 3})).error_code, GROUP_MAX_SIZE_REACHED);
  live.await(a);
  EXPECT_EQ(live.joined(a).members.size(), 2U);
  const std::string first = live.joined(a).member_id;
  (void)live.join({.member = first, .protocols = {{"range", "new"}}});
  for (const auto& member : live.group().describe().members) {
    if (member.member_id != first) (void)live.join({.member = member.member_id});
  }
  EXPECT_EQ(live.group().state(), GroupState::kCompletingRebalance) << "members fit again";
}

TEST(GroupJoin, WhoIsParkedMayAskAgainThoughTheGroupIsFull) {
  GroupLimits limits;
  limits.max_size = 1;
  LiveGroup live(limits);
  const auto [id, first] = live.enter();
  const WaiterId again = live.join({.member = id});
  EXPECT_EQ(live.joined(first).error_code, COORDINATOR_NOT_AVAILABLE);
  live.await(again);
  EXPECT_EQ(live.joined(again).error_code, NONE);
}

TEST(GroupJoin, AGroupAboveALoweredLimitShrinksToIt) {
  LiveGroup big;
  const auto members = big.stable(3);
  GroupLimits limits;
  limits.max_size = 2;
  LiveGroup live(limits);
  for (const Buffer& body : big.stored()) ASSERT_TRUE(live.group().apply({"g", body}));
  live.group().loaded(live.now());
  EXPECT_EQ(live.group().state(), GroupState::kPreparingRebalance);
  const WaiterId first = live.join({.member = members[0]});
  (void)live.join({.member = members[1]});
  EXPECT_EQ(live.joined(live.join({.member = members[2]})).error_code, GROUP_MAX_SIZE_REACHED);
  live.pass(seconds{60});
  EXPECT_EQ(live.joined(first).members.size(), 2U);
}

TEST(GroupJoin, TheFirstJoinGroupMakesTheGroup) {
  LiveGroup live;
  (void)live.join({});
  ASSERT_EQ(live.stored().size(), 1U);
  const auto restarted = live.restarted();
  EXPECT_EQ(restarted->group().state(), GroupState::kEmpty);
  restarted->expire_offsets();
  EXPECT_TRUE(restarted->group().vacant()) << "nothing is left of it after a round of expiry";
  EXPECT_TRUE(restarted->stored().empty());
}

}  // namespace
}  // namespace kanal::coordinator
