// When the broker syncs, and how many share it: in the background, and for who waits.
#include "group_world.hpp"

#include "unit/log/world.hpp"

namespace kanal::broker::test {
namespace {

using Disk = kanal::test::MemoryFileSystem;
using log::test::BatchSpec;

class SyncsTest : public GroupWorld {
 protected:
  log::AppendResult append(const std::string& topic, int index = 0, const BatchSpec& spec = {}) {
    const auto appended = GroupWorld::append(topic, index, log::test::make_batch(spec),
                                             request ? &*request : nullptr);
    EXPECT_TRUE(appended) << appended.error().detail;
    return *appended;
  }
  Offset shown(const std::string& topic, int index = 0) {
    return partition(topic, index)
        ->with_log([](log::Partition& log) { return log.watermarks().high_watermark; })
        .value();
  }
  std::uint64_t syncs() {
    settle();
    return files.take_count(Disk::kSync);
  }

  std::optional<Broker::Together> request;  // that is being staged
};

TEST_F(SyncsTest, WhatIsWrittenIsSyncedWithinASecondAndThenNoMore) {
  create("t", 3);
  (void)syncs();
  append("t", 0);
  append("t", 0);
  append("t", 2);
  EXPECT_EQ(syncs(), 0U) << "an append waits for nothing";
  pass(1100ms);
  EXPECT_GE(syncs(), 2U);
  pass(10s);
  EXPECT_EQ(syncs(), 0U) << "what is not written costs nothing";
  append("t", 0);
  pass(1100ms);
  EXPECT_EQ(syncs(), 1U);
}

TEST_F(SyncsTest, ManyDirtyPartitionsAreAllSynced) {
  create("t", 200);
  for (int i = 0; i < 200; ++i) append("t", i);
  (void)files.take_count(Disk::kAll);
  pass(1100ms);
  EXPECT_GE(syncs(), 200U);
  pass(10s);
  EXPECT_EQ(syncs(), 0U);
}

TEST_F(SyncsTest, FlushMessagesSyncsInTheBackgroundAfterSoMany) {
  create("t", 1, {{"flush.messages", "3"}});
  (void)syncs();
  append("t");
  EXPECT_EQ(syncs(), 0U);
  const auto appended = append("t", 0, {.records = 2});
  EXPECT_TRUE(appended.committed) << "nobody waits for it";
  EXPECT_GE(syncs(), 1U);
  append("t");
  append("t");
  EXPECT_EQ(syncs(), 0U);
  append("t");
  EXPECT_EQ(syncs(), 1U);
}

TEST_F(SyncsTest, ASyncByCountLeavesNothingBehindThatComesAfterIt) {
  create("t", 1, {{"flush.messages", "3"}});
  append("t", 0, {.records = 3});
  EXPECT_GE(syncs(), 1U);
  pass(500ms);
  append("t");
  EXPECT_EQ(syncs(), 0U);
  pass(1100ms);
  EXPECT_EQ(syncs(), 1U);
  pass(10s);
  EXPECT_EQ(syncs(), 0U);
}

TEST_F(SyncsTest, WithoutFileHandlesABackgroundSyncIsTriedAgain) {
  create("t", 1);
  append("t");
  files.fail({.kinds = Disk::kSyncDirectory, .error = EMFILE});
  pass(1100ms);
  EXPECT_TRUE(files.fault_fired());
  (void)files.take_count(Disk::kSyncDirectory);
  pass(1100ms);
  settle();
  EXPECT_GE(files.take_count(Disk::kSyncDirectory), 1U);
  append("t");
}

TEST_F(SyncsTest, FlushMsSyncsSoonerAndActsLive) {
  create("t", 1);
  append("t");
  pass(2s);
  (void)syncs();
  configure("t", "flush.ms", "100");
  (void)syncs();
  append("t");
  pass(90ms);
  EXPECT_EQ(syncs(), 0U);
  pass(20ms);
  EXPECT_EQ(syncs(), 1U);
  configure("t", "flush.ms", "60000");
  (void)syncs();
  append("t");
  pass(900ms);
  EXPECT_EQ(syncs(), 0U);
  pass(200ms);
  EXPECT_EQ(syncs(), 1U) << "no longer than without it";
}

TEST_F(SyncsTest, SixtyFourMebibytesAreNotLeftUnsynced) {
  create("t", 2);
  (void)syncs();
  append("t", 1);
  BatchSpec large{.value = std::string(1 << 20, 'x')};
  for (int i = 0; i < 63; ++i) append("t", 0, large);
  EXPECT_EQ(syncs(), 0U);
  append("t", 0, large);
  EXPECT_GE(syncs(), 2U);
}

TEST_F(SyncsTest, AFailedSyncInTheBackgroundEndsThatLogOnly) {
  create("t", 2);
  append("t", 0);
  pass(1100ms);
  append("t", 0);
  files.fail({.kinds = Disk::kSync});
  pass(1100ms);
  const auto refused = GroupWorld::append("t", 0, log::test::make_batch({}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::KAFKA_STORAGE_ERROR);
  append("t", 1);
  EXPECT_EQ(shown("t", 0), Offset(2)) << "reads go on";
  kill();  // a stop would not be a clean one
}

TEST_F(SyncsTest, PartitionsOfOneRequestShareOneSync) {
  create("t", 10, {{"flush.messages", "1"}});
  for (int round = 0; round < 2; ++round) {  // makes the journal
    for (int i = 0; i < 10; ++i) append("t", i);
    settle();
  }
  request.emplace(*broker);
  for (int i = 0; i < 10; ++i) append("t", i);
  request.reset();
  (void)syncs();
  request.emplace(*broker);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(append("t", i).committed);
  settle();
  EXPECT_EQ(shown("t", 3), Offset(3));
  EXPECT_EQ(syncs(), 0U) << "the request is not staged yet";
  request.reset();
  EXPECT_EQ(syncs(), 1U);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(shown("t", i), Offset(4));
  pass(10s);
  EXPECT_EQ(syncs(), 0U) << "the background leaves them alone";
}

TEST_F(SyncsTest, WhatBecomesDirtyDuringASyncSharesTheNext) {
  create("t", 10, {{"flush.messages", "1"}});
  for (int round = 0; round < 3; ++round) {
    request.emplace(*broker);
    for (int i = 0; i < 10; ++i) append("t", i);
    request.reset();
  }
  settle();
  (void)syncs();
  helpers.paused = true;  // the first sync is about to begin
  append("t", 0);
  for (int i = 0; i < 10; ++i) append("t", i);
  helpers.paused = false;
  EXPECT_LE(syncs(), 2U);
  EXPECT_EQ(shown("t", 0), Offset(5));
  EXPECT_EQ(shown("t", 9), Offset(4));
}

TEST_F(SyncsTest, ADeletedTopicsUnsyncedRecordsHoldUpNobody) {
  create("t", 4, {{"flush.messages", "1"}});
  create("u", 4, {{"flush.messages", "1"}});
  helpers.paused = true;
  for (int i = 0; i < 4; ++i) {
    append("t", i);
    append("u", i);
  }
  partition("t", 0)->mark_deleted();
  helpers.paused = false;
  settle();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(shown("u", i), Offset(1));
}

TEST_F(SyncsTest, TheReservedChannelsAreSyncedWhereTheWholeBrokerAcknowledgesAfterSync) {
  const auto answered_at_once = [&] {
    Context context{
        .broker = *broker, .io = *threads[0], .peer = peer, .client_id = {}, .slices = {}};
    bool done = false;
    auto asking = [](Context& asks, bool& ended) -> Task<void> {
      const auto synced = co_await asks.broker.reserved_synced(asks);
      EXPECT_TRUE(synced);
      ended = true;
    };
    helpers.paused = true;
    run(asking(context, done), *threads[0]);
    const bool at_once = done;
    helpers.paused = false;
    settle();
    EXPECT_TRUE(done);
    return at_once;
  };
  EXPECT_TRUE(answered_at_once());
  restart_with({{"log.flush.interval.messages", "1"}});
  EXPECT_FALSE(answered_at_once());
}

}  // namespace
}  // namespace kanal::broker::test
