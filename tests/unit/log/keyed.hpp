// Keyed records for the tests of compaction: batches of them, what a log holds, and a pass run to
// its end.
#pragma once

#include "world.hpp"

#include "kanal/log/compaction.hpp"
#include "kanal/records/record.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kanal::log::test {

struct KeyedRecord {
  std::optional<std::string> key;
  std::optional<std::string> value;
  std::int64_t timestamp = 1000;
  std::int64_t offset = -1;  // of what was read
  friend bool operator==(const KeyedRecord&, const KeyedRecord&) = default;
};
inline void PrintTo(const KeyedRecord& record, std::ostream* out) {
  *out << record.offset << ":" << record.key.value_or("-") << "=" << record.value.value_or("-")
       << "@" << record.timestamp;
}

struct KeyedBatch {
  std::vector<KeyedRecord> records = {};
  records::Codec codec = records::Codec::kNone;
  std::int64_t producer = -1;
  std::int32_t sequence = -1;
  std::optional<std::int64_t> append_time = std::nullopt;
  std::optional<std::int64_t> horizon = std::nullopt;
  std::int64_t base = -1, last = -1;  // of what was read
  friend bool operator==(const KeyedBatch&, const KeyedBatch&) = default;
};
inline void PrintTo(const KeyedBatch& batch, std::ostream* out) {
  *out << "[" << batch.base << ".." << batch.last << " pid " << batch.producer << "/"
       << batch.sequence << " horizon " << batch.horizon.value_or(-1) << ":";
  for (const KeyedRecord& record : batch.records) {
    *out << " ";
    PrintTo(record, out);
  }
  *out << "]";
}

inline std::optional<Bytes> field(const std::optional<std::string>& text) {
  return text ? std::optional(as_bytes(*text)) : std::nullopt;
}

inline Buffer encode(const KeyedBatch& batch) {
  records::BatchOptions options;
  options.codec = batch.codec;
  options.producer_id = ProducerId(batch.producer);
  options.producer_epoch = ProducerEpoch(static_cast<std::int16_t>(batch.producer < 0 ? -1 : 0));
  options.base_sequence = batch.sequence;
  if (batch.append_time) options.log_append_time = Timestamp(*batch.append_time);
  records::BatchBuilder builder(options);
  for (const KeyedRecord& record : batch.records) {
    builder.add(Timestamp(record.timestamp), field(record.key), field(record.value));
  }
  static records::Deflater deflater;  // its contexts are dear
  return builder.build(deflater).value();
}

inline std::int64_t put(World& world, Partition& partition, const KeyedBatch& batch) {
  Buffer bytes = encode(batch);
  const auto done =
      partition.append(bytes, records::parse_header(bytes).value(), world.clock.wall());
  EXPECT_TRUE(done) << (done ? "" : done.error().detail);
  return done ? done->base_offset.value() : -1;
}
inline std::int64_t put(World& world, Partition& partition, std::string key,
                        std::optional<std::string> value, std::int64_t timestamp = 1000) {
  return put(world, partition, {{{std::move(key), std::move(value), timestamp}}});
}

inline KeyedBatch decode(Bytes bytes) {
  const records::BatchHeader header = records::parse_header(bytes).value();
  EXPECT_TRUE(records::verify_crc(bytes));
  KeyedBatch batch;
  batch.codec = header.codec();
  batch.producer = header.producer_id.value();
  batch.sequence = header.base_sequence;
  batch.base = header.base_offset.value();
  batch.last = header.last_offset().value();
  if (header.has_delete_horizon()) batch.horizon = header.base_timestamp.value();
  if (header.log_append_time()) batch.append_time = header.max_timestamp.value();
  records::Inflater inflater;
  Buffer inflated;
  EXPECT_TRUE(
      records::inflate_all(inflater, header.codec(), records::payload(bytes), 1 << 30, inflated));
  const auto walked =
      records::walk(inflated, header.record_count, [&](const records::RecordView& record) {
        KeyedRecord read;
        if (record.key) read.key = std::string(as_text(*record.key));
        if (record.value) read.value = std::string(as_text(*record.value));
        read.timestamp = header.timestamp_of(record.timestamp_delta).value();
        read.offset = header.offset_of(record.offset_delta).value();
        batch.records.push_back(std::move(read));
        return true;
      });
  EXPECT_TRUE(walked);
  return batch;
}

/// One fetch's bytes, with loads.
inline std::pair<Buffer, std::int64_t> fetch(World& world, Partition& partition, std::int64_t from,
                                             std::uint32_t max_bytes) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::vector<Slice> slices;
    const auto fetched = partition.read(Offset(from), {max_bytes, true, false}, slices);
    if (fetched) return {bytes_of(slices), fetched->next.value()};
    const auto* miss = std::get_if<Miss>(&fetched.error());
    if (miss == nullptr) {
      ADD_FAILURE() << std::get<Error>(fetched.error()).detail;
      return {{}, -1};
    }
    world.store().load(*miss, [](Result<void> done) { EXPECT_TRUE(done) << done.error().detail; });
    world.helpers.run();
  }
  ADD_FAILURE() << "reads never stop missing";
  return {{}, -1};
}

/// All batches from `from` on.
inline std::vector<KeyedBatch> batches_from(World& world, Partition& partition, std::int64_t from,
                                            std::uint32_t max_bytes = 4096) {
  std::vector<KeyedBatch> batches;
  while (from < partition.watermarks().high_watermark.value()) {
    const auto [bytes, next] = fetch(world, partition, from, max_bytes);
    if (next <= from) {
      ADD_FAILURE() << "no progress at " << from;
      break;
    }
    for (Bytes rest(bytes); !rest.empty();) {
      const std::size_t size = records::parse_header(rest).value().size();
      batches.push_back(decode(rest.first(size)));
      rest = rest.subspan(size);
    }
    from = next;
  }
  return batches;
}

inline std::vector<KeyedRecord> records_in(const std::vector<KeyedBatch>& batches) {
  std::vector<KeyedRecord> all;
  for (const KeyedBatch& batch : batches) {
    all.insert(all.end(), batch.records.begin(), batch.records.end());
  }
  return all;
}

struct PassOptions {
  CompactionRules rules{0, INT64_MAX, 0};
  CompactionOptions options = {};
  std::uint64_t slice = 1 << 20;
  bool adopt = true;
};

/// Runs one pass; nothing where there is nothing to clean.
inline Result<std::optional<CompactionStats>> try_pass(World& world, Partition& partition,
                                                       const PassOptions& with = {}) {
  const auto dirty = partition.log().first_dirty();
  if (!dirty) return std::unexpected(dirty.error());
  const Cleanable range = partition.cleanable(*dirty, with.rules, world.clock.wall());
  if (!range.wanted(with.rules)) return std::optional<CompactionStats>();
  CompactionOptions options = with.options;
  options.now = world.clock.wall();
  options.secret = {0x1234'5678'9ABC'DEF0, 0x0FED'CBA9'8765'4321};
  const auto pass = partition.compact(range, options);
  for (;;) {
    const auto step = pass->step(with.slice);
    if (!step) return std::unexpected(step.error());
    if (with.adopt) partition.adopt_rewritten();
    if (*step == Compaction::Step::kDone) break;
  }
  world.helpers.run();
  return std::optional(pass->stats());
}
inline std::optional<CompactionStats> pass(World& world, Partition& partition,
                                           const PassOptions& with = {}) {
  auto done = try_pass(world, partition, with);
  EXPECT_TRUE(done) << (done ? "" : done.error().detail);
  return done ? *done : std::nullopt;
}

}  // namespace kanal::log::test
