// A consistent copy of a data directory: of a running broker's (Broker::snapshot), or of one that
// no daemon uses (snapshot_offline). The copy is as after a clean stop at one moment: the reserved
// channels first, then every log, so that nothing stored there speaks of records that the logs
// lack. Helper threads; takes as long as copying each log's last segment does.
#pragma once

#include "kanal/base/error.hpp"
#include "kanal/base/file_system.hpp"
#include "kanal/log/snapshot.hpp"

#include <functional>
#include <string>

namespace kanal::broker {

struct SnapshotReport {
  std::string directory;
  std::size_t topics = 0, partitions = 0;
  log::SnapshotFigures logs;
};
using Cancelled = std::function<bool()>;

/// INVALID_REQUEST where `directory` is not empty; an error with os_error EWOULDBLOCK where a
/// daemon uses the data.
[[nodiscard]] Result<SnapshotReport> snapshot_offline(FileSystem& files,
                                                      const std::string& data_directory,
                                                      const std::string& directory);

}  // namespace kanal::broker
