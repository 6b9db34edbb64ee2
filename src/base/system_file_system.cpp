#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "kanal/base/file_system.hpp"

namespace kanal {
namespace {

std::unexpected<Error> failed(const char* what, const std::string& path, int error = errno) {
  return fail(ErrorCode::KAFKA_STORAGE_ERROR,
              std::string(what) + " '" + path + "': " + std::generic_category().message(error),
              error);
}

// One write call takes no more: larger ones leave the L2 cache and make the page cache hand out
// folios of a size that cost several times the CPU (measured on ext4: 1 MiB at once 3.8 s/GB).
constexpr std::size_t kWritePiece = 256 * 1024;

class SystemFile final : public File {
 public:
  SystemFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  SystemFile(const SystemFile&) = delete;
  SystemFile& operator=(const SystemFile&) = delete;
  ~SystemFile() override { ::close(fd_); }

  Result<std::size_t> read_at(std::uint64_t position, MutableBytes into) const override {
    std::size_t done = 0;
    while (done < into.size()) {
      const ssize_t got =
          ::pread(fd_, into.data() + done, into.size() - done, static_cast<off_t>(position + done));
      if (got == 0) break;
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return failed("cannot read", path_);
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

  Result<void> write_at(std::uint64_t position, std::span<const Bytes> pieces) override {
    std::array<iovec, 64> vectors;
    std::size_t piece = 0, skip = 0;
    for (;;) {
      while (piece < pieces.size() && skip == pieces[piece].size()) ++piece, skip = 0;
      if (piece == pieces.size()) return {};
      int count = 0;
      std::size_t room = kWritePiece;
      for (std::size_t i = piece, from = skip; i < pieces.size() && count < 64 && room > 0;
           ++i, from = 0) {
        const std::size_t length = std::min(pieces[i].size() - from, room);
        vectors[static_cast<std::size_t>(count++)] = {
            const_cast<std::byte*>(pieces[i].data()) + from, length};
        room -= length;
      }
      const ssize_t wrote = ::pwritev(fd_, vectors.data(), count, static_cast<off_t>(position));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) return failed("cannot write", path_, wrote == 0 ? EIO : errno);
      position += static_cast<std::uint64_t>(wrote);
      for (std::size_t left = static_cast<std::size_t>(wrote); left > 0;) {
        const std::size_t part = std::min(left, pieces[piece].size() - skip);
        left -= part;
        skip += part;
        if (skip == pieces[piece].size()) ++piece, skip = 0;
      }
    }
  }

  Result<void> sync() override {
    if (::fdatasync(fd_) != 0) return failed("cannot sync", path_);
    return {};
  }
  Result<void> truncate(std::uint64_t size) override {
    if (::ftruncate(fd_, static_cast<off_t>(size)) != 0) return failed("cannot truncate", path_);
    return {};
  }
  Result<void> allocate(std::uint64_t position, std::uint64_t bytes) override {
    if (::fallocate(fd_, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(position),
                    static_cast<off_t>(bytes)) != 0 &&
        errno != EOPNOTSUPP && errno != ENOSYS) {
      return failed("cannot allocate room in", path_);
    }
    return {};
  }
  Result<std::uint64_t> size() const override {
    struct stat status{};
    if (::fstat(fd_, &status) != 0) return failed("cannot stat", path_);
    return static_cast<std::uint64_t>(status.st_size);
  }
  bool cached(std::uint64_t position, std::uint64_t bytes) const noexcept override {
    const auto probe = [&](std::uint64_t at) {
      char byte = 0;
      iovec vector{&byte, 1};
      const ssize_t got = ::preadv2(fd_, &vector, 1, static_cast<off_t>(at), RWF_NOWAIT);
      // What cannot be read is for the read that waits: it tells why.
      return got >= 0 || (errno != EAGAIN && errno != EIO);
    };
    return bytes == 0 || (probe(position) && probe(position + bytes - 1));
  }
  int native_handle() const noexcept override { return fd_; }

 private:
  int fd_;
  std::string path_;
};

class SystemLock final : public FileLock {
 public:
  explicit SystemLock(int fd) : fd_(fd) {}
  SystemLock(const SystemLock&) = delete;
  SystemLock& operator=(const SystemLock&) = delete;
  ~SystemLock() override { ::close(fd_); }

