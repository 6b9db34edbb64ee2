#include "stalls.hpp"

#include "group_world.hpp"

namespace kanal::broker::test {
namespace {

struct StallsTest : ::testing::Test {
  ManualClock clock;
  Stalls stalls{clock};
  void pass(Duration time) { clock.advance_to(clock.now() + time); }
};

TEST_F(StallsTest, GroupTimeStandsStillForTheLengthOfAStall) {
  const Time before = stalls.now();
  const Time due = clock.now() + 1s;
  pass(21s);
  stalls.ran(due);
  EXPECT_EQ(stalls.total(), 20s);
  EXPECT_EQ(stalls.now(), before + 1s);
  EXPECT_EQ(stalls.by_clock(before + 2s), clock.now() + 1s);
}

TEST_F(StallsTest, ALittleLateIsNoStall) {
  const Time due = clock.now();
  pass(500ms);
  stalls.ran(due);
  EXPECT_EQ(stalls.total(), 0s);
}

TEST_F(StallsTest, WhatSeveralSawOfOneStallCountsOnce) {
  const Time begin = clock.now();
  pass(20s);
  stalls.ran(begin + 10s);
  EXPECT_EQ(stalls.total(), 10s);
  stalls.ran(begin + 4s);
  EXPECT_EQ(stalls.total(), 16s) << "it began earlier than the first one could see";
  stalls.ran(begin + 12s);
  EXPECT_EQ(stalls.total(), 16s);
  pass(10s);
  stalls.ran(begin + 29s);
  EXPECT_EQ(stalls.total(), 17s) << "another one";
}

TEST_F(StallsTest, ATickThatComesLateIsAStall) {
  stalls.tick();
  pass(1s);
  stalls.tick();
  EXPECT_EQ(stalls.total(), 0s);
  pass(6s);
  stalls.tick();
  EXPECT_EQ(stalls.total(), 5s);
}

TEST_F(StallsTest, AStallBeforeTheFirstTickIsSeenByIt) {
  IoThread io(clock, 0);
  stalls.attach(io);
  pass(21s);
  stalls.tick();
  EXPECT_EQ(stalls.total(), 20s);
}

TEST_F(StallsTest, ABarrierIsBehindWhatEveryThreadHadToDo) {
  IoThread first(clock, 0), second(clock, 1);
  stalls.attach(first);
  stalls.attach(second);
  std::string order;
  // What a connection does: accepted here, handed over, read there, handled a pass later.
  first.post([&] {
    order += 'a';
    second.post([&] {
      order += 'b';
      second.post([&] { order += 'c'; });
    });
  });
  stalls.after_barrier([&] { order += '|'; });
  stalls.after_barrier([&] { order += '!'; });
  for (bool ran = true; ran;) {
    ran = first.poll();
    ran |= second.poll();
  }
  EXPECT_EQ(order, "abc|!");
}

TEST_F(StallsTest, ABarrierThatTakesLongIsAStall) {
  IoThread io(clock, 0);
  stalls.attach(io);
  bool done = false;
  stalls.after_barrier([&] { done = true; });
  pass(3s);
  while (io.poll()) {
  }
  EXPECT_TRUE(done);
  EXPECT_EQ(stalls.total(), 3s);
}

}  // namespace
}  // namespace kanal::broker::test
