// What the owner of a channel (under the partition's lock) shares with helper threads: identity,
// file handles, what is dirty, what was loaded, whether the log has failed for good. StoreContext
// is the same for the whole store. Atomics and Leaf-guarded members: any thread. A Core outlives
// its SegmentLog while helpers hold it.
#pragma once

#include "channel_file.hpp"
#include "checkpoint.hpp"
#include "compaction_record.hpp"
#include "file_cache.hpp"
#include "leaf.hpp"
#include "segment.hpp"

#include "kanal/log/channel_log.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kanal::log {

class Core;
class Journal;

/// The channels open now, and what stop() writes for them.
struct OpenChannels {
  std::vector<std::weak_ptr<Core>> by_handle;
  std::unordered_map<std::string_view, Core*> by_name;  // keys lie in the cores
  bool stopping = false;
  std::unordered_map<std::string, SavedChannel> kept;
};

struct StoreContext {
  StoreContext(FileSystem& file_system, Executor& executor, const Clock& time, std::string where,
               std::size_t max_open_files)
      : files(file_system),
        helpers(executor),
        clock(time),
        directory(std::move(where)),
        cache(file_system, max_open_files) {}

  FileSystem& files;
  Executor& helpers;
  const Clock& clock;
  const std::string directory;
  bool cut_damage = false;  // set before anything is opened
  FileCache cache;
  std::atomic<std::uint64_t> written = 0;    // bytes appended to all channels
  std::atomic<std::uint64_t> set_aside = 0;  // makes names in .removed and .stray unique
  struct SetAside {
    Time due;
    std::string path;
  };
  Leaf<std::vector<SetAside>> to_remove;  // trimmed away, still on the disk
  /// After a stop: logs that close later leave what is reserved behind their end to the next start.
  std::atomic<Time> tidy_until = Time::max();
  Leaf<OpenChannels> channels;
  std::shared_ptr<Journal> journal;
};

class Core : public std::enable_shared_from_this<Core> {
 public:
  /// A part of a segment that a helper brought into memory.
  struct Loaded {
    std::uint32_t ordinal = 0;
    std::uint64_t begin = 0, end = 0;
    std::shared_ptr<Index> index;  // of [0, end); nullptr: pages
  };

  Core(std::shared_ptr<StoreContext> context, ChannelId id, ChannelHandle handle,
       LeaderEpoch epoch);
  ~Core();

  [[nodiscard]] StoreContext& store() const noexcept { return *context_; }
  [[nodiscard]] const ChannelId& id() const noexcept { return id_; }
  [[nodiscard]] ChannelHandle handle() const noexcept { return handle_; }
  [[nodiscard]] LeaderEpoch epoch() const noexcept { return epoch_; }
  [[nodiscard]] std::string directory() const;
  [[nodiscard]] std::string path(std::string_view name) const;

  struct Seal {
    std::shared_ptr<SegmentFile> file;
    IndexFile index;                      // without the blocks
    std::shared_ptr<const Index> blocks;  // incomplete or nullptr: made from the headers
  };

  std::shared_ptr<SegmentFile> make_file(SegmentId id);
  std::shared_ptr<SegmentFile> make_file(Sequence base) { return make_file(SegmentId{base, 0}); }
  void add_seal(Seal seal);
  void drop_file(const std::shared_ptr<SegmentFile>& file);
  Result<std::shared_ptr<File>> open(SegmentFile& file, OpenMode mode = OpenMode::kReadWrite);
  void mark_dirty(const std::shared_ptr<SegmentFile>& file);

  /// The log takes no more: `why` is what every later append gets.
  Error fail_for_good(Error why);
  /// A reader or a helper met damage in the segment (an error of the disk is none): the log takes
  /// no more, and the next start looks at every byte. What to tell. Any thread.
  Error damaged(SegmentId segment, Error why);
  [[nodiscard]] Result<void> usable();
  void mark_removed() noexcept { removed_ = true; }
  /// After mark_removed(): returns once no helper works on the files any more, whose names may then
  /// be another log's. May wait for the disk; holding no lock.
  void wait_for_helpers() {
    sync_turn_.with([] {});
  }
  [[nodiscard]] bool removed() const noexcept { return removed_; }
  /// The store has stopped: nothing is appended any more.
  void close() noexcept { closed_ = true; }
  /// Whether the files are still this log's to tidy up.
  [[nodiscard]] bool owns_files() const noexcept { return !removed_ && !failed_; }

