// `kanald --check-data DIR`: prints what a look at the directory finds. Main thread.
#pragma once

#include <string>

namespace kanal::server {

/// Exit code: 0 sound (perhaps after recovery), 1 damage was found, 2 it cannot be checked.
[[nodiscard]] int check_data_command(const std::string& directory);

}  // namespace kanal::server
