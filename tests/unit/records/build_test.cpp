#include "samples.hpp"

#include <gtest/gtest.h>

namespace kanal::records {
namespace {

using samples::kNow;
using samples::text;

TEST(BatchBuilder, WritesACompleteHeader) {
  BatchOptions options;
  options.base_offset = Offset(40);
  options.leader_epoch = LeaderEpoch(3);
  options.transactional = true;
  options.producer_id = ProducerId(9);
  options.producer_epoch = ProducerEpoch(1);
  options.base_sequence = 12;
  BatchBuilder builder(options);
  builder.add(kNow + 10, text("k"), text("v"));
  builder.add(kNow, std::nullopt, std::nullopt);
  const Buffer batch = samples::built(builder);
  const BatchHeader header = parse_header(batch).value();
  EXPECT_TRUE(verify_crc(batch));
  EXPECT_EQ(header.size(), batch.size());
  EXPECT_EQ(header.base_offset, Offset(40));
  EXPECT_EQ(header.last_offset(), Offset(41));
  EXPECT_EQ(header.leader_epoch, LeaderEpoch(3));
  EXPECT_EQ(header.base_timestamp, kNow + 10);
  EXPECT_EQ(header.max_timestamp, kNow + 10);
  EXPECT_TRUE(header.is_transactional());
  EXPECT_FALSE(header.is_control());
  EXPECT_EQ(header.base_sequence, 12);
  EXPECT_EQ(header.last_sequence(), 13);
  EXPECT_EQ(header.record_count, 2);
  EXPECT_EQ(samples::records_of(batch).at(1).timestamp_delta, -10);
}

TEST(BatchBuilder, CopiesRecordsWithGapsAndKeepsTheRange) {
  const Buffer source = samples::three();
  BatchOptions options;
  options.base_offset = Offset(500);
  options.codec = Codec::kLz4;
  BatchBuilder builder(options);
  const auto walked = walk(payload(source), 3, [&builder](const RecordView& record) {
    if (record.offset_delta == 1) builder.copy(Offset(504), kNow + 1, record);
    if (record.offset_delta == 2) builder.copy(Offset(507), kNow + 2, record);
    return true;
  });
  ASSERT_TRUE(walked);
  builder.set_last_offset(Offset(509));
  const Buffer batch = samples::built(builder);
  EXPECT_EQ(parse_header(batch)->last_offset(), Offset(509));
  EXPECT_EQ(parse_header(batch)->record_count, 2);
  const auto records = samples::records_of(batch);
  EXPECT_EQ(records.at(0).offset_delta, 4);
  EXPECT_EQ(records.at(0).key, "k1");
  EXPECT_EQ(records.at(1).offset_delta, 7);
  EXPECT_EQ(records.at(1).headers.size(), 2U);
}

TEST(BatchBuilder, LeavesABareHeaderForABatchWithoutRecords) {
  BatchOptions options;
  options.base_offset = Offset(7);
  options.codec = Codec::kZstd;
  options.producer_id = ProducerId(1);
  options.log_append_time = kNow;
  BatchBuilder builder(options);
  builder.set_last_offset(Offset(9));
  const Buffer batch = samples::built(builder);
  const BatchHeader header = parse_header(batch).value();
  EXPECT_EQ(batch.size(), kHeaderSize);
  EXPECT_EQ(header.record_count, 0);
  EXPECT_EQ(header.last_offset(), Offset(9));
  EXPECT_EQ(header.codec(), Codec::kNone);
  EXPECT_EQ(header.max_timestamp, kNow);
  EXPECT_TRUE(verify_crc(batch));
}

TEST(BatchBuilder, DeleteHorizonTakesThePlaceOfTheBaseTimestamp) {
  BatchOptions options;
  options.delete_horizon = kNow + 1000;
  BatchBuilder builder(options);
  builder.add(kNow, text("k"), std::nullopt);
  const Buffer batch = samples::built(builder);
  const BatchHeader header = parse_header(batch).value();
  EXPECT_TRUE(header.has_delete_horizon());
  EXPECT_EQ(header.base_timestamp, kNow + 1000);
  EXPECT_EQ(header.max_timestamp, kNow);
  EXPECT_EQ(header.timestamp_of(samples::records_of(batch).at(0).timestamp_delta), kNow);
}

TEST(Markers, RoundTripBothKinds) {
  for (const ControlType type : {ControlType::kAbort, ControlType::kCommit}) {
    const Buffer batch = build_marker(
        {type, 42}, {ProducerId(5), ProducerEpoch(2), kNow, Offset(11), LeaderEpoch(4)});
    EXPECT_EQ(batch.size(), 78U);
    const BatchHeader header = parse_header(batch).value();
    EXPECT_TRUE(header.is_control() && header.is_transactional());
    EXPECT_EQ(header.base_sequence, kNoSequence);
    EXPECT_EQ(header.record_count, 1);
    const auto marker = parse_marker(batch);
    ASSERT_TRUE(marker && *marker);
    EXPECT_EQ((*marker)->type, type);
    EXPECT_EQ((*marker)->coordinator_epoch, 42);
  }
}

TEST(Markers, OtherOrBrokenControlBatchesAreToldApart) {
  EXPECT_FALSE(parse_marker(samples::three()));
  Buffer batch = build_marker({ControlType::kCommit, 1}, {ProducerId(5), ProducerEpoch(2)});
  EXPECT_FALSE(parse_marker(Bytes(batch).first(70)));
  batch[kHeaderSize + 8] = std::byte{2};  // the type's low byte: a leader change
  const auto other = parse_marker(batch);
  ASSERT_TRUE(other);
  EXPECT_FALSE(*other);
}

}  // namespace
}  // namespace kanal::records
