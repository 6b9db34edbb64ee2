// One spdlog logger a layer: a line is a sentence and key=value pairs, never payloads or secrets.
// Any thread.
#pragma once

#include <spdlog/logger.h>

#include <map>
#include <string>
#include <string_view>

namespace kanal {

/// The logger of a layer ("server", "broker", "log", …); made on first use, writes to stderr.
[[nodiscard]] spdlog::logger& logger(std::string_view layer);

/// Level for all loggers: trace, debug, info, warn, error, off. False if the word is none of them.
[[nodiscard]] bool set_log_level(std::string_view level);

// Single loggers while running, as Kafka's admin clients see them (KIP-412): levels are FATAL,
// ERROR, WARN, INFO, DEBUG, TRACE (and OFF, which only the start-up file sets). The logger "root"
// is the level of all that have none of their own. Not stored.
inline constexpr std::string_view kRootLogger = "root";
/// Every logger with the level in force.
[[nodiscard]] std::map<std::string, std::string> logger_levels();
[[nodiscard]] bool is_level_name(std::string_view level);
/// Both take a name that logger_levels() has, and a level that is one.
void set_logger_level(std::string_view name, std::string_view level);
void unset_logger_level(std::string_view name);

}  // namespace kanal
