// `kanald --data-dir D --snapshot DIR`: asks the daemon that uses D, or makes the snapshot itself
// where none does (snapshot_command, main thread); and the daemon's side (answer_control, the
// control thread).
#pragma once

#include "config.hpp"
#include "kanal/broker/broker.hpp"

#include <functional>
#include <string>

namespace kanal::server {

/// Exit code: 0 made, 1 not made.
[[nodiscard]] int snapshot_command(const Config& config, const std::string& directory);
[[nodiscard]] Result<std::string> answer_control(broker::Broker& broker, const std::string& line,
                                                 const std::function<bool()>& cancelled);

}  // namespace kanal::server
