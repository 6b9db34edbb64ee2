#include "kanal/records/validate.hpp"

#include "allocations.hpp"
#include "samples.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace kanal::records {
namespace {

using samples::check;
using samples::kNow;
using samples::text;

TEST(CheckProduce, LeavesGoodBatchesAsTheyCame) {
  for (const Codec codec : samples::kCodecs) {
    Buffer batch = samples::three(codec);
    const Buffer original = batch;
    const samples::Outcome outcome = check(batch);
    EXPECT_EQ(outcome.code, ErrorCode::NONE) << name(codec) << outcome.rejection.detail;
    EXPECT_EQ(batch, original);
    EXPECT_EQ(outcome.checked.bytes.data(), batch.data());
    EXPECT_TRUE(outcome.checked.storage.empty());
    EXPECT_EQ(outcome.checked.header.record_count, 3);
    EXPECT_EQ(outcome.checked.max_timestamp_delta, 1);
  }
}

TEST(CheckProduce, AllocatesNothingForAnUncompressedBatch) {
  Buffer batch = samples::many(Codec::kNone, 100, 150);
  const ProduceRules rules = samples::rules();
  Scratch scratch;
  allocations::reset();
  const std::expected<CheckedBatch, Rejection> checked = check_produce(batch, rules, scratch);
  EXPECT_EQ(allocations::count().calls, 0U);
  EXPECT_TRUE(checked);
}

TEST(CheckProduce, AllocatesNothingForCompressedBatchesOnceWarm) {
  const ProduceRules rules = samples::rules();
  Scratch scratch;
  for (const Codec codec : samples::kCodecs) {
    Buffer batch = samples::many(codec, 100, 150);
    EXPECT_TRUE(check_produce(batch, rules, scratch));
    allocations::reset();
    const std::expected<CheckedBatch, Rejection> checked = check_produce(batch, rules, scratch);
    EXPECT_EQ(allocations::count().calls, 0U) << name(codec);
    EXPECT_TRUE(checked);
  }
}

struct Mutation {
  const char* what;
  std::size_t at;
  std::size_t width;
  std::int64_t value;
  ErrorCode expected;
};

void store(Buffer& batch, const Mutation& mutation) {
  std::byte* to = batch.data() + mutation.at;
  switch (mutation.width) {
    case 1:
      *to = static_cast<std::byte>(mutation.value);
      break;
    case 2:
      store_be(to, static_cast<std::int16_t>(mutation.value));
      break;
    case 4:
      store_be(to, static_cast<std::int32_t>(mutation.value));
      break;
    default:
      store_be(to, mutation.value);
  }
}

TEST(CheckProduce, AnswersEachChangedHeaderFieldAsKafka) {
  using enum ErrorCode;
  const Mutation mutations[] = {
      {"base offset 1", at::kBaseOffset, 8, 1, INVALID_RECORD},
      {"base offset -1", at::kBaseOffset, 8, -1, INVALID_RECORD},
      {"length too large", at::kLength, 4, 10'000, INVALID_RECORD},
      {"length too small", at::kLength, 4, 13, CORRUPT_MESSAGE},
      {"length negative", at::kLength, 4, -1, CORRUPT_MESSAGE},
      {"leader epoch", at::kLeaderEpoch, 4, 12, NONE},
      {"magic 0", at::kMagic, 1, 0, INVALID_RECORD},
      {"magic 1", at::kMagic, 1, 1, INVALID_RECORD},
      {"magic 3", at::kMagic, 1, 3, CORRUPT_MESSAGE},
      {"magic -1", at::kMagic, 1, -1, CORRUPT_MESSAGE},
      {"codec 5", at::kAttributes, 2, 5, UNKNOWN_SERVER_ERROR},
      {"codec 7", at::kAttributes, 2, 7, UNKNOWN_SERVER_ERROR},
      {"gzip that is not", at::kAttributes, 2, 1, UNKNOWN_SERVER_ERROR},
      {"control bit", at::kAttributes, 2, kControlBit, INVALID_RECORD},
      {"delete horizon bit", at::kAttributes, 2, kDeleteHorizonBit, NONE},
      {"unused attributes", at::kAttributes, 2, 0x7F80, NONE},
      {"last offset delta low", at::kLastOffsetDelta, 4, 1, INVALID_RECORD},
      {"last offset delta high", at::kLastOffsetDelta, 4, 3, INVALID_RECORD},
      {"last offset delta -1", at::kLastOffsetDelta, 4, -1, INVALID_RECORD},
      {"last offset delta lowest", at::kLastOffsetDelta, 4, INT32_MIN, INVALID_RECORD},
      {"base timestamp too far ahead", at::kBaseTimestamp, 8, kNow.value() + 3'700'000,
       INVALID_TIMESTAMP},
      {"max timestamp wrong", at::kMaxTimestamp, 8, 5, NONE},
      {"producer id without sequence", at::kProducerId, 8, 7, INVALID_RECORD},
      {"producer id -2", at::kProducerId, 8, -2, NONE},
      {"producer epoch", at::kProducerEpoch, 2, 3, NONE},
      {"sequence without producer id", at::kBaseSequence, 4, 3, NONE},
      {"record count 0", at::kRecordCount, 4, 0, INVALID_RECORD},
      {"record count -1", at::kRecordCount, 4, -1, INVALID_RECORD},
      {"record count low", at::kRecordCount, 4, 2, INVALID_RECORD},
      {"record count high", at::kRecordCount, 4, INT32_MAX, INVALID_RECORD},
  };
  for (const Mutation& mutation : mutations) {
    Buffer batch = samples::three();
    store(batch, mutation);
    seal(batch);
    EXPECT_EQ(name(check(batch).code), name(mutation.expected)) << mutation.what;
  }
}

TEST(CheckProduce, TellsCrcFromContent) {
  for (std::size_t i = at::kCrc; i < samples::three().size(); ++i) {
    Buffer batch = samples::three();
    batch[i] ^= std::byte{0x40};
    EXPECT_EQ(check(batch).code, ErrorCode::CORRUPT_MESSAGE) << i;
  }
}

/// Whatever passes must be readable by every consumer: CRC, count, each record.
void expect_sound(const samples::Outcome& outcome, const char* what, std::size_t i) {
  if (outcome.code != ErrorCode::NONE) return;
  EXPECT_TRUE(verify_crc(outcome.checked.bytes)) << what << i;
  EXPECT_EQ(outcome.checked.header.size(), outcome.checked.bytes.size()) << what << i;
  const Result<BatchHeader> header = parse_header(outcome.checked.bytes);
  ASSERT_TRUE(header) << what << i;
  EXPECT_EQ(header->attributes, outcome.checked.header.attributes) << what << i;
  EXPECT_EQ(header->last_offset_delta + 1, header->record_count) << what << i;
  EXPECT_EQ(samples::records_of(outcome.checked.bytes).size(),
            static_cast<std::size_t>(header->record_count));
}

TEST(CheckProduce, NeverAcceptsWhatCannotBeReadBack) {
  for (const Codec codec : samples::kCodecs) {
    const Buffer original = samples::three(codec);
    for (std::size_t i = 0; i < original.size(); ++i) {
      for (const unsigned change : {0x01U, 0x80U, 0xFFU}) {
        Buffer batch = original;
        batch[i] ^= static_cast<std::byte>(change);
        seal(batch);
        const Buffer sent = batch;
        expect_sound(check(batch), "in place, byte ", i);
        ProduceRules recompress = samples::rules();
        recompress.compression = codec == Codec::kNone ? Codec::kLz4 : Codec::kNone;
        Buffer again = sent;
        expect_sound(check(again, recompress), "compressed anew, byte ", i);
      }
    }
  }
}

TEST(CheckProduce, SurvivesRandomDamageToLargeBatches) {
  std::mt19937 draw(7);
  for (const Codec codec : samples::kCodecs) {
    const Buffer original = samples::many(codec, 40, 4'000);
    for (int round = 0; round < 200; ++round) {
      Buffer batch = original;
      for (int i = 0; i < 4; ++i)
        batch[kHeaderSize + draw() % (batch.size() - kHeaderSize)] = static_cast<std::byte>(draw());
      seal(batch);
      expect_sound(check(batch), "round ", static_cast<std::size_t>(round));
    }
  }
}

TEST(CheckProduce, TakesExactlyOneBatch) {
  const Buffer one = samples::three();
  Buffer two = one;
  append(two, one);
  EXPECT_EQ(check(two).code, ErrorCode::INVALID_RECORD);
  Buffer cut(two.begin(), two.end() - 1);
  const samples::Outcome outcome = check(cut);
  EXPECT_EQ(outcome.code, ErrorCode::NONE) << "a cut second batch is dropped";
  EXPECT_EQ(outcome.checked.bytes.size(), one.size());
  for (std::size_t size = 0; size < one.size(); ++size) {
    Buffer partial(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(check(partial).code, ErrorCode::INVALID_RECORD) << size;
  }
}

TEST(CheckProduce, CorrectsTheMaxTimestamp) {
  for (const Codec codec : samples::kCodecs) {
    for (const std::int64_t wrong : {std::int64_t{-1}, std::int64_t{0}, kNow.value() + 999}) {
      Buffer batch = samples::three(codec);
      set_max_timestamp(batch, Timestamp(wrong));
      seal(batch);
      const samples::Outcome outcome = check(batch);
      ASSERT_EQ(outcome.code, ErrorCode::NONE) << name(codec);
      EXPECT_EQ(batch, samples::three(codec));
      EXPECT_EQ(outcome.checked.header.max_timestamp, kNow + 5);
    }
  }
}

TEST(CheckProduce, SetsTheAppendTime) {
  ProduceRules rules = samples::rules();
  rules.log_append_time = true;
  rules.now = kNow + 100'000;
  for (const Codec codec : samples::kCodecs) {
    Buffer batch = samples::three(codec);
    const samples::Outcome outcome = check(batch, rules);
    ASSERT_EQ(outcome.code, ErrorCode::NONE);
    EXPECT_TRUE(verify_crc(batch));
    const BatchHeader header = parse_header(batch).value();
    EXPECT_TRUE(header.log_append_time());
    EXPECT_EQ(header.codec(), codec);
    EXPECT_EQ(header.max_timestamp, rules.now);
    EXPECT_EQ(header.crc, outcome.checked.header.crc);
    EXPECT_EQ(outcome.checked.max_timestamp_delta, 0);
  }
}

Buffer keyless_at(std::initializer_list<int> indices, Codec codec) {
  BatchOptions options;
  options.codec = codec;
  BatchBuilder builder(options);
  for (int i = 0; i < 5; ++i) {
    const bool keyless = std::ranges::find(indices, i) != indices.end();
    builder.add(kNow, keyless ? std::nullopt : text("k"), text("v"));
  }
  return samples::built(builder);
}

TEST(CheckProduce, NamesTheRecordsWithoutKeyInACompactedTopic) {
  ProduceRules rules = samples::rules();
  rules.compacted = true;
  for (const Codec codec : samples::kCodecs) {
    Buffer batch = keyless_at({1, 4}, codec);
    const samples::Outcome outcome = check(batch, rules);
    EXPECT_EQ(outcome.code, ErrorCode::INVALID_RECORD);
    ASSERT_EQ(outcome.rejection.record_errors.size(), 2U) << name(codec);
    EXPECT_EQ(outcome.rejection.record_errors[0].batch_index, 1);
    EXPECT_EQ(outcome.rejection.record_errors[1].batch_index, 4);
    EXPECT_FALSE(outcome.rejection.record_errors[1].message.empty());
    EXPECT_FALSE(outcome.rejection.message.empty());
    Buffer fine = keyless_at({}, codec);
    EXPECT_EQ(check(fine, rules).code, ErrorCode::NONE);
  }
}

TEST(CheckProduce, ListsABoundedNumberOfRecordErrors) {
  BatchBuilder builder{BatchOptions{}};
  for (int i = 0; i < 30'000; ++i) builder.add(kNow, std::nullopt, std::nullopt);
  Buffer batch = samples::built(builder);
  ProduceRules rules = samples::rules();
  rules.compacted = true;
  const samples::Outcome outcome = check(batch, rules);
  EXPECT_EQ(outcome.code, ErrorCode::INVALID_RECORD);
  EXPECT_EQ(outcome.rejection.record_errors.size(), kMaxRecordErrors);
  EXPECT_TRUE(outcome.rejection.message.starts_with("30000 of 30000"));
}

TEST(CheckProduce, CompressesAnewFromEveryCodecIntoEveryOther) {
  for (const Codec from : samples::kCodecs) {
    for (const Codec to : samples::kCodecs) {
      for (const std::size_t size : {std::size_t{3}, std::size_t{1'500}, std::size_t{70'000}}) {
        Buffer batch = samples::many(from, 12, size);
        const std::vector<samples::PlainRecord> before = samples::records_of(batch);
        ProduceRules rules = samples::rules();
        rules.compression = to;
        rules.max_message_bytes = 10'000'000;
        const samples::Outcome outcome = check(batch, rules);
        ASSERT_EQ(outcome.code, ErrorCode::NONE)
            << name(from) << " to " << name(to) << outcome.rejection.detail;
        expect_sound(outcome, "size ", size);
        EXPECT_EQ(outcome.checked.header.codec(), to);
        EXPECT_EQ(samples::records_of(outcome.checked.bytes), before)
            << name(from) << " to " << name(to);
        EXPECT_EQ(outcome.checked.max_timestamp_delta, 11);
      }
    }
  }
}

/// One record with a value of `megabytes` zeros: a few KiB compressed.
Buffer bomb(Codec codec, std::int32_t megabytes) {
  const std::int32_t value_size = megabytes << 20;
  Buffer body(1 + 1 + 1 + 1 + kMaxVarint);  // attributes, two zero deltas, null key, value size
  body[3] = std::byte{1};
  body.resize(4 + write_varint(body.data() + 4, value_size));
  std::byte length[kMaxVarint];
  const std::size_t length_size =
      write_varint(length, static_cast<std::int32_t>(body.size()) + value_size + 1);
  Deflater deflater;
  Buffer stored;
  EXPECT_TRUE(deflater.open(codec, Levels().of(codec), stored));
  EXPECT_TRUE(deflater.write(Bytes(length, length_size)));
  EXPECT_TRUE(deflater.write(body));
  const Buffer zeros(1U << 20);
  for (std::int32_t i = 0; i < megabytes; ++i) EXPECT_TRUE(deflater.write(zeros));
  EXPECT_TRUE(deflater.write(Bytes(zeros).first(1)));  // no headers
  EXPECT_TRUE(deflater.finish());
  return samples::wrap(codec, stored, 1);
}

TEST(CheckProduce, WalksBombsInBoundedMemory) {
  for (const Codec codec : {Codec::kGzip, Codec::kSnappy, Codec::kLz4, Codec::kZstd}) {
    Buffer batch = bomb(codec, 24);
    ProduceRules rules = samples::rules();
    rules.max_message_bytes = 8 << 20;
    allocations::reset();
    EXPECT_EQ(check(batch, rules).code, ErrorCode::NONE) << name(codec);
    EXPECT_LT(allocations::count().largest, 1U << 20) << name(codec);
    rules.compression = Codec::kNone;
    allocations::reset();
    EXPECT_EQ(check(batch, rules).code, ErrorCode::MESSAGE_TOO_LARGE) << name(codec);
    EXPECT_LT(allocations::count().largest, 20U << 20) << name(codec);
    rules.compression = Codec::kZstd;
    EXPECT_EQ(check(batch, rules).code, ErrorCode::NONE) << name(codec);
    rules.compression.reset();
    rules.max_decompressed_bytes = 20 << 20;
    EXPECT_EQ(check(batch, rules).code, ErrorCode::INVALID_RECORD) << name(codec);
  }
}

TEST(CheckProduce, StopsAtTheInflateBudgetAndCanStartOver) {
  for (const Codec codec : samples::kCodecs) {
    Buffer batch = samples::many(codec, 300, 2'000);
    const Buffer original = batch;
    ProduceRules rules = samples::rules();
    rules.inflate_budget = 200'000;
    const samples::Outcome outcome = check(batch, rules);
    EXPECT_EQ(outcome.rejection.over_budget, codec != Codec::kNone) << name(codec);
    EXPECT_EQ(batch, original);
    rules.compression = codec == Codec::kLz4 ? Codec::kZstd : Codec::kLz4;
    EXPECT_EQ(check(batch, rules).rejection.over_budget, codec != Codec::kNone) << name(codec);
    EXPECT_EQ(check(batch).code, ErrorCode::NONE);
  }
}

TEST(CheckProduce, TrustedBatchesAreNotInflated) {
  ProduceRules rules = samples::rules();
  rules.trusted = true;
  Buffer batch = samples::wrap(Codec::kZstd, as_bytes("not zstd"), 3);
  EXPECT_EQ(check(batch, rules).code, ErrorCode::NONE);
  EXPECT_EQ(check(batch, rules).checked.max_timestamp_delta, -1);
  rules.compacted = true;
  EXPECT_EQ(check(batch, rules).code, ErrorCode::UNKNOWN_SERVER_ERROR) << "keys are always checked";
  rules = samples::rules();
  rules.trusted = true;
  Buffer no_max = samples::three(Codec::kLz4);
  set_max_timestamp(no_max, kNoTimestamp);
  seal(no_max);
  EXPECT_EQ(check(no_max, rules).code, ErrorCode::NONE);
  EXPECT_EQ(parse_header(no_max)->max_timestamp, kNow + 5) << "a max timestamp nobody set is found";
  Buffer plain = samples::three();
  plain[kHeaderSize] = std::byte{0x7F};
  seal(plain);
  EXPECT_EQ(check(plain, rules).code, ErrorCode::INVALID_RECORD)
      << "plain batches are cheap to walk";
}

TEST(FirstBatch, FindsTheBatchWithoutCheckingIt) {
  const Buffer one = samples::three();
  Buffer set = one;
  append(set, as_bytes("rest"));
  EXPECT_EQ(first_batch(set).value().size(), one.size());
  EXPECT_EQ(first_batch(Bytes(one).first(30)).error().code, ErrorCode::INVALID_RECORD);
  const Buffer zeros(80);
  const auto corrupt = first_batch(zeros);
  EXPECT_EQ(corrupt.error().code, ErrorCode::CORRUPT_MESSAGE);
  EXPECT_FALSE(corrupt.error().message.empty());
}

}  // namespace
}  // namespace kanal::records
