#include "world.hpp"

namespace kanal::log::test {
namespace {

using Offsets = std::vector<std::int64_t>;

TEST(Partition, AssignsDenseOffsetsAndReadsThemBack) {
  World world;
  auto partition = world.open();
  EXPECT_EQ(world.append(*partition, {.records = 3})->base_offset, Offset(0));
  EXPECT_EQ(world.append(*partition, {.records = 1})->base_offset, Offset(3));
  const auto third = world.append(*partition, {.records = 2});
  EXPECT_EQ(third->base_offset, Offset(4));
  EXPECT_EQ(third->last, Sequence(6));
  EXPECT_TRUE(third->committed);
  EXPECT_EQ(partition->watermarks().high_watermark, Offset(6));
  const Read all = read(world, *partition, 0);
  EXPECT_EQ(all.offsets, (Offsets{0, 3, 4}));
  EXPECT_EQ(all.next, 6);
  EXPECT_EQ(read(world, *partition, 1).offsets, (Offsets{0, 3, 4}));  // the batch that holds it
  EXPECT_EQ(read(world, *partition, 3).offsets, (Offsets{3, 4}));
  EXPECT_EQ(read(world, *partition, 5).offsets, (Offsets{4}));
  EXPECT_TRUE(read(world, *partition, 6).offsets.empty());
}

TEST(Partition, StampsTheLeaderEpochAndKeepsTheChecksum) {
  World world;
  world.epoch = 12;
  auto partition = world.open();
  ASSERT_TRUE(world.append(*partition));
  std::vector<Slice> slices;
  ASSERT_TRUE(partition->read(Offset(0), {1000, true, false}, slices));
  const Buffer bytes = bytes_of(slices);
  EXPECT_EQ(records::parse_header(bytes)->leader_epoch, LeaderEpoch(12));
  EXPECT_TRUE(records::verify_crc(bytes));
}

TEST(Partition, ReadsOutsideTheLogAreOutOfRange) {
  World world;
  auto partition = world.open();
  EXPECT_EQ(read(world, *partition, 0).error, ErrorCode::NONE);
  EXPECT_EQ(read(world, *partition, 1).error, ErrorCode::OFFSET_OUT_OF_RANGE);
  EXPECT_EQ(read(world, *partition, -1).error, ErrorCode::OFFSET_OUT_OF_RANGE);
  ASSERT_TRUE(world.append(*partition, {.records = 10}));
  EXPECT_EQ(read(world, *partition, 10).error, ErrorCode::NONE);
  EXPECT_EQ(read(world, *partition, 11).error, ErrorCode::OFFSET_OUT_OF_RANGE);
  ASSERT_TRUE(partition->trim(Offset(4)));
  EXPECT_EQ(read(world, *partition, 3).error, ErrorCode::OFFSET_OUT_OF_RANGE);
  EXPECT_EQ(read(world, *partition, 4).offsets, (Offsets{0}));  // whole batches
}

TEST(Partition, AnEmptyPartitionTouchesNoDisk) {
  World world;
  world.disk.take_count(kanal::test::MemoryFileSystem::kAll);
  std::vector<std::unique_ptr<Partition>> partitions;
  for (int i = 0; i < 100; ++i) partitions.push_back(world.open("t", i));
  EXPECT_EQ(world.disk.take_count(kanal::test::MemoryFileSystem::kChanges), 0U);
  EXPECT_TRUE(world.disk.files().empty());
}

TEST(Partition, MaxBytesGivesWholeBatchesAndTheFirstOneAlways) {
  World world;
  auto partition = world.open();
  const std::size_t size = make_batch({}).size();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(world.append(*partition));
  const auto bytes = static_cast<std::uint32_t>(size);
  EXPECT_EQ(read(world, *partition, 0, bytes).offsets, (Offsets{0}));
  EXPECT_EQ(read(world, *partition, 0, bytes - 1).offsets, (Offsets{0}));
  EXPECT_TRUE(read(world, *partition, 0, bytes - 1, false).offsets.empty());
  EXPECT_EQ(read(world, *partition, 0, 3 * bytes).offsets, (Offsets{0, 1, 2}));
  EXPECT_EQ(read(world, *partition, 0, 4 * bytes - 1).offsets, (Offsets{0, 1, 2}));
  EXPECT_EQ(read(world, *partition, 8, 4 * bytes).offsets, (Offsets{8, 9}));
  EXPECT_EQ(read(world, *partition, 0, 0).offsets, (Offsets{0}));
  EXPECT_TRUE(read(world, *partition, 0, 0, false).offsets.empty());
}

TEST(Partition, LargeBatchesComeInSlicesOfAMegabyte) {
  World world;
  auto partition = world.open();
  ASSERT_TRUE(world.append(*partition, {.value = std::string(5 << 20, 'x')}));
  std::vector<Slice> slices;
  const auto fetched = partition->read(Offset(0), {1, true, false}, slices);
  ASSERT_TRUE(fetched);
  EXPECT_GE(slices.size(), 5U);
  for (const Slice& slice : slices) EXPECT_LE(length_of(slice), 1U << 20);
  EXPECT_EQ(offsets_in(bytes_of(slices)), (Offsets{0}));
}

TEST(Partition, ABatchLargerThanASegmentIsRefused) {
  World world;
  world.options.segment_bytes = 1000;
  auto partition = world.open();
  EXPECT_EQ(world.append(*partition, {.value = std::string(1000, 'x')}).error().code,
            ErrorCode::RECORD_LIST_TOO_LARGE);
  EXPECT_TRUE(world.append(*partition, {.value = std::string(500, 'x')}));
}

TEST(Partition, ShowsTheAppendTimeOfLogAppendTimeBatchesOnly) {
  World world;
  auto partition = world.open();
  EXPECT_EQ(world.append(*partition, {.timestamp = 5})->log_append_time, kNoTimestamp);
  EXPECT_EQ(world.append(*partition, {.timestamp = 77, .log_append_time = true})->log_append_time,
            Timestamp(77));
}

TEST(Partition, AcksAfterSyncShowNothingBeforeTheSync) {
  World world;
  world.options.ack_after_sync = true;
  auto partition = world.open();
  const auto staged = world.append(*partition, {.records = 2});
  ASSERT_TRUE(staged);
  EXPECT_FALSE(staged->committed);
  EXPECT_EQ(partition->watermarks().high_watermark, Offset(0));
  EXPECT_EQ(partition->watermarks().staged_end, Offset(2));
  EXPECT_TRUE(read(world, *partition, 0).offsets.empty());
  EXPECT_EQ(read(world, *partition, 1).error, ErrorCode::NONE);
  const auto end = partition->log().sync();
  ASSERT_TRUE(end);
  EXPECT_EQ(*end, Sequence(3));
  EXPECT_TRUE(partition->commit(*end));
  EXPECT_FALSE(partition->commit(*end));
  EXPECT_EQ(partition->watermarks().high_watermark, Offset(2));
  EXPECT_EQ(read(world, *partition, 0).offsets, (Offsets{0}));
  // A read never goes past the high watermark, wherever it begins.
  ASSERT_TRUE(world.append(*partition, {.records = 2}));
  EXPECT_EQ(read(world, *partition, 0).offsets, (Offsets{0}));
  EXPECT_EQ(read(world, *partition, 0).next, 2);
}

TEST(Partition, ADuplicateOfAStagedBatchWaitsForTheOriginal) {
  World world;
  world.options.ack_after_sync = true;
  auto partition = world.open();
  const BatchSpec batch{.records = 2, .producer = 9, .epoch = 0, .sequence = 0};
  const auto original = world.append(*partition, batch);
  const auto again = world.append(*partition, batch);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->duplicate);
  EXPECT_FALSE(again->committed);
  EXPECT_EQ(again->base_offset, original->base_offset);
  EXPECT_EQ(again->last, original->last);
  partition->commit(partition->log().sync().value());
  EXPECT_TRUE(world.append(*partition, batch)->committed);
  EXPECT_EQ(partition->watermarks().staged_end, Offset(2));
}

TEST(Partition, SwitchingAcksAfterSyncOffWaitsForWhatIsStaged) {
  World world;
  world.options.ack_after_sync = true;
  auto partition = world.open();
  ASSERT_TRUE(world.append(*partition));
  world.options.ack_after_sync = false;
  partition->configure(world.options);
  EXPECT_FALSE(world.append(*partition)->committed);
  partition->commit(partition->log().sync().value());
  EXPECT_TRUE(world.append(*partition)->committed);
  EXPECT_EQ(partition->watermarks().high_watermark, Offset(3));
}

TEST(Partition, LostIsFinal) {
  World world;
  auto partition = world.open();
  ASSERT_TRUE(world.append(*partition));
  partition->lost({ErrorCode::UNKNOWN_SERVER_ERROR, "sealed by another", 0});
  EXPECT_EQ(world.append(*partition).error().code, ErrorCode::NOT_LEADER_OR_FOLLOWER);
  auto other = world.open("u");
  other->lost({ErrorCode::KAFKA_STORAGE_ERROR, "disk", 5});
  EXPECT_EQ(world.append(*other).error().code, ErrorCode::KAFKA_STORAGE_ERROR);
  EXPECT_FALSE(other->commit(Sequence(5)));
}

TEST(Partition, ReopensWithEverything) {
  for (const bool clean : {true, false}) {
    World world;
    auto partition = world.open();
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(world.append(
          *partition,
          {.records = 2, .timestamp = 100 + i, .producer = 3, .epoch = 1, .sequence = 2 * i}));
    }
    if (clean) world.stop({partition.get()});
    partition.reset();
    world.kill();
    partition = world.open();
    EXPECT_EQ(world.report.scanned, !clean);
    EXPECT_EQ(world.report.cut_bytes, 0U);
    EXPECT_EQ(partition->watermarks().high_watermark, Offset(40));
    EXPECT_EQ(read_all(world, *partition).size(), 20U);
    EXPECT_EQ(partition->max_timestamp(), Timestamp(119));
    // The last five are still recognized, the next one is in order.
    const auto again =
        world.append(*partition, {.records = 2, .producer = 3, .epoch = 1, .sequence = 30});
    ASSERT_TRUE(again) << again.error().detail;
    EXPECT_TRUE(again->duplicate);
    EXPECT_EQ(again->base_offset, Offset(30));
    EXPECT_EQ(world.append(*partition, {.records = 2, .producer = 3, .epoch = 1, .sequence = 40})
                  ->base_offset,
              Offset(40));
  }
}

