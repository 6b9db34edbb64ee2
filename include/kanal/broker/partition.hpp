// A partition as requests see it: the log under its lock, and who waits for it. Any thread.
// A read that registers a watch does both in one turn of the lock, so no wake-up is lost.
#pragma once

#include "kanal/broker/guarded.hpp"
#include "kanal/broker/waiters.hpp"
#include "kanal/log/partition.hpp"
#include "kanal/records/validate.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kanal::broker {

/// Answer once the high watermark of the channel has passed `last`. Plain data.
struct Ticket {
  std::shared_ptr<class Partition> partition;
  Sequence last;
};

struct ReadOutcome {
  log::FetchedRecords records;
  log::Watermarks watermarks;
  std::vector<log::AbortedTransaction> aborted;  // in what was read, where committed is read
};

/// What an append asks of the broker afterwards.
struct AppendNews {
  bool became_dirty = false;  // the first append since the last checkpoint
  bool checkpoint_due =
      false;  // so much was written that recovery should not start from the old one
  bool became_unsynced = false;  // the first append that no sync is waiting for; one is due …
  Duration sync_within{};        // … so soon
  bool sync_due = false;         // flush.messages records are unsynced
  std::uint64_t bytes = 0;       // so many were written
};

/// flush.messages and flush.ms where they don't ask for acks after sync.
struct SyncRules {
  std::int64_t messages = INT64_MAX;
  std::int64_t ms = INT64_MAX;
};

class Partition : public std::enable_shared_from_this<Partition> {
 public:
  Partition(ChannelId id, ChannelHandle handle, std::unique_ptr<log::Partition> log);
  /// A partition that could not be opened: every use answers KAFKA_STORAGE_ERROR.
  Partition(ChannelId id, ChannelHandle handle, Error broken);

  [[nodiscard]] const ChannelId& id() const noexcept { return id_; }
  [[nodiscard]] ChannelHandle handle() const noexcept { return handle_; }

  void configure(const log::LogOptions& options, const SyncRules& rules);

  /// Appends and wakes fetches whose bytes are there. UNKNOWN_TOPIC_OR_PARTITION after deletion.
  Result<log::AppendResult> append(records::CheckedBatch& batch, Timestamp now, AppendNews& news,
                                   const log::AppendTerms& terms = {});
  /// The same for the end of a transaction.
  Result<log::AppendResult> append_marker(const log::EndMarker& marker, Timestamp now,
                                          AppendNews& news);

  /// `wait`: register it in the same turn; nullptr for a plain read.
  log::Maybe<ReadOutcome> read(Offset from, const log::FetchLimits& limits,
                               std::vector<log::Slice>& out, FetchWait* wait);

  /// KIP-320: FENCED_LEADER_EPOCH below, UNKNOWN_LEADER_EPOCH above the current one; -1 asks for no
  /// check.
  Result<void> check_epoch(LeaderEpoch claimed);

  /// Anything short on the log under the lock; the error if the partition is broken or deleted.
  template <class Use>
  auto with_log(Use&& use) -> Result<std::invoke_result_t<Use, log::Partition&>> {
    return state_.with([&](State& state) -> Result<std::invoke_result_t<Use, log::Partition&>> {
      if (state.log == nullptr || state.deleted) return std::unexpected(unusable(state));
      return std::forward<Use>(use)(*state.log);
    });
  }

  enum class Commit { kDone, kPending, kLost, kDeleted };
  [[nodiscard]] Commit committed(Sequence last);
  /// From the flusher: moves the high watermark, wakes readers and committers.
  void commit(Sequence committed_end);
  void lost(const Error& why);
  void watch_commits(FetchWait& wait);
  void unwatch(WatchNode& node);
  /// Writes a checkpoint of all that was appended so far; nothing where no log could be opened.
  /// Helper threads; blocks.
  Result<void> checkpoint();
  /// Moves the log start and wakes who waits. What recovery would have rebuilt from the batches
  /// that go is checkpointed before. Helper threads; blocks.
  Result<void> trim(Offset new_start);
  /// Makes staged records durable and says how far. Helper threads; blocks.
  Result<Sequence> sync();
  /// The same, where nobody waits for it and something was appended since the last: appends from
  /// here on ask for the next one. `timed`: the one that `became_unsynced` asked for.
  Result<void> sync_background(bool timed);
  /// It failed and nothing is lost. Whether the caller has to ask again on behalf of the records.
  [[nodiscard]] bool sync_again();
  /// For the flusher. The log lives as long as this object; nullptr once deleted or never opened.
  [[nodiscard]] log::ChannelLog* channel();
  /// Whether the caller has to queue it; take_flush() before the sync makes room for the next.
  [[nodiscard]] bool queue_flush() noexcept { return !flush_queued_.exchange(true); }
  void take_flush() noexcept { (void)flush_queued_.exchange(false); }
  /// After this every use answers UNKNOWN_TOPIC_OR_PARTITION; all waiters wake.
  void mark_deleted();

 private:
  struct State {
    std::unique_ptr<log::Partition> log;
    WatchList watches;
    Error broken;
    bool deleted = false;
    bool dirty = false;
    bool checkpoint_queued = false;
    bool lost = false;
    SyncRules sync_rules;
    std::int64_t unsynced = 0;  // records since the last sync was begun
    bool sync_waits = false;    // at its time
  };
  static Error unusable(const State& state);
  struct Written {  // by one append
    std::uint64_t bytes;
    std::int64_t records;
  };
  using Woken = WatchList::Woken;
  static void note(State& state, const log::AppendResult& appended, const Written& written,
                   AppendNews& news);
  static void note_unsynced(State& state, std::int64_t records, AppendNews& news);
  static void tell(State& state, const log::AppendResult& appended, std::uint64_t bytes,
                   Woken& woken);

  const ChannelId id_;
  const ChannelHandle handle_;
  std::atomic<bool> flush_queued_ = false;
  Guarded<State, Rank::kPartition> state_;
};

}  // namespace kanal::broker
