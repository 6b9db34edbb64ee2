#include "group_world.hpp"

namespace kanal::broker::test {
namespace {

using reserved::MemoryStore;

struct GroupsTest : GroupWorld {};

// Waiting

TEST_F(GroupsTest, AJoinWaitsForTheFirstRebalanceAndTheOthersThatCome) {
  Asked& first = join("g");
  EXPECT_FALSE(first.joined);
  pass(2s);
  Asked& second = join("g");
  EXPECT_FALSE(first.joined);
  pass_first_rebalance();
  ASSERT_TRUE(first.joined && second.joined);
  EXPECT_EQ(first.joined->generation_id, 1);
  EXPECT_EQ(second.joined->generation_id, 1);
  EXPECT_EQ(first.joined->leader, first.member);
  EXPECT_EQ(first.joined->members.size(), 2U);
}

TEST_F(GroupsTest, ASyncWaitsForTheLeadersAssignment) {
  Asked& first = join("g");
  Asked& second = join("g");
  pass_first_rebalance();
  ASSERT_TRUE(first.joined && second.joined);
  Asked& waiting = sync(second, {});
  EXPECT_FALSE(waiting.synced);
  sync(first, {&first, &second});
  ASSERT_TRUE(waiting.synced);
  EXPECT_EQ(waiting.synced->error_code, ErrorCode::NONE);
  EXPECT_EQ(as_text(waiting.synced->assignment), "assignment");
  EXPECT_EQ(heartbeat(second), ErrorCode::NONE);
}

TEST_F(GroupsTest, AConnectionThatEndsLeavesItsMemberWithoutItsWaiter) {
  Asked& gone = join("g");
  gone.context.cancelled = true;
  ASSERT_NE(gone.context.parked, nullptr);
  gone.context.parked->fire();
  settle();
  ASSERT_TRUE(gone.joined) << "its slot is free";
  EXPECT_EQ(gone.joined->error_code, ErrorCode::COORDINATOR_NOT_AVAILABLE);
  Asked& other = join("g");
  pass_first_rebalance();
  ASSERT_TRUE(other.joined);
  EXPECT_EQ(other.joined->generation_id, 1);
  EXPECT_EQ(groups().size(), 1U);
}

TEST_F(GroupsTest, WhatIsParkedIsAnsweredWhenTheBrokerStops) {
  Asked& parked = join("g");
  broker->release_parked();
  settle();
  ASSERT_TRUE(parked.joined);
  EXPECT_EQ(parked.joined->error_code, ErrorCode::COORDINATOR_NOT_AVAILABLE);
  Asked& late = join("g");
  ASSERT_TRUE(late.joined) << "nothing parks any more";
  EXPECT_EQ(late.joined->error_code, ErrorCode::COORDINATOR_NOT_AVAILABLE);
}

// Unknown groups

TEST_F(GroupsTest, AskingForAGroupThatDoesNotExistLeavesNothing) {
  wire::HeartbeatRequest heartbeat;
  heartbeat.group_id = "nobody";
  heartbeat.member_id = "m";
  EXPECT_EQ(groups().heartbeat(heartbeat), ErrorCode::UNKNOWN_MEMBER_ID);
  wire::LeaveGroupRequest leave;
  leave.group_id = "nobody";
  leave.members.emplace_back().member_id = "m";
  EXPECT_EQ(groups().leave(leave).members.at(0).error_code, ErrorCode::UNKNOWN_MEMBER_ID);
  EXPECT_EQ(groups().remove("nobody"), ErrorCode::GROUP_ID_NOT_FOUND);
  EXPECT_EQ(groups().delete_offsets("nobody", {{{"t", PartitionIndex(0)}}}).group,
            ErrorCode::GROUP_ID_NOT_FOUND);
  create("t");
  EXPECT_EQ(commit("nobody", "t", 1, 3, "m"), ErrorCode::ILLEGAL_GENERATION);
  EXPECT_EQ(committed("nobody", "t"), -1);
  Asked& stranger = join("nobody", {.member = "m"});
  ASSERT_TRUE(stranger.joined);
  EXPECT_EQ(stranger.joined->error_code, ErrorCode::UNKNOWN_MEMBER_ID);
  EXPECT_EQ(groups().size(), 0U);
  EXPECT_EQ(stored("nobody"), 0U);
}

TEST_F(GroupsTest, ADeletedGroupIsGoneFromMemoryAndStore) {
  create("t");
  EXPECT_EQ(commit("g", "t", 7), ErrorCode::NONE);
  EXPECT_EQ(groups().size(), 1U);
  EXPECT_EQ(groups().remove("g"), ErrorCode::NONE);
  EXPECT_EQ(groups().size(), 0U);
  EXPECT_EQ(stored("g"), 0U);
  EXPECT_EQ(committed("g", "t"), -1);
  EXPECT_EQ(groups().remove("g"), ErrorCode::GROUP_ID_NOT_FOUND);
}

TEST_F(GroupsTest, GroupIdsAreAnyText) {
  create("t");
  const std::vector<std::string> names{"/",
                                       ".",
                                       "..",
                                       "~",
                                       "a/b",
                                       std::string(1024, 'x'),
                                       "\xC3\xA9\xF0\x9F\x90\x93",
                                       std::string("a\0b", 3),
                                       ""};
  std::int64_t offset = 0;
  for (const std::string& name : names) EXPECT_EQ(commit(name, "t", ++offset), ErrorCode::NONE);
  kill();
  offset = 0;
  for (const std::string& name : names) EXPECT_EQ(committed(name, "t"), ++offset);
  EXPECT_EQ(groups().size(), names.size());
}

// Restarts

TEST_F(GroupsTest, OffsetsAndMembersSurviveAKill) {
  create("t");
  const auto members = stable("g", 2);
  const Asked& member = *members[0];
  EXPECT_EQ(commit("g", "t", 42, 1, member.member), ErrorCode::NONE);
  const std::string id = member.member;
  kill();
  EXPECT_EQ(committed("g", "t"), 42);
  wire::HeartbeatRequest request;
  request.group_id = "g";
  request.member_id = id;
  request.generation_id = 1;
  EXPECT_EQ(groups().heartbeat(request), ErrorCode::NONE);
  EXPECT_EQ(commit("g", "t", 43, 1, id), ErrorCode::NONE);
  // Who does not come back is noticed after its session timeout.
  pass(9s);
  EXPECT_EQ(groups().heartbeat(request), ErrorCode::NONE);
  pass(2s);
  EXPECT_EQ(groups().heartbeat(request), ErrorCode::REBALANCE_IN_PROGRESS);
}

TEST_F(GroupsTest, AChannelStaysAsSmallAsItsState) {
  create("t");
  for (std::int64_t offset = 0; offset < 1'000; ++offset) {
    ASSERT_EQ(commit("g", "t", offset), ErrorCode::NONE);
    ASSERT_LE(stored("g"), 65U);
  }
  kill();
  EXPECT_EQ(committed("g", "t"), 999);
}

// Deadlines

TEST_F(GroupsTest, AMemberThatIsSilentIsExpired) {
  const auto members = stable("g", 2);
  pass(6s);
  EXPECT_EQ(heartbeat(*members[0]), ErrorCode::NONE);
  pass(5s);
  EXPECT_EQ(heartbeat(*members[0]), ErrorCode::REBALANCE_IN_PROGRESS);
  EXPECT_EQ(heartbeat(*members[1]), ErrorCode::UNKNOWN_MEMBER_ID);
}

TEST_F(GroupsTest, HeartbeatsArmNoTimers) {
  const auto members = stable("g", 1);
  const auto timers = [&] {
    std::vector<std::optional<Time>> all;
    for (const auto& io : threads) all.push_back(io->next_timer());
    return all;
  };
  const auto before = timers();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(heartbeat(*members[0]), ErrorCode::NONE);
  EXPECT_EQ(timers(), before);
}

TEST_F(GroupsTest, AStallOfTheBrokerExpiresNobody) {
  const auto members = stable("g", 2);
  pass(3s);
  stand_still(60s);
  for (const Asked* member : members) EXPECT_EQ(heartbeat(*member), ErrorCode::NONE);
  pass(9s);
  for (const Asked* member : members) EXPECT_EQ(heartbeat(*member), ErrorCode::NONE);
  // Deadlines have moved, they have not gone.
  pass(11s);
  EXPECT_EQ(heartbeat(*members[0]), ErrorCode::UNKNOWN_MEMBER_ID);
}

TEST_F(GroupsTest, AParkedJoinSurvivesAStall) {
  Asked& waiting = join("g");
  stand_still(60s);
  EXPECT_FALSE(waiting.joined && waiting.joined->error_code != ErrorCode::NONE);
  pass(3s);
  ASSERT_TRUE(waiting.joined);
  EXPECT_EQ(waiting.joined->error_code, ErrorCode::NONE);
}

// Faults

TEST_F(GroupsTest, AFailedWriteReadsTheGroupAnewAndLosesNothing) {
  create("t");
  const auto members = stable("g", 1);
  EXPECT_EQ(commit("g", "t", 5), ErrorCode::UNKNOWN_MEMBER_ID) << "members are there";
  EXPECT_EQ(commit("g", "t", 5, 1, members[0]->member), ErrorCode::NONE);
  store.fail_write(1, MemoryStore::Failure::kNothingWritten);
  helpers.paused = true;
  EXPECT_EQ(commit("g", "t", 6, 1, members[0]->member), ErrorCode::COORDINATOR_NOT_AVAILABLE);
  EXPECT_EQ(commit("g", "t", 6, 1, members[0]->member), ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
  EXPECT_EQ(heartbeat(*members[0]), ErrorCode::NONE) << "as Kafka while it loads";
  helpers.paused = false;
  settle();
  EXPECT_EQ(committed("g", "t"), 5);
  EXPECT_EQ(heartbeat(*members[0]), ErrorCode::NONE);
  EXPECT_EQ(commit("g", "t", 6, 1, members[0]->member), ErrorCode::NONE);
  EXPECT_EQ(committed("g", "t"), 6);
}

TEST_F(GroupsTest, AWriteThatFailedAfterItsBytesIsNotSeen) {
  create("t");
  EXPECT_EQ(commit("g", "t", 5), ErrorCode::NONE);
  store.fail_write(1, MemoryStore::Failure::kWrittenUnsynced);
  EXPECT_EQ(commit("g", "t", 6), ErrorCode::COORDINATOR_NOT_AVAILABLE);
  EXPECT_EQ(committed("g", "t"), 5);
}

TEST_F(GroupsTest, AFailedWriteAnswersWhatIsParked) {
  Asked& leader = join("g");
  Asked& other = join("g");
  pass_first_rebalance();
  ASSERT_TRUE(leader.joined && other.joined);
  Asked& parked = sync(other, {});
  EXPECT_FALSE(parked.synced);
  store.fail_write(1, MemoryStore::Failure::kNothingWritten);
  Asked& failed = sync(leader, {&leader, &other});
  ASSERT_TRUE(failed.synced && parked.synced);
  EXPECT_EQ(failed.synced->error_code, ErrorCode::COORDINATOR_NOT_AVAILABLE);
  EXPECT_EQ(parked.synced->error_code, ErrorCode::COORDINATOR_NOT_AVAILABLE);
  // This generation was never stored; its members find that out and join anew.
  EXPECT_EQ(heartbeat(leader), ErrorCode::UNKNOWN_MEMBER_ID);
  const auto members = stable("g", 2);
  EXPECT_EQ(heartbeat(*members.at(1)), ErrorCode::NONE);
}

TEST_F(GroupsTest, AFullDiskHealsItself) {
  create("t");
  EXPECT_EQ(commit("g", "t", 1), ErrorCode::NONE);
  for (int i = 0; i < 3; ++i) {
    store.fail_write(1, MemoryStore::Failure::kDiskFull);
    EXPECT_EQ(commit("g", "t", 2), ErrorCode::COORDINATOR_NOT_AVAILABLE);
    EXPECT_EQ(committed("g", "t"), 1);
  }
  EXPECT_EQ(commit("g", "t", 2), ErrorCode::NONE);
  EXPECT_EQ(committed("g", "t"), 2);
}

TEST_F(GroupsTest, AGroupThatCannotBeReadIsTriedAgain) {
  create("t");
  EXPECT_EQ(commit("g", "t", 1), ErrorCode::NONE);
  const reserved::ReservedName channel{reserved::Kind::kOffsets, "g"};
  store.damage(channel, 1);
  store.fail_write(1, MemoryStore::Failure::kNothingWritten);
  EXPECT_EQ(commit("g", "t", 2), ErrorCode::COORDINATOR_NOT_AVAILABLE);
  EXPECT_EQ(commit("g", "t", 2), ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
  pass(2s);
  EXPECT_EQ(commit("g", "t", 2), ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
  store.damage(channel, 0);
  EXPECT_EQ(commit("g", "t", 2), ErrorCode::COORDINATOR_LOAD_IN_PROGRESS) << "not all the time";
  pass(2s);
  EXPECT_EQ(commit("g", "t", 2), ErrorCode::NONE) << "it was read without being asked for";
}

TEST_F(GroupsTest, AGroupWhoseOnlyCommitFailedIsGone) {
  create("t");
  store.fail_write(1, MemoryStore::Failure::kDiskFull);
  EXPECT_EQ(commit("new", "t", 1), ErrorCode::COORDINATOR_NOT_AVAILABLE);
  pass(2s);
  EXPECT_EQ(groups().size(), 0U);
}

// Topics

TEST_F(GroupsTest, ATopicThatIsMadeAgainHasNoOffsets) {
  create("t");
  create("kept");
  EXPECT_EQ(commit("g", "t", 9), ErrorCode::NONE);
  EXPECT_EQ(commit("g", "kept", 3), ErrorCode::NONE);
  const std::uint64_t before = stored("g");
  remove("t");
  EXPECT_GT(stored("g"), before) << "the store was told";
  create("t");
  EXPECT_EQ(committed("g", "t"), -1);
  EXPECT_EQ(committed("g", "kept"), 3);
  kill();
  EXPECT_EQ(committed("g", "t"), -1);
  EXPECT_EQ(committed("g", "kept"), 3);
}

TEST_F(GroupsTest, OffsetsOfTopicsThatWereDeletedAreDroppedAtTheStart) {
  create("t");
  EXPECT_EQ(commit("only", "t", 9), ErrorCode::NONE);
  remove("t");
  create("t");
  EXPECT_EQ(stored("only"), 0U);
  EXPECT_EQ(commit("only", "t", 1), ErrorCode::NONE);
  kill();
  EXPECT_EQ(committed("only", "t"), 1);
}

// Expiry

TEST_F(GroupsTest, OffsetsOfAnEmptyGroupExpireAndTheGroupWithThem) {
  create("t");
  EXPECT_EQ(commit("g", "t", 1), ErrorCode::NONE);
  const auto members = stable("m", 1);
  EXPECT_EQ(commit("m", "t", 1, 1, members[0]->member), ErrorCode::NONE);
  helpers.paused = false;
  clock.advance_to(clock.now() + std::chrono::minutes(config.offsets_retention_minutes) + 1min);
  settle();
  pass(std::chrono::milliseconds(config.offsets_retention_check_interval_ms) + 2s);
  EXPECT_EQ(committed("g", "t"), -1);
  EXPECT_EQ(groups().visit("g", [](const coordinator::Group&) {}), ErrorCode::GROUP_ID_NOT_FOUND);
  EXPECT_EQ(stored("g"), 0U);
  EXPECT_EQ(committed("m", "t"), 1) << "since when it is empty counts";
}

// Lag

class Lag : public GroupsTest {
 protected:
  std::vector<std::string> seen() {
    std::vector<std::string> rows;
    groups().for_each_lag([&](const GroupLag& lag) {
      rows.push_back(std::string(lag.group) + " " + std::string(lag.topic) + "-" +
                     std::to_string(lag.partition.value()) + " " +
                     std::to_string(lag.committed.value()) + " " + std::to_string(lag.lag));
    });
    std::ranges::sort(rows);
    return rows;
  }
  using Rows = std::vector<std::string>;
};

TEST_F(Lag, IsTheHighWatermarkLessTheCommittedOffset) {
  create("t");
  EXPECT_EQ(commit("g", "t", 0), ErrorCode::NONE);
  EXPECT_EQ(commit("ahead", "t", 7), ErrorCode::NONE);
  EXPECT_EQ(seen(), (Rows{"ahead t-0 7 0", "g t-0 0 0"}));
  produce("t", 0, 5);
  EXPECT_EQ(seen(), (Rows{"ahead t-0 7 0", "g t-0 0 5"}));
  EXPECT_EQ(commit("g", "t", 3), ErrorCode::NONE);
  EXPECT_EQ(seen(), (Rows{"ahead t-0 7 0", "g t-0 3 2"}));
}

TEST_F(Lag, IsOfEachPartitionThatExistsAndSurvivesAKill) {
  create("t", 3);
  produce("t", 0, 2);
  produce("t", 2, 4);
  for (const std::int32_t partition : {0, 2}) {
    EXPECT_EQ(commit_partition("g", "t", partition, 1), ErrorCode::NONE);
  }
  const Rows rows = {"g t-0 1 1", "g t-2 1 3"};
  EXPECT_EQ(seen(), rows);
  kill();
  EXPECT_EQ(seen(), rows);
}

TEST_F(Lag, BelowATrimmedStartCountsFromWhatWasCommitted) {
  create("t");
  produce("t", 0, 6);
  EXPECT_EQ(commit("g", "t", 1), ErrorCode::NONE);
  EXPECT_TRUE(broker->topics()->find("t")->partition(PartitionIndex(0))->trim(Offset(4)));
  EXPECT_EQ(seen(), Rows{"g t-0 1 5"}) << "as Kafka's tools count it";
}

TEST_F(Lag, GoesWithTheTopic) {
  create("t");
  produce("t", 0, 1);
  EXPECT_EQ(commit("g", "t", 0), ErrorCode::NONE);
  remove("t");
  EXPECT_EQ(seen(), Rows{});
  create("t");
  EXPECT_EQ(seen(), Rows{});
}

// Limits

TEST_F(GroupsTest, TheBrokersLimitsReachTheGroups) {
  stop();
  coordinator::ConfigLayers layers;
  layers.fixed = {{"group.max.size", "1"}, {"offset.metadata.max.bytes", "3"}};
  config = coordinator::make_broker_config(std::move(layers), {}).value();
  start();
  create("t");
  (void)stable("g", 1);
  const Asked& second = join("g");
  ASSERT_TRUE(second.joined);
  EXPECT_EQ(second.joined->error_code, ErrorCode::GROUP_MAX_SIZE_REACHED);
  EXPECT_EQ(commit_partition("h", "t", 0, 1, "abc"), ErrorCode::NONE);
  EXPECT_EQ(commit_partition("h", "t", 0, 1, "abcd"), ErrorCode::OFFSET_METADATA_TOO_LARGE);
}

TEST_F(GroupsTest, MembersOfAGroupThatIsTooLargeJoinAgainAndTheGroupGoesOn) {
  restart_with({{"message.max.bytes", "1000"}});
  Asked& member = join("g");
  pass_first_rebalance();
  ASSERT_TRUE(member.joined);
  member.assignment = std::string(1'000, 'a');
  const Asked& refused = sync(member, {&member});
  ASSERT_TRUE(refused.synced);
  EXPECT_EQ(refused.synced->error_code, ErrorCode::UNKNOWN_SERVER_ERROR);
  EXPECT_EQ(heartbeat(member), ErrorCode::REBALANCE_IN_PROGRESS);
  Asked& again = join("g", {.member = member.joined->member_id});
  ASSERT_TRUE(again.joined);
  EXPECT_EQ(again.joined->generation_id, 2);
  const Asked& synced = sync(again, {&again});
  ASSERT_TRUE(synced.synced);
  EXPECT_EQ(synced.synced->error_code, ErrorCode::NONE);
}

}  // namespace
}  // namespace kanal::broker::test
