// Looks over all channels of a data directory that nobody uses: every byte of every segment (CRC,
// offsets, leader epochs), every file beside them and whether they agree. Reads only, streams, in
// the calling thread. What it means is told from the view of the next start: what it would cut,
// make again, or refuse.
#pragma once

#include "kanal/base/channel.hpp"
#include "kanal/base/file_system.hpp"
#include "kanal/base/finding.hpp"
#include "kanal/base/ids.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kanal::log {

struct ChannelFigures {
  std::uint64_t channels = 0;  // with a directory
  std::uint64_t segments = 0, batches = 0, records = 0, bytes = 0;
};
struct ChannelCheck {
  std::string directory;                           // …/channels
  std::optional<std::vector<ChannelId>> channels;  // of the catalog; nothing: it cannot be read
  LeaderEpoch newest{-1};                          // of the last start; -1: not known
  FindingSink found;
  std::function<void(const ChannelFigures&)> progress;  // every few MiB; may be empty
  /// The log of each channel of the catalog, as far as it is sound; may be empty.
  std::function<void(const ChannelId&, Offset start, Offset end)> bounds;
};
/// An error where the directory cannot be looked at.
[[nodiscard]] Result<ChannelFigures> check_channels(FileSystem& files, const ChannelCheck& check);

}  // namespace kanal::log