 private:
  int fd_;
};

class SystemFileSystem final : public FileSystem {
 public:
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override {
    const int flags = mode == OpenMode::kRead        ? O_RDONLY
                      : mode == OpenMode::kReadWrite ? O_RDWR
                                                     : O_RDWR | O_CREAT;
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
    if (fd < 0) return failed("cannot open", path);
    return std::make_unique<SystemFile>(fd, path);
  }

  Result<std::vector<DirectoryEntry>> list(const std::string& directory) override {
    DIR* dir = ::opendir(directory.c_str());
    if (dir == nullptr) return failed("cannot list", directory);
    std::vector<DirectoryEntry> entries;
    while (const dirent* entry = ::readdir(dir)) {
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      bool is_directory = entry->d_type == DT_DIR;
      if (entry->d_type == DT_UNKNOWN)
        is_directory = std::filesystem::is_directory(directory + "/" + name);
      entries.push_back({name, is_directory});
    }
    ::closedir(dir);
    return entries;
  }

  Result<bool> exists(const std::string& path) override {
    struct stat status{};
    if (::stat(path.c_str(), &status) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return failed("cannot stat", path);
  }
  Result<void> create_directories(const std::string& path) override {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) return failed("cannot create the directory", path, error.value());
    return {};
  }
  Result<void> rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) return failed("cannot rename", from);
    return {};
  }
  Result<void> remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return failed("cannot remove", path);
    return {};
  }
  Result<void> remove_all(const std::string& path) override {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (error) return failed("cannot remove", path, error.value());
    return {};
  }
  Result<void> sync_directory(const std::string& path) override {
    const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return failed("cannot open the directory", path);
    const int synced = ::fsync(fd);
    const int error = errno;
    ::close(fd);
    if (synced != 0) return failed("cannot sync the directory", path, error);
    return {};
  }
  Result<void> sync_all(const std::string& path) override {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return failed("cannot open", path);
    const int synced = ::syncfs(fd);
    const int error = errno;
    ::close(fd);
    if (synced != 0) return failed("cannot sync the file system of", path, error);
    return {};
  }
  Result<DiskSpace> space(const std::string& path) override {
    struct statvfs status{};
    if (::statvfs(path.c_str(), &status) != 0) return failed("cannot ask for the space of", path);
    return DiskSpace{status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize};
  }
  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return failed("cannot open the lock file", path);
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      ::close(fd);
      return failed("cannot take the lock", path, error);
    }
    return std::make_unique<SystemLock>(fd);
  }
};

}  // namespace

std::unique_ptr<FileSystem> make_system_file_system() {
  return std::make_unique<SystemFileSystem>();
}

Result<Buffer> read_file(FileSystem& files, const std::string& path, std::uint64_t limit) {
  auto file = files.open(path, OpenMode::kRead);
  if (!file) return std::unexpected(file.error());
  const auto size = (*file)->size();
  if (!size) return std::unexpected(size.error());
  if (*size > limit) {
    return fail(ErrorCode::KAFKA_STORAGE_ERROR, "'" + path + "' has " + std::to_string(*size) +
                                                    " bytes, more than " + std::to_string(limit));
  }
  Buffer content(static_cast<std::size_t>(*size));
  const auto got = (*file)->read_at(0, content);
  if (!got) return std::unexpected(got.error());
  content.resize(*got);
  return content;
}

Result<void> write_file(FileSystem& files, const std::string& path, Bytes content, bool sync) {
  auto file = files.open(path, OpenMode::kCreate);
  if (!file) return std::unexpected(std::move(file.error()));
  if (auto done = (*file)->truncate(0); !done) return done;
  const std::array<Bytes, 1> pieces{content};
  if (auto done = (*file)->write_at(0, pieces); !done) return done;
  return sync ? (*file)->sync() : Result<void>{};
}

std::string directory_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

Result<void> replace_file(FileSystem& files, const std::string& path, Bytes content) {
  const std::string temporary = path + ".tmp";
  if (auto done = write_file(files, temporary, content, true); !done) return done;
  if (auto done = files.rename(temporary, path); !done) return done;
  return files.sync_directory(directory_of(path));
}

}  // namespace kanal
