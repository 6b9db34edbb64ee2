#include "kanal/base/logging.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <utility>

namespace kanal {
namespace {

std::shared_ptr<spdlog::sinks::sink> shared_sink() {
  static const auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  return sink;
}

spdlog::level::level_enum current_level = spdlog::level::info;

// Loggers with a level of their own.
std::map<std::string, spdlog::level::level_enum, std::less<>>& own_levels() {
  static std::map<std::string, spdlog::level::level_enum, std::less<>> levels;
  return levels;
}

// The layers that log; others appear once they do.
constexpr std::array<std::string_view, 4> kLayers = {"broker", "log", "reserved", "server"};

using Level = spdlog::level::level_enum;
constexpr std::array<std::pair<std::string_view, Level>, 7> kLevels = {{
    {"FATAL", spdlog::level::critical},
    {"ERROR", spdlog::level::err},
    {"WARN", spdlog::level::warn},
    {"INFO", spdlog::level::info},
    {"DEBUG", spdlog::level::debug},
    {"TRACE", spdlog::level::trace},
    {"OFF", spdlog::level::off},
}};

std::string level_name(Level level) {
  const auto* found = std::ranges::find(kLevels, level, [](const auto& one) { return one.second; });
  return std::string(found == kLevels.end() ? "INFO" : found->first);
}

/// Sets every logger without a level of its own to the common one. Under making().
void spread_level() {
  spdlog::apply_all([](const std::shared_ptr<spdlog::logger>& one) {
    const auto own = own_levels().find(one->name());
    one->set_level(own != own_levels().end() ? own->second : current_level);
  });
}

std::mutex& making() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

spdlog::logger& logger(std::string_view layer) {
  const std::string name(layer);
  if (auto found = spdlog::get(name)) return *found;
  const std::lock_guard lock(making());
  if (auto found = spdlog::get(name)) return *found;
  auto made = std::make_shared<spdlog::logger>(name, shared_sink());
  const auto own = own_levels().find(name);
  made->set_level(own != own_levels().end() ? own->second : current_level);
  made->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %^%-5l%$ %n: %v");
  made->flush_on(spdlog::level::warn);
  spdlog::register_logger(made);
  return *made;
}

bool set_log_level(std::string_view level) {
  const std::string name = level == "warning" ? "warn" : std::string(level);
  const auto parsed = spdlog::level::from_str(name == "warn" ? "warning" : name);
  if (parsed == spdlog::level::off && name != "off") return false;
  const std::lock_guard lock(making());
  current_level = parsed;
  spdlog::set_level(parsed);  // loggers of other libraries too
  spread_level();
  return true;
}

std::map<std::string, std::string> logger_levels() {
  for (const std::string_view layer : kLayers) (void)logger(layer);
  const std::lock_guard lock(making());
  std::map<std::string, std::string> levels;
  spdlog::apply_all([&](const std::shared_ptr<spdlog::logger>& one) {
    if (!one->name().empty()) levels.emplace(one->name(), level_name(one->level()));
  });
  levels.insert_or_assign(std::string(kRootLogger), level_name(current_level));
  return levels;
}

bool is_level_name(std::string_view level) {
  return level != "OFF" &&
         std::ranges::any_of(kLevels, [&](const auto& one) { return one.first == level; });
}

void set_logger_level(std::string_view name, std::string_view level) {
  const auto* found = std::ranges::find(kLevels, level, [](const auto& one) { return one.first; });
  if (found == kLevels.end()) return;
  const std::lock_guard lock(making());
  if (name == kRootLogger) {
    current_level = found->second;
  } else {
    own_levels().insert_or_assign(std::string(name), found->second);
  }
  spread_level();
}

void unset_logger_level(std::string_view name) {
  const std::lock_guard lock(making());
  if (const auto own = own_levels().find(name); own != own_levels().end()) own_levels().erase(own);
  spread_level();
}

}  // namespace kanal
