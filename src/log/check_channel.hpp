// One channel's part of check_channels: its directory against what the last stop, the checkpoints
// and the catalog say. check_segment.cpp has the bytes of one segment. Reads only; one thread.
#pragma once

#include "checkpoint.hpp"
#include "compaction_record.hpp"
#include "index.hpp"

#include "kanal/log/check.hpp"
#include "kanal/log/partition.hpp"

#include <span>
#include <string>
#include <vector>

namespace kanal::log {

using Weight = Finding::Weight;

/// A place in a segment that a checkpoint names.
struct Vouched {
  std::uint64_t position = 0;
  Sequence end{1};
  const std::string* by = nullptr;  // its file
};
struct SegmentCheck {
  std::string path;
  Sequence base{1};
  const CompactedSegment* compacted = nullptr;  // what compaction says of it: it may have gaps
  LeaderEpoch epoch{-1};                        // of the batch before it
  const IndexFile* index = nullptr;             // sound in itself; nullptr: none
  std::string index_path;
  std::vector<Vouched> vouched;        // by position
  std::span<const EpochEntry> epochs;  // of the batches below …
  Sequence epochs_upto{1};             // … this, as a checkpoint has them
};
struct SegmentFound {
  std::uint64_t size = 0;
  std::uint64_t sound = 0;  // up to the first damage, or the end
  Sequence next{1};         // after the last sound batch below it
  LeaderEpoch epoch{-1};    // the highest
  std::string damage;       // what is wrong at `sound`; empty: nothing
  bool behind = false;      // sound batches follow the damage
};
/// Damage that sound batches follow is told; what lies at the end is the caller's to judge.
Result<SegmentFound> check_segment(FileSystem& files, const SegmentCheck& segment,
                                   const ChannelCheck& check, ChannelFigures& figures);

struct SavedFile {  // clean-shutdown or recovery-points
  std::string path;
  const SavedChannel* channel = nullptr;
  bool trusted = false;  // the next start takes it as it is
};
/// The sound part of the log; nothing where there is none.
struct LogBounds {
  Sequence start{1}, end{1};
};
Result<LogBounds> check_channel(FileSystem& files, const ChannelId& id, const SavedFile& saved,
                                const ChannelCheck& check, ChannelFigures& figures);

}  // namespace kanal::log
