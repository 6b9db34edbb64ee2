// The records of one batch as they are inflated, never more than a chunk in memory: a record inside
// a chunk is parsed in place, one that spans chunks field by field. Belongs to one call; borrows
// the thread's Inflater. With a sink, a record's bytes pass through unchanged from its key length
// on: re-compression in bounded memory.
#pragma once

#include "kanal/records/compress.hpp"
#include "kanal/records/record.hpp"

#include <cstdint>

namespace kanal::records {

/// Takes records apart as they pass by. All calls of a record come before next() returns it.
class RecordSink {
 public:
  virtual ~RecordSink() = default;
  /// Attributes and deltas of `fields` are set; `tail_size` bytes follow.
  virtual void begin(const RecordFields& fields, std::size_t tail_size) = 0;
  virtual void tail(Bytes bytes) = 0;
};

class RecordStream {
 public:
  /// No client of Kafka can hold more of one batch: bounds what a small payload may cost.
  static constexpr std::uint64_t kMaxInflated = 0x7FFF'FFFF;

  struct Source {
    Codec codec = Codec::kNone;
    Bytes payload;
    std::int32_t count = 0;
    std::int32_t max_body = 0;  // of one record
    std::uint64_t budget = kMaxInflated;
  };
  RecordStream(Inflater& inflater, const Source& source, RecordSink* sink = nullptr)
      : inflater_(inflater), source_(source), sink_(sink) {}
  ~RecordStream() { inflater_.close(); }
  RecordStream(const RecordStream&) = delete;
  RecordStream& operator=(const RecordStream&) = delete;

  Result<void> open() { return inflater_.open(source_.codec, source_.payload); }
  /// True with the next record, false after the last. INVALID_RECORD if malformed, the codec's
  /// error if it does not inflate.
  Result<bool> next(RecordFields& out);

  /// The failure is not the payload's: it has inflated to more than the budget so far.
  [[nodiscard]] bool over_budget() const noexcept { return over_budget_; }

 private:
  Result<bool> read_whole(const std::byte* body, const std::byte* body_end, RecordFields& out);
  Result<bool> read_spanning(RecordFields& out);
  bool read_spanning_fields(RecordFields& out);
  bool read_spanning_tail(RecordFields& out);
  bool refill();
  bool count_inflated(std::size_t bytes);
  bool take(std::byte& out);
  bool take_varint(std::int32_t& out);
  bool take_varlong(std::int64_t& out);
  bool skip(std::int32_t size);
  bool malformed(const char* why);
  std::unexpected<Error> failure() { return std::unexpected(std::move(error_)); }

  Inflater& inflater_;
  Source source_;
  RecordSink* sink_;
  const std::byte* at_ = nullptr;  // the unread part of the chunk
  const std::byte* end_ = nullptr;
  const std::byte* tail_ = nullptr;  // set while a spanning record's tail goes to the sink
  std::int64_t body_left_ = 0;       // of the spanning record
  std::uint64_t inflated_ = 0;
  std::int32_t done_ = 0;
  bool over_budget_ = false;
  Error error_;
};

}  // namespace kanal::records
