// The records inside a batch, uncompressed: varints, one record, a walk over all of them. Views
// into the caller's bytes; nothing allocates. Any thread. A record is: length, attributes,
// timestamp delta, offset delta, key, value, headers; lengths and deltas are zigzag varints, any
// negative length means null (Kafka reads -2 as null too). Checked as Kafka checks: header count
// and key sizes not negative, the fields fill the declared length exactly.
#pragma once

#include "kanal/base/bytes.hpp"
#include "kanal/records/batch.hpp"

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>

namespace kanal::records {

/// Why record bytes cannot be read: a sentence with static lifetime. Kafka's answer is always
/// INVALID_RECORD.
struct Malformed {
  const char* why;
};

struct RecordHeader {
  Bytes key;
  std::optional<Bytes> value;
};

/// Sizes and deltas: what checks and look-ups need. A size of -1 or less is null.
struct RecordFields {
  std::int8_t attributes = 0;
  std::int64_t timestamp_delta = 0;
  std::int32_t offset_delta = 0;
  std::int32_t key_size = -1;
  std::int32_t value_size = -1;
  std::int32_t header_count = 0;
  std::uint32_t size = 0;  // the whole record with its length varint
  [[nodiscard]] bool has_key() const noexcept { return key_size >= 0; }
};

struct RecordView : RecordFields {
  std::optional<Bytes> key;
  std::optional<Bytes> value;
  Bytes headers;  // header_count headers, already checked: walk them with HeaderCursor
  Bytes tail;     // from the key length to the end: what re-compression copies unchanged
};

[[nodiscard]] constexpr std::int32_t unzigzag(std::uint32_t value) noexcept {
  return static_cast<std::int32_t>((value >> 1) ^ (0U - (value & 1)));
}

/// A varint of one byte or two, which most are: moves `at` and is true, or leaves all as it was.
[[nodiscard]] inline bool read_short(const std::byte*& at, const std::byte* end,
                                     std::int32_t& out) noexcept {
  if (at == end) return false;
  const auto low = static_cast<std::uint32_t>(at[0]);
  if (low < 0x80) {
    ++at;
    out = unzigzag(low);
    return true;
  }
  if (end - at < 2) return false;
  const auto high = static_cast<std::uint32_t>(at[1]);
  if (high >= 0x80) return false;
  at += 2;
  out = unzigzag((low & 0x7F) | high << 7);
  return true;
}

[[nodiscard]] bool read_long_varint(const std::byte*& at, const std::byte* end,
                                    std::int32_t& out) noexcept;
[[nodiscard]] bool read_long_varlong(const std::byte*& at, const std::byte* end,
                                     std::int64_t& out) noexcept;

/// Reads a zigzag varint (at most 5 bytes; bits above 32 are dropped as Kafka drops them). Moves
/// `at`; false if cut or too long.
[[nodiscard]] inline bool read_varint(const std::byte*& at, const std::byte* end,
                                      std::int32_t& out) noexcept {
  return read_short(at, end, out) || read_long_varint(at, end, out);
}

/// The same for 64 bits, at most 10 bytes.
[[nodiscard]] inline bool read_varlong(const std::byte*& at, const std::byte* end,
                                       std::int64_t& out) noexcept {
  std::int32_t small = 0;
  if (!read_short(at, end, small)) return read_long_varlong(at, end, out);
  out = small;
  return true;
}

inline constexpr std::size_t kMaxVarint = 5;
inline constexpr std::size_t kMaxVarlong = 10;
/// Write a zigzag varint at `to` (room for kMaxVarint or kMaxVarlong bytes); returns the bytes
/// written.
std::size_t write_varint(std::byte* to, std::int32_t value) noexcept;
std::size_t write_varlong(std::byte* to, std::int64_t value) noexcept;
[[nodiscard]] std::size_t varint_size(std::int32_t value) noexcept;
[[nodiscard]] std::size_t varlong_size(std::int64_t value) noexcept;

/// Reads the fields between `at` and `end`, the record's declared body. nullptr, or why it is
/// malformed. With a RecordView also where they lie.
[[nodiscard]] const char* parse_body(const std::byte* at, const std::byte* end,
                                     RecordFields& out) noexcept;
[[nodiscard]] const char* parse_body(const std::byte* at, const std::byte* end,
                                     RecordView& out) noexcept;

/// Reads one record and moves `at` behind it. nullptr, or why it is malformed.
template <class Record>
[[nodiscard]] const char* parse_record(const std::byte*& at, const std::byte* end,
                                       Record& out) noexcept {
  const std::byte* start = at;
  std::int32_t length = 0;
  if (!read_varint(at, end, length)) return "a record length is cut or too long";
  if (length < 0) return "a record length is negative";
  if (length > end - at) return "a record is longer than what is left of its batch";
  const std::byte* body = at;
  at += length;
  out.size = static_cast<std::uint32_t>(at - start);
  return parse_body(body, at, out);
}

/// Steps through the uncompressed records of one batch: `count` records that must use up all bytes.
class RecordCursor {
 public:
  RecordCursor(Bytes records, std::int32_t count) noexcept
      : at_(records.data()), end_(records.data() + records.size()), left_(count) {}

  /// True with the next record, false after the last one.
  template <class Record>
  [[nodiscard]] std::expected<bool, Malformed> next(Record& out) noexcept {
    if (left_ <= 0) {
      if (at_ != end_) return std::unexpected(Malformed{"bytes are left after the last record"});
      return false;
    }
    --left_;
    if (const char* why = parse_record(at_, end_, out)) return std::unexpected(Malformed{why});
    return true;
  }

 private:
  const std::byte* at_;
  const std::byte* end_;
  std::int32_t left_;
};

/// Calls visit(const Record&) for every record, a RecordView or RecordFields; visit returns whether
/// to go on. Stopping early skips the check for left-over bytes.
template <class Record = RecordView, class Visit>
[[nodiscard]] std::expected<void, Malformed> walk(Bytes records, std::int32_t count,
                                                  Visit&& visit) {
  RecordCursor cursor(records, count);
  Record record;
  for (;;) {
    const std::expected<bool, Malformed> more = cursor.next(record);
    if (!more) return std::unexpected(more.error());
    if (!*more || !visit(static_cast<const Record&>(record))) return {};
  }
}

/// Steps through the headers of one checked record.
class HeaderCursor {
 public:
  explicit HeaderCursor(const RecordView& record) noexcept
      : at_(record.headers.data()), end_(at_ + record.headers.size()), left_(record.header_count) {}
  [[nodiscard]] std::optional<RecordHeader> next() noexcept;

 private:
  const std::byte* at_;
  const std::byte* end_;
  std::int32_t left_;
};

}  // namespace kanal::records
