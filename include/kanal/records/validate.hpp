// The checks of a produced record set, code by code what Apache Kafka 4.4 answers, and the changes
// it makes before storing: corrected max timestamp, append time (bit 3, KIP-32), re-compression for
// the topic's compression.type. Pure functions, outside any lock; the caller's bytes are patched in
// place. Any thread, with its own Scratch. Uncompressed batches that pass cost no allocation and
// one CRC; compressed ones are inflated chunk by chunk, never kept.
#pragma once

#include "kanal/base/bytes.hpp"
#include "kanal/base/error_code.hpp"
#include "kanal/base/ids.hpp"
#include "kanal/records/batch.hpp"
#include "kanal/records/compress.hpp"

#include <cstdint>
#include <expected>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace kanal::records {

/// What the topic's configuration and the request ask for; the defaults are Kafka's.
struct ProduceRules {
  bool log_append_time = false;  // message.timestamp.type
  std::int64_t before_max_ms =
      std::numeric_limits<std::int64_t>::max();         // message.timestamp.before.max.ms
  std::int64_t after_max_ms = 3'600'000;                // message.timestamp.after.max.ms
  Timestamp now{0};                                     // the broker's wall clock
  std::int32_t max_message_bytes = 1'048'588;           // a whole batch, as stored
  bool compacted = false;                               // every record needs a key
  std::int32_t max_decompressed_bytes = 2'147'483'639;  // of one record in a compressed batch
  std::int16_t produce_version = 13;
  std::optional<Codec> compression;  // nullopt: "producer", keep the codec
  Levels levels;
  /// Stop once a compressed batch has inflated to more (Rejection::over_budget): an I/O thread
  /// gives such a batch to a helper thread, which checks again without a budget.
  std::uint64_t inflate_budget = std::numeric_limits<std::uint64_t>::max();
  /// Trust the header of compressed batches and don't inflate them where nothing else asks for it.
  bool trusted = false;
};

struct RecordError {
  std::int32_t batch_index = 0;  // which record of the batch
  std::string message;
};

/// Nothing was accepted.
struct Rejection {
  ErrorCode code = ErrorCode::UNKNOWN_SERVER_ERROR;
  std::string message;                     // for the client; empty where Kafka sends null
  std::vector<RecordError> record_errors;  // at most kMaxRecordErrors
  std::string detail;                      // the reason, for our own log
  bool over_budget = false;  // no answer yet: the record set is as it was, check again
  bool before_append =
      false;  // refused as a request, before the log was looked at: no log start is told
};
inline constexpr std::size_t kMaxRecordErrors = 10'000;

/// A batch ready to be numbered: base offset 0 and no leader epoch yet; set_base_offset and
/// set_leader_epoch keep its CRC valid.
struct CheckedBatch {
  MutableBytes bytes;  // in the caller's record set, or in `storage`
  BatchHeader header;  // as `bytes` has it
  /// Offset delta of the first record with the largest timestamp; -1 where the records were not
  /// walked.
  std::int32_t max_timestamp_delta = -1;
  Buffer storage;  // owns `bytes` when the batch was compressed anew; moving the CheckedBatch keeps
                   // `bytes` valid
};

/// One partition's record set of a Produce request of version 3 or newer: exactly one batch of
/// magic 2 (bytes after it that are too few for another batch are dropped, as Kafka does).
[[nodiscard]] std::expected<CheckedBatch, Rejection> check_produce(MutableBytes record_set,
                                                                   const ProduceRules& rules,
                                                                   Scratch& scratch);

/// Where the first batch of a record set would end, or why there is none; what check_produce begins
/// with. For callers that look into the header first (is it transactional?). The bytes may be
/// shorter than kHeaderSize.
[[nodiscard]] std::expected<Bytes, Rejection> first_batch(Bytes record_set);

}  // namespace kanal::records