  // Helper threads; may wait for the disk.
  Result<Sequence> sync();
  [[nodiscard]] bool needs_sync();
  /// The bytes that have to be durable so that all below `end` is.
  struct Unsynced {
    std::shared_ptr<SegmentFile> file;  // nullptr: another sync was quicker
    std::shared_ptr<File> handle;
    std::uint64_t from = 0, upto = 0;
    Sequence end{1};
  };
  /// Nothing where only sync() will do: new names, several segments, more than `limit` bytes; nor
  /// while another helper works on the channel's files, so that many logs never wait for one.
  std::optional<Unsynced> unsynced(std::uint64_t limit);
  /// The journal has them.
  void note_durable(const Unsynced& unsynced);
  /// Another sync has covered everything up to `end`; nothing was appended since.
  void note_synced(Sequence end);
  Result<void> sync_channel_file();
  Result<void> load(const Miss& miss);
  /// Nothing is written where a newer one is.
  Result<void> write_checkpoint(Sequence upto, Bytes file);
  /// Full segments whose seal is due: what was reserved is freed, the segment synced, its index
  /// written and synced with the mark that this is done. A sync does it before anything else, so
  /// that records in a later segment are durable only behind a sealed one.
  void run_seals();
  /// After a trim: the new start becomes durable, then the files go, at once or set aside for
  /// `delay`. Who still reads one holds its handle.
  void remove_files(const std::vector<std::shared_ptr<SegmentFile>>& files,
                    std::chrono::milliseconds delay);

  std::vector<Loaded> take_loaded();

  /// `use` changes files in the channel's directory; see sync_turn_. Helper threads.
  template <class Use>
  decltype(auto) in_turn(Use&& use) {
    return sync_turn_.with(std::forward<Use>(use));
  }
  [[nodiscard]] bool is_dropped(const SegmentFile& file);

  // Compaction; core_compaction.cpp.
  struct Swap {
    struct Fresh {
      std::shared_ptr<SegmentFile> file;
      CompactedSegment facts;
    };
    std::vector<std::shared_ptr<SegmentFile>> gone;
    std::vector<Fresh> fresh;
  };
  /// In the turn. Read from the disk when first asked for; an error where it cannot be trusted.
  Result<const CompactionRecord*> compaction_record();
  void set_compaction_record(CompactionRecord record);
  Leaf<std::vector<Swap>> swaps;               // committed, for the owner to adopt
  std::atomic<std::int64_t> first_dirty = 0;  // a sequence; 0: the record was not read yet

  std::atomic<std::int64_t> staged_end = 1;  // written by the owner after the bytes are
  std::atomic<std::int64_t> synced_end = 1;
  std::atomic<std::uint64_t> appended = 0;      // bytes since the channel was opened
  std::atomic<std::uint64_t> checkpointed = 0;  // the count of `appended` at the last checkpoint
  std::atomic<std::uint32_t> index_interval = 32 * 1024;
  std::atomic<bool> names_dirty = false;    // files or directories made since the last sync
  std::atomic<bool> channel_dirty = false;  // the channel file was written since then
  std::atomic<bool> has_loaded = false;
  std::atomic<bool> ack_after_sync = false;

 private:
  struct Shared {
    std::vector<std::shared_ptr<SegmentFile>> files;
    std::vector<std::shared_ptr<SegmentFile>> dirty;
    std::vector<Loaded> loaded;
    std::vector<Seal> seals;
    std::uint32_t next_ordinal = 0;
    Error why;
  };
  struct Condemned {
    SegmentId id;
    std::chrono::milliseconds delay;
  };
  Result<Sequence> sync_in_turn();
  void remove_condemned();
  void remove_later(const std::string& name, Time due);
  Result<void> seal_pending();
  Result<void> seal(Seal& seal);
  Result<void> load_pages(const std::shared_ptr<SegmentFile>& file, std::uint64_t position,
                          std::uint64_t size);
  Result<void> load_index(const std::shared_ptr<SegmentFile>& file, std::uint64_t end);

  const std::shared_ptr<StoreContext> context_;
  const ChannelId id_;
  const ChannelHandle handle_;
  const LeaderEpoch epoch_;
  std::atomic<bool> failed_ = false;
  std::atomic<bool> removed_ = false;
  std::atomic<bool> closed_ = false;
  Leaf<Shared> shared_;
  Turn sync_turn_;              // held by helpers over all they change in the channel's directory
  Sequence checkpoint_upto_{1};  // in the turn: of the newest checkpoint written
  std::unique_ptr<CompactionRecord> compaction_;  // in the turn
  std::vector<Condemned> condemned_;  // in the turn: trimmed, go once the start is synced
};

/// Nothing was done and nothing is lost: the next attempt may go through.
[[nodiscard]] bool is_out_of_handles(const Error& error);

/// A name nothing else in .removed or .stray has; short, whatever the topic's name.
[[nodiscard]] std::string unique_name(StoreContext& context, const ChannelId& id);

/// A segment's index file; an error where there is none, or it is damaged.
[[nodiscard]] Result<IndexFile> read_index(FileSystem& files, const std::string& path);
/// Writes a segment's index file; losing it costs a rebuild, so that errors are only logged.
void write_index(FileSystem& files, const std::string& path, const IndexFile& index, bool sync);

}  // namespace kanal::log
