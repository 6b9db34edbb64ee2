// Kafka's rules of compaction (docs/compaction.md): which part of a log is worth cleaning, which
// segments are written anew together, which batches and records stay, and the pass that does it.
// The rules are pure functions over facts: any thread. A Compaction is one pass over one log, made
// under the partition's lock and stepped by helper threads, one at a time; offsets never change.
// Nothing at or beyond the last stable offset and nothing of the active segment is touched.
#pragma once

#include "kanal/log/channel_log.hpp"
#include "kanal/records/batch.hpp"
#include "kanal/records/build.hpp"
#include "kanal/records/compact.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace kanal::log {

struct CompactionRules {
  std::int64_t min_lag_ms = 0;          // min.compaction.lag.ms
  std::int64_t max_lag_ms = INT64_MAX;  // max.compaction.lag.ms
  double min_dirty_ratio = 0.5;         // min.cleanable.dirty.ratio
};

struct CompactionFacts {  // of one log
  std::vector<SegmentFacts> segments;
  Sequence start{1};
  Sequence first_dirty{1};  // as stored; below the start or beyond the end it means the start
  Sequence stable_end{1};
};

/// What a pass would clean.
struct Cleanable {
  Sequence first_dirty{1};
  Sequence end{1};  // base of the first segment that stays as it is
  std::uint64_t clean_bytes = 0, dirty_bytes = 0;
  bool overdue = false;  // max.compaction.lag.ms has passed for the oldest dirty records

  [[nodiscard]] double ratio() const noexcept {
    const std::uint64_t all = clean_bytes + dirty_bytes;
    return all == 0 ? 0 : static_cast<double>(dirty_bytes) / static_cast<double>(all);
  }
  [[nodiscard]] bool wanted(const CompactionRules& rules) const noexcept {
    return dirty_bytes > 0 && (overdue || ratio() > rules.min_dirty_ratio);
  }
};
[[nodiscard]] Cleanable cleanable(const CompactionFacts& facts, const CompactionRules& rules,
                                  Timestamp now);

/// How many of `segments` go into one, from the first on: as many as together stay within
/// `segment_bytes` and the span of an index.
[[nodiscard]] std::vector<std::size_t> group_segments(std::span<const SegmentFacts> segments,
                                                      std::uint64_t segment_bytes);

struct AbortedTransaction {
  ProducerId producer;
  Offset first;                               // of its records in this log
  Offset last = to_offset(kLargestSequence);  // its marker
  Offset last_stable{0};                      // once the marker was committed
  friend bool operator==(const AbortedTransaction&, const AbortedTransaction&) = default;
};

/// Follows the transactions of a log while its batches pass by in order (KIP-98): which are
/// aborted, which markers have nothing left to end. `aborted`: all that began in what passes by.
class CleanedTransactions {
 public:
  explicit CleanedTransactions(std::vector<AbortedTransaction> aborted = {});
  /// Whether a batch with data is of an aborted transaction: its records go.
  bool on_batch(const records::BatchHeader& header);
  /// Whether a control batch ends a transaction of which no batch was seen. `marker`: nothing for
  /// an emptied control batch. `listed`: whether it is the marker of one of the aborted.
  bool on_control(const records::BatchHeader& header, const std::optional<records::Marker>& marker,
                  bool* listed = nullptr);
  /// Aborted transactions some batch of which was there still, by their markers: what the index has
  /// to keep.
  [[nodiscard]] const std::vector<AbortedTransaction>& kept() const noexcept { return kept_; }

 private:
  struct Aborted {
    AbortedTransaction transaction;
    bool seen = false;
  };
  void begin_until(const records::BatchHeader& header);

  std::vector<AbortedTransaction> waiting_;  // by first offset, the last one first
  std::unordered_map<ProducerId, Aborted> aborted_;
  std::unordered_map<ProducerId, bool> committed_;
  std::vector<AbortedTransaction> kept_;
};

/// What the producers' state knows of a producer that is still remembered.
struct LastOfProducer {
  Offset last_offset{-1};  // of its last batch with data; -1: only a marker is known
  ProducerEpoch epoch{-1};
};

/// What becomes of one batch.
struct BatchVerdict {
  enum class Empty { kDelete, kKeep };
  bool discard = false;          // none of its records stays
  Empty empty = Empty::kDelete;  // what to do once no record is left
  bool idle_marker = false;      // ends a transaction of which nothing is left
};
struct BatchSituation {
  bool discardable = false;  // CleanedTransactions says so
  bool last_of_producer = false;
  bool last_before_high_watermark = false;
  bool marker_stays = false;  // the stored index may still name its transaction
};
[[nodiscard]] BatchVerdict judge(const records::BatchHeader& header,
                                 const BatchSituation& situation, Timestamp now);
[[nodiscard]] bool is_last_of_producer(
    const records::BatchHeader& header,
    const std::unordered_map<ProducerId, LastOfProducer>& producers);

struct CompactionOptions {
  std::int64_t delete_retention_ms = 86'400'000;
  std::uint64_t segment_bytes = 1 << 30;
  std::uint64_t map_bytes = 128 << 20;  // log.cleaner.dedupe.buffer.size of one thread
  double map_load = 0.9;                // log.cleaner.io.buffer.load.factor
  Timestamp now{0};
  records::DigestSecret secret = {};  // fresh for every pass
};

struct CompactionStats {
  std::uint64_t bytes_indexed = 0, bytes_read = 0, bytes_written = 0;  // bytes of batches
  std::uint64_t records_read = 0, records_kept = 0, keyless = 0;
  std::size_t keys = 0;     // in the map
  Sequence first_dirty{1};  // where the next pass begins
  bool all = false;         // everything that was to be cleaned is
  bool superseded = false;  // something of it was trimmed meanwhile: given up, nothing is lost
};

/// What a pass tells the partition of the aborted transactions whose markers are in [from, below):
/// only those with these markers, which rise, have records left. Written by the pass before it
/// returns kAdopt, read and cleared by Partition::adopt_rewritten, both of one helper.
struct CleanedAborted {
  Offset from{0}, below{0};
  std::vector<Offset> markers;
};

/// All that a pass takes from the partition, of one moment.
struct CompactionInput {
  std::unique_ptr<Rewrite> log;
  Cleanable range;
  Offset high_watermark{0};
  std::unordered_map<ProducerId, LastOfProducer> producers;
  std::vector<AbortedTransaction> aborted;
  /// The index that is stored may name transactions that are no longer in `aborted`: their markers
  /// have to stay, else a reader would skip what the producer wrote after them.
  bool markers_stay = false;
  /// Where the checkpoint that a crash would go back to ends: it may have transactions open whose
  /// markers are there or later, so those stay. None: there is no checkpoint.
  std::optional<Offset> checkpointed = std::nullopt;
  std::shared_ptr<CleanedAborted> cleaned;  // may be null
};

class Compaction {
 public:
  enum class Step { kMore, kAdopt, kDone };  // kAdopt: Partition::adopt_rewritten is due

  Compaction(CompactionInput input, const CompactionOptions& options);
  ~Compaction();
  /// Reads and writes about `bytes`. After an error or kDone it is over; dropped before, nothing
  /// happened but what was adopted.
  Result<Step> step(std::uint64_t bytes);
  /// Bytes read and written since the last call.
  std::uint64_t take_io() noexcept;
  [[nodiscard]] const CompactionStats& stats() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kanal::log
