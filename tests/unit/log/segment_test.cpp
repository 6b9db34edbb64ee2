#include "world.hpp"

namespace kanal::log::test {
namespace {

using Offsets = std::vector<std::int64_t>;

Offsets range(std::int64_t from, std::int64_t below, std::int64_t step = 1) {
  Offsets all;
  for (std::int64_t i = from; i < below; i += step) all.push_back(i);
  return all;
}

std::string log_name(std::int64_t base) {
  const std::string digits = std::to_string(base);
  return std::string(20 - digits.size(), '0') + digits + ".log";
}
std::string index_name_of(std::int64_t base) {
  std::string name = log_name(base);
  return name.replace(name.size() - 4, 4, ".kindex");
}

TEST(Segments, RollBeforeTheAppendThatWouldExceedTheSize) {
  World world;
  const auto size = static_cast<std::int64_t>(make_batch({}).size());
  world.options.segment_bytes = 3 * size;
  auto partition = world.open();
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(world.append(*partition));
  world.helpers.run();
  EXPECT_EQ(world.disk.content(world.path(log_name(0)))->size(),
            static_cast<std::size_t>(3 * size));
  EXPECT_EQ(world.disk.content(world.path(log_name(3)))->size(),
            static_cast<std::size_t>(3 * size));
  EXPECT_EQ(world.disk.content(world.path(log_name(6)))->size(), static_cast<std::size_t>(size));
  EXPECT_TRUE(world.disk.content(world.path(index_name_of(0))));
  EXPECT_FALSE(world.disk.content(world.path(index_name_of(6))));
  EXPECT_EQ(read_all(world, *partition), range(0, 7));
  EXPECT_EQ(partition->bytes(), static_cast<std::uint64_t>(7 * size));
}

TEST(Segments, OneReadGoesOnIntoTheNextSegment) {
  World world;
  const auto size = static_cast<std::int64_t>(make_batch({}).size());
  world.options.segment_bytes = 2 * size;
  auto partition = world.open();
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(world.append(*partition));
  EXPECT_EQ(read(world, *partition, 1, 1 << 20).offsets, range(1, 7));
  EXPECT_EQ(read(world, *partition, 1, static_cast<std::uint32_t>(4 * size)).offsets, range(1, 5));
  EXPECT_EQ(read(world, *partition, 1, static_cast<std::uint32_t>(size + 1)).offsets, range(1, 2));
}

TEST(Segments, RollByRecordTimeOfTheFirstBatch) {
  World world;
  world.options.segment_ms = 1000;
  auto partition = world.open();
  ASSERT_TRUE(world.append(*partition, {.timestamp = 5000}));
  ASSERT_TRUE(world.append(*partition, {.timestamp = 6000}));
  EXPECT_FALSE(world.disk.content(world.path(log_name(1))));
  ASSERT_TRUE(world.append(*partition, {.timestamp = 6001}));
  EXPECT_TRUE(world.disk.content(world.path(log_name(2))));
  ASSERT_TRUE(world.append(*partition, {.timestamp = 5000}));  // older: counts back, no roll
  EXPECT_FALSE(world.disk.content(world.path(log_name(3))));
}

TEST(Segments, RollByRecordTimeWhateverTimeAClientWrites) {
  constexpr std::int64_t kEarliest = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kLatest = std::numeric_limits<std::int64_t>::max();
  World world;
  world.options.segment_ms = 1000;
  auto partition = world.open();
  ASSERT_TRUE(world.append(*partition, {.timestamp = 5000}));
  ASSERT_TRUE(world.append(*partition, {.timestamp = kEarliest}));
  EXPECT_FALSE(world.disk.content(world.path(log_name(1))));
  ASSERT_TRUE(world.append(*partition, {.timestamp = kLatest}));
  EXPECT_TRUE(world.disk.content(world.path(log_name(2))));
  ASSERT_TRUE(world.append(*partition, {.timestamp = kEarliest}));
  EXPECT_FALSE(world.disk.content(world.path(log_name(3))));
  EXPECT_EQ(read_all(world, *partition), range(0, 4));
}

TEST(Segments, RollByTheClockWhereTheFirstBatchHasNoTime) {
  World world;
  world.options.segment_ms = 1000;
  world.clock.set(10'000);
  auto partition = world.open();
  ASSERT_TRUE(world.append(*partition, {.timestamp = -1}));
  world.clock.set(11'000);
  ASSERT_TRUE(world.append(*partition, {.timestamp = 999'999}));
  EXPECT_FALSE(world.disk.content(world.path(log_name(1))));
  world.clock.set(11'001);
  ASSERT_TRUE(world.append(*partition, {.timestamp = 1}));
  EXPECT_TRUE(world.disk.content(world.path(log_name(2))));
}

TEST(Segments, RollWhereRelativeOffsetsWouldNotFit) {
  World world;
  auto partition = world.open();
  const auto far = [&](std::int32_t delta) {
    Buffer bytes = make_batch({});
    store_be(bytes.data() + records::at::kLastOffsetDelta, delta);
    records::seal(bytes);
    return partition->append(bytes, records::parse_header(bytes).value(), Timestamp(0));
  };
  ASSERT_TRUE(far(std::numeric_limits<std::int32_t>::max() - 1));
  ASSERT_TRUE(far(0));  // 2^31 - 1 still fits
  EXPECT_FALSE(world.disk.content(world.path(log_name(2147483647))));
  ASSERT_TRUE(far(0));
  EXPECT_TRUE(world.disk.content(world.path(log_name(2147483648))));
  EXPECT_EQ(read(world, *partition, 2147483648).offsets, (Offsets{2147483648}));
}

TEST(Segments, JitterRollsEarlierButNeverLater) {
  World world;
  world.options.segment_ms = 1000;
  world.options.segment_jitter_ms = 900;
  std::set<std::int64_t> waits;
  for (int i = 0; i < 20; ++i) {
    auto partition = world.open("t", i);
    ASSERT_TRUE(world.append(*partition, {.timestamp = 0}));
    for (std::int64_t wait = 0; wait <= 1001; ++wait) {
      const auto before = world.disk.files().size();
      ASSERT_TRUE(world.append(*partition, {.timestamp = wait}));
      if (world.disk.files().size() != before) {
        waits.insert(wait);
        break;
      }
    }
  }
  EXPECT_GT(waits.size(), 5U);
  EXPECT_LE(*waits.rbegin(), 1001);
}

/// Many small segments with many blocks each, so that every look-up crosses both.
struct Many {
  explicit Many(World& world, int batches = 200) {
    world.options.segment_bytes = 4000;
    world.options.index_interval_bytes = 200;
    partition = world.open();
    for (int i = 0; i < batches; ++i) {
      EXPECT_TRUE(world.append(*partition,
                               {.records = 1 + i % 3, .timestamp = 1000 + 7 * ((i * 37) % 101)}));
    }
    world.helpers.run();
  }
  std::unique_ptr<Partition> partition;
};

TEST(Segments, EveryOffsetIsFoundFromMemoryAndFromFiles) {
  World world;
  Many many(world);
  const Offsets bases = read_all(world, *many.partition);
  const auto check = [&](Partition& partition, std::uint32_t max_bytes) {
    const std::int64_t end = partition.watermarks().high_watermark.value();
    std::size_t batch = 0;
    for (std::int64_t offset = 0; offset < end; ++offset) {
      while (batch + 1 < bases.size() && bases[batch + 1] <= offset) ++batch;
      const Read one = read(world, partition, offset, max_bytes);
      ASSERT_FALSE(one.offsets.empty()) << offset;
      EXPECT_EQ(one.offsets.front(), bases[batch]) << offset;
      for (std::size_t i = 0; i < one.offsets.size(); ++i) {
        EXPECT_EQ(one.offsets[i], bases[batch + i]) << offset;
      }
    }
  };
  check(*many.partition, 1);
  check(*many.partition, 1000);
  world.stop({many.partition.get()});
  many.partition.reset();
  world.kill();
  auto again = world.open();
  EXPECT_FALSE(world.report.scanned);
  world.disk.drop_caches();
  check(*again, 1000);
  EXPECT_EQ(read_all(world, *again), bases);
}

TEST(Segments, SequentialReadsNeedNoScanOfHeaders) {
  World world;
  world.options.index_interval_bytes = 1 << 20;
  auto partition = world.open();
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(world.append(*partition));
  std::int64_t from = read(world, *partition, 0, 1000).next;
  world.disk.take_count(kanal::test::MemoryFileSystem::kRead);
  while (from < 400) {
    std::vector<Slice> slices;
    const auto fetched = partition->read(Offset(from), {2000, true, false}, slices);
    ASSERT_TRUE(fetched);
    from = fetched->next.value();
    // Finding the end looks at headers of one block; finding the start never does.
    EXPECT_LE(world.disk.take_count(kanal::test::MemoryFileSystem::kRead), 12U);
  }
}

TEST(Segments, AReaderAtTheEndIsServedWithoutReadingAnything) {
  World world;
  auto partition = world.open();
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(world.append(*partition));
  std::vector<Slice> slices;
  ASSERT_TRUE(partition->read(Offset(50), {1000, true, false}, slices));
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(world.append(*partition));
  world.disk.take_count(kanal::test::MemoryFileSystem::kRead);
  const auto fetched = partition->read(Offset(50), {1 << 20, true, false}, slices);
  ASSERT_TRUE(fetched);
  EXPECT_EQ(fetched->next, Offset(80));
  EXPECT_EQ(world.disk.take_count(kanal::test::MemoryFileSystem::kRead), 0U);
}

TEST(Segments, ColdPagesAreMissedLoadedAndThenRead) {
  World world;
  auto partition = world.open();
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(world.append(*partition, {.value = std::string(50'000, 'x')}));
  world.stop({partition.get()});
  partition.reset();
  world.kill();
  partition = world.open();
  world.disk.drop_caches();
  const Read first = read(world, *partition, 0, 3 << 20);
  EXPECT_GE(first.misses, 1);
  EXPECT_LE(first.misses, 2);
  EXPECT_FALSE(first.offsets.empty());
  EXPECT_EQ(read(world, *partition, 0, 100'000).misses, 0);
  // What this process wrote is not probed.
  ASSERT_TRUE(world.append(*partition));
  world.disk.drop_caches();
  EXPECT_EQ(read(world, *partition, 100, 1000).misses, 0);
}

TEST(Segments, AHugeColdBatchIsLoadedPieceByPiece) {
  World world;
  auto partition = world.open();
  ASSERT_TRUE(world.append(*partition, {.value = std::string(9 << 20, 'x')}));
  world.stop({partition.get()});
  partition.reset();
  world.kill();
  partition = world.open();
  world.disk.drop_caches();
  EXPECT_EQ(read(world, *partition, 0, 100).offsets, (Offsets{0}));
}

TEST(Segments, AMissingOrDamagedIndexIsMadeAgain) {
  constexpr std::size_t kBase = 16, kEnd = 24;  // in the file
  const auto forge = [](Buffer& bytes, std::size_t at, std::int64_t sequence) {
    store_be(bytes.data() + at, sequence);
    const std::size_t crc = bytes.size() - 4;
    store_be(bytes.data() + crc, records::crc32c(Bytes(bytes).first(crc)));
  };
  for (const int damage : {0, 1, 2, 3, 4, 5}) {
    World world;
    Many many(world);
    const Offsets bases = read_all(world, *many.partition);
    world.stop({many.partition.get()});
    many.partition.reset();
    int damaged = 0;
    for (const std::string& path : world.disk.files()) {
      if (!path.ends_with(".kindex")) continue;
      Buffer bytes = *world.disk.content(path);
      ++damaged;
      if (damage == 0) world.disk.erase(path);
      if (damage == 1) bytes[bytes.size() / 2] ^= std::byte{4};
      if (damage == 2) bytes.resize(bytes.size() / 2);
      if (damage == 3) bytes.clear();
      if (damage == 4) forge(bytes, kBase, std::numeric_limits<std::int64_t>::min());
      if (damage == 5) forge(bytes, kEnd, std::numeric_limits<std::int64_t>::max());
      if (damage != 0) world.disk.set_content(path, bytes);
    }
    EXPECT_GT(damaged, 3);
    world.kill();
    auto again = world.open();
    EXPECT_EQ(read_all(world, *again), bases);
    EXPECT_EQ(found(world, [&] { return again->find(Timestamp(1000)); })->sequence, Sequence(1));
  }
}

TEST(Segments, AnIndexIsMadeAgainAfterACrashWhereTheCheckpointSkippedIt) {
  World world;
  world.options.index_interval_bytes = 200;
  auto partition = world.open();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(world.append(*partition));
  ASSERT_TRUE(partition->log().checkpoint(partition->checkpoint()));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(world.append(*partition));
  partition.reset();
  world.kill();
  partition = world.open();
  EXPECT_LT(world.report.scanned_bytes, partition->bytes() * 6 / 10);
  EXPECT_EQ(read_all(world, *partition), range(0, 200));
  EXPECT_EQ(read(world, *partition, 150, 1).offsets, (Offsets{150}));
  EXPECT_EQ(read(world, *partition, 50, 1).offsets, (Offsets{50}));
}

TEST(Segments, FindsByTimeToTheBatchOutOfOrderIncluded) {
  for (const bool reopened : {false, true}) {
    World world;
    Many many(world);
    std::vector<std::pair<std::int64_t, std::int64_t>> batches;  // base, timestamp
    std::int64_t base = 0;
    for (int i = 0; i < 200; ++i) {
      batches.emplace_back(base, 1000 + 7 * ((i * 37) % 101));
      base += 1 + i % 3;
    }
    if (reopened) {
      world.stop({many.partition.get()});
      many.partition.reset();
      world.kill();
      many.partition = world.open();
      world.disk.drop_caches();
    }
    for (const std::int64_t start : {0, 1, 57, 200}) {
      ASSERT_TRUE(many.partition->trim(Offset(start)));
      std::int64_t largest = -1;
      for (std::size_t i = 0; i < batches.size(); ++i) {
        const bool last = i + 1 == batches.size();
        if (last || batches[i + 1].first > start) largest = std::max(largest, batches[i].second);
      }
      for (std::int64_t time = 990; time < 1720; time += 5) {
        std::optional<std::int64_t> expected;
        for (std::size_t i = 0; i < batches.size() && !expected; ++i) {
          const bool last = i + 1 == batches.size();
          if (batches[i].second >= time && (last || batches[i + 1].first > start))
            expected = batches[i].first;
        }
        const auto position = found(world, [&] { return many.partition->find(Timestamp(time)); });
        ASSERT_EQ(position.has_value(), expected.has_value()) << time;
        if (expected) {
          EXPECT_EQ(position->sequence, to_sequence(Offset(*expected))) << time;
        }
      }
      const auto max = found(world, [&] { return many.partition->find_max(); });
      ASSERT_TRUE(max);
      EXPECT_EQ(max->timestamp, Timestamp(largest)) << start;
    }
  }
}

TEST(Segments, FindSeesCommittedBatchesOnly) {
  World world;
  world.options.ack_after_sync = true;
  auto partition = world.open();
  ASSERT_TRUE(world.append(*partition, {.timestamp = 10}));
  EXPECT_FALSE(found(world, [&] { return partition->find(Timestamp(0)); }));
  EXPECT_FALSE(found(world, [&] { return partition->find_max(); }));
  partition->commit(partition->log().sync().value());
  ASSERT_TRUE(world.append(*partition, {.timestamp = 20}));
  EXPECT_EQ(found(world, [&] { return partition->find(Timestamp(0)); })->sequence, Sequence(1));
  EXPECT_FALSE(found(world, [&] { return partition->find(Timestamp(11)); }));
  EXPECT_EQ(found(world, [&] { return partition->find_max(); })->timestamp, Timestamp(10));
}

TEST(Segments, TheLargestTimestampIsForgottenWithItsBatch) {
  World world;
  auto partition = world.open();
  EXPECT_EQ(partition->max_timestamp(), kNoTimestamp);
  ASSERT_TRUE(world.append(*partition, {.timestamp = 900}));
  ASSERT_TRUE(world.append(*partition, {.timestamp = 300}));
  ASSERT_TRUE(partition->trim(Offset(1)));
  EXPECT_EQ(found(world, [&] { return partition->find_max(); })->timestamp, Timestamp(300));
  ASSERT_TRUE(world.append(*partition, {.timestamp = 400}));
  EXPECT_EQ(found(world, [&] { return partition->find_max(); })->sequence, Sequence(3));
  ASSERT_TRUE(partition->trim(Offset(3)));
  EXPECT_FALSE(found(world, [&] { return partition->find_max(); }));
  ASSERT_TRUE(world.append(*partition, {.timestamp = 5}));
  EXPECT_EQ(found(world, [&] { return partition->find_max(); })->sequence, Sequence(4));
}

TEST(Segments, ATrimInsideABatchSurvivesRestarts) {
  for (const bool clean : {true, false}) {
    World world;
    auto partition = world.open();
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(world.append(*partition, {.records = 10}));
    ASSERT_TRUE(partition->trim(Offset(15)));
    ASSERT_TRUE(partition->trim(Offset(3)));  // never back
    EXPECT_EQ(partition->watermarks().log_start, Offset(15));
    EXPECT_EQ(partition->trim(Offset(41)).error().code, ErrorCode::OFFSET_OUT_OF_RANGE);
    if (clean) world.stop({partition.get()});
    partition.reset();
    world.kill();
    partition = world.open();
    EXPECT_EQ(partition->watermarks().log_start, Offset(15));
    EXPECT_EQ(read(world, *partition, 14).error, ErrorCode::OFFSET_OUT_OF_RANGE);
    EXPECT_EQ(read(world, *partition, 15).offsets, (Offsets{10, 20, 30}));
  }
}

TEST(Segments, ATrimRemovesWholeSegmentsAndKeepsCountingWhenAllAreGone) {
  for (const bool clean : {true, false}) {
    World world;
    Many many(world, 100);
    const std::int64_t end = many.partition->watermarks().high_watermark.value();
    const auto files = world.disk.files().size();
    ASSERT_TRUE(many.partition->trim(Offset(end / 2)));
    world.helpers.run();
    EXPECT_LT(world.disk.files().size(), files);
    EXPECT_FALSE(world.disk.content(world.path(log_name(0))));
    EXPECT_EQ(read_all(world, *many.partition, end / 2).back(), end - 1);
    ASSERT_TRUE(many.partition->trim(Offset(end)));
    world.helpers.run();
    EXPECT_EQ(many.partition->bytes(), 0U);
    if (clean) world.stop({many.partition.get()});
    many.partition.reset();
    world.kill();
    auto partition = world.open();
    EXPECT_EQ(partition->watermarks().log_start, Offset(end));
    EXPECT_EQ(partition->watermarks().high_watermark, Offset(end));
    EXPECT_EQ(world.append(*partition)->base_offset, Offset(end));
    EXPECT_EQ(read_all(world, *partition, end), (Offsets{end}));
    partition.reset();
    world.kill();
    partition = world.open();
    EXPECT_EQ(read_all(world, *partition, end), (Offsets{end}));
  }
}

TEST(Segments, HandlesAreClosedBeyondTheLimitAndReopened) {
  World world;
  world.max_open_files = 3;
  world.kill();
  std::vector<std::unique_ptr<Partition>> partitions;
  for (int i = 0; i < 10; ++i) partitions.push_back(world.open("t", i));
  for (int round = 0; round < 3; ++round) {
    for (auto& partition : partitions) ASSERT_TRUE(world.append(*partition));
  }
  for (auto& partition : partitions) EXPECT_EQ(read_all(world, *partition), range(0, 3));
}

TEST(Segments, ASlicePinsItsFileOverTrimAndClose) {
  World world;
  auto partition = world.open();
  ASSERT_TRUE(world.append(*partition));
  std::vector<Slice> slices;
  ASSERT_TRUE(partition->read(Offset(0), {1000, true, false}, slices));
  ASSERT_TRUE(partition->trim(Offset(1)));
  world.helpers.run();
  partition.reset();
  EXPECT_EQ(offsets_in(bytes_of(slices)), (Offsets{0}));
}

TEST(Segments, ReservesInDoublingStepsAndGivesTheRestBack) {
  World world;
  auto partition = world.open();
  ASSERT_TRUE(world.append(*partition));
  EXPECT_EQ(world.disk.take_count(kanal::test::MemoryFileSystem::kAllocate), 1U);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(world.append(*partition));
  EXPECT_EQ(world.disk.take_count(kanal::test::MemoryFileSystem::kAllocate), 0U);
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(world.append(*partition, {.value = std::string(100'000, 'x')}));
  EXPECT_LE(world.disk.take_count(kanal::test::MemoryFileSystem::kAllocate), 5U);
  world.disk.take_count(kanal::test::MemoryFileSystem::kTruncate);
  partition.reset();
  EXPECT_EQ(world.disk.take_count(kanal::test::MemoryFileSystem::kTruncate), 1U);
}

}  // namespace
}  // namespace kanal::log::test
