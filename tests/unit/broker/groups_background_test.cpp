// What runs beside the requests of groups: failures and their mending, deadlines, sweeps.
#include "group_world.hpp"
#include "support/log_lines.hpp"

namespace kanal::broker::test {
namespace {

using kanal::test::LogLines;
using reserved::MemoryStore;

struct GroupsBackground : GroupWorld {};

TEST_F(GroupsBackground, WritesThatFailAgainAndAgainAreLoggedOnceASecond) {
  create("t");
  const LogLines lines("broker");
  for (int i = 0; i < 10; ++i) {
    store.fail_write(1, MemoryStore::Failure::kDiskFull);
    EXPECT_EQ(commit("g", "t", 1), ErrorCode::COORDINATOR_NOT_AVAILABLE);
    pass(250ms);
  }
  EXPECT_EQ(lines.with("A group could not be stored"), 3U) << lines.text();
}

reserved::ReservedName channel_of(const std::string& group) {
  return {reserved::Kind::kOffsets, group};
}

TEST_F(GroupsBackground, OneDamagedChannelDoesNotKeepTheOthersFromBeingRead) {
  create("t");
  std::vector<std::string> all;
  for (int i = 0; i < 20; ++i) all.push_back("g" + std::to_string(i));
  for (const std::string& group : all) EXPECT_EQ(commit(group, "t", 1), ErrorCode::NONE);
  // Each in turn is the damaged one, so that whatever the order, it comes before others.
  for (const std::string& damaged : {all[0], all[7], all[19]}) {
    store.damage(channel_of(damaged), 1);
    for (const std::string& group : all) {
      store.fail_write(1, MemoryStore::Failure::kNothingWritten);
      helpers.paused = true;  // they all fail before the first is read
      EXPECT_EQ(commit(group, "t", 2), ErrorCode::COORDINATOR_NOT_AVAILABLE);
    }
    helpers.paused = false;
    settle();
    for (int second = 0; second < 4; ++second) {
      pass(1s);
      // It is asked for all the time, as its clients do.
      EXPECT_EQ(commit(damaged, "t", 2), ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
    }
    for (const std::string& group : all) {
      if (group == damaged) continue;
      EXPECT_EQ(commit(group, "t", 1), ErrorCode::NONE) << group << " behind " << damaged;
    }
    store.damage(channel_of(damaged), 0);
    pass(2s);
    EXPECT_EQ(committed(damaged, "t"), 1);
  }
}

TEST_F(GroupsBackground, WhatCannotBeReadIsTriedOnceASecondInAll) {
  create("t");
  const LogLines lines("broker");
  for (int i = 0; i < 20; ++i) {
    const std::string group = "g" + std::to_string(i);
    EXPECT_EQ(commit(group, "t", 1), ErrorCode::NONE);
    store.damage(channel_of(group), 1);
    store.fail_write(1, MemoryStore::Failure::kDiskFull);
    EXPECT_EQ(commit(group, "t", 2), ErrorCode::COORDINATOR_NOT_AVAILABLE);
  }
  for (int i = 0; i < 100; ++i) {
    pass(100ms);
    EXPECT_EQ(commit("g0", "t", 2), ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
  }
  EXPECT_GE(lines.with("could not be read"), 5U);
  EXPECT_LE(lines.with("could not be read"), 11U);
}

TEST_F(GroupsBackground, ABrokerThatStopsReadsNothingAnew) {
  create("t");
  EXPECT_EQ(commit("g", "t", 1), ErrorCode::NONE);
  store.damage(channel_of("g"), 1);
  store.fail_write(1, MemoryStore::Failure::kNothingWritten);
  EXPECT_EQ(commit("g", "t", 2), ErrorCode::COORDINATOR_NOT_AVAILABLE);
  const LogLines lines("broker");
  groups().stop();
  pass(5s);
  EXPECT_EQ(lines.with("could not be read"), 0U) << lines.text();
}

// Sweeps

TEST_F(GroupsBackground, TheOffsetsOfDeletedTopicsGoInSlices) {
  create("t");
  create("u");
  create("kept");
  constexpr std::size_t kGroups = 300;
  for (std::size_t i = 0; i < kGroups; ++i) {
    for (const char* topic : {"t", "u", "kept"})
      EXPECT_EQ(commit("g" + std::to_string(i), topic, 1), ErrorCode::NONE);
  }
  const auto offsets = [&] {
    std::size_t count = 0;
    groups().for_each([&](const coordinator::Group& group) { count += group.live_records(); });
    return count;
  };
  helpers.paused = true;
  remove("t");
  remove("u");
  helpers.paused = false;
  std::size_t before = offsets();
  EXPECT_EQ(before, 3 * kGroups);
  while (helpers.run_one()) {
    const std::size_t left = offsets();
    EXPECT_LT(before - left, kGroups / 2) << "others on this thread wait for so long";
    before = left;
  }
  EXPECT_EQ(before, kGroups);
  EXPECT_EQ(committed("g0", "kept"), 1);
}

TEST_F(GroupsBackground, ATopicThatIsDeletedDuringASweepIsForgottenToo) {
  create("t");
  create("u");
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(commit("g" + std::to_string(i), "t", 1), ErrorCode::NONE);
    EXPECT_EQ(commit("g" + std::to_string(i), "u", 1), ErrorCode::NONE);
  }
  helpers.paused = true;
  remove("t");
  helpers.paused = false;
  for (int i = 0; i < 32; ++i) EXPECT_TRUE(helpers.run_one());
  remove("u");
  for (int i = 0; i < 100; ++i) EXPECT_EQ(stored("g" + std::to_string(i)), 0U);
}

// Deadlines

TEST_F(GroupsBackground, AMemberThatSendsHeartbeatsCausesNoBarrier) {
  // A group whose deadlines are the second thread's: the first one ticks.
  Asked* member = nullptr;
  for (int i = 0; !threads[1]->next_timer(); ++i) member = stable("g" + std::to_string(i)).at(0);
  pass(250ms);  // away from the ticks
  for (int i = 0; i < 5; ++i) {  // until nothing else is left
    EXPECT_EQ(heartbeat(*member), ErrorCode::NONE);
    pass(6s);
  }
  EXPECT_EQ(heartbeat(*member), ErrorCode::NONE);
  const auto due = threads[1]->next_timer();
  ASSERT_TRUE(due);
  ASSERT_LT(*due, clock.now() + 10s) << "it was set before the latest heartbeat";
  pass(*due - clock.now() - 1ns);
  clock.advance_to(*due);
  (void)threads[1]->poll();
  EXPECT_FALSE(threads[0]->poll()) << "asked to read what is there, though nobody is late";
  EXPECT_GT(threads[1]->next_timer(), due);
  settle();
  pass(11s);
  EXPECT_EQ(heartbeat(*member), ErrorCode::UNKNOWN_MEMBER_ID);
}

// Reasons (KIP-800)

TEST_F(GroupsBackground, TheReasonOfAMemberIsLoggedAtDebugOnOneBoundedLine) {
  const LogLines lines("broker");
  const auto leave = [&](std::string_view reason) {
    wire::LeaveGroupRequest request;
    request.group_id = "g";
    auto& member = request.members.emplace_back();
    member.member_id = "m";
    if (!reason.empty()) member.reason = reason;
    EXPECT_EQ(groups().leave(request).members.at(0).error_code, ErrorCode::UNKNOWN_MEMBER_ID);
  };
  leave("the consumer is being closed");
  EXPECT_EQ(lines.with("the consumer is being closed"), 0U) << "nobody asked for it";
  set_logger_level("broker", "DEBUG");
  leave("the consumer is being closed");
  leave("two\nlines\x1b[31m");
  leave(std::string(255, 'a') + "b");
  leave("");
  unset_logger_level("broker");
  EXPECT_EQ(lines.with("request=LeaveGroup group=g member=m reason=the consumer is being closed"),
            1U);
  EXPECT_EQ(lines.with("reason=two?lines?[31m"), 1U) << lines.text();
  EXPECT_EQ(lines.with("reason=" + std::string(255, 'a')), 1U);
  EXPECT_EQ(lines.with("ab"), 0U);
  EXPECT_EQ(lines.with("reason="), 3U);
}

}  // namespace
}  // namespace kanal::broker::test
