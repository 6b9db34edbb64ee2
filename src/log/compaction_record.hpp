// <channel>/compaction: what compaction has made of a log. It says which segments may have gaps and
// what is in them, so that recovery finds a lost batch there too; which of two files with the same
// records counts (the one that is listed); and where the next pass begins. The file is replaced as
// a whole, which is the moment a swap of segments is decided; it holds two copies, so that one bad
// sector does not take the log with it. Plain values: any thread; files: helper threads.
#pragma once

#include "segment.hpp"

#include "kanal/base/file_system.hpp"
#include "kanal/base/ids.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kanal::log {

inline constexpr std::string_view kCompactionFile = "compaction";

/// A segment that compaction wrote, complete and synced.
struct CompactedSegment {
  SegmentId id;
  Sequence end{1};  // base of the next segment; the last batch may end before
  std::uint64_t size = 0;
  std::uint64_t batches = 0;
  std::uint32_t crc = 0;  // CRC-32C of the whole file
  LeaderEpoch last_epoch{-1};
  Timestamp first_timestamp{-1};
  Timestamp max_timestamp{-1};
  Timestamp newest{-1};  // as of SegmentFacts, for retention
};

struct CompactionRecord {
  Sequence first_dirty{1};
  std::uint32_t next_generation = 1;
  std::vector<CompactedSegment> segments;  // by base; they don't overlap

  /// The new ones instead of whatever overlaps [from, end).
  void replace(Sequence from, Sequence end, const std::vector<CompactedSegment>& with);
  /// Nothing of it is in the log any more.
  void drop_below(Sequence start);
  [[nodiscard]] const CompactedSegment* find(Sequence base) const noexcept;
  /// The one that holds `sequence`.
  [[nodiscard]] const CompactedSegment* holder(Sequence sequence) const noexcept;
  /// Whether a file with this name is part of the log: what is listed, and what nothing listed took
  /// the place of.
  [[nodiscard]] bool counts(const SegmentId& id) const noexcept;
  /// The file of the segment that begins there.
  [[nodiscard]] SegmentId file_of(Sequence base) const noexcept;
};

[[nodiscard]] Buffer encode_compaction(const CompactionRecord& record);
[[nodiscard]] Result<CompactionRecord> decode_compaction(Bytes file);

struct StoredCompaction {
  enum class Condition { kMissing, kSound, kRepaired, kDamaged };
  Condition condition = Condition::kMissing;
  CompactionRecord record;
  std::string why;  // it is damaged
};
/// An error where it cannot be read.
Result<StoredCompaction> read_compaction(FileSystem& files, const std::string& path);

struct WrittenCompaction {
  Result<void> done;
  bool in_doubt = false;  // after an error: the new one may be there nevertheless
};
/// Replaces the file in `directory`, durably.
WrittenCompaction write_compaction(FileSystem& files, const std::string& directory,
                                   const CompactionRecord& record);

}  // namespace kanal::log
