// Batches and small helpers for the tests of records.
#pragma once

#include "kanal/records/build.hpp"
#include "kanal/records/validate.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kanal::records::samples {

inline constexpr Timestamp kNow{1'700'000'000'000};
inline constexpr std::array kCodecs{Codec::kNone, Codec::kGzip, Codec::kSnappy, Codec::kLz4,
                                    Codec::kZstd};

inline std::optional<Bytes> text(std::string_view bytes) {
  return as_bytes(bytes);
}

inline Buffer built(BatchBuilder& builder) {
  Deflater deflater;
  return builder.build(deflater).value();
}

/// Three records with keys, a null, an empty value and a header.
inline Buffer three(Codec codec = Codec::kNone) {
  BatchOptions options;
  options.codec = codec;
  BatchBuilder builder(options);
  builder.add(kNow, text("k0"), text("value zero"));
  builder.add(kNow + 5, text("k1"), std::nullopt);
  const std::array headers{RecordHeader{as_bytes("trace"), text("abc")},
                           RecordHeader{as_bytes("none"), std::nullopt}};
  builder.add(NewRecord{kNow + 2, text(""), text(""), headers});
  return built(builder);
}

/// `count` records of `size` bytes that compress well.
inline Buffer many(Codec codec, int count, std::size_t size) {
  BatchOptions options;
  options.codec = codec;
  BatchBuilder builder(options);
  for (int i = 0; i < count; ++i) {
    std::string value(size, static_cast<char>('a' + i % 26));
    for (std::size_t at = 0; at < size; at += 97)
      value[at] = static_cast<char>(i * 31 + static_cast<int>(at) * 7);
    builder.add(kNow + i, text("key" + std::to_string(i)), text(value));
  }
  return built(builder);
}

/// A batch around ready-made record bytes, compressed or not.
inline Buffer wrap(Codec codec, Bytes stored_records, std::int32_t count) {
  Buffer batch(kHeaderSize);
  append(batch, stored_records);
  BatchHeader header;
  header.length = static_cast<std::int32_t>(batch.size() - kLogOverhead);
  header.attributes = static_cast<std::int16_t>(codec);
  header.base_timestamp = header.max_timestamp = kNow;
  header.record_count = count;
  header.last_offset_delta = count - 1;
  write_header(batch, header);
  seal(batch);
  return batch;
}

inline ProduceRules rules() {
  ProduceRules rules;
  rules.now = kNow;
  return rules;
}

struct Outcome {
  ErrorCode code = ErrorCode::NONE;
  Rejection rejection;
  CheckedBatch checked;
};
inline Outcome check(Buffer& record_set, const ProduceRules& with = rules()) {
  Scratch scratch;
  std::expected<CheckedBatch, Rejection> checked = check_produce(record_set, with, scratch);
  if (!checked) return {checked.error().code, checked.error(), {}};
  return {ErrorCode::NONE, {}, std::move(*checked)};
}

/// The records of a batch, uncompressed.
inline Buffer inflated(Bytes batch) {
  Inflater inflater;
  Buffer out;
  const BatchHeader header = parse_header(batch).value();
  const Result<void> done = inflate_all(inflater, header.codec(), payload(batch), 1U << 30, out);
  if (!done) throw std::runtime_error(done.error().detail);
  return out;
}

struct PlainRecord {
  std::int64_t timestamp_delta;
  std::int32_t offset_delta;
  std::optional<std::string> key, value;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;
  friend bool operator==(const PlainRecord&, const PlainRecord&) = default;
};
inline std::optional<std::string> owned(const std::optional<Bytes>& bytes) {
  if (!bytes) return std::nullopt;
  return std::string(as_text(*bytes));
}
inline std::vector<PlainRecord> records_of(Bytes batch) {
  const Buffer bytes = inflated(batch);
  std::vector<PlainRecord> out;
  const auto walked =
      walk(bytes, parse_header(batch)->record_count, [&out](const RecordView& record) {
        PlainRecord plain{record.timestamp_delta,
                          record.offset_delta,
                          owned(record.key),
                          owned(record.value),
                          {}};
        HeaderCursor headers(record);
        while (const std::optional<RecordHeader> header = headers.next()) {
          plain.headers.emplace_back(std::string(as_text(header->key)), owned(header->value));
        }
        out.push_back(std::move(plain));
        return true;
      });
  if (!walked) throw std::runtime_error(walked.error().why);
  return out;
}

}  // namespace kanal::records::samples
