#include "kanal/broker/partition.hpp"

#include <gtest/gtest.h>

#include "kanal/broker/broker.hpp"
#include "unit/log/transactional.hpp"
#include "unit/log/world.hpp"

namespace kanal::broker {
namespace {

using log::test::BatchSpec;
using log::test::World;

struct PartitionTest : testing::Test {
  World world;
  log::test::HandClock clock;
  IoThread io{clock, 0};

  std::shared_ptr<Partition> open() {
    return std::make_shared<Partition>(world.id(), ChannelHandle(0), world.open());
  }
  Result<log::AppendResult> append(Partition& partition, const BatchSpec& spec = {}) {
    Buffer bytes = log::test::make_batch(spec);
    records::CheckedBatch batch;
    batch.bytes = bytes;
    batch.header = records::parse_header(bytes).value();
    AppendNews news;
    auto appended = partition.append(batch, Timestamp(1000), news);
    dirty = news.became_dirty;
    return appended;
  }
  Result<log::AppendResult> append(Partition& partition, const log::test::TxnBatch& spec) {
    Buffer bytes = log::test::encode(spec);
    records::CheckedBatch batch;
    batch.bytes = bytes;
    batch.header = records::parse_header(bytes).value();
    AppendNews news;
    return partition.append(batch, Timestamp(1000), news);
  }
  Result<log::AppendResult> finish(Partition& partition, const log::test::End& end) {
    AppendNews news;
    return partition.append_marker(marker_of(end), Timestamp(1000), news);
  }
  /// The same of what is stable.
  std::shared_ptr<FetchWait> park_committed(Partition& partition, std::int64_t bytes) {
    auto wait = std::make_shared<FetchWait>(io, bytes);
    std::vector<log::Slice> none;
    const auto end = partition.with_log([](log::Partition& log) { return log.watermarks(); });
    EXPECT_TRUE(partition.read(end->last_stable, {1 << 20, true, true}, none, wait.get()));
    return wait;
  }
  /// A fetch at the end that wants `bytes`, parked.
  std::shared_ptr<FetchWait> park(Partition& partition, std::int64_t bytes) {
    auto wait = std::make_shared<FetchWait>(io, bytes);
    std::vector<log::Slice> none;
    const auto end = partition.with_log([](log::Partition& log) { return log.watermarks(); });
    EXPECT_TRUE(partition.read(end->high_watermark, {1 << 20, true, false}, none, wait.get()));
    return wait;
  }
  bool woken(FetchWait& wait) {
    while (io.poll()) {
    }
    return wait.event().fired();
  }
  bool dirty = false;
};

TEST_F(PartitionTest, AnAppendWakesAFetchOnceItsBytesAreThere) {
  const auto partition = open();
  ASSERT_TRUE(append(*partition));
  const auto size = static_cast<std::int64_t>(log::test::make_batch({}).size());
  const auto one = park(*partition, 1);
  const auto two = park(*partition, size + 1);
  ASSERT_TRUE(append(*partition));
  EXPECT_TRUE(woken(*one));
  EXPECT_FALSE(woken(*two)) << "it wants more than one batch";
  ASSERT_TRUE(append(*partition));
  EXPECT_TRUE(woken(*two));
}

TEST_F(PartitionTest, WhoReadsCommittedIsWokenWhenTheLastStableOffsetMovesNotByWhatIsAboveIt) {
  const auto partition = open();
  const auto stable = park_committed(*partition, 1);
  ASSERT_TRUE(append(*partition, log::test::TxnBatch{.producer = 1}));
  ASSERT_TRUE(append(*partition));
  ASSERT_TRUE(append(*partition, log::test::TxnBatch{.producer = 2}));
  EXPECT_FALSE(woken(*stable));
  ASSERT_TRUE(finish(*partition, {.producer = 2, .commit = true}));
  EXPECT_FALSE(woken(*stable)) << "the first one is open yet";
  ASSERT_TRUE(finish(*partition, {.producer = 1, .commit = false}));
  EXPECT_TRUE(woken(*stable));
}

TEST_F(PartitionTest, WithoutTransactionsWhoReadsCommittedWaitsForItsBytesLikeOthers) {
  const auto partition = open();
  const auto size = static_cast<std::int64_t>(log::test::make_batch({}).size());
  const auto one = park_committed(*partition, 1);
  const auto two = park_committed(*partition, size + 1);
  ASSERT_TRUE(append(*partition));
  EXPECT_TRUE(woken(*one));
  EXPECT_FALSE(woken(*two));
  ASSERT_TRUE(append(*partition));
  EXPECT_TRUE(woken(*two));
}

TEST_F(PartitionTest, AReadOfWhatIsCommittedSaysWhatOfItWasAborted) {
  const auto partition = open();
  ASSERT_TRUE(append(*partition, log::test::TxnBatch{.producer = 1}));
  ASSERT_TRUE(finish(*partition, {.producer = 1, .commit = false}));
  std::vector<log::Slice> slices;
  const auto committed = partition->read(Offset(0), {1 << 20, true, true}, slices, nullptr);
  ASSERT_TRUE(committed);
  ASSERT_EQ(committed->aborted.size(), 1U);
  EXPECT_EQ(committed->aborted[0].producer, ProducerId(1));
  const auto all = partition->read(Offset(0), {1 << 20, true, false}, slices, nullptr);
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->aborted.empty());
}

TEST_F(PartitionTest, AFetchThatLeftIsNotWoken) {
  const auto partition = open();
  const auto wait = park(*partition, 1);
  wait->leave();
  ASSERT_TRUE(append(*partition));
  EXPECT_FALSE(woken(*wait));
}

TEST_F(PartitionTest, DeletionWakesEverybodyAndEndsEveryUse) {
  const auto partition = open();
  const auto wait = park(*partition, 1'000'000);
  partition->mark_deleted();
  EXPECT_TRUE(woken(*wait));
  const auto appended = append(*partition);
  ASSERT_FALSE(appended);
  EXPECT_EQ(appended.error().code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
}

TEST_F(PartitionTest, ABrokenOneAnswersStorageErrorForEverything) {
  const auto partition = std::make_shared<Partition>(
      world.id(), ChannelHandle(0), Error{ErrorCode::KAFKA_STORAGE_ERROR, "damaged", 0});
  EXPECT_EQ(append(*partition).error().code, ErrorCode::KAFKA_STORAGE_ERROR);
  EXPECT_EQ(partition->check_epoch(LeaderEpoch(0)).error().code, ErrorCode::KAFKA_STORAGE_ERROR);
  EXPECT_EQ(partition->committed(Sequence(1)), Partition::Commit::kLost);
}

TEST_F(PartitionTest, OnlyTheFirstAppendAfterACheckpointMakesItDirty) {
  const auto partition = open();
  ASSERT_TRUE(append(*partition));
  EXPECT_TRUE(dirty);
  ASSERT_TRUE(append(*partition));
  EXPECT_FALSE(dirty);
  ASSERT_TRUE(partition->checkpoint());
  ASSERT_TRUE(append(*partition));
  EXPECT_TRUE(dirty);
}

TEST_F(PartitionTest, LeaderEpochsAreFencedBelowAndUnknownAbove) {
  world.epoch = 4;
  const auto partition = open();
  EXPECT_TRUE(partition->check_epoch(kNoLeaderEpoch));
  EXPECT_TRUE(partition->check_epoch(LeaderEpoch(4)));
  EXPECT_EQ(partition->check_epoch(LeaderEpoch(3)).error().code, ErrorCode::FENCED_LEADER_EPOCH);
  EXPECT_EQ(partition->check_epoch(LeaderEpoch(5)).error().code, ErrorCode::UNKNOWN_LEADER_EPOCH);
}

struct SyncedPartitionTest : PartitionTest {
  SyncedPartitionTest() { world.options.ack_after_sync = true; }
};

TEST_F(SyncedPartitionTest, StagedRecordsAreSeenByNobodyUntilTheSync) {
  const auto partition = open();
  const auto appended = append(*partition);
  ASSERT_TRUE(appended);
  EXPECT_FALSE(appended->committed);
  const auto reader = park(*partition, 1);
  std::vector<log::Slice> slices;
  const auto read = partition->read(Offset(0), {1 << 20, true, false}, slices, nullptr);
  ASSERT_TRUE(read);
  EXPECT_TRUE(slices.empty());
  EXPECT_EQ(read->watermarks.high_watermark, Offset(0));
  EXPECT_FALSE(woken(*reader));

  const auto end = partition->sync();
  ASSERT_TRUE(end);
  partition->commit(*end);
  EXPECT_TRUE(woken(*reader));
  EXPECT_EQ(Broker::outcome({partition, appended->last}), ErrorCode::NONE);
}

TEST_F(SyncedPartitionTest, WhoReadsCommittedIsWokenByTheSyncThatMovesTheLastStableOffset) {
  const auto partition = open();
  const auto stable = park_committed(*partition, 1);
  ASSERT_TRUE(append(*partition, log::test::TxnBatch{}));
  partition->commit(*partition->sync());
  EXPECT_FALSE(woken(*stable));
  ASSERT_TRUE(finish(*partition, {.commit = true}));
  EXPECT_FALSE(woken(*stable));
  partition->commit(*partition->sync());
  EXPECT_TRUE(woken(*stable));
}

TEST_F(SyncedPartitionTest, ADuplicateWaitsForItsOriginal) {
  const auto partition = open();
  BatchSpec spec;
  spec.producer = 7;
  spec.epoch = 0;
  spec.sequence = 0;
  const auto original = append(*partition, spec);
  const auto duplicate = append(*partition, spec);
  ASSERT_TRUE(original && duplicate);
  EXPECT_TRUE(duplicate->duplicate);
  EXPECT_FALSE(duplicate->committed) << "the original is not durable yet";
  EXPECT_EQ(duplicate->base_offset, original->base_offset);
  EXPECT_EQ(duplicate->last, original->last);
  const Ticket ticket{partition, duplicate->last};
  EXPECT_FALSE(Broker::is_committed({&ticket, 1}));
  partition->commit(*partition->sync());
  EXPECT_TRUE(Broker::is_committed({&ticket, 1}));
}

TEST_F(SyncedPartitionTest, RecordsOfATopicDeletedMeanwhileAreUnknownAndNotAStorageError) {
  const auto partition = open();
  const auto appended = append(*partition);
  ASSERT_TRUE(appended);
  partition->mark_deleted();
  EXPECT_EQ(Broker::outcome({partition, appended->last}), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
  const auto synced = partition->sync();
  ASSERT_FALSE(synced);
  EXPECT_EQ(synced.error().code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) << "no loss to report";
}

TEST_F(SyncedPartitionTest, LostRecordsAreAnErrorAndWakeWhoWaits) {
  const auto partition = open();
  const auto appended = append(*partition);
  ASSERT_TRUE(appended);
  const auto committer = std::make_shared<FetchWait>(io, INT64_MAX);
  partition->watch_commits(*committer);
  EXPECT_EQ(Broker::outcome({partition, appended->last}), ErrorCode::REQUEST_TIMED_OUT);
  partition->lost({ErrorCode::KAFKA_STORAGE_ERROR, "the sync failed", 0});
  EXPECT_TRUE(woken(*committer));
  EXPECT_EQ(Broker::outcome({partition, appended->last}), ErrorCode::KAFKA_STORAGE_ERROR);
  EXPECT_FALSE(append(*partition)) << "final";
}

}  // namespace
}  // namespace kanal::broker
