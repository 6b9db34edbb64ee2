// The directory that a snapshot becomes: built as DIR.tmp with a `meta` that no start accepts, and
// renamed once all of it is there and synced. Destroyed before that, it takes away what there is.
// Helper threads.
#pragma once

#include "data_directory.hpp"

#include <optional>
#include <string>

namespace kanal::broker {

class SnapshotDirectory {
 public:
  /// Refuses a directory that has something in it, and a DIR.tmp that is not ours.
  static Result<SnapshotDirectory> make(FileSystem& files, const std::string& path);
  SnapshotDirectory(SnapshotDirectory&& other) noexcept;
  SnapshotDirectory& operator=(SnapshotDirectory&&) = delete;
  ~SnapshotDirectory();

  [[nodiscard]] const std::string& path() const noexcept { return building_; }
  /// Where links of the data directory's files can be made: here, or, where this is another file
  /// system, in a directory in there, which goes with this object.
  Result<std::string> place_for_links(const std::string& data_directory);
  Result<void> finish(const DirectoryMeta& meta);

 private:
  SnapshotDirectory(FileSystem& files, std::string path)
      : files_(&files), path_(std::move(path)), building_(path_ + ".tmp") {}

  FileSystem* files_;
  std::string path_, building_;
  std::optional<std::string> links_;
};

}  // namespace kanal::broker
