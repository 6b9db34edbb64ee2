#include "samples.hpp"

#include <gtest/gtest.h>

namespace kanal::records {
namespace {

using samples::kNow;

std::uint32_t crc_of(std::string_view text) {
  return crc32c(as_bytes(text));
}

TEST(Crc32c, MatchesPublishedVectors) {
  EXPECT_EQ(crc_of(""), 0U);
  EXPECT_EQ(crc_of("123456789"), 0xE3069283U);
  EXPECT_EQ(crc_of("a"), 0xC1D04330U);
  EXPECT_EQ(crc_of(std::string(32, '\0')), 0x8A9136AAU);  // RFC 3720, B.4
  EXPECT_EQ(crc_of(std::string(32, '\xFF')), 0x62A8AB43U);
  std::string rising;
  for (int i = 0; i < 32; ++i) rising.push_back(static_cast<char>(i));
  EXPECT_EQ(crc_of(rising), 0x46DD794EU);
}

TEST(Crc32c, ContinuesAnEarlierResult) {
  const std::string text = "the quick brown fox";
  EXPECT_EQ(crc32c(as_bytes(text).subspan(5), crc32c(as_bytes(text).first(5))), crc_of(text));
}

TEST(BatchHeader, SurvivesWritingAndReading) {
  BatchHeader header;
  header.base_offset = Offset(0x0102030405060708);
  header.length = 49;
  header.leader_epoch = LeaderEpoch(77);
  header.attributes = 0x3C;
  header.last_offset_delta = 12;
  header.base_timestamp = kNow;
  header.max_timestamp = kNow + 9;
  header.producer_id = ProducerId(1LL << 40);
  header.producer_epoch = ProducerEpoch(-2);
  header.base_sequence = 99;
  header.record_count = 13;
  Buffer bytes(kHeaderSize);
  write_header(bytes, header);
  header.crc = seal(bytes);
  const BatchHeader read = parse_header(bytes).value();
  EXPECT_EQ(read.base_offset, header.base_offset);
  EXPECT_EQ(read.length, header.length);
  EXPECT_EQ(read.leader_epoch, header.leader_epoch);
  EXPECT_EQ(read.magic, kMagic);
  EXPECT_EQ(read.crc, header.crc);
  EXPECT_EQ(read.attributes, header.attributes);
  EXPECT_EQ(read.last_offset_delta, header.last_offset_delta);
  EXPECT_EQ(read.base_timestamp, header.base_timestamp);
  EXPECT_EQ(read.max_timestamp, header.max_timestamp);
  EXPECT_EQ(read.producer_id, header.producer_id);
  EXPECT_EQ(read.producer_epoch, header.producer_epoch);
  EXPECT_EQ(read.base_sequence, header.base_sequence);
  EXPECT_EQ(read.record_count, header.record_count);
  EXPECT_EQ(read.codec(), Codec::kZstd);
  EXPECT_TRUE(read.log_append_time());
  EXPECT_TRUE(read.is_transactional());
  EXPECT_TRUE(read.is_control());
  EXPECT_FALSE(read.has_delete_horizon());
  EXPECT_EQ(read.last_offset(), header.base_offset + 12);
  EXPECT_EQ(read.size(), kHeaderSize);
}

TEST(BatchHeader, IsRefusedWhenShortOrOfAnotherFormat) {
  Buffer batch = samples::three();
  EXPECT_EQ(parse_header(Bytes(batch).first(60)).error().code, ErrorCode::CORRUPT_MESSAGE);
  EXPECT_TRUE(parse_header(Bytes(batch).first(61)));
  batch[at::kMagic] = std::byte{1};
  EXPECT_EQ(parse_header(batch).error().code, ErrorCode::CORRUPT_MESSAGE);
  batch[at::kMagic] = std::byte{2};
  store_be(batch.data() + at::kLength, std::int32_t{48});
  EXPECT_EQ(parse_header(batch).error().code, ErrorCode::CORRUPT_MESSAGE);
  store_be(batch.data() + at::kLength, std::int32_t{-1});
  EXPECT_EQ(parse_header(batch).error().code, ErrorCode::CORRUPT_MESSAGE);
}

TEST(BatchHeader, OffsetAndEpochLieOutsideTheCrc) {
  Buffer batch = samples::three();
  set_base_offset(batch, Offset(123'456));
  set_leader_epoch(batch, LeaderEpoch(7));
  EXPECT_TRUE(verify_crc(batch));
  EXPECT_EQ(parse_header(batch)->base_offset, Offset(123'456));
  EXPECT_EQ(parse_header(batch)->leader_epoch, LeaderEpoch(7));
}

TEST(BatchHeader, TimesAndAttributesNeedANewSeal) {
  Buffer batch = samples::three();
  set_max_timestamp(batch, kNow + 1000);
  EXPECT_FALSE(verify_crc(batch));
  seal(batch);
  EXPECT_TRUE(verify_crc(batch));
  set_attributes(batch, kLogAppendTimeBit);
  EXPECT_FALSE(verify_crc(batch));
}

TEST(BatchHeader, CrcCoversEveryByteFromTheAttributesOn) {
  const Buffer batch = samples::three();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    Buffer damaged = batch;
    damaged[i] ^= std::byte{1};
    const bool covered = i >= at::kCrc;
    EXPECT_EQ(verify_crc(damaged), !covered) << i;
  }
}

TEST(BatchHeader, SequenceWrapsAfterInt32Max) {
  BatchHeader header;
  EXPECT_EQ(header.last_sequence(), kNoSequence);
  header.base_sequence = 5;
  header.last_offset_delta = 2;
  EXPECT_EQ(header.last_sequence(), 7);
  header.base_sequence = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(header.last_sequence(), 1);
}

TEST(BatchHeader, TimestampsWrapInsteadOfOverflowing) {
  BatchHeader header;
  header.base_timestamp = Timestamp(std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(header.timestamp_of(1).value(), std::numeric_limits<std::int64_t>::min());
}

}  // namespace
}  // namespace kanal::records
