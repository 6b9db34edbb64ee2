// <channel>/channel: which incarnation of a channel a directory belongs to and where its log
// starts. Two slots of 512 bytes, each with generation and CRC; a change is written to the older
// slot without a sync, so that a torn write leaves the other one. Written under the partition's
// lock (a small page-cache write), synced by helpers. Format version 1.
#pragma once

#include "kanal/base/channel.hpp"
#include "kanal/base/file_system.hpp"
#include "kanal/base/ids.hpp"

#include <cstdint>
#include <string>

namespace kanal::log {

struct ChannelState {
  Uuid topic_id;
  PartitionIndex partition{0};
  Sequence start{1};
  std::uint64_t generation = 0;
};

struct ChannelFile {
  enum class Condition {
    kSound,
    kRepaired,   // one slot was damaged: the other is used
    kUnwritten,  // missing, short or zeros: never completely written
    kDamaged,    // both slots were written and neither is sound
  };
  Condition condition = Condition::kUnwritten;
  ChannelState state;  // where kSound or kRepaired
};

/// Both slots, for a new directory.
Result<void> create_channel_file(FileSystem& files, const std::string& path,
                                 const ChannelState& state);
/// One slot: `state.generation` tells which.
Result<void> update_channel_file(FileSystem& files, const std::string& path,
                                 const ChannelState& state);
/// An error where the file cannot be read or has a newer format.
Result<ChannelFile> read_channel_file(FileSystem& files, const std::string& path);

}  // namespace kanal::log
