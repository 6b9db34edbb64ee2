// Opening a channel: from the clean checkpoint without touching a file, else by scanning what lies
// behind the last checkpoint. Helper threads; may wait for the disk. A torn tail is cut and
// reported. Damage with a sound batch behind it, in an earlier segment, or in bytes that a
// checkpoint vouches for is an error that names file and position: nothing is ever skipped.
#pragma once

#include "checkpoint.hpp"
#include "core.hpp"
#include "segment_log.hpp"

#include <optional>

namespace kanal::log {

struct Recovered {
  LogState state;
  std::optional<Checkpoint> checkpoint;  // the one that was used
  RecoveryReport report;
};

/// `saved`: what the last shutdown wrote for this incarnation of the channel; `saved->clean` is
/// trusted as it is.
Result<Recovered> recover(Core& core, const LogOptions& options, std::optional<SavedChannel> saved);

}  // namespace kanal::log
