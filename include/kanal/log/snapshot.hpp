// A copy of running logs in a directory of its own, each log as a clean stop at one moment would
// have left it. add() takes links of a channel's files while nothing renames or removes them, which
// is quick; finish() copies what would go on growing and writes the mark of a clean shutdown. Only
// full segments stay links: nobody writes to them in either place. Helper threads; not synced here.
#pragma once

#include "kanal/log/channel_log.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace kanal::log {

struct SnapshotFigures {
  std::uint64_t channels = 0, segments = 0;
  std::uint64_t linked_bytes = 0, copied_bytes = 0;
};

/// The name of the index that a full segment of this name has beside it; nothing for other files.
[[nodiscard]] std::optional<std::string> index_of_segment(std::string_view name);

class LogSnapshot {
 public:
  /// `links` is on the logs' file system, `target` may be the same directory; neither is there yet.
  LogSnapshot(FileSystem& files, std::string links, std::string target);
  ~LogSnapshot();
  LogSnapshot(const LogSnapshot&) = delete;
  LogSnapshot& operator=(const LogSnapshot&) = delete;

  /// `moment` takes the partition's lock and says what the copy is to hold.
  Result<void> add(const ChannelId& id, ChannelLog& log,
                   const std::function<Result<Checkpoint>()>& moment);
  /// Ends early with an error where `cancelled` says so.
  Result<SnapshotFigures> finish(const std::function<bool()>& cancelled);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kanal::log
