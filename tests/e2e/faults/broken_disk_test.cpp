// File operations of the daemon that fail: syncs, writes, reads, names, and RocksDB's alone. What
// fails is told with KAFKA_STORAGE_ERROR and stays so where nobody knows what reached the disk;
// all else goes on; after a restart everything acknowledged is there.
#include <gtest/gtest.h>

#include <cerrno>

#include "../crash/reading.hpp"
#include "disk_world.hpp"

namespace kanal::e2e {
namespace {

constexpr auto kFine = RD_KAFKA_RESP_ERR_NO_ERROR;
constexpr auto kStorage = RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR;

class BrokenDisk : public DiskWorld {
 protected:
  BrokenDisk() : faults_(FAULT_LIBRARY, broker_.scratch() / "faults") {}
  void SetUp() override {
    broker_.start();
    Admin admin(broker_.address());
    for (const std::string topic : {"bad", "good"})
      ASSERT_TRUE(admin.create({topic, 1, {{"segment.bytes", "1048576"}}}).ok());
    ASSERT_TRUE(admin.create({"synced", 1, {{"flush.messages", "1"}}}).ok());
    for (const std::string topic : {"bad", "good", "synced"})
      for (int i = 0; i < 10; ++i) ASSERT_EQ(produce(topic), kFine) << topic;
  }
  void TearDown() override {
    faults_.clear();
    if (broker_.running()) broker_.kill9();
  }
  static std::string log_of(const std::string& topic) {
    return "*/channels/kafka." + topic + "/*.log";
  }
  void restart() {
    faults_.clear();
    broker_.kill9();
    broker_.start();
    EXPECT_EQ(broker_.start_figure("broken"), 0);
  }
  void expect_good() {
    EXPECT_EQ(produce("good"), kFine);
    EXPECT_GT(read("good").size(), 10U);
  }

