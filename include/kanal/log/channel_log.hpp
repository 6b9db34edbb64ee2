// The storage seam of record data: append, read, find, trim and bounds of one channel's bytes.
// Local segment files are the embedded default; a distributed engine plugs in here later
// (docs/architecture.md, "The storage seams"). append, read, find, trim, configure, bounds: under
// the partition's lock, never block on a disk that may be cold (read and find answer Miss instead).
// open, remove, load, checkpoint, sync, first_dirty: helper threads, may block. The caller numbers
// the records, the engine never does. An engine calls its sink from its own thread, holding no
// lock.
#pragma once

#include "kanal/base/bytes.hpp"
#include "kanal/base/channel.hpp"
#include "kanal/base/clock.hpp"
#include "kanal/base/error.hpp"
#include "kanal/base/executor.hpp"
#include "kanal/base/file_system.hpp"
#include "kanal/base/ids.hpp"
#include "kanal/log/rewrite.hpp"

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

namespace kanal::log {

struct Extent {  // inclusive
  Sequence first, last;
};
/// `committed`: the high watermark may move now. Else exactly one of CommitSink::committed(>= last)
/// or lost follows.
struct Appended {
  Sequence last;
  bool committed = true;
};
struct Bounds {  // ends are the next sequence
  Sequence start{1}, committed_end{1}, staged_end{1};
  std::uint64_t bytes = 0;
};
struct Miss {  // not in memory: LogStore::load it, then ask again
  ChannelHandle channel;
  std::uint64_t block = 0;
  std::uint32_t bytes = 0;
};
template <class T>
using Maybe = std::expected<T, std::variant<Miss, Error>>;

struct FileSlice {  // for sendfile; at most 1 MiB, and only of bytes that a read would not wait for
  const File* file = nullptr;
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
};
struct MemorySlice {
  Bytes bytes;
};
struct Slice {
  std::variant<FileSlice, MemorySlice> where;
  std::shared_ptr<const void> pin;  // keeps the file open or the memory alive
};
[[nodiscard]] std::uint32_t length_of(const Slice& slice) noexcept;

struct ReadRequest {
  Sequence from, below;  // batches that hold `from` or later, and only records below `below`
  std::uint32_t max_bytes = 0;
  bool at_least_one_batch = false;  // the first batch whole, however large
};
struct TimePosition {  // a batch: its max timestamp and first sequence
  Timestamp timestamp;
  Sequence sequence;
};
/// What recovery starts from: everything below `upto` is sound and synced; `state` is the
/// partition's own.
struct Checkpoint {
  Sequence upto{1};
  std::vector<std::byte> state;
  std::vector<std::byte> layout;  // the engine's own part: ChannelLog::layout() of the same moment
};
/// Gets whole batches one after the other; an error ends the replay.
using BatchVisitor = std::function<Result<void>(Bytes batch)>;

struct LogOptions {
  std::int64_t segment_bytes = 1 << 30;
  std::int64_t segment_ms = 604'800'000;
  std::int64_t segment_jitter_ms = 0;
  std::int64_t index_interval_bytes = 32 * 1024;
  std::int64_t file_delete_delay_ms = 0;  // how long a removed segment's file stays on the disk
  bool ack_after_sync =
      false;  // flush.messages=1: append answers committed=false, the flusher commits
  bool log_append_time = false;  // message.timestamp.type, of control batches too
};

class ChannelLog {  // one channel, opened under one leader epoch for life
 public:
  virtual ~ChannelLog() = default;
  /// Whole batches with offsets and epoch already in them, written by one gathered call; the
  /// caller's again on return. `max_timestamp` is the largest of the batches. An error means that
  /// nothing was staged: KAFKA_STORAGE_ERROR.
  virtual Result<Appended> append(Extent extent, Timestamp max_timestamp,
                                  std::span<const Bytes> batches) = 0;
  /// Adds slices of whole batches to `out`; the next sequence after them (== from: nothing there).
  virtual Maybe<Sequence> read(const ReadRequest& request, std::vector<Slice>& out) const = 0;
  /// The first batch whose max timestamp >= t; the broker walks its records outside the lock.
  virtual Maybe<std::optional<TimePosition>> find(Timestamp timestamp) const = 0;
  /// The first of the batches with the largest max timestamp; those wholly below the start or from
  /// `below` on don't count.
  virtual Maybe<std::optional<TimePosition>> find_max(Sequence below) const = 0;
  /// The largest timestamp of all batches, kNoTimestamp for an empty log. After a trim it may be a
  /// trimmed batch's: exact is find_max.
  [[nodiscard]] virtual Timestamp max_timestamp() const noexcept = 0;
  virtual Result<Appended> trim(Sequence new_start) = 0;
  virtual void configure(const LogOptions& options) = 0;
  [[nodiscard]] virtual Bounds bounds() const noexcept = 0;
  /// Adds what can be trimmed away as a whole to `out`, the oldest first.
  virtual void segments(std::vector<SegmentFacts>& out) const = 0;
  /// A pass of compaction over the segments that end at or before `below`.
  [[nodiscard]] virtual std::unique_ptr<Rewrite> rewrite(Sequence below) = 0;
  /// Takes over what a Rewrite has committed.
  virtual void adopt() = 0;
  /// Where the next pass of compaction begins, as its last one stored it; 1 where there was none.
  /// Helper threads; may block.
  virtual Result<Sequence> first_dirty() = 0;
  /// Bytes appended since the last checkpoint: the broker asks for one at 64 MiB, at a roll or
  /// after 60 s.
  [[nodiscard]] virtual std::uint64_t bytes_since_checkpoint() const noexcept = 0;
  /// What checkpoint() needs to know of this moment; under the partition's lock
  /// (Partition::checkpoint asks for it).
  [[nodiscard]] virtual std::vector<std::byte> layout() const = 0;
  virtual Result<void> checkpoint(const Checkpoint& checkpoint) = 0;
  /// Puts links of the channel's files into `directory`, which is not there yet, and hands out what
  /// `moment` said, which is called while none of them changes its name; LogSnapshot does the rest.
  /// Helper threads.
  virtual Result<Checkpoint> link_into(const std::string& directory,
                                       const std::function<Result<Checkpoint>()>& moment) const {
    (void)moment;
    return fail(ErrorCode::KAFKA_STORAGE_ERROR, "'" + directory + "': this log cannot be copied.");
  }
  /// Makes all that is staged durable and returns the sequence after it; the flusher reports it to
  /// the sink.
  virtual Result<Sequence> sync() = 0;
  /// All batches that hold `from` or later, read from the disk. Helper threads, at open, before the
  /// first append.
  virtual Result<void> replay(Sequence from, const BatchVisitor& visit) const = 0;
};

struct Progress {
  ChannelHandle channel;
  LeaderEpoch epoch;
  Sequence committed_end;
};
struct Loss {
  ChannelHandle channel;
  LeaderEpoch epoch;
  Error why;
};
class CommitSink {  // implemented in broker
 public:
  virtual ~CommitSink() = default;
  virtual void committed(
      std::span<const Progress> progress) noexcept = 0;  // each channel's progress is monotone
  virtual void lost(std::span<const Loss> losses) noexcept = 0;  // final for that (channel, epoch)
};

/// What a restart found in one channel, for the log line of the start.
struct RecoveryReport {
  bool scanned = false;  // false: the clean checkpoint was enough and no file was touched
  std::uint64_t scanned_bytes = 0;
  std::uint64_t cut_bytes = 0;  // torn tail
  bool damage_cut = false;      // SegmentStoreOptions::cut_damage took records out of the log …
  std::uint64_t set_aside_bytes = 0;  // … and kept this much beside it
  std::string detail;           // file and position of what was cut
};
struct Opened {
  std::unique_ptr<ChannelLog> log;
  std::optional<Checkpoint>
      checkpoint;  // replay of batches from `upto` on rebuilds the partition's state
  RecoveryReport report;
};

class LogStore {
 public:
  virtual ~LogStore() = default;
  virtual void start(CommitSink& sink) = 0;
  virtual Result<Opened> open(const ChannelId& id, ChannelHandle handle, LeaderEpoch epoch,
                              const LogOptions& options) = 0;
  /// Every channel that existed is open: what lies under the name of one opened later is foreign,
  /// such as what a kill left of a topic whose deletion was stored.
  virtual void all_opened() noexcept {}
  /// Renames the channel away at once and removes it later; missing is fine.
  virtual Result<void> remove(const ChannelId& id) = 0;
  virtual void load(Miss miss,
                    std::move_only_function<void(Result<void>)> done) = 0;  // done: any thread
  /// Unlinks some of what was trimmed away and has waited LogOptions::file_delete_delay_ms, or,
  /// where the disk is `full`, all the same: who still reads it holds its handle. Whether more is
  /// due. Helper threads.
  virtual bool tidy(bool full = false) = 0;
  struct Synced {
    std::size_t index = 0;  // in the logs asked for
    Result<Sequence> end;   // as of ChannelLog::sync
  };
  using OnSynced = std::function<void(std::span<Synced>)>;
  /// ChannelLog::sync of many, sharing what they can. News come as soon as they are there, what
  /// became durable together in one call, on this thread. Blocks: helper threads.
  virtual void sync(std::span<ChannelLog* const> logs, const OnSynced& on_synced) = 0;
  virtual void flush() noexcept = 0;  // "this loop iteration staged its last byte"
  [[nodiscard]] virtual std::size_t room()
      const noexcept = 0;  // bytes it will still take; local files: SIZE_MAX
  /// From here on ChannelLog::checkpoint is kept in memory; stop() syncs all channels together and
  /// writes one file for all of them.
  virtual void prepare_stop() noexcept = 0;
  virtual Result<void> stop(Deadline deadline) = 0;  // commits what is staged, or reports it lost
};

/// Segment files under `directory`/<channel>/<20-digit base offset>.log. `helpers` runs what may
/// block.
struct SegmentStoreOptions {
  std::string directory;  // …/channels
  std::size_t max_open_files = 1024;
  std::uint64_t journal_bytes = 64 << 20;  // of the journal that many logs share for their syncs
  std::uint64_t journal_id = 0;            // random: tells this start's entries from all others
  bool cut_damage = false;  // a damaged log is cut before the damage; else it does not open
};
[[nodiscard]] std::unique_ptr<LogStore> make_segment_store(FileSystem& files, Executor& helpers,
                                                           const Clock& clock,
                                                           const SegmentStoreOptions& options);

}  // namespace kanal::log
