#include "kanal/records/lookup.hpp"

#include "samples.hpp"

#include <gtest/gtest.h>

namespace kanal::records {
namespace {

using samples::kNow;

Buffer timed(Codec codec, std::initializer_list<std::int64_t> times,
             std::optional<Timestamp> appended = {}) {
  BatchOptions options;
  options.codec = codec;
  options.base_offset = Offset(100);
  options.log_append_time = appended;
  BatchBuilder builder(options);
  for (const std::int64_t time : times) builder.add(kNow + time, std::nullopt, samples::text("x"));
  return samples::built(builder);
}

std::optional<TimedOffset> at(std::int64_t time, std::int64_t offset) {
  return TimedOffset{kNow + time, Offset(offset)};
}

TEST(Lookup, FindsTheFirstRecordNotBeforeATime) {
  Scratch scratch;
  for (const Codec codec : samples::kCodecs) {
    const Buffer batch = timed(codec, {2, 4, 6, 8});
    EXPECT_EQ(find_by_time(batch, kNow + 5, Offset(0), scratch).value(), at(6, 102));
    EXPECT_EQ(find_by_time(batch, kNow + 6, Offset(0), scratch).value(), at(6, 102));
    EXPECT_EQ(find_by_time(batch, Timestamp(0), Offset(0), scratch).value(), at(2, 100));
    EXPECT_EQ(find_by_time(batch, kNow + 9, Offset(0), scratch).value(), std::nullopt);
  }
}

TEST(Lookup, SkipsRecordsBeforeTheFirstOffsetWanted) {
  Scratch scratch;
  for (const Codec codec : samples::kCodecs) {
    const Buffer batch = timed(codec, {2, 4, 6, 8});
    EXPECT_EQ(find_by_time(batch, kNow + 3, Offset(103), scratch).value(), at(8, 103));
    EXPECT_EQ(find_by_time(batch, kNow + 3, Offset(104), scratch).value(), std::nullopt);
  }
}

TEST(Lookup, MaxTimestampIsTheFirstRecordThatHasIt) {
  Scratch scratch;
  for (const Codec codec : samples::kCodecs) {
    EXPECT_EQ(find_max_timestamp(timed(codec, {5, 9, 1, 9}), Offset(0), scratch).value(),
              at(9, 101));
  }
}

TEST(Lookup, MaxTimestampOfWhatAnOffsetLeaves) {
  Scratch scratch;
  for (const Codec codec : samples::kCodecs) {
    const Buffer batch = timed(codec, {5, 9, 1, 7});
    EXPECT_EQ(find_max_timestamp(batch, Offset(101), scratch).value(), at(9, 101));
    EXPECT_EQ(find_max_timestamp(batch, Offset(102), scratch).value(), at(7, 103));
    EXPECT_EQ(find_max_timestamp(batch, Offset(104), scratch).value(), std::nullopt);
  }
}

TEST(Lookup, AppendTimeIsTheTimeOfAllRecords) {
  Scratch scratch;
  for (const Codec codec : samples::kCodecs) {
    const Buffer batch = timed(codec, {5, 9, 1}, kNow + 500);
    EXPECT_EQ(find_max_timestamp(batch, Offset(0), scratch).value(), at(500, 100));
    EXPECT_EQ(find_by_time(batch, kNow + 100, Offset(101), scratch).value(), at(500, 101));
    EXPECT_EQ(find_by_time(batch, kNow + 501, Offset(0), scratch).value(), std::nullopt);
  }
}

TEST(Lookup, WorksInBatchesLargerThanAChunk) {
  Scratch scratch;
  for (const Codec codec : samples::kCodecs) {
    const Buffer batch = samples::many(codec, 300, 2'000);
    const auto found = find_by_time(batch, kNow + 299, Offset(0), scratch).value();
    ASSERT_TRUE(found);
    EXPECT_EQ(found->offset, Offset(299));
  }
}

TEST(Lookup, EmptyAndDamagedBatchesAreNoCrash) {
  Scratch scratch;
  BatchBuilder nothing{BatchOptions{}};
  EXPECT_EQ(find_by_time(samples::built(nothing), kNow, Offset(0), scratch).value(), std::nullopt);
  const Buffer batch = samples::three(Codec::kZstd);
  EXPECT_FALSE(find_max_timestamp(Bytes(batch).first(batch.size() - 1), Offset(0), scratch));
  EXPECT_FALSE(find_max_timestamp(Bytes(batch).first(20), Offset(0), scratch));
  Buffer damaged = batch;
  damaged[kHeaderSize] ^= std::byte{0xFF};
  EXPECT_FALSE(find_max_timestamp(damaged, Offset(0), scratch));
}

}  // namespace
}  // namespace kanal::records
