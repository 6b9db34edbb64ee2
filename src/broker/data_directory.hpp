// The data directory as a whole: its lock (one daemon at a time), data/meta (format version,
// cluster id, node id, checksum) and data/stopped (what the reserved channels held at the last
// clean stop). A newer format is refused untouched. Used by the start and the stop only; the lock
// is held until destroyed.
#pragma once

#include "kanal/base/error.hpp"
#include "kanal/base/file_system.hpp"
#include "kanal/base/ids.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace kanal::broker {

inline constexpr int kDataFormat = 1;
/// In the data directory: links that a snapshot on another file system is copied from.
inline constexpr std::string_view kLinksDirectory = ".snapshot";
/// The `meta` of a snapshot that is being made.
inline constexpr std::string_view kUnfinishedMeta = "kanal-data unfinished snapshot\n";

struct DirectoryMeta {
  std::string cluster_id;
  NodeId node{0};
  friend bool operator==(const DirectoryMeta&, const DirectoryMeta&) = default;
};

class DataDirectory {
 public:
  /// Creates the directory if needed and takes its lock; reads meta if it is there.
  static Result<DataDirectory> open(FileSystem& files, const std::string& path);

  [[nodiscard]] const std::optional<DirectoryMeta>& meta() const noexcept { return meta_; }
  /// Written once, at the first start.
  Result<void> write_meta(FileSystem& files, const DirectoryMeta& meta);
  /// At a clean stop: the store's journal position, below which it is never found again.
  Result<void> write_stop(FileSystem& files, std::uint64_t reserved_position) const;

 private:
  std::string path_;
  std::unique_ptr<FileLock> lock_;
  std::optional<DirectoryMeta> meta_;
};

/// DIRECTORY/meta; os_error ENOENT where there is none, 0 where it can be read and is no good.
[[nodiscard]] Result<DirectoryMeta> read_meta(FileSystem& files, const std::string& directory);
/// What write_stop() left in DIRECTORY; os_error ENOENT where there is nothing, 0 where it is no
/// good.
[[nodiscard]] Result<std::uint64_t> read_stop(FileSystem& files, const std::string& directory);
/// The content of data/meta and back; exposed for tests.
[[nodiscard]] std::string encode_meta(const DirectoryMeta& meta);
[[nodiscard]] Result<DirectoryMeta> decode_meta(const std::string& text);

}  // namespace kanal::broker
