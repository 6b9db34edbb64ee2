// A disk that fills up: what is refused, what goes on, and that all is well again by itself once
// there is room; with the reserve given up and made again.
#include "group_world.hpp"
#include "support/log_lines.hpp"

#include "unit/log/world.hpp"

namespace kanal::broker::test {
namespace {

using kanal::test::LogLines;
using log::test::make_batch;
using reserved::MemoryStore;

constexpr std::uint64_t kReserve = 64 << 10;
constexpr std::uint64_t kDisk = 1 << 20;

class DiskRoomTest : public GroupWorld {
 protected:
  DiskRoomTest() {
    files.set_capacity(kDisk);
    restart(kReserve);
    create("t");
    pass(2s);
  }
  void restart(std::uint64_t bytes) {
    stop();
    reserve = bytes;
    start();
  }
  Result<log::AppendResult> append(const std::string& topic, std::size_t bytes = 1000) {
    auto appended = GroupWorld::append(
        topic, 0,
        make_batch({.timestamp = clock.wall().value(), .value = std::string(bytes, 'x')}));
    settle();
    return appended;
  }
  /// Appends until one is refused.
  Error fill(const std::string& topic) {
    for (int i = 0; i < 10'000; ++i) {
      if (auto appended = append(topic); !appended) return appended.error();
    }
    ADD_FAILURE() << "the disk never filled up";
    return {};
  }
  /// Somebody else's file takes all but `left` bytes.
  void others_leave(std::uint64_t left) {
    files.erase("/others");
    const auto space = files.space("/data");
    files.set_content("/others", Buffer(static_cast<std::size_t>(space->usable_bytes - left)));
  }
  void others_go() { files.erase("/others"); }
  [[nodiscard]] std::int64_t reserve_bytes() const {
    const auto content = files.content("/data/reserve");
    return content ? static_cast<std::int64_t>(content->size()) : -1;
  }
  std::int64_t end(const std::string& topic) {
    return partition(topic)
        ->with_log([](log::Partition& log) { return log.watermarks().high_watermark.value(); })
        .value();
  }
};

TEST_F(DiskRoomTest, TheReserveIsMadeAfterTheStartAndKept) {
  EXPECT_EQ(reserve_bytes(), kReserve);
  restart(kReserve);
  EXPECT_EQ(reserve_bytes(), kReserve);
  restart(2 * kReserve);
  pass(2s);
  EXPECT_EQ(reserve_bytes(), 2 * kReserve) << "the setting was changed";
  restart(0);
  EXPECT_EQ(reserve_bytes(), -1) << "none is kept any more";
}

TEST_F(DiskRoomTest, ItIsAtMostAnEighthOfTheDisk) {
  restart(kDisk);
  pass(2s);
  EXPECT_EQ(reserve_bytes(), kDisk / 8);
}

TEST_F(DiskRoomTest, AFullDiskRefusesRecordsUntilThereIsRoomAgain) {
  const LogLines lines("broker");
  const Error why = fill("t");
  EXPECT_EQ(why.code, ErrorCode::KAFKA_STORAGE_ERROR);
  EXPECT_EQ(reserve_bytes(), 0) << "given up";
  const std::int64_t full_at = end("t");
  for (int second = 0; second < 20; ++second) {
    pass(1s);
    const auto refused = append("t");
    ASSERT_FALSE(refused) << "what was given up is not for records";
    EXPECT_EQ(refused.error().code, ErrorCode::KAFKA_STORAGE_ERROR);
    EXPECT_NE(refused.error().detail.find("full"), std::string::npos);
  }
  EXPECT_EQ(end("t"), full_at);
  EXPECT_EQ(lines.with("The disk is full"), 1U) << lines.text();

  create("other");
  EXPECT_EQ(commit("g", "t", 7), ErrorCode::NONE);
  remove("t");
  pass(40s);
  EXPECT_EQ(reserve_bytes(), kReserve);
  EXPECT_TRUE(append("other"));
  EXPECT_EQ(lines.with("There is room on the disk again"), 1U) << lines.text();
}

TEST_F(DiskRoomTest, RecordsAreRefusedBeforeTheLastBytesAreGone) {
  others_leave(1000);
  pass(1s);
  EXPECT_EQ(reserve_bytes(), 0);
  EXPECT_FALSE(append("t", 10));
  others_go();
  pass(2s);
  EXPECT_TRUE(append("t", 10));
  EXPECT_EQ(reserve_bytes(), kReserve);
}

TEST_F(DiskRoomTest, ALittleRoomIsNotEnoughToGoOn) {
  others_leave(0);
  pass(1s);
  EXPECT_FALSE(append("t", 10));
  others_leave(kReserve + 100);  // as much as was given up, and a little
  pass(60s);
  EXPECT_FALSE(append("t", 10)) << "the next record but a few would meet a full disk again";
  EXPECT_EQ(reserve_bytes(), 0);
}

TEST_F(DiskRoomTest, AFullDiskIsToldAboutOnceAMinute) {
  const LogLines lines("broker");
  others_leave(0);
  for (int second = 0; second < 150; ++second) {
    pass(1s);
    EXPECT_FALSE(append("t"));
  }
  EXPECT_EQ(lines.with("The disk is full"), 3U) << lines.text();
}

TEST_F(DiskRoomTest, StartsAndStopsCleanlyOnAFullDisk) {
  EXPECT_TRUE(append("t"));
  others_leave(0);
  stop();  // expects it to be clean
  EXPECT_TRUE(files.content("/data/channels/clean-shutdown"));
  EXPECT_GT(reserve_bytes(), kReserve / 2) << "what is left is for the next start";
  others_leave(0);
  start();
  EXPECT_EQ(reserve_bytes(), 0);
  EXPECT_EQ(end("t"), 1);
  EXPECT_FALSE(append("t"));
  others_go();
  pass(2s);
  EXPECT_TRUE(append("t"));
}

TEST_F(DiskRoomTest, StartsOnAFullDiskAfterAKill) {
  EXPECT_TRUE(append("t"));
  others_leave(0);
  kill();
  EXPECT_EQ(reserve_bytes(), 0);
  EXPECT_EQ(end("t"), 1);
  EXPECT_FALSE(append("t"));
  remove("t");
  others_go();
  pass(2s);
  EXPECT_EQ(reserve_bytes(), kReserve);
}

TEST_F(DiskRoomTest, WhatAGivenUpReserveLeftIsNotForRecordsAfterAKill) {
  others_leave(0);
  EXPECT_FALSE(append("t"));
  EXPECT_EQ(reserve_bytes(), 0);
  kill();
  EXPECT_FALSE(append("t")) << "nobody has looked yet";
  others_go();
  pass(2s);
  EXPECT_TRUE(append("t"));
}

// The store meets the full disk, not a log.
TEST_F(DiskRoomTest, ATopicIsMadeWithWhatTheReserveGives) {
  store.fail_write(1, MemoryStore::Failure::kDiskFull);
  create("other");  // expects it to be made
  EXPECT_EQ(reserve_bytes(), 0);
  pass(3s);
  EXPECT_EQ(reserve_bytes(), kReserve) << "there is room, whatever the store met";
}

TEST_F(DiskRoomTest, ACommitThatMeetsAFullDiskGivesTheReserveUpForTheNext) {
  EXPECT_EQ(commit("g", "t", 1), ErrorCode::NONE);
  others_leave(20'000);
  store.fail_write(1, MemoryStore::Failure::kDiskFull);
  EXPECT_EQ(commit("g", "t", 2), ErrorCode::COORDINATOR_NOT_AVAILABLE);
  settle();
  EXPECT_EQ(reserve_bytes(), 0);
  pass(2s);
  EXPECT_EQ(commit("g", "t", 2), ErrorCode::NONE);
}

// A quota, or a disk without inodes left: it says that there is room.
TEST_F(DiskRoomTest, AReserveThatIsLostAtOnceIsMadeAgainLaterAndLater) {
  int made = 0;
  for (int second = 0; second < 120; ++second) {
    if (reserve_bytes() == kReserve) {
      ++made;
      store.fail_write(1, MemoryStore::Failure::kDiskFull);
      (void)commit("g", "t", second);
      settle();
    }
    pass(1s);
  }
  EXPECT_GE(made, 5);
  EXPECT_LE(made, 10);
}

TEST_F(DiskRoomTest, WithoutAReserveEveryAppendTriesForItself) {
  restart(0);
  const LogLines lines("broker");
  const Error why = fill("t");
  EXPECT_EQ(why.code, ErrorCode::KAFKA_STORAGE_ERROR);
  EXPECT_FALSE(append("t"));
  EXPECT_EQ(lines.with("The disk is full"), 1U) << lines.text();
  files.set_capacity(std::nullopt);
  EXPECT_TRUE(append("t"));
}

TEST_F(DiskRoomTest, WithoutAReserveAHelperLooksHowFullTheDiskIsNotWhoMeetsIt) {
  restart(0);
  others_leave(0);
  const LogLines lines("broker");
  helpers.paused = true;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(append("t"));
  EXPECT_EQ(lines.with("The disk is full"), 0U) << lines.text();
  helpers.paused = false;
  settle();
  EXPECT_EQ(lines.with("The disk is full"), 1U) << lines.text();
  EXPECT_EQ(lines.with("refused=3"), 1U) << lines.text();
  others_go();
  EXPECT_TRUE(append("t"));
}

}  // namespace
}  // namespace kanal::broker::test
