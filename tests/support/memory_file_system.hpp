// A FileSystem in memory that fails on purpose, for tests and the simulation. Synced and unsynced
// state are kept apart for file contents and for directory entries: power_cut() leaves what was
// synced and, if told so, a prefix of the unsynced writes with the last one torn. Any operation can
// be made to fail: the i-th, from the i-th on, or by kind; the disk can be full; pages can be cold.
// One lock inside: any thread. Errors look like the system's: KAFKA_STORAGE_ERROR, path, errno.
#pragma once

#include "kanal/base/file_system.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kanal::test {

class MemoryFileSystem final : public FileSystem {
 public:
  enum Operation : std::uint32_t {
    kOpen = 1 << 0,
    kRead = 1 << 1,
    kWrite = 1 << 2,
    kSync = 1 << 3,
    kTruncate = 1 << 4,
    kAllocate = 1 << 5,
    kRename = 1 << 6,
    kRemove = 1 << 7,
    kSyncDirectory = 1 << 8,
    kMakeDirectory = 1 << 9,
    kLook = 1 << 10,  // list, exists, size
    kChanges = kOpen | kWrite | kSync | kTruncate | kAllocate | kRename | kRemove | kSyncDirectory |
               kMakeDirectory,
    kAll = 0xFFFF'FFFF,
  };
  struct Fault {
    std::uint64_t at = 0;            // of the operations counted from now on, from 0
    std::uint32_t kinds = kChanges;  // only these count
    int error = 5;                   // EIO
    bool sticky = false;             // all later ones of these kinds fail too
    bool half_write = true;          // a failing write leaves its first half
    bool sync_loses = false;         // what a failing sync did not write is never written
  };
  struct PowerCut {
    /// How many of a file's unsynced writes survive, for a file that has `unsynced` of them.
    std::function<std::size_t(std::string_view path, std::size_t unsynced)> keep_writes;
    /// How many bytes of the last surviving write do.
    std::function<std::size_t(std::size_t bytes)> keep_bytes;
    /// How many of a directory's unsynced changes of entries survive, the oldest first.
    std::function<std::size_t(std::string_view path, std::size_t unsynced)> keep_names;
  };

  MemoryFileSystem();
  ~MemoryFileSystem() override;

  // Faults.
  void fail(const Fault& fault);
  void clear_faults();
  [[nodiscard]] bool fault_fired() const;
  /// Operations of these kinds since the last call.
  std::uint64_t take_count(std::uint32_t kinds);
  void set_capacity(std::optional<std::uint64_t> bytes);  // of all file contents together
  /// Handles open now fail from here on; what was not synced is gone.
  void power_cut(const PowerCut& what_survives = {});
  /// Until they are read or written again, no page counts as cached.
  void drop_caches();

  // Looking in from outside; these never fail and don't count. Paths begin at "/".
  [[nodiscard]] std::optional<Buffer> content(const std::string& path) const;
  void set_content(const std::string& path, Bytes bytes);  // synced
  void erase(const std::string& path);                     // synced
  [[nodiscard]] std::vector<std::string> files() const;    // all paths, sorted
  [[nodiscard]] std::uint64_t bytes() const;

  // FileSystem
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override;
  Result<std::vector<DirectoryEntry>> list(const std::string& directory) override;
  Result<bool> exists(const std::string& path) override;
  Result<void> create_directories(const std::string& path) override;
  Result<void> rename(const std::string& from, const std::string& to) override;
  Result<void> remove(const std::string& path) override;
  Result<void> remove_all(const std::string& path) override;
  Result<void> sync_directory(const std::string& path) override;
  Result<void> sync_all(const std::string& path) override;
  Result<DiskSpace> space(const std::string& path) override;
  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override;

 private:
  struct Node;
  class OpenFile;
  class HeldLock;
  using NodePtr = std::shared_ptr<Node>;

  Result<void> step(Operation kind, const char* what, const std::string& path);
  [[nodiscard]] NodePtr find(const std::string& path) const;
  [[nodiscard]] NodePtr parent_of(const std::string& path) const;
  NodePtr make_directories(const std::string& path);
  [[nodiscard]] std::uint64_t used(const Node& node) const;
  static void list_files(const Node& node, const std::string& path, std::vector<std::string>& out);
  static void sync(Node& node);
  static void cut(Node& node, const std::string& path, const PowerCut& survives);

  mutable std::mutex mutex_;
  NodePtr root_;
  std::uint64_t generation_ = 0;
  std::optional<Fault> fault_;
  std::uint64_t fault_seen_ = 0;
  bool fault_fired_ = false;
  bool half_write_ = false;  // the failing operation is a write that leaves a part
  std::vector<std::uint64_t> counts_;
  std::optional<std::uint64_t> capacity_;
  std::set<std::string> locks_;
};

}  // namespace kanal::test
