#include "kanal/records/compact.hpp"

#include "samples.hpp"
#include "sip_hash.hpp"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

namespace kanal::records {
namespace {

using samples::kNow;

constexpr DigestSecret kSecret{0x0706'0504'0302'0100, 0x0F0E'0D0C'0B0A'0908};

std::vector<KeyedRecord> keys_of(Bytes batch) {
  Scratch scratch;
  std::vector<KeyedRecord> seen;
  const auto walked = visit_keys(batch, kSecret, scratch, [&](const KeyedRecord& record) {
    seen.push_back(record);
    return true;
  });
  EXPECT_TRUE(walked) << (walked ? "" : walked.error().detail);
  return seen;
}

std::vector<RecordView> records_of(const Buffer& inflated, const BatchHeader& header) {
  std::vector<RecordView> records;
  EXPECT_TRUE(walk(inflated, header.record_count, [&](const RecordView& record) {
    records.push_back(record);
    return true;
  }));
  return records;
}

Buffer inflated(Bytes batch) {
  Inflater inflater;
  Buffer out;
  const BatchHeader header = read_header(batch.data());
  EXPECT_TRUE(inflate_all(inflater, header.codec(), payload(batch), 1 << 30, out));
  return out;
}

TEST(KeyDigest, IsSipHashOf128Bits) {
  // The reference's own vectors: key 00..0f, input 00, 00 01, …
  std::array<std::byte, 16> input;
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<std::byte>(i);
  EXPECT_EQ(digest({}, kSecret), (KeyDigest{0xe6a8'25ba'047f'81a3, 0x9302'55c7'1472'f66d}));
  EXPECT_EQ(digest(Bytes(input).first(1), kSecret),
            (KeyDigest{0x44af'996b'd8c1'87da, 0x45fc'229b'1159'7634}));
}

TEST(KeyDigest, IsTheSameInAnyPieces) {
  std::array<std::byte, 41> input;
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<std::byte>(i * 37);
  for (std::size_t size = 0; size <= input.size(); ++size) {
    for (std::size_t cut = 0; cut <= size; ++cut) {
      SipHash hash(kSecret);
      hash.update(Bytes(input).first(cut));
      hash.update(Bytes(input).subspan(cut, size - cut));
      EXPECT_EQ(hash.finish(), digest(Bytes(input).first(size), kSecret));
    }
  }
}

TEST(Compact, NamesKeysTombstonesAndRecordsWithoutKey) {
  for (const Codec codec : samples::kCodecs) {
    BatchOptions options;
    options.codec = codec;
    options.base_offset = Offset(70);
    BatchBuilder builder(options);
    builder.add(kNow, samples::text("a"), samples::text("1"));
    builder.add(kNow + 1, std::nullopt, samples::text("no key"));
    builder.add(kNow + 2, samples::text("a"), std::nullopt);
    builder.add(kNow + 3, samples::text(""), samples::text(""));
    const auto seen = keys_of(samples::built(builder));
    ASSERT_EQ(seen.size(), 4u);
    EXPECT_EQ(seen[0].offset, Offset(70));
    EXPECT_EQ(seen[3].timestamp, kNow + 3);
    EXPECT_EQ(seen[0].key, digest(as_bytes("a"), kSecret));
    EXPECT_EQ(seen[0].key, seen[2].key);
    EXPECT_TRUE(seen[0].has_value);
    EXPECT_FALSE(seen[1].has_key);
    EXPECT_FALSE(seen[2].has_value);
    EXPECT_TRUE(seen[3].has_key && seen[3].has_value);
    EXPECT_EQ(seen[3].key, digest({}, kSecret));
  }
}

TEST(Compact, KeysThatSpanChunksHaveTheSameDigest) {
  for (const Codec codec : samples::kCodecs) {
    BatchOptions options;
    options.codec = codec;
    BatchBuilder builder(options);
    std::vector<std::string> keys;
    for (int i = 0; i < 40; ++i) keys.push_back(std::string(9'000, static_cast<char>('a' + i)));
    for (const std::string& key : keys) builder.add(kNow, samples::text(key), std::nullopt);
    const auto seen = keys_of(samples::built(builder));
    ASSERT_EQ(seen.size(), keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      EXPECT_EQ(seen[i].key, digest(as_bytes(keys[i]), kSecret));
    }
  }
}

TEST(Compact, KeptRecordsAreThoseOfABuiltBatch) {
  for (const Codec codec : samples::kCodecs) {
    for (const bool appended : {false, true}) {
      BatchOptions options;
      options.codec = codec;
      options.base_offset = Offset(1'000);
      options.leader_epoch = LeaderEpoch(3);
      options.producer_id = ProducerId(17);
      options.producer_epoch = ProducerEpoch(2);
      options.base_sequence = 40;
      options.transactional = true;
      if (appended) options.log_append_time = kNow + 500;
      BatchBuilder builder(options);
      for (int i = 0; i < 30; ++i) {
        builder.add(kNow + i * 7 % 13, samples::text("k" + std::to_string(i)),
                    samples::text(std::string(20'000, 'v')));
      }
      const Buffer batch = samples::built(builder);
      std::vector<bool> keep(30);
      for (const std::size_t i : {3u, 4u, 17u, 28u}) keep[i] = true;

      BatchBuilder wanted(options);
      const Buffer records = inflated(batch);
      const BatchHeader header = read_header(batch.data());
      for (const RecordView& record : records_of(records, header)) {
        if (!keep[static_cast<std::size_t>(record.offset_delta)]) continue;
        wanted.copy(header.offset_of(record.offset_delta),
                    header.timestamp_of(record.timestamp_delta), record);
      }
      wanted.set_last_offset(Offset(1'029));
      Scratch scratch;
      const Buffer kept = keep_records(batch, keep, std::nullopt, scratch).value();
      const Buffer expected = samples::built(wanted);
      EXPECT_TRUE(verify_crc(kept));
      EXPECT_EQ(inflated(kept), inflated(expected));
      EXPECT_TRUE(std::ranges::equal(Bytes(kept).first(kHeaderSize).subspan(at::kAttributes),
                                     Bytes(expected).first(kHeaderSize).subspan(at::kAttributes)));
      EXPECT_EQ(read_header(kept.data()).last_sequence(), header.last_sequence());
    }
  }
}

TEST(Compact, ADeleteHorizonTakesTheBaseTimestampsPlaceAndTimesStay) {
  Scratch scratch;
  for (const Codec codec : samples::kCodecs) {
    const Buffer batch = samples::three(codec);
    const Timestamp horizon = kNow + 86'400'000;
    const Buffer marked = keep_records(batch, {true, true, true}, horizon, scratch).value();
    const BatchHeader header = read_header(marked.data());
    EXPECT_TRUE(header.has_delete_horizon());
    EXPECT_EQ(header.base_timestamp, horizon);
    EXPECT_EQ(header.max_timestamp, kNow + 5);
    const auto before = keys_of(batch), after = keys_of(marked);
    ASSERT_EQ(after.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(after[i].timestamp, before[i].timestamp);
      EXPECT_EQ(after[i].key, before[i].key);
    }
    // Kept over the next pass.
    const Buffer again = keep_records(marked, {false, true, false}, horizon, scratch).value();
    EXPECT_EQ(read_header(again.data()).base_timestamp, horizon);
    EXPECT_EQ(keys_of(again).front().timestamp, kNow + 5);
  }
}

TEST(Compact, TimesAtTheEndsOfTheRangeSurvive) {
  Scratch scratch;
  BatchBuilder builder({});
  builder.add(Timestamp(0), samples::text("a"), samples::text("1"));
  builder.add(Timestamp(std::numeric_limits<std::int64_t>::max()), samples::text("b"),
              std::nullopt);
  const Buffer kept =
      keep_records(samples::built(builder), {false, true}, Timestamp(-5), scratch).value();
  EXPECT_EQ(keys_of(kept).front().timestamp.value(), std::numeric_limits<std::int64_t>::max());
}

TEST(Compact, AnEmptiedBatchKeepsWhatItsProducerNeeds) {
  BatchOptions options;
  options.codec = Codec::kZstd;
  options.base_offset = Offset(10);
  options.leader_epoch = LeaderEpoch(4);
  options.producer_id = ProducerId(5);
  options.producer_epoch = ProducerEpoch(6);
  options.base_sequence = 7;
  options.log_append_time = kNow;
  BatchBuilder builder(options);
  for (int i = 0; i < 3; ++i) builder.add(kNow, samples::text("k"), samples::text("v"));
  const Buffer batch = samples::built(builder);
  const Buffer empty = emptied(read_header(batch.data()));
  ASSERT_EQ(empty.size(), kHeaderSize);
  EXPECT_TRUE(verify_crc(empty));
  const BatchHeader header = read_header(empty.data());
  EXPECT_EQ(header.record_count, 0);
  EXPECT_EQ(header.base_offset, Offset(10));
  EXPECT_EQ(header.last_offset(), Offset(12));
  EXPECT_EQ(header.last_sequence(), 9);
  EXPECT_EQ(header.producer_id, ProducerId(5));
  EXPECT_EQ(header.producer_epoch, ProducerEpoch(6));
  EXPECT_EQ(header.leader_epoch, LeaderEpoch(4));
  EXPECT_EQ(header.codec(), Codec::kNone);
  EXPECT_EQ(header.base_timestamp, kNoTimestamp);
  EXPECT_EQ(header.max_timestamp, kNow);
  EXPECT_TRUE(header.log_append_time());
  EXPECT_TRUE(keys_of(empty).empty());
  EXPECT_EQ(emptied(header), empty);
}

TEST(Compact, DamagedRecordsAreAnErrorNotALoss) {
  Scratch scratch;
  for (const Codec codec : samples::kCodecs) {
    Buffer batch = samples::many(codec, 20, 300);
    batch.resize(batch.size() - 3);
    BatchHeader header = read_header(batch.data());
    header.length -= 3;
    write_header(batch, header);
    seal(batch);
    EXPECT_FALSE(visit_keys(batch, kSecret, scratch, [](const KeyedRecord&) { return true; }));
    EXPECT_FALSE(keep_records(batch, std::vector<bool>(20, true), std::nullopt, scratch));
  }
}

}  // namespace
}  // namespace kanal::records
