// One spdlog logger a layer: a line is a sentence and key=value pairs, never payloads or secrets.
// Any thread.
#pragma once

#include <spdlog/logger.h>

#include <string_view>

namespace kanal {

/// The logger of a layer ("server", "broker", "log", …); made on first use, writes to stderr.
[[nodiscard]] spdlog::logger& logger(std::string_view layer);

/// Level for all loggers: trace, debug, info, warn, error, off. False if the word is none of them.
[[nodiscard]] bool set_log_level(std::string_view level);

}  // namespace kanal
