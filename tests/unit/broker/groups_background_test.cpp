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

}  // namespace
}  // namespace kanal::broker::test
