// A disk that really fills up: a small tmpfs under the data directory. Records are refused, all
// else goes on, and once there is room records are taken again without a restart; a start and a
// stop on a disk without a byte left. Skipped where nothing can be mounted.
#include <gtest/gtest.h>

#include <cstdio>

#include "../crash/reading.hpp"
#include "disk_world.hpp"

namespace kanal::e2e {
namespace {

constexpr std::uint64_t kDisk = 96 << 20;

class Namespace final : public testing::Environment {
 public:
  void SetUp() override { entered_ = SmallDisk::enter_namespace(); }
  static bool entered() { return entered_; }

 private:
  static inline bool entered_ = false;
};
const auto* const kNamespace = testing::AddGlobalTestEnvironment(new Namespace);

class FullDisk : public DiskWorld {
 protected:
  FullDisk() : DiskWorld({"storage.reserve.bytes=8MiB", "log.retention.check.interval.ms=1000"}) {}

  void SetUp() override {
    if (!Namespace::entered()) GTEST_SKIP() << "this machine lets us mount nothing";
    disk_.emplace(broker_.scratch() / "data", kDisk);
    broker_.start();
    ASSERT_TRUE(Admin(broker_.address()).create({"t", 2, {{"segment.bytes", "1048576"}}}).ok());
    ASSERT_TRUE(before_long([&] { return reserve_bytes() == 8 << 20; }));
  }
  void TearDown() override {
    if (broker_.running()) broker_.kill9();
  }
  [[nodiscard]] std::uint64_t reserve_bytes() const {
    std::error_code missing;
    const auto size = std::filesystem::file_size(broker_.scratch() / "data" / "reserve", missing);
    return missing ? 0 : size;
  }
  /// Others take the disk, and records what is left, until one is refused.
  void fill() {
    disk_->leave(2 << 20);
    ASSERT_TRUE(before_long([&] { return produce("t", 200'000) != RD_KAFKA_RESP_ERR_NO_ERROR; }));
    ASSERT_TRUE(before_long([&] { return reserve_bytes() == 0; }));
  }
  void expect_refused() {
    EXPECT_EQ(produce("t"), RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR);
    EXPECT_EQ(produce("t", 100, 1), RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR);
  }

  std::optional<SmallDisk> disk_;
};

TEST_F(FullDisk, RecordsAreRefusedAllElseGoesOnAndItMendsItself) {
  Admin admin(broker_.address());
  ASSERT_TRUE(admin.create({"gone", 3}).ok());
  for (int i = 0; i < 50; ++i) ASSERT_EQ(produce("t", 1000, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
  fill();
  expect_refused();
  EXPECT_EQ(broker_.log_lines("The disk is full").size(), 1U);

  const std::size_t kept = read("t").size();
  EXPECT_EQ(read("t", 1).size(), 50U);
  EXPECT_TRUE(commits_before_long("g", "t", 7));
  EXPECT_EQ(committed("g", "t"), 7);
  EXPECT_TRUE(admin.create({"made-meanwhile"}).ok());
  EXPECT_TRUE(admin.remove("gone").ok());
  EXPECT_EQ(admin.delete_records("t", 1, 20), 20);
  expect_refused();
  EXPECT_EQ(read("t").size(), kept) << "nothing half-written is shown";

  disk_->free_all();
  EXPECT_TRUE(taken_before_long("t"));
  EXPECT_TRUE(taken_before_long("t", 1));
  EXPECT_TRUE(taken_before_long("made-meanwhile"));
  EXPECT_EQ(reserve_bytes(), 8U << 20);
  EXPECT_EQ(read("t").size(), kept + 1);
  EXPECT_EQ(read("t", 1, 20).size(), 31U);
  EXPECT_EQ(broker_.terminate(), 0);
}

TEST_F(FullDisk, DeletingATopicMakesTheRoom) {
  Admin admin(broker_.address());
  ASSERT_TRUE(admin.create({"big"}).ok());
  for (int i = 0; i < 30; ++i) ASSERT_EQ(produce("big", 900'000), RD_KAFKA_RESP_ERR_NO_ERROR);
  fill();
  expect_refused();
  EXPECT_TRUE(admin.remove("big").ok());
  EXPECT_TRUE(taken_before_long("t"));
}

TEST_F(FullDisk, RetentionMakesTheRoom) {
  Admin admin(broker_.address());
  ASSERT_TRUE(admin.create({"big", 1, {{"segment.bytes", "1048576"}}}).ok());
  for (int i = 0; i < 30; ++i) ASSERT_EQ(produce("big", 900'000), RD_KAFKA_RESP_ERR_NO_ERROR);
  fill();
  expect_refused();
  ASSERT_TRUE(admin.alter("big", {{"retention.bytes", "1048576"}}).ok());
  EXPECT_TRUE(taken_before_long("t"));
}

TEST_F(FullDisk, FillsUnderLoadAndIsFreedAndNothingIsLostDoubledOrReordered) {
  Load exactly(broker_.address(), {1, "t", 2, Promise::kExactlyOnce});
  Load at_least(broker_.address(), {2, "t", 2, Promise::kAtLeastOnce, true});
  Load at_most(broker_.address(), {3, "t", 2, Promise::kAtMostOnce});
  Follower follower(broker_.address(), "t", 2);
  for (int round = 0; round < 3; ++round) {
    const std::size_t goal = exactly.acknowledged() + 100;
    ASSERT_TRUE(before_long([&] { return exactly.acknowledged() >= goal; }));
    disk_->leave(0);
    ASSERT_TRUE(before_long([&] { return reserve_bytes() == 0; }));
    EXPECT_TRUE(commits_before_long("g", "t", round));
    disk_->free_all();
    ASSERT_TRUE(before_long([&] { return reserve_bytes() > 0; }));
  }
  const std::size_t goal = at_least.acknowledged() + 100;
  ASSERT_TRUE(before_long([&] { return at_least.acknowledged() >= goal; }));
  exactly.finish();
  at_least.finish();
  at_most.finish();
  const Content content = read_topic(broker_.address(), "t", 2);
  follower.finish(content);
  for (const Load* load : {&exactly, &at_least, &at_most}) expect_promise(*load, content);
  EXPECT_EQ(broker_.terminate(), 0);
}

TEST_F(FullDisk, StopsCleanlyOnAFullDiskAndStartsOnIt) {
  for (int i = 0; i < 50; ++i) ASSERT_EQ(produce("t", 1000), RD_KAFKA_RESP_ERR_NO_ERROR);
  ASSERT_TRUE(commits_before_long("g", "t", 5));
  disk_->leave(0);
  EXPECT_EQ(broker_.terminate(), 0) << "the reserve takes what a stop writes";
  disk_->leave(0);
  broker_.start();
  EXPECT_EQ(broker_.start_figure("recovered"), 0) << "it was a clean stop";
  EXPECT_EQ(read("t").size(), 50U);
  EXPECT_EQ(committed("g", "t"), 5);
  expect_refused();
  disk_->free_all();
  EXPECT_TRUE(taken_before_long("t"));
}

TEST_F(FullDisk, StartsOnAFullDiskAfterAKill) {
  for (int i = 0; i < 50; ++i) ASSERT_EQ(produce("t", 1000), RD_KAFKA_RESP_ERR_NO_ERROR);
  disk_->leave(0);
  broker_.kill9();
  ASSERT_EQ(disk_->free_bytes() & ~0xFFFU, 0U);
  broker_.start();
  EXPECT_EQ(broker_.start_figure("broken"), 0);
  EXPECT_EQ(read("t").size(), 50U);
  expect_refused();
  EXPECT_TRUE(commits_before_long("g", "t", 5));
  Admin admin(broker_.address());
  EXPECT_TRUE(admin.create({"made-meanwhile"}).ok());
  EXPECT_EQ(admin.delete_records("t", 0, 10), 10);
  // And once more, with what that has left.
  broker_.kill9();
  broker_.start();
  EXPECT_EQ(read("t", 0, 10).size(), 40U);
  EXPECT_EQ(committed("g", "t"), 5);
  EXPECT_EQ(broker_.terminate(), 0);
  disk_->free_all();
  broker_.start();
  EXPECT_TRUE(taken_before_long("t"));
}

}  // namespace
}  // namespace kanal::e2e
