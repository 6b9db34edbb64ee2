// What the configuration asks of the machine: its environment, the file, CPUs and memory.
#include "config.hpp"
#include "kanal/base/file_system.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

extern char** environ;

namespace kanal::server {
namespace {

constexpr std::uint64_t kMaxFileBytes = 1 << 20;
constexpr std::uint64_t kLeastRequestMemory = 64ull << 20;
constexpr std::uint32_t kMostIoThreads = 16;

/// A small file of /proc or /sys, whose size is told as 0; empty if it cannot be read.
std::string read_small(FileSystem& files, const std::string& path) {
  auto file = files.open(path, OpenMode::kRead);
  if (!file) return {};
  Buffer buffer(4096);
  const auto got = (*file)->read_at(0, buffer);
  if (!got) return {};
  return std::string(reinterpret_cast<const char*>(buffer.data()), *got);
}

std::optional<std::uint64_t> leading_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end == text.data()) return std::nullopt;
  return number;
}

/// The limits of the process's cgroup, version 2 ("max" is none) or version 1, and of those above.
std::uint64_t memory_limit(FileSystem& files) {
  std::uint64_t bytes = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                        static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE));
  std::string group = read_small(files, "/proc/self/cgroup");
  const auto own = group.find("0::/");
  std::string path = own == std::string::npos ? "/" : group.substr(own + 3);
  path = path.substr(0, path.find('\n'));
  while (true) {
    const std::string file = "/sys/fs/cgroup" + (path == "/" ? "" : path) + "/memory.max";
    if (const auto limit = leading_number(read_small(files, file))) bytes = std::min(bytes, *limit);
    if (path == "/" || path.empty()) break;
    path.resize(path.rfind('/'));
  }
  const std::string old = read_small(files, "/sys/fs/cgroup/memory/memory.limit_in_bytes");
  if (const auto limit = leading_number(old)) bytes = std::min(bytes, *limit);
  return bytes;
}

/// CPUs the process may run on, no more than the CPU time its container gets, rounded up.
std::uint32_t cpus(FileSystem& files) {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::uint32_t count = 1;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    count = static_cast<std::uint32_t>(CPU_COUNT(&set));
  } else if (const long online = sysconf(_SC_NPROCESSORS_ONLN); online > 0) {
    count = static_cast<std::uint32_t>(online);
  }
  const std::string quota = read_small(files, "/sys/fs/cgroup/cpu.max");  // "QUOTA PERIOD"
  const auto used = leading_number(quota);
  const auto space = quota.find(' ');
  if (used && space != std::string::npos) {
    const auto period = leading_number(std::string_view(quota).substr(space + 1));
    if (period && *period > 0) {
      count = std::min<std::uint32_t>(count,
                                      static_cast<std::uint32_t>((*used + *period - 1) / *period));
    }
  }
  return std::max<std::uint32_t>(count, 1);
}

}  // namespace

std::uint32_t resolved_io_threads(const Config& config) {
  if (config.io_threads != 0) return config.io_threads;
  const auto files = make_system_file_system();
  return std::min(cpus(*files), kMostIoThreads);
}

std::string resolved_data_dir(const std::string& data_dir) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(data_dir, error);
  if (error) return data_dir;
  std::string text = path.lexically_normal().string();
  if (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

std::uint64_t resolved_request_memory(const Config& config) {
  if (config.kafka.queued_max_request_bytes > 0) {
    return static_cast<std::uint64_t>(config.kafka.queued_max_request_bytes);
  }
  if (config.request_memory != 0) return config.request_memory;
  const auto files = make_system_file_system();
  return std::max(memory_limit(*files) / 4, kLeastRequestMemory);
}

Environment read_environment() {
  Environment found;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    if (equals == std::string_view::npos || !text.starts_with("KANAL_")) continue;
    found.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return found;
}

std::expected<std::string, ConfigProblems> read_config_file(const std::string& path) {
  const auto files = make_system_file_system();
  const auto content = read_file(*files, path, kMaxFileBytes);
  if (!content) return std::unexpected(ConfigProblems{{path, 0, "", content.error().detail}});
  return std::string(reinterpret_cast<const char*>(content->data()), content->size());
}

}  // namespace kanal::server
