#include "kanal/base/logging.hpp"

#include <spdlog/pattern_formatter.h>
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

bool write_json = false;

/// The message as the inside of a JSON string.
class JsonMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& line, const std::tm&, spdlog::memory_buf_t& out) override {
    for (const char each : line.payload) {
      const auto code = static_cast<unsigned char>(each);
      if (each == '"' || each == '\\') {
        out.push_back('\\');
        out.push_back(each);
      } else if (code < 0x20) {
        fmt::format_to(std::back_inserter(out), "\\u{:04x}", code);
      } else {
        out.push_back(each);
      }
    }
  }
  [[nodiscard]] std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<JsonMessage>();
  }
};

std::unique_ptr<spdlog::formatter> make_formatter() {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  if (write_json) {
    formatter->add_flag<JsonMessage>('*').set_pattern(
        R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","logger":"%n","message":"%*"})");
  } else {
    formatter->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %^%-5l%$ %n: %v");
  }
  return formatter;
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
  made->set_level(current_level);
  made->set_formatter(make_formatter());
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

void set_log_json(bool json) {
  const std::lock_guard lock(making());
  write_json = json;
  shared_sink()->set_formatter(make_formatter());
}

}  // namespace kanal
