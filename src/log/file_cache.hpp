// Open handles of segment files, least recently used first out. Any thread. A Slot belongs to one
// segment and is touched by the cache alone; a handle given out stays usable while it is held, also
// after the cache has let go of it. When the process runs out of descriptors the cache gives back
// half of its handles and tries once more.
#pragma once

#include "leaf.hpp"

#include "kanal/base/file_system.hpp"

#include <cstddef>
#include <memory>
#include <string>

namespace kanal::log {

class FileCache {
 public:
  struct Slot {
    std::shared_ptr<File> file;
    Slot* newer = nullptr;
    Slot* older = nullptr;
  };

  FileCache(FileSystem& files, std::size_t max_open) : files_(files), max_open_(max_open) {}
  FileCache(const FileCache&) = delete;
  FileCache& operator=(const FileCache&) = delete;

  /// The slot's handle; `path` is asked for its text only where the file has to be opened.
  template <class Path>
  Result<std::shared_ptr<File>> open(Slot& slot, OpenMode mode, const Path& path) {
    if (std::shared_ptr<File> file = find(slot)) return file;
    return open_file(slot, mode, path());
  }
  /// Forgets the handle; the file closes when the last holder lets go.
  void drop(Slot& slot) noexcept;
  /// Forgets all but `keep` handles.
  void shrink(std::size_t keep) noexcept;
  [[nodiscard]] std::size_t open_files() noexcept;

 private:
  struct List {
    Slot* newest = nullptr;
    Slot* oldest = nullptr;
    std::size_t count = 0;
  };
  static void link(List& list, Slot& slot) noexcept;
  static void unlink(List& list, Slot& slot) noexcept;
  std::shared_ptr<File> find(Slot& slot) noexcept;
  Result<std::shared_ptr<File>> open_file(Slot& slot, OpenMode mode, const std::string& path);

  FileSystem& files_;
  const std::size_t max_open_;
  Leaf<List> list_;
};

}  // namespace kanal::log