TEST(Partition, EpochsAnswerAsKafkasLeaderDoes) {
  World world;
  const auto end_of = [](const Partition& partition, std::int32_t epoch) {
    const EpochEnd end = partition.end_of_epoch(LeaderEpoch(epoch));
    return std::pair(end.epoch.value(), end.end_offset.value());
  };
  using Pair = std::pair<std::int32_t, std::int64_t>;
  for (const std::int32_t epoch : {2, 5, 9}) {
    world.epoch = epoch;
    auto partition = world.open();
    ASSERT_TRUE(world.append(*partition, {.records = 10}));
    partition.reset();
    world.kill();
  }
  world.epoch = 12;
  auto partition = world.open();
  EXPECT_EQ(end_of(*partition, -1), (Pair{-1, -1}));
  EXPECT_EQ(end_of(*partition, 0), (Pair{0, 0}));
  EXPECT_EQ(end_of(*partition, 2), (Pair{2, 10}));
  EXPECT_EQ(end_of(*partition, 4), (Pair{2, 10}));
  EXPECT_EQ(end_of(*partition, 5), (Pair{5, 20}));
  EXPECT_EQ(end_of(*partition, 9), (Pair{9, 30}));
  EXPECT_EQ(end_of(*partition, 11), (Pair{9, 30}));
  EXPECT_EQ(end_of(*partition, 12), (Pair{12, 30}));
  EXPECT_EQ(end_of(*partition, 13), (Pair{-1, -1}));
  EXPECT_EQ(partition->epoch_at(Offset(0)), LeaderEpoch(2));
  EXPECT_EQ(partition->epoch_at(Offset(19)), LeaderEpoch(5));
  EXPECT_EQ(partition->epoch_at(Offset(29)), LeaderEpoch(9));
  EXPECT_EQ(partition->epoch_at(Offset(30)), LeaderEpoch(12));
  ASSERT_TRUE(world.append(*partition));
  EXPECT_EQ(end_of(*partition, 9), (Pair{9, 30}));
  EXPECT_EQ(end_of(*partition, 12), (Pair{12, 31}));
  ASSERT_TRUE(partition->trim(Offset(15)));
  EXPECT_EQ(end_of(*partition, 2), (Pair{2, 15}));
  EXPECT_EQ(end_of(*partition, 5), (Pair{5, 20}));
  EXPECT_EQ(partition->epoch_at(Offset(15)), LeaderEpoch(5));
}

TEST(Partition, AnOlderLeaderEpochThanTheLogsIsRefused) {
  World world;
  world.epoch = 5;
  ASSERT_TRUE(world.append(*world.open()));
  world.kill();
  world.epoch = 4;
  EXPECT_EQ(world.try_open().error().code, ErrorCode::KAFKA_STORAGE_ERROR);
}

}  // namespace
}  // namespace kanal::log::test
