#include "faults.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "broker_process.hpp"

namespace kanal::e2e {
namespace {

constexpr std::size_t kBytes = 4096, kRules = 16, kText = 8 + 8 * kRules;  // as the library has it

std::atomic<std::uint64_t>& number_at(char* memory, std::size_t at) {
  return *reinterpret_cast<std::atomic<std::uint64_t>*>(memory + at);
}

void set_variable(const char* name, const std::string& value) {
  ::setenv(name, value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): before the daemon starts
}

void write_text(const char* path, const std::string& text) {
  std::ofstream(path) << text;
}

}  // namespace

FaultControl::FaultControl(const std::string& library, const std::filesystem::path& file) {
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0 || ::ftruncate(fd, kBytes) != 0) throw std::runtime_error("no control file");
  void* at = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (at == MAP_FAILED) throw std::runtime_error("no control memory");
  memory_ = static_cast<char*>(at);
  set_variable("LD_PRELOAD", library);
  set_variable("FAULT_CONTROL", file.string());
  const char* options = variable("ASAN_OPTIONS");
  set_variable("ASAN_OPTIONS",
               std::string(options == nullptr ? "" : options) + ":verify_asan_link_order=0");
}

FaultControl::~FaultControl() {
  ::unsetenv("LD_PRELOAD");     // NOLINT(concurrency-mt-unsafe)
  ::unsetenv("FAULT_CONTROL");  // NOLINT(concurrency-mt-unsafe)
  ::munmap(memory_, kBytes);
}

void FaultControl::set(const std::vector<FaultRule>& rules) {
  std::string text;
  for (const FaultRule& rule : rules) {
    text += rule.operations + " " + std::to_string(rule.error) + " " + std::to_string(rule.after) +
            " " + std::to_string(rule.times) + " " + std::to_string(rule.take) + " " +
            rule.pattern + "\n";
  }
  if (rules.size() > kRules || kText + text.size() >= kBytes)
    throw std::runtime_error("too many rules");
  for (std::size_t i = 0; i < kRules; ++i) number_at(memory_, 8 + 8 * i) = 0;
  std::memcpy(memory_ + kText, text.c_str(), text.size() + 1);
  number_at(memory_, 0).fetch_add(1);
}

std::uint64_t FaultControl::strikes(std::size_t rule) const {
  return number_at(memory_, 8 + 8 * rule).load();
}

bool SmallDisk::enter_namespace() {
  const uid_t user = ::getuid();
  const gid_t group = ::getgid();
  if (::unshare(CLONE_NEWNS) != 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    write_text("/proc/self/setgroups", "deny");
    write_text("/proc/self/uid_map", "0 " + std::to_string(user) + " 1");
    write_text("/proc/self/gid_map", "0 " + std::to_string(group) + " 1");
  }
  return ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

SmallDisk::SmallDisk(std::filesystem::path directory, std::uint64_t bytes)
    : directory_(std::move(directory)) {
  std::filesystem::create_directories(directory_);
  const std::string options = "size=" + std::to_string(bytes);
  if (::mount("tmpfs", directory_.c_str(), "tmpfs", 0, options.c_str()) != 0)
    throw std::runtime_error("cannot mount a tmpfs");
}

SmallDisk::~SmallDisk() {
  ::umount2(directory_.c_str(), MNT_DETACH);
}

std::uint64_t SmallDisk::free_bytes() const {
  struct statvfs status{};
  ::statvfs(directory_.c_str(), &status);
  return status.f_bavail * status.f_frsize;
}

void SmallDisk::leave(std::uint64_t bytes) {
  const int fd = ::open(ballast().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  off_t size = ::lseek(fd, 0, SEEK_END);
  constexpr std::uint64_t kPage = 4096;
  for (std::uint64_t step = 1 << 20; step >= kPage;) {
    const std::uint64_t free = free_bytes();
    if (free >= bytes + step && ::posix_fallocate(fd, size, static_cast<off_t>(step)) == 0)
      size += static_cast<off_t>(step);
    else
      step /= 2;
  }
  ::close(fd);
}

void SmallDisk::free_all() {
  std::filesystem::remove(ballast());
}

}  // namespace kanal::e2e
