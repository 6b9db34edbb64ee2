// The data directory as a whole: its lock (one daemon at a time) and data/meta (format version,
// cluster id, node id, checksum). A newer format is refused untouched. Used by the start only; the
// lock is held until destroyed.
#pragma once

#include "kanal/base/error.hpp"
#include "kanal/base/file_system.hpp"
#include "kanal/base/ids.hpp"

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

 private:
  std::string path_;
  std::unique_ptr<FileLock> lock_;
  std::optional<DirectoryMeta> meta_;
};

/// DIRECTORY/meta; os_error ENOENT where there is none, 0 where it can be read and is no good.
[[nodiscard]] Result<DirectoryMeta> read_meta(FileSystem& files, const std::string& directory);
/// The content of data/meta and back; exposed for tests.
[[nodiscard]] std::string encode_meta(const DirectoryMeta& meta);
[[nodiscard]] Result<DirectoryMeta> decode_meta(const std::string& text);

}  // namespace kanal::broker
