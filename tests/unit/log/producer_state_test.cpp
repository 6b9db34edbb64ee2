#include "world.hpp"

#include "kanal/log/producer_state.hpp"

#include <limits>

namespace kanal::log::test {
namespace {

constexpr std::int32_t kLargest = std::numeric_limits<std::int32_t>::max();

records::BatchHeader batch(std::int16_t epoch, std::int32_t sequence, std::int32_t records = 1,
                           std::int64_t producer = 1) {
  records::BatchHeader header;
  header.producer_id = ProducerId(producer);
  header.producer_epoch = ProducerEpoch(epoch);
  header.base_sequence = sequence;
  header.last_offset_delta = records - 1;
  header.record_count = records;
  header.max_timestamp = Timestamp(sequence);
  return header;
}

class ProducerStateTest : public testing::Test {
 protected:
  /// NONE where it may be appended, and appends it; DUPLICATE_SEQUENCE_NUMBER for a remembered
  /// batch.
  ErrorCode produce(const records::BatchHeader& header) {
    const auto seen = state_.check(header);
    if (!seen) return seen.error().code;
    if (*seen) {
      duplicate_ = **seen;
      return ErrorCode::DUPLICATE_SEQUENCE_NUMBER;
    }
    state_.update(header, next_, now_);
    next_ += header.last_offset_delta + 1;
    return ErrorCode::NONE;
  }

