// The ends of transactions as the broker writes them: synced, seen and let through as records are,
// and on a full disk better than they.
#include "group_world.hpp"

#include "unit/log/transactional.hpp"

namespace kanal::broker::test {
namespace {

using Disk = kanal::test::MemoryFileSystem;
using log::test::End;
using log::test::marker_of;
using log::test::TxnBatch;

class MarkersTest : public GroupWorld {
 protected:
  Result<log::AppendResult> write(const TxnBatch& batch) {
    auto appended = GroupWorld::append("t", 0, log::test::encode(batch));
    settle();
    return appended;
  }
  Result<log::AppendResult> finish(const End& end) {
    auto appended = Broker::Together(*broker).append_marker(partition("t"), marker_of(end));
    settle();
    return appended;
  }
  log::Watermarks marks() {
    return partition("t")->with_log([](log::Partition& log) { return log.watermarks(); }).value();
  }
  std::uint64_t syncs() {
    settle();
    return files.take_count(Disk::kSync);
  }
};

TEST_F(MarkersTest, OneEndsTheTransactionAndIsSyncedWithinASecond) {
  create("t");
  ASSERT_TRUE(write({}));
  ASSERT_TRUE(finish({.commit = false}));
  ASSERT_TRUE(write({.sequence = 1}));
  EXPECT_EQ(marks().last_stable, Offset(2));
  pass(2s);
  (void)syncs();
  const auto ended = finish({.commit = true});
  ASSERT_TRUE(ended) << ended.error().detail;
  EXPECT_EQ(ended->base_offset, Offset(3));
  EXPECT_EQ(marks().last_stable, Offset(4));
  EXPECT_EQ(syncs(), 0U) << "it waits for nothing";
  pass(1100ms);
  EXPECT_EQ(syncs(), 1U);
  pass(10s);
  EXPECT_EQ(syncs(), 0U);
}

TEST_F(MarkersTest, WithAcksAfterSyncItIsSeenOnceItIsSynced) {
  create("t", 1, {{"flush.messages", "1"}});
  ASSERT_TRUE(write({}));
  {
    Broker::Together request(*broker);
    const auto ended = request.append_marker(partition("t"), marker_of({.commit = true}));
    ASSERT_TRUE(ended);
    EXPECT_FALSE(ended->committed);
    const Ticket ticket{partition("t"), ended->last};
    EXPECT_FALSE(Broker::is_committed({&ticket, 1}));
    EXPECT_EQ(marks().last_stable, Offset(0));
  }
  settle();
  EXPECT_EQ(marks().last_stable, Offset(2));
}

TEST_F(MarkersTest, ItGoesIntoTheNextCheckpoint) {
  create("t");
  ASSERT_TRUE(write({}));
  ASSERT_TRUE(partition("t")->checkpoint());
  ASSERT_TRUE(finish({.commit = false}));
  kill();
  EXPECT_EQ(marks().last_stable, Offset(2));
  stop();
  start();
  EXPECT_EQ(marks().last_stable, Offset(2));
  const auto aborted =
      partition("t")->with_log([](log::Partition& log) { return log::test::aborted_in(log); });
  ASSERT_EQ(aborted->size(), 1U);
}

TEST_F(MarkersTest, AFullDiskRefusesRecordsButLetsMarkersThrough) {
  stop();
  files.set_capacity(1 << 20);
  reserve = 64 << 10;
  start();
  create("t");
  pass(2s);
  std::int32_t sequence = 0;
  TxnBatch batch;
  batch.value = std::string(1000, 'x');
  for (; sequence < 10'000; ++sequence) {
    batch.sequence = sequence;
    if (!write(batch)) break;
  }
  ASSERT_LT(sequence, 10'000);
  pass(1s);
  batch.sequence = sequence;
  EXPECT_EQ(write(batch).error().code, ErrorCode::KAFKA_STORAGE_ERROR);
  const auto ended = finish({.commit = false});
  ASSERT_TRUE(ended) << ended.error().detail;
  EXPECT_EQ(marks().last_stable, marks().high_watermark);
}

TEST_F(MarkersTest, OneThatMeetsAFullDiskIsWrittenTheNextTime) {
  stop();
  files.set_capacity(1 << 20);
  reserve = 64 << 10;
  start();
  create("t");
  pass(2s);
  ASSERT_TRUE(write({}));
  files.set_content("/others", Buffer(files.space("/data")->usable_bytes));
  const auto met = finish({.commit = true});
  if (!met) {
    EXPECT_EQ(met.error().code, ErrorCode::KAFKA_STORAGE_ERROR);
    const auto again = finish({.commit = true});
    ASSERT_TRUE(again) << again.error().detail;
  }
  EXPECT_EQ(marks().last_stable, Offset(2));
  EXPECT_FALSE(write({.epoch = 1}));
}

// As Kafka's, whose own compaction and ListOffsets go by that bit.
TEST_F(MarkersTest, ItSaysThatItHasTheTimeOfItsAppendWhereTheTopicsBatchesDo) {
  create("t", 1, {{"message.timestamp.type", "LogAppendTime"}});
  ASSERT_TRUE(finish({}));
  configure("t", "message.timestamp.type", "CreateTime");
  ASSERT_TRUE(finish({}));
  std::vector<log::Slice> slices;
  ASSERT_TRUE(partition("t")->read(Offset(0), {1 << 20, true, false}, slices, nullptr));
  const Buffer bytes = log::test::bytes_of(slices);
  const auto first = records::parse_header(bytes).value();
  const auto second = records::parse_header(Bytes(bytes).subspan(first.size())).value();
  EXPECT_TRUE(first.log_append_time());
  EXPECT_EQ(first.max_timestamp, clock.wall());
  EXPECT_TRUE(records::verify_crc(Bytes(bytes).first(first.size())));
  EXPECT_FALSE(second.log_append_time());
}

TEST_F(MarkersTest, AMarkerForADeletedTopicIsUnknown) {
  create("t");
  const auto held = partition("t");
  remove("t");
  const auto ended = Broker::Together(*broker).append_marker(held, marker_of({}));
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
}

}  // namespace
}  // namespace kanal::broker::test
