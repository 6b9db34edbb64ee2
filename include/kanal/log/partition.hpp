// Kafka's semantics over one channel: offset assignment, idempotent producers, leader epochs,
// watermarks, reads. Plain and synchronous: the broker holds the partition's lock around every
// call. Producer state moves at staging, readers see committed records only (high watermark). A
// duplicate answers the original's offset and must wait for the original's commit (`last` is the
// original's).
#pragma once

#include "kanal/log/channel_log.hpp"
#include "kanal/log/compaction.hpp"
#include "kanal/log/producer_state.hpp"
#include "kanal/log/retention.hpp"
#include "kanal/records/batch.hpp"

#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace kanal::log {

struct AppendResult {
  Offset base_offset;  // of the batch, or of the original where `duplicate`
  Sequence last;       // answer when the high watermark has passed it
  bool committed = true;
  bool duplicate = false;
  Timestamp log_append_time;  // kNoTimestamp for CreateTime; of a duplicate the original's, as
                              // Kafka answers
  Offset log_start{0};
};

struct Watermarks {
  Offset log_start{0};
  Offset high_watermark{0};
  Offset last_stable{0};  // nothing below is of a transaction that is open, or of an end not seen
  Offset staged_end{0};
};

struct EpochEntry {
  LeaderEpoch epoch;
  Offset first_offset;
};
struct EpochEnd {  // answer of OffsetForLeaderEpoch; (-1, -1) where the epoch is not known
  LeaderEpoch epoch = kNoLeaderEpoch;
  Offset end_offset = kNoOffset;
};

struct FetchLimits {
  std::uint32_t max_bytes = 0;
  bool at_least_one_batch = false;
  bool read_committed = false;
};
struct FetchedRecords {
  Offset next;  // after the last batch handed out
  std::uint32_t bytes = 0;
};

/// Ends the transaction of a producer in one partition (WriteTxnMarkers).
struct EndMarker {
  ProducerId producer;
  ProducerEpoch epoch;
  records::ControlType type = records::ControlType::kAbort;
  std::int32_t coordinator_epoch = 0;
  std::int16_t version = 2;  // transaction.version: from 2 on `epoch` is the one raised by the end
};

/// What is known of a batch before it comes to the log.
struct AppendTerms {
  /// KIP-890, clients of version 2: a producer of which nothing is known begins with sequence 0.
  bool from_zero = false;
};

struct Opening {
  ChannelId id;
  ChannelHandle handle;
  LeaderEpoch epoch;
  LogOptions options;
};

class Partition {
 public:
  /// Opens the channel in `store` and rebuilds producer state and epochs from the checkpoint and
  /// the tail. Helper threads; may block.
  static Result<std::unique_ptr<Partition>> open(LogStore& store, const Opening& opening,
                                                 RecoveryReport* report);
  ~Partition();

  /// The leader epochs in Checkpoint::state, all of which can be read and can be what it was when
  /// the log ended at `upto`.
  [[nodiscard]] static Result<std::vector<EpochEntry>> check_state(
      Bytes state, Sequence upto = kLargestSequence);

  /// Assigns offsets (patched into `batch.bytes` with the leader epoch, both outside the CRC) and
  /// writes. A transactional batch is verified already. Errors: OUT_OF_ORDER_SEQUENCE_NUMBER,
  /// INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE (outside of its producer's open transaction),
  /// INVALID_RECORD (offset overflow), RECORD_LIST_TOO_LARGE (larger than a segment),
  /// KAFKA_STORAGE_ERROR; after `lost` its code if that is KAFKA_STORAGE_ERROR, else
  /// NOT_LEADER_OR_FOLLOWER.
  Result<AppendResult> append(MutableBytes batch, const records::BatchHeader& header, Timestamp now,
                              const AppendTerms& terms = {});
  /// Writes the control batch, also where no transaction is open, as Kafka. Errors:
  /// INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, INVALID_REQUEST (no such producer can
  /// be), and those of append that have to do with the log.
  Result<AppendResult> append_marker(const EndMarker& marker, Timestamp now);
  /// Whether a batch of that epoch would join a transaction that is open.
  [[nodiscard]] bool in_transaction(ProducerId producer, ProducerEpoch epoch) const noexcept;

  /// OFFSET_OUT_OF_RANGE outside [log start, staged end]; nothing is added from the high watermark
  /// on, or from the last stable offset on with `read_committed`.
  Maybe<FetchedRecords> read(Offset from, const FetchLimits& limits, std::vector<Slice>& out) const;

  /// The aborted transactions with offsets in [from, upto), by their markers. Of one read: from
  /// what was asked for to FetchedRecords::next, in the same hold of the lock.
  void aborted(Offset from, Offset upto, std::vector<AbortedTransaction>& out) const;

  [[nodiscard]] Watermarks watermarks() const noexcept;
  [[nodiscard]] LeaderEpoch leader_epoch() const noexcept;
  /// Epoch under which the record at `offset` was written; the current one at the end.
  [[nodiscard]] LeaderEpoch epoch_at(Offset offset) const noexcept;
  [[nodiscard]] EpochEnd end_of_epoch(
      LeaderEpoch epoch) const noexcept;  // KIP-320, as Kafka's endOffsetFor
  Maybe<std::optional<TimePosition>> find(Timestamp timestamp) const;
  /// The batch of ListOffsets -3: the first with the largest timestamp between log start and high
  /// watermark.
  Maybe<std::optional<TimePosition>> find_max() const;
  [[nodiscard]] Timestamp max_timestamp()
      const noexcept;  // a trimmed or staged batch's may be in it

  /// OFFSET_OUT_OF_RANGE above the high watermark; nothing happens at or below the log start.
  Result<void> trim(Offset new_start);
  /// What retention would remove; nothing is changed.
  [[nodiscard]] Expired expired(const RetentionRules& rules, Timestamp now) const;
  [[nodiscard]] LogFacts facts() const;  // without the topic
  /// How far a trim to `new_start` may go before the next checkpoint: were batches removed that the
  /// last one does not cover, a crash would lose their part of the producers' state.
  [[nodiscard]] Offset covered_start(Offset new_start) const;
  void note_checkpoint(Sequence upto) noexcept;  // one was written
  /// What a pass of compaction would clean; `first_dirty` is the log's own, asked for without the
  /// lock.
  [[nodiscard]] Cleanable cleanable(Sequence first_dirty, const CompactionRules& rules,
                                    Timestamp now) const;
  /// A pass over `range`, for a helper to step.
  [[nodiscard]] std::unique_ptr<Compaction> compact(const Cleanable& range,
                                                    CompactionOptions options) const;
  void adopt_rewritten();  // what a pass has committed
  void configure(const LogOptions& options);
  /// The sink's news: high watermark up to `committed_end`; false if nothing moved.
  bool commit(Sequence committed_end) noexcept;
  void lost(const Error& why);

  [[nodiscard]] std::uint64_t bytes() const noexcept;
  [[nodiscard]] std::uint64_t bytes_since_checkpoint() const noexcept;
  /// State for ChannelLog::checkpoint: taken under the lock, written by `log().checkpoint` without
  /// it.
  [[nodiscard]] Checkpoint checkpoint() const;
  [[nodiscard]] ChannelLog& log() noexcept;
  [[nodiscard]] ProducerState& producers() noexcept;
  std::size_t expire_producers(Timestamp now, std::int64_t expiration_ms);

 private:
  Partition();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kanal::log