  ProducerState state_;
  Offset next_{0};
  Timestamp now_{1'000'000};
  ProducedBatch duplicate_;
};

TEST_F(ProducerStateTest, RemembersFiveBatchesAndForgetsTheSixth) {
  for (int i = 0; i < 6; ++i) ASSERT_EQ(produce(batch(0, i)), ErrorCode::NONE);
  for (int i = 1; i < 6; ++i) {
    EXPECT_EQ(produce(batch(0, i)), ErrorCode::DUPLICATE_SEQUENCE_NUMBER);
    EXPECT_EQ(duplicate_.base_offset, Offset(i));
    EXPECT_EQ(duplicate_.timestamp, Timestamp(i));
  }
  EXPECT_EQ(produce(batch(0, 0)), ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
}

TEST_F(ProducerStateTest, ADuplicateHasTheSameRange) {
  ASSERT_EQ(produce(batch(0, 0, 5)), ErrorCode::NONE);
  EXPECT_EQ(produce(batch(0, 0, 5)), ErrorCode::DUPLICATE_SEQUENCE_NUMBER);
  EXPECT_EQ(duplicate_.last_offset, Offset(4));
  EXPECT_EQ(produce(batch(0, 0, 4)), ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
  EXPECT_EQ(produce(batch(0, 1, 4)), ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
  EXPECT_EQ(produce(batch(0, 4, 2)), ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
}

TEST_F(ProducerStateTest, AGapIsOutOfOrder) {
  ASSERT_EQ(produce(batch(0, 0, 3)), ErrorCode::NONE);
  EXPECT_EQ(produce(batch(0, 4)), ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
  EXPECT_EQ(produce(batch(0, 3)), ErrorCode::NONE);
}

TEST_F(ProducerStateTest, AnUnknownProducerStartsAnywhere) {
  EXPECT_EQ(produce(batch(3, 17)), ErrorCode::NONE);
  EXPECT_EQ(produce(batch(3, 18)), ErrorCode::NONE);
  EXPECT_EQ(produce(batch(0, 5, 1, 2)), ErrorCode::NONE);  // another producer, on its own
}

TEST_F(ProducerStateTest, ANewEpochStartsAtZero) {
  ASSERT_EQ(produce(batch(0, 0)), ErrorCode::NONE);
  EXPECT_EQ(produce(batch(1, 1)), ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
  EXPECT_EQ(produce(batch(1, 0)), ErrorCode::NONE);
  EXPECT_EQ(produce(batch(0, 1)), ErrorCode::INVALID_PRODUCER_EPOCH);
  // The batches of the older epoch are forgotten: its repeat is fenced, not a duplicate.
  EXPECT_EQ(produce(batch(0, 0)), ErrorCode::INVALID_PRODUCER_EPOCH);
  EXPECT_EQ(produce(batch(1, 0)), ErrorCode::DUPLICATE_SEQUENCE_NUMBER);
}

TEST_F(ProducerStateTest, SequencesWrapBehindTheLargest) {
  ASSERT_EQ(produce(batch(0, kLargest - 1)), ErrorCode::NONE);
  EXPECT_EQ(produce(batch(0, kLargest)), ErrorCode::NONE);
  EXPECT_EQ(produce(batch(0, 1)), ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
  EXPECT_EQ(produce(batch(0, 0)), ErrorCode::NONE);
  EXPECT_EQ(produce(batch(0, kLargest)), ErrorCode::DUPLICATE_SEQUENCE_NUMBER);
}

TEST_F(ProducerStateTest, ABatchMayWrapInside) {
  ASSERT_EQ(produce(batch(0, kLargest - 1, 4)), ErrorCode::NONE);  // …, max, 0, 1
  EXPECT_EQ(produce(batch(0, kLargest - 1, 4)), ErrorCode::DUPLICATE_SEQUENCE_NUMBER);
  EXPECT_EQ(produce(batch(0, 1)), ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
  EXPECT_EQ(produce(batch(0, 2)), ErrorCode::NONE);
}

TEST_F(ProducerStateTest, ExpiresAfterTheLastAppend) {
  ASSERT_EQ(produce(batch(0, 0)), ErrorCode::NONE);
  ASSERT_EQ(produce(batch(0, 0, 1, 2)), ErrorCode::NONE);
  EXPECT_EQ(state_.expire(now_ + 999, 1000), 0U);
  now_ += 500;
  ASSERT_EQ(produce(batch(0, 1)), ErrorCode::NONE);
  EXPECT_EQ(state_.expire(now_ + 500, 1000), 1U);
  EXPECT_TRUE(state_.producers().contains(ProducerId(1)));
  EXPECT_EQ(produce(batch(0, 7, 1, 2)), ErrorCode::NONE);  // unknown again
}

TEST_F(ProducerStateTest, AClockSetBackDoesNotExpireAndARebuiltOneStartsCounting) {
  ASSERT_EQ(produce(batch(0, 0)), ErrorCode::NONE);
  EXPECT_EQ(state_.expire(Timestamp(5), 1000), 0U);
  EXPECT_EQ(state_.expire(Timestamp(1004), 1000), 0U);
  EXPECT_EQ(state_.expire(Timestamp(1005), 1000), 1U);
  state_.update(batch(0, 0), Offset(0), kNoTimestamp);
  EXPECT_EQ(state_.expire(Timestamp(9000), 1000), 0U);
  EXPECT_EQ(state_.expire(Timestamp(10'000), 1000), 1U);
}

TEST_F(ProducerStateTest, ComesBackFromItsBytes) {
  for (int i = 0; i < 7; ++i) ASSERT_EQ(produce(batch(2, i, 1, 5)), ErrorCode::NONE);
  ASSERT_EQ(produce(batch(0, 9, 3, 6)), ErrorCode::NONE);
  Buffer bytes;
  state_.encode(bytes);
  bytes.push_back(std::byte{42});
  Bytes rest = bytes;
  ProducerState copy;
  ASSERT_TRUE(copy.decode(rest));
  EXPECT_EQ(rest.size(), 1U);
  state_ = copy;
  EXPECT_EQ(produce(batch(2, 3, 1, 5)), ErrorCode::DUPLICATE_SEQUENCE_NUMBER);
  EXPECT_EQ(duplicate_.base_offset, Offset(3));
  EXPECT_EQ(produce(batch(2, 1, 1, 5)), ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
  EXPECT_EQ(produce(batch(0, 12, 1, 6)), ErrorCode::NONE);
  EXPECT_EQ(copy.producers().at(ProducerId(5)).last_timestamp, now_);
}

TEST_F(ProducerStateTest, CutBytesAreRefused) {
  ASSERT_EQ(produce(batch(0, 0)), ErrorCode::NONE);
  Buffer bytes;
  state_.encode(bytes);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    Bytes cut = Bytes(bytes).first(size);
    ProducerState copy;
    EXPECT_FALSE(copy.decode(cut)) << size;
  }
}

}  // namespace
}  // namespace kanal::log::test
