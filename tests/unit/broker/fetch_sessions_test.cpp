#include "kanal/broker/fetch_sessions.hpp"

#include <gtest/gtest.h>

namespace kanal::broker {
namespace {

using namespace std::chrono_literals;

FetchPartition partition(const std::string& topic, int index, std::int64_t offset = 0) {
  FetchPartition made;
  made.topic = topic;
  made.partition = PartitionIndex(index);
  made.fetch_offset = Offset(offset);
  return made;
}

TEST(FetchSession, KeepsWhatItAnsweredWhenAPartitionMovesOn) {
  FetchSession session;
  session.put(partition("t", 0, 5));
  session.find(partition("t", 0))->answered_high_watermark = 9;
  session.put(partition("t", 0, 8));
  ASSERT_EQ(session.partitions.size(), 1U);
  EXPECT_EQ(session.partitions.front().fetch_offset, Offset(8));
  EXPECT_EQ(session.partitions.front().answered_high_watermark, 9);
}

TEST(FetchSession, ForgetsOnlyWhatItKnows) {
  FetchSession session;
  session.put(partition("t", 0));
  session.forget(partition("t", 1));
  session.forget(partition("other", 0));
  EXPECT_EQ(session.partitions.size(), 1U);
  session.forget(partition("t", 0));
  EXPECT_TRUE(session.partitions.empty());
}

TEST(FetchSession, ReadsAServedPartitionLastNextTime) {
  FetchSession session;
  for (int i = 0; i < 3; ++i) session.put(partition("t", i));
  session.move_to_end(partition("t", 0));
  EXPECT_EQ(session.partitions.front().partition, PartitionIndex(1));
  EXPECT_EQ(session.partitions.back().partition, PartitionIndex(0));
  EXPECT_NE(session.find(partition("t", 0)), nullptr);
}

TEST(FetchSessions, AFullCacheMakesNoSessionAndNoError) {
  FetchSessions sessions(2);
  const Time now{1h};
  ASSERT_NE(sessions.create(1, now, 1), nullptr);
  ASSERT_NE(sessions.create(2, now, 1), nullptr);
  EXPECT_EQ(sessions.create(3, now + 1s, 1), nullptr);
  EXPECT_EQ(sessions.size(), 2U);
}

TEST(FetchSessions, AnIdleSessionMakesRoom) {
  FetchSessions sessions(1);
  const Time now{1h};
  const auto old = sessions.create(1, now, 10);
  EXPECT_EQ(sessions.create(2, now + 100s, 1), nullptr);
  EXPECT_NE(sessions.create(2, now + 121s, 1), nullptr);
  EXPECT_FALSE(sessions.find(old->id));
}

TEST(FetchSessions, AnOldSmallSessionMakesRoomForALargerOne) {
  FetchSessions sessions(1);
  const Time now{1h};
  const auto small = sessions.create(1, now, 1);
  sessions.touch(*small, now + 120s, 1);
  EXPECT_EQ(sessions.create(2, now + 121s, 1), nullptr) << "not larger";
  EXPECT_NE(sessions.create(2, now + 121s, 2), nullptr);
}

TEST(FetchSessions, IdsAreNeverZeroNegativeOrTaken) {
  FetchSessions sessions(10);
  const Time now{1h};
  const auto zero = sessions.create(0, now, 1);
  EXPECT_GT(zero->id, 0);
  const auto again = sessions.create(zero->id, now, 1);
  EXPECT_NE(again->id, zero->id);
  EXPECT_GT(sessions.create(-5, now, 1)->id, 0);
}

}  // namespace
}  // namespace kanal::broker
