// What a daemon's disk does wrong. FaultControl: file operations of the daemons started while it
// lives fail by rules that can be changed while they run (faults/preload). SmallDisk: a file system
// of a few MB that really fills up, in a mount namespace of this process. One thread uses an
// object.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace kanal::e2e {

struct FaultRule {
  std::string operations;  // open (of new files), read, write, allocate, sync, rename, …; by commas
  int error = 5;           // EIO
  std::string pattern;     // of the whole path; * matches a slash too
  long after = 0;          // so many go through first …
  long times = -1;         // … and so many fail; -1: all
  long take = 0;           // a write takes so many bytes before it fails
};

class FaultControl {
 public:
  /// `library`: the built preload library; `file`: to be made.
  FaultControl(const std::string& library, const std::filesystem::path& file);
  ~FaultControl();
  FaultControl(const FaultControl&) = delete;
  FaultControl& operator=(const FaultControl&) = delete;

  void set(const std::vector<FaultRule>& rules);
  void clear() { set({}); }
  /// How often the rule has struck since it was set.
  [[nodiscard]] std::uint64_t strikes(std::size_t rule = 0) const;

 private:
  char* memory_ = nullptr;
};

class SmallDisk {
 public:
  /// Whether this machine lets us mount. Before the first thread.
  static bool enter_namespace();
  /// Mounted over `directory`, which is made.
  SmallDisk(std::filesystem::path directory, std::uint64_t bytes);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  /// Takes all room but this much, with a file of its own; again after others took or freed some.
  void leave(std::uint64_t bytes);
  void free_all();
  [[nodiscard]] std::uint64_t free_bytes() const;

 private:
  [[nodiscard]] std::filesystem::path ballast() const { return directory_ / "ballast"; }
  std::filesystem::path directory_;
};

}  // namespace kanal::e2e
