// The FileSystem seam: every file of the data directory is touched through it, so that tests can
// tear writes and fail the i-th operation. A File may be read, written and synced by several
// threads at once; positions are explicit. Errors carry KAFKA_STORAGE_ERROR, a sentence with the
// path, and errno in os_error.
#pragma once

#include "kanal/base/bytes.hpp"
#include "kanal/base/error.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kanal {

class File {
 public:
  virtual ~File() = default;
  /// Reads until `into` is full or the file ends; returns the bytes read.
  virtual Result<std::size_t> read_at(std::uint64_t position, MutableBytes into) const = 0;
  /// All pieces one after the other from `position`, by one gathered call where possible; all
  /// written or an error.
  virtual Result<void> write_at(std::uint64_t position, std::span<const Bytes> pieces) = 0;
  virtual Result<void> sync() = 0;  // data and size (fdatasync)
  virtual Result<void> truncate(std::uint64_t size) = 0;
  /// Reserves blocks without changing the size (FALLOC_FL_KEEP_SIZE); not supported counts as done.
  virtual Result<void> allocate(std::uint64_t position, std::uint64_t bytes) = 0;
  [[nodiscard]] virtual Result<std::uint64_t> size() const = 0;
  /// Whether a read there would not wait for the disk (RWF_NOWAIT probe of first and last page).
  [[nodiscard]] virtual bool cached(std::uint64_t position, std::uint64_t bytes) const noexcept = 0;
  [[nodiscard]] virtual int native_handle()
      const noexcept = 0;  // for sendfile; -1 where there is none
};

enum class OpenMode { kRead, kReadWrite, kCreate };  // kCreate: read-write, made if missing

struct DirectoryEntry {
  std::string name;
  bool is_directory = false;
};
struct DiskSpace {
  std::uint64_t total_bytes = 0;
  std::uint64_t usable_bytes = 0;
};

class FileLock {  // held until destroyed
 public:
  virtual ~FileLock() = default;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) = 0;
  virtual Result<std::vector<DirectoryEntry>> list(const std::string& directory) = 0;  // unsorted
  [[nodiscard]] virtual Result<bool> exists(const std::string& path) = 0;
  virtual Result<void> create_directories(const std::string& path) = 0;
  virtual Result<void> rename(const std::string& from, const std::string& to) = 0;  // replaces
  virtual Result<void> remove(const std::string& path) = 0;          // missing is fine
  virtual Result<void> remove_all(const std::string& path) = 0;      // missing is fine
  virtual Result<void> sync_directory(const std::string& path) = 0;  // makes names durable
  /// All that was written to the file system that holds `path`, by anybody (syncfs).
  virtual Result<void> sync_all(const std::string& path) = 0;
  virtual Result<DiskSpace> space(const std::string& path) = 0;
  virtual Result<std::unique_ptr<FileLock>> lock(
      const std::string& path) = 0;  // fails at once if held
};

/// The operating system's files.
[[nodiscard]] std::unique_ptr<FileSystem> make_system_file_system();

/// The whole file; a missing file is an error with os_error ENOENT. `limit` bytes at most, larger
/// is an error.
[[nodiscard]] Result<Buffer> read_file(FileSystem& files, const std::string& path,
                                       std::uint64_t limit);
/// The file has this content and no other; `sync`: durably, but for a new name.
[[nodiscard]] Result<void> write_file(FileSystem& files, const std::string& path, Bytes content,
                                      bool sync);
/// The directory that `path` has its last name in.
[[nodiscard]] std::string directory_of(const std::string& path);
/// Write to `path`.tmp, sync, rename over `path`, sync the directory: after a crash the old or the
/// new content.
[[nodiscard]] Result<void> replace_file(FileSystem& files, const std::string& path, Bytes content);

}  // namespace kanal
