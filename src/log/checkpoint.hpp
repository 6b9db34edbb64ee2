// What recovery starts from. A Layout is the engine's part of a Checkpoint (segments and where they
// ended), taken under the partition's lock; a SavedChannel is a whole Checkpoint with the identity
// it belongs to. One of them makes <channel>/checkpoint; those of all channels make
// `clean-shutdown`, which becomes `recovery-points` at the next start. All files are blobs
// (blob.hpp), format version 1. Plain values: any thread.
#pragma once

#include "kanal/base/channel.hpp"
#include "kanal/base/file_system.hpp"
#include "kanal/log/channel_log.hpp"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace kanal::log {

struct SegmentLayout {
  Sequence base{1}, end{1};
  std::uint32_t generation = 0;  // of its file, where compaction wrote it
  std::uint64_t size = 0;
  Timestamp first_timestamp{-1};
  Timestamp max_timestamp{-1};
};

struct Layout {
  Sequence start{1};
  Sequence end{1};
  std::uint64_t generation = 0;  // of the channel file
  bool created = false;          // the directory exists
  LeaderEpoch last_epoch{-1};    // of the last batch
  std::uint64_t appended = 0;    // this process's count at that moment, for bytes_since_checkpoint
  std::vector<SegmentLayout> segments;
};
[[nodiscard]] std::vector<std::byte> encode_layout(const Layout& layout);
[[nodiscard]] Result<Layout> decode_layout(Bytes bytes);

struct SavedChannel {
  ChannelId id;
  bool clean = false;  // nothing was appended after it and all of it is synced
  Checkpoint checkpoint;
};

[[nodiscard]] Buffer encode_checkpoint(const SavedChannel& channel);
[[nodiscard]] Result<SavedChannel> decode_checkpoint(Bytes file);
/// An error where there is none, or it is damaged.
[[nodiscard]] Result<SavedChannel> read_checkpoint(FileSystem& files, const std::string& path);

[[nodiscard]] Buffer encode_all(const std::vector<SavedChannel>& channels);
[[nodiscard]] Result<std::unordered_map<std::string, SavedChannel>> decode_all(Bytes file);

}  // namespace kanal::log
