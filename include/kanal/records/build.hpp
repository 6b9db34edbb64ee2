// Making batches: for transaction markers, re-written batches (compaction) and tests. A builder is
// used by one thread; the batch it gives is complete, with CRC.
#pragma once

#include "kanal/base/bytes.hpp"
#include "kanal/base/error.hpp"
#include "kanal/base/ids.hpp"
#include "kanal/records/batch.hpp"
#include "kanal/records/compress.hpp"
#include "kanal/records/record.hpp"

#include <cstdint>
#include <optional>
#include <span>

namespace kanal::records {

/// Everything of a batch but its records.
struct BatchOptions {
  Offset base_offset{0};
  LeaderEpoch leader_epoch{-1};
  Codec codec = Codec::kNone;
  Levels levels;
  bool transactional = false;
  bool control = false;
  std::optional<Timestamp> log_append_time;  // sets bit 3 and the max timestamp
  std::optional<Timestamp> delete_horizon;   // sets bit 6; becomes the base timestamp
  ProducerId producer_id{-1};
  ProducerEpoch producer_epoch{-1};
  std::int32_t base_sequence = kNoSequence;
};

struct NewRecord {
  Timestamp timestamp{-1};
  std::optional<Bytes> key;
  std::optional<Bytes> value;
  std::span<const RecordHeader> headers;
};

class BatchBuilder {
 public:
  explicit BatchBuilder(const BatchOptions& options);

  /// Adds a record at the next offset; the first record's time becomes the base timestamp.
  void add(const NewRecord& record);
  void add(Timestamp timestamp, std::optional<Bytes> key, std::optional<Bytes> value) {
    add(NewRecord{timestamp, key, value, {}});
  }
  /// Adds a record of another batch at `offset` (rising; gaps are allowed), its key, value and
  /// headers unchanged.
  void copy(Offset offset, Timestamp timestamp, const RecordView& record);
  /// The last offset of the batch where its last records are missing (compaction keeps a batch's
  /// range).
  void set_last_offset(Offset offset) { last_offset_ = offset; }

  [[nodiscard]] std::int32_t count() const noexcept { return count_; }
  [[nodiscard]] std::size_t uncompressed_size() const noexcept {
    return kHeaderSize + records_.size();
  }
  /// The finished batch; a batch of no records is a bare header (what compaction leaves to keep a
  /// producer's state).
  [[nodiscard]] Result<Buffer> build(Deflater& deflater);

 private:
  void begin_record(Offset offset, Timestamp timestamp, std::size_t tail_size);

  BatchOptions options_;
  Buffer records_;
  Offset last_offset_;
  Timestamp base_timestamp_{-1};
  Timestamp max_timestamp_{-1};
  std::int32_t count_ = 0;
};

enum class ControlType : std::int16_t { kAbort = 0, kCommit = 1 };

struct Marker {
  ControlType type = ControlType::kAbort;
  std::int32_t coordinator_epoch = 0;
};

struct MarkerOptions {
  ProducerId producer_id;
  ProducerEpoch producer_epoch;
  Timestamp timestamp{0};
  Offset base_offset{0};
  LeaderEpoch leader_epoch{-1};
  bool log_append_time = false;  // sets bit 3, as in the topic's other batches
};

/// The control batch that ends a transaction in one partition (KIP-98): 78 bytes, byte for byte as
/// Kafka writes it.
[[nodiscard]] Buffer build_marker(const Marker& marker, const MarkerOptions& options);

/// The marker of a whole control batch; nothing for control batches of other kinds. CORRUPT_MESSAGE
/// if malformed.
[[nodiscard]] Result<std::optional<Marker>> parse_marker(Bytes batch);

}  // namespace kanal::records
