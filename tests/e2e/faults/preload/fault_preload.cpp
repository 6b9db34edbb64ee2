// LD_PRELOAD library that makes file operations of a process fail. Rules come from the file that
// $FAULT_CONTROL names, mapped into memory: 8 bytes that the test counts up after each change,
// 8 bytes per rule that count how often it struck, then the rules as text, a zero byte at the end:
//
//   OPERATIONS ERRNO AFTER TIMES SHORT PATTERN      e.g.  write,allocate 28 0 -1 0 */channels/*.log
//
// OPERATIONS: open (of a file to be made), read, write, allocate, sync, rename, truncate, mkdir.
// The first AFTER calls that match go through, the next TIMES fail (-1: all). SHORT > 0: a write
// takes that many bytes first, and a call after it fails. The first rule that matches counts. Paths
// are matched whole (fnmatch, * matches a slash too), of a rename the old one.
//
// Built without sanitizers; calls no allocator; a call without rules costs one load.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace {

constexpr std::size_t kControlBytes = 4096, kRules = 16, kText = 8 + 8 * kRules;
constexpr std::size_t kPath = 512;

enum Operation : unsigned {
  kOpen = 1,
  kRead = 2,
  kWrite = 4,
  kAllocate = 8,
  kSync = 16,
  kRename = 32,
  kTruncate = 64,
  kMkdir = 128
};

struct Rule {
  unsigned operations = 0;
  int error = 0;
  long after = 0, times = 0, take = 0;
  char pattern[256] = {};
  long seen = 0;
  bool half_done = false;  // the write that fails next has taken its first bytes
};

struct Faults {
  char* control = nullptr;
  std::atomic<std::uint64_t> known{0};
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  Rule rules[kRules];
  std::size_t count = 0;

  std::uint64_t version() const {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(control)->load(std::memory_order_acquire);
  }
  void strike(std::size_t rule) const {
    reinterpret_cast<std::atomic<std::uint64_t>*>(control + 8 + 8 * rule)->fetch_add(1);
  }
};

Faults faults;

template <class Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

