// One segment of a channel: a file of whole batches exactly as Kafka lays them out, named by the
// offset of its first record. Segment is the owner's view (under the partition's lock); SegmentFile
// is what helper threads share of it. Names of the log's files are made and parsed here only.
// Positions and sizes in bytes; segments stay below 4 GiB.
#pragma once

#include "file_cache.hpp"
#include "index.hpp"

#include "kanal/base/ids.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace kanal::log {

inline constexpr std::string_view kChannelFile = "channel";
inline constexpr std::string_view kCheckpointFile = "checkpoint";
inline constexpr std::string_view kCleanFile = "clean-shutdown";
inline constexpr std::string_view kPointsFile = "recovery-points";
inline constexpr std::string_view kRemovedDirectory = ".removed";  // topics deleted, unlinked soon
inline constexpr std::string_view kStrayDirectory = ".stray";  // foreign channels, for the operator

/// Which file of the log. What compaction wrote has a generation, counted from 1 over all of it.
struct SegmentId {
  Sequence base{1};
  std::uint32_t generation = 0;
  friend auto operator<=>(const SegmentId&, const SegmentId&) = default;
};
[[nodiscard]] std::string segment_name(SegmentId id);  // <20-digit offset>[.<generation>].log
[[nodiscard]] std::string index_name(SegmentId id);    // <20-digit offset>[.<generation>].kindex
[[nodiscard]] inline std::string segment_name(Sequence base) { return segment_name({base, 0}); }
[[nodiscard]] inline std::string index_name(Sequence base) { return index_name({base, 0}); }
/// What a segment's file name says; nothing for other names.
[[nodiscard]] std::optional<SegmentId> parse_segment(std::string_view name);
[[nodiscard]] std::optional<SegmentId> parse_index(std::string_view name);

struct SegmentFile {
  SegmentFile(FileCache& open_files, SegmentId which, std::uint32_t number)
      : cache(open_files), base(which.base), generation(which.generation), ordinal(number) {}
  SegmentFile(const SegmentFile&) = delete;
  SegmentFile& operator=(const SegmentFile&) = delete;
  ~SegmentFile() { cache.drop(slot); }

  [[nodiscard]] SegmentId id() const noexcept { return {base, generation}; }

  FileCache& cache;
  const Sequence base;
  const std::uint32_t generation;
  const std::uint32_t ordinal;  // counts up while the channel is open; names the segment in a Miss
  std::atomic<bool> dirty = false;  // written since its last sync
  std::atomic<std::uint64_t> written = 0;  // bytes of whole batches; set before the staged end
  std::atomic<std::uint64_t> durable = 0;  // bytes of these that are, here or in the journal
  std::uint64_t journal_use = 0;           // in the journal's turn: the last that has bytes of it
  FileCache::Slot slot;
};

struct Segment {
  std::shared_ptr<SegmentFile> file;
  Sequence end{1};              // the next sequence after its last record
  std::uint64_t size = 0;       // bytes of whole batches
  std::uint64_t allocated = 0;  // bytes reserved on disk by this process
  Timestamp first_timestamp{
      -1};  // max timestamp of the first batch: rolling by time counts from it
  Timestamp max_timestamp{-1};
  Timestamp created{0};   // wall clock, for rolling where the first batch has no timestamp
  Timestamp written{-1};  // wall clock of the last batch without a timestamp, else < created
  /// Covers [indexed_from, size). Shared with the helper that writes it out; not changed after
  /// sealing.
  std::shared_ptr<Index> index;
  std::uint64_t indexed_from = 0;
  std::uint64_t written_from = 0;  // bytes from here on were written by this process …
  std::uint64_t written_at = 0;    // … the last of them at this count of bytes over the whole store
  mutable bool checked = true;     // the file's size was compared with `size`

  [[nodiscard]] SegmentId id() const noexcept { return file->id(); }
  [[nodiscard]] Sequence base() const noexcept { return file->base; }
  [[nodiscard]] std::uint32_t ordinal() const noexcept { return file->ordinal; }
};

}  // namespace kanal::log