  FaultControl faults_;
};

TEST_F(BrokenDisk, AFailedSyncIsFinalForThatLogAndForNoOther) {
  // Its own files alone: all logs are synced in the background, once a second.
  faults_.set({{.operations = "sync", .pattern = "*/channels/kafka.synced/*"}});
  EXPECT_EQ(produce("synced"), kStorage);
  EXPECT_GE(faults_.strikes(), 1U);
  EXPECT_EQ(produce("good"), kFine);
  faults_.clear();
  EXPECT_EQ(produce("synced"), kStorage) << "a later sync says nothing about what was lost";
  EXPECT_EQ(read("synced").size(), 10U) << "only what was synced is shown";
  EXPECT_GE(broker_.log_lines("failed").size(), 1U);
  expect_good();
  restart();
  EXPECT_GE(read("synced").size(), 10U);
  EXPECT_EQ(produce("synced"), kFine);
}

TEST_F(BrokenDisk, AFailedWriteIsFinalForThatLogAndForNoOther) {
  faults_.set({{.operations = "write", .pattern = log_of("bad"), .times = 1, .take = 40}});
  EXPECT_EQ(produce("bad"), kStorage);
  EXPECT_GE(faults_.strikes(), 1U);
  faults_.clear();
  EXPECT_EQ(produce("bad"), kStorage);
  EXPECT_EQ(read("bad").size(), 10U);
  expect_good();
  restart();
  EXPECT_EQ(read("bad").size(), 10U) << "the torn bytes are cut";
  EXPECT_EQ(produce("bad"), kFine);
}

TEST_F(BrokenDisk, AFailedReadFailsThatFetchAndNothingElse) {
  restart();  // or what was just written is taken from memory
  faults_.set({{.operations = "read", .pattern = log_of("bad")}});
  EXPECT_EQ(fetch_error("bad"), kStorage);
  EXPECT_GE(faults_.strikes(), 1U);
  expect_good();
  EXPECT_EQ(produce("bad"), kFine) << "a bad read says nothing about writes";
  faults_.clear();
  EXPECT_EQ(read("bad").size(), 11U);
}

TEST_F(BrokenDisk, AWriteThatFindsNoRoomLeavesNothingAndIsTriedAgain) {
  faults_.set({{.operations = "write,allocate",
                .error = ENOSPC,
                .pattern = log_of("bad"),
                .times = 2,
                .take = 40}});
  EXPECT_EQ(produce("bad"), kStorage);
  EXPECT_TRUE(taken_before_long("bad"));
  EXPECT_TRUE(taken_before_long("good"));
  EXPECT_EQ(read("bad").size(), 11U);
  EXPECT_GE(broker_.log_lines("The disk is full").size(), 1U);
  broker_.kill9();
  broker_.start();
  EXPECT_EQ(broker_.start_figure("cut_bytes"), 0) << "cut back when it failed";
  EXPECT_EQ(read("bad").size(), 11U);
}

TEST_F(BrokenDisk, NoRoomForALoadIsMadeUpForOnceThereIsSome) {
  broker_.kill9();
  broker_.set("storage.reserve.bytes=0");  // each append tries for itself
  broker_.start();
  Load exactly(broker_.address(), {1, "good", 1, Promise::kExactlyOnce});
  Load at_least(broker_.address(), {2, "good", 1, Promise::kAtLeastOnce, true});
  for (int i = 0; i < 4; ++i) {
    const std::size_t goal = exactly.acknowledged() + 50;
    ASSERT_TRUE(before_long([&] { return exactly.acknowledged() >= goal; }));
    faults_.set({{.operations = "write",
                  .error = i % 2 == 0 ? ENOSPC : EDQUOT,
                  .pattern = log_of("good"),
                  .after = i,
                  .times = 20,
                  .take = 50 * i}});
    ASSERT_TRUE(before_long([&] { return faults_.strikes() > 0; }));
  }
  faults_.clear();
  exactly.finish();
  at_least.finish();
  std::size_t own = 0;
  for (const Record& record : read("good")) {
    const LoadNumber number = parse_load_value(record.value.value_or(""));
    if (number.id != 1) continue;
    EXPECT_EQ(number.n, own) << "in order, once";
    ++own;
  }
  EXPECT_EQ(own, exactly.sent()[0].size());
}

// What a roll needs: a new file. Also names that cannot be changed, side files that find no room.
TEST_F(BrokenDisk, ARollThatFailsIsTriedAgain) {
  for (int i = 0; i < 10; ++i) ASSERT_EQ(produce("bad", 100'000), kFine);
  faults_.set({{.operations = "open", .error = ENOSPC, .pattern = log_of("bad")}});
  EXPECT_EQ(produce("bad", 900'000), kStorage);
  EXPECT_TRUE(taken_before_long("good"));
  faults_.set({{.operations = "open,write", .error = ENOSPC, .pattern = "*/kafka.bad/*.kindex"}});
  EXPECT_TRUE(before_long([&] { return produce("bad", 900'000) == kFine; }));
  EXPECT_TRUE(before_long([&] { return faults_.strikes() > 0; }));
  EXPECT_TRUE(taken_before_long("bad"));
  faults_.clear();
  EXPECT_EQ(read("bad").size(), 22U);
  restart();
  EXPECT_EQ(read("bad").size(), 22U);
}

TEST_F(BrokenDisk, ATrimThatFindsNoRoomIsRefusedAndDoneLater) {
  Admin admin(broker_.address());
  faults_.set({{.operations = "write,open,rename", .error = ENOSPC, .pattern = "*/kafka.bad/c*"}});
  EXPECT_THROW((void)admin.delete_records("bad", 0, 5), std::runtime_error);
  faults_.clear();
  EXPECT_EQ(admin.delete_records("bad", 0, 5), 5);
  EXPECT_TRUE(taken_before_long("bad"));
  EXPECT_EQ(read("bad", 0, 5).size(), 6U);
}

TEST_F(BrokenDisk, ARocksDbWithoutRoomMendsItself) {
  std::int64_t offset = 3;
  std::size_t records = 10;
  ASSERT_EQ(commit("g", "good", offset), kFine);
  for (const int error : {ENOSPC, EDQUOT}) {
    const std::string name = std::to_string(error);
    SCOPED_TRACE("errno " + name);
    faults_.set({{.operations = "write,allocate,open", .error = error, .pattern = "*/reserved/*"}});
    Admin admin(broker_.address());
    EXPECT_EQ(admin.create({"not-now-" + name}).code, kStorage);
    EXPECT_NE(commit("g", "good", ++offset), kFine);
    EXPECT_EQ(read("good").size(), records++);
    faults_.clear();
    EXPECT_TRUE(commits_before_long("g", "good", ++offset));
    EXPECT_TRUE(before_long([&] { return admin.create({"now-" + name}).ok(); }));
    EXPECT_TRUE(taken_before_long("good")) << "the reserve is back";
    restart();
    EXPECT_EQ(committed("g", "good"), offset);
    const auto topics = Admin(broker_.address()).metadata().topics;
    EXPECT_TRUE(topics.contains("now-" + name));
    EXPECT_FALSE(topics.contains("not-now-" + name));
  }
}

TEST_F(BrokenDisk, ARocksDbThatFailsForGoodStopsChangesAndCommitsButNoRecords) {
  ASSERT_EQ(commit("g", "good", 3), kFine);
  faults_.set({{.operations = "write,sync", .pattern = "*/reserved/*"}});
  Admin admin(broker_.address());
  EXPECT_EQ(admin.create({"never"}).code, kStorage);
  EXPECT_NE(commit("g", "good", 4), kFine);
  faults_.clear();
  EXPECT_EQ(admin.create({"never"}).code, kStorage) << "nobody knows what reached the disk";
  expect_good();
  EXPECT_EQ(produce("synced"), kFine);
  restart();
  const std::int64_t found = committed("g", "good");
  EXPECT_TRUE(found == 3 || found == 4) << found;
  EXPECT_EQ(commit("g", "good", 6), kFine);
  EXPECT_TRUE(Admin(broker_.address()).create({"at-last"}).ok());
}

TEST_F(BrokenDisk, AFailedReadOfTheStartLeavesThatPartitionClosedAndOpensTheOthers) {
  broker_.kill9();
  faults_.set({{.operations = "read", .pattern = log_of("bad")}});
  broker_.start();
  EXPECT_EQ(broker_.start_figure("broken"), 1);
  EXPECT_EQ(produce("bad"), kStorage);
  expect_good();
  restart();
  EXPECT_EQ(read("bad").size(), 10U);
}

}  // namespace
}  // namespace kanal::e2e
