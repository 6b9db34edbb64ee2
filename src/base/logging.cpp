#include "kanal/base/logging.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <mutex>
#include <string>

namespace kanal {
namespace {

std::shared_ptr<spdlog::sinks::sink> shared_sink() {
  static const auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  return sink;
}

spdlog::level::level_enum current_level = spdlog::level::info;

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
  made->set_level(current_level);
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
  spdlog::set_level(parsed);
  return true;
}

}  // namespace kanal