__attribute__((constructor)) void map_control() {
  const char* path = getenv("FAULT_CONTROL");
  if (path == nullptr) return;
  const int fd = real<int (*)(const char*, int, ...)>("open")(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  void* at = mmap(nullptr, kControlBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (at != MAP_FAILED) faults.control = static_cast<char*>(at);
}

unsigned operations_of(const char* text) {
  static constexpr struct {
    const char* name;
    unsigned bit;
  } kNames[] = {{"open", kOpen},         {"read", kRead},  {"write", kWrite},
                {"allocate", kAllocate}, {"sync", kSync},  {"rename", kRename},
                {"truncate", kTruncate}, {"mkdir", kMkdir}};
  unsigned all = 0;
  for (const auto& [name, bit] : kNames) {
    if (strstr(text, name) != nullptr) all |= bit;
  }
  return all;
}

void parse_rules() {
  faults.count = 0;
  const char* line = faults.control + kText;
  while (faults.count < kRules && *line != '\0') {
    Rule rule;
    char operations[128] = {};
    if (sscanf(line, "%127s %d %ld %ld %ld %255[^\n]", operations, &rule.error, &rule.after,
               &rule.times, &rule.take, rule.pattern) == 6) {
      rule.operations = operations_of(operations);
      faults.rules[faults.count++] = rule;
    }
    const char* end = strchr(line, '\n');
    if (end == nullptr) break;
    line = end + 1;
  }
}

struct Verdict {
  int error = 0;  // 0: goes through
  long take = 0;  // bytes a write takes before it fails
};

Verdict judge_path(unsigned operation, const char* path) {
  Verdict verdict;
  pthread_mutex_lock(&faults.mutex);
  if (const std::uint64_t now = faults.version(); now != faults.known.load()) {
    parse_rules();
    faults.known = now;
  }
  for (std::size_t i = 0; i < faults.count; ++i) {
    Rule& rule = faults.rules[i];
    if ((rule.operations & operation) == 0 || fnmatch(rule.pattern, path, 0) != 0) continue;
    const bool strikes =
        rule.seen >= rule.after && (rule.times < 0 || rule.seen < rule.after + rule.times);
    if (strikes && operation == kWrite && rule.take > 0 && !rule.half_done) {
      rule.half_done = true;
      verdict = {rule.error, rule.take};
      break;
    }
    rule.half_done = false;
    ++rule.seen;
    if (strikes) {
      verdict.error = rule.error;
      faults.strike(i);
    }
    break;
  }
  pthread_mutex_unlock(&faults.mutex);
  return verdict;
}

bool idle() {
  return faults.control == nullptr ||
         (faults.version() == faults.known.load() && faults.count == 0);
}

Verdict judge(unsigned operation, int fd) {
  if (idle()) return {};
  char link[64], path[kPath];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0 || path[0] != '/') return {};
  path[length] = '\0';
  return judge_path(operation, path);
}

/// Whether the call fails, with errno set.
bool fails(const Verdict& verdict) {
  if (verdict.error == 0) return false;
  errno = verdict.error;
  return true;
}

template <class Result, class Call>
Result call(unsigned operation, int fd, Call&& go_on) {
  if (fails(judge(operation, fd))) return static_cast<Result>(-1);
  return go_on();
}

/// A write that fails may take some bytes before, as on a disk with little room.
template <class Whole, class Part>
ssize_t write_call(int fd, Whole&& whole, Part&& part) {
  const Verdict verdict = judge(kWrite, fd);
  if (verdict.error == 0) return whole();
  if (verdict.take > 0) {
    const ssize_t took = part(static_cast<std::size_t>(verdict.take));
    if (took > 0) return took;
  }
  errno = verdict.error;
  return -1;
}

using Write = ssize_t (*)(int, const void*, size_t);
using WriteAt = ssize_t (*)(int, const void*, size_t, off_t);
using ReadAt = ssize_t (*)(int, void*, size_t, off_t);
using GatherAt = ssize_t (*)(int, const struct iovec*, int, off_t);
using GatherFlags = ssize_t (*)(int, const struct iovec*, int, off_t, int);
using OpenCall = int (*)(const char*, int, ...);
using OpenAt = int (*)(int, const char*, int, ...);

bool open_fails(const char* path, int flags) {
  if ((flags & O_CREAT) == 0 || idle() || path[0] != '/') return false;
  struct stat status{};
  if (stat(path, &status) == 0) return false;  // only of files to be made
  return fails(judge_path(kOpen, path));
}

ssize_t first_piece(const char* name, int fd, const iovec* pieces, int count, off_t at,
                    std::size_t take) {
  if (count == 0) return 0;
  iovec piece = pieces[0];
  piece.iov_len = std::min(piece.iov_len, take);
  return real<GatherAt>(name)(fd, &piece, 1, at);
}

}  // namespace

