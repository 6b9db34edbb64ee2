#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include "kanal/base/file_copies.hpp"

namespace kanal {
namespace {

constexpr std::uint64_t kPiece = 8 << 20;  // a copy may be asked to end between two

std::unexpected<Error> failed(const char* what, const std::string& path, int error = errno) {
  return fail(ErrorCode::KAFKA_STORAGE_ERROR,
              std::string(what) + " '" + path + "': " + std::generic_category().message(error),
              error);
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

class SharedLock final : public FileLock {
 public:
  explicit SharedLock(int fd) : fd_(fd) {}

 private:
  Descriptor fd_;
};

/// Where copy_file_range is not to be had.
Result<void> copy_by_hand(int from, int to, off_t at, std::uint64_t bytes,
                          const std::string& path) {
  std::vector<char> buffer(std::min<std::uint64_t>(bytes, 1 << 20));
  while (bytes > 0) {
    const ssize_t got =
        ::pread(from, buffer.data(), std::min<std::uint64_t>(bytes, buffer.size()), at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return failed("cannot read", path, got == 0 ? EIO : errno);
    for (ssize_t done = 0; done < got;) {
      const ssize_t wrote =
          ::pwrite(to, buffer.data() + done, static_cast<std::size_t>(got - done), at + done);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) return failed("cannot write a copy of", path, wrote == 0 ? EIO : errno);
      done += wrote;
    }
    at += got;
    bytes -= static_cast<std::uint64_t>(got);
  }
  return {};
}

}  // namespace

Result<void> link_file(const std::string& from, const std::string& to) {
  if (::link(from.c_str(), to.c_str()) != 0) return failed("cannot link", from);
  return {};
}

Result<void> copy_file(const std::string& from, const std::string& to, std::uint64_t bytes,
                       const std::function<bool()>& cancelled) {
  const Descriptor source(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  if (source.get() < 0) return failed("cannot open", from);
  const Descriptor target(::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (target.get() < 0) return failed("cannot create", to);
  std::uint64_t done = 0;
  while (done < bytes) {
    if (cancelled && cancelled()) return failed("was told not to copy", from, ECANCELED);
    off_t in = static_cast<off_t>(done), out = in;
    const ssize_t got =
        ::copy_file_range(source.get(), &in, target.get(), &out, std::min(bytes - done, kPiece), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno != ENOSPC && errno != EDQUOT && errno != EIO) {
      return copy_by_hand(source.get(), target.get(), static_cast<off_t>(done), bytes - done, from);
    }
    if (got < 0) return failed("cannot copy", from);
    if (got == 0) return failed("cannot copy the end of", from, EIO);
    done += static_cast<std::uint64_t>(got);
  }
  return {};
}

Result<std::uint64_t> file_size(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return failed("cannot stat", path);
  return static_cast<std::uint64_t>(status.st_size);
}

Result<std::unique_ptr<FileLock>> lock_shared(const std::string& path) {
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return failed("cannot open the lock file", path);
  if (::flock(fd.get(), LOCK_SH | LOCK_NB) != 0) return failed("cannot take the lock", path);
  return std::make_unique<SharedLock>(fd.release());
}

Result<void> make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) != 0) return failed("cannot create the directory", path);
  return {};
}

std::string absolute_path(const std::string& path) {
  std::error_code error;
  auto absolute = std::filesystem::absolute(path, error).lexically_normal().string();
  while (absolute.size() > 1 && absolute.back() == '/') absolute.pop_back();
  return error ? path : absolute;
}

}  // namespace kanal