extern "C" {

#define WRITE_AT(name)                                                                \
  ssize_t name(int fd, const void* bytes, size_t size, off_t at) {                    \
    static const auto next = real<WriteAt>(#name);                                    \
    return write_call(                                                                \
        fd, [&] { return next(fd, bytes, size, at); },                                \
        [&](std::size_t take) { return next(fd, bytes, std::min(take, size), at); }); \
  }
WRITE_AT(pwrite)
WRITE_AT(pwrite64)

ssize_t write(int fd, const void* bytes, size_t size) {
  static const auto next = real<Write>("write");
  return write_call(
      fd, [&] { return next(fd, bytes, size); },
      [&](std::size_t take) { return next(fd, bytes, std::min(take, size)); });
}

#define GATHER_AT(name)                                                                     \
  ssize_t name(int fd, const struct iovec* pieces, int count, off_t at) {                   \
    static const auto next = real<GatherAt>(#name);                                         \
    return write_call(                                                                      \
        fd, [&] { return next(fd, pieces, count, at); },                                    \
        [&](std::size_t take) { return first_piece(#name, fd, pieces, count, at, take); }); \
  }
GATHER_AT(pwritev)
GATHER_AT(pwritev64)

ssize_t writev(int fd, const struct iovec* pieces, int count) {
  static const auto next = real<ssize_t (*)(int, const iovec*, int)>("writev");
  return call<ssize_t>(kWrite, fd, [&] { return next(fd, pieces, count); });
}

#define READ_AT(name)                                                           \
  ssize_t name(int fd, void* bytes, size_t size, off_t at) {                    \
    static const auto next = real<ReadAt>(#name);                               \
    return call<ssize_t>(kRead, fd, [&] { return next(fd, bytes, size, at); }); \
  }
READ_AT(pread)
READ_AT(pread64)

#define READ_FLAGS(name)                                                                 \
  ssize_t name(int fd, const struct iovec* pieces, int count, off_t at, int flags) {     \
    static const auto next = real<GatherFlags>(#name);                                   \
    return call<ssize_t>(kRead, fd, [&] { return next(fd, pieces, count, at, flags); }); \
  }
READ_FLAGS(preadv2)
READ_FLAGS(preadv64v2)

/// Sends what a failing disk could not have read: through pread it is told as an error.
#define SEND_FILE(name)                                                          \
  ssize_t name(int to, int from, off_t* at, size_t size) {                       \
    static const auto next = real<ssize_t (*)(int, int, off_t*, size_t)>(#name); \
    return call<ssize_t>(kRead, from, [&] { return next(to, from, at, size); }); \
  }
SEND_FILE(sendfile)
SEND_FILE(sendfile64)

#define SYNC(name)                                         \
  int name(int fd) {                                       \
    static const auto next = real<int (*)(int)>(#name);    \
    return call<int>(kSync, fd, [&] { return next(fd); }); \
  }
SYNC(fsync)
SYNC(fdatasync)
SYNC(syncfs)

#define TRUNCATE(name)                                               \
  int name(int fd, off_t size) {                                     \
    static const auto next = real<int (*)(int, off_t)>(#name);       \
    return call<int>(kTruncate, fd, [&] { return next(fd, size); }); \
  }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

#define ALLOCATE(name)                                                         \
  int name(int fd, int mode, off_t at, off_t size) {                           \
    static const auto next = real<int (*)(int, int, off_t, off_t)>(#name);     \
    return call<int>(kAllocate, fd, [&] { return next(fd, mode, at, size); }); \
  }
ALLOCATE(fallocate)
ALLOCATE(fallocate64)

int rename(const char* from, const char* to) {
  static const auto next = real<int (*)(const char*, const char*)>("rename");
  if (!idle() && fails(judge_path(kRename, from))) return -1;
  return next(from, to);
}

int mkdir(const char* path, mode_t mode) {
  static const auto next = real<int (*)(const char*, mode_t)>("mkdir");
  if (!idle() && fails(judge_path(kMkdir, path))) return -1;
  return next(path, mode);
}

#define OPEN(name)                                  \
  int name(const char* path, int flags, ...) {      \
    static const auto next = real<OpenCall>(#name); \
    va_list rest;                                   \
    va_start(rest, flags);                          \
    const auto mode = va_arg(rest, mode_t);         \
    va_end(rest);                                   \
    if (open_fails(path, flags)) return -1;         \
    return next(path, flags, mode);                 \
  }
OPEN(open)
OPEN(open64)

#define OPEN_AT(name)                                  \
  int name(int at, const char* path, int flags, ...) { \
    static const auto next = real<OpenAt>(#name);      \
    va_list rest;                                      \
    va_start(rest, flags);                             \
    const auto mode = va_arg(rest, mode_t);            \
    va_end(rest);                                      \
    if (open_fails(path, flags)) return -1;            \
    return next(at, path, flags, mode);                \
  }
OPEN_AT(openat)
OPEN_AT(openat64)

}  // extern "C"
