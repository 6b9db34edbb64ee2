// A file system to look at data as a start would have it, without writing: reads come from the real
// one, what is written stays in memory. For check_channels, which replays the journal into it. One
// thread.
#pragma once

#include "kanal/base/file_system.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kanal::log {

class OverlayFiles final : public FileSystem {
 public:
  explicit OverlayFiles(FileSystem& below) : below_(below) {}

  struct Written {
    struct Piece {
      std::uint64_t position = 0;
      Buffer bytes;
    };
    std::vector<Piece> pieces;
    std::uint64_t size = 0;
  };
  /// What was written to each file.
  [[nodiscard]] const std::map<std::string, std::shared_ptr<Written>>& written() const {
    return written_;
  }

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override;
  Result<std::vector<DirectoryEntry>> list(const std::string& directory) override {
    return below_.list(directory);
  }
  Result<bool> exists(const std::string& path) override { return below_.exists(path); }
  Result<DiskSpace> space(const std::string& path) override { return below_.space(path); }
  // What is renamed or removed is all still there.
  Result<void> rename(const std::string&, const std::string&) override { return {}; }
  Result<void> remove(const std::string&) override { return {}; }
  Result<void> remove_all(const std::string&) override { return {}; }
  Result<void> create_directories(const std::string&) override { return {}; }
  Result<void> sync_directory(const std::string&) override { return {}; }
  Result<void> sync_all(const std::string&) override { return {}; }
  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override;

 private:
  FileSystem& below_;
  std::map<std::string, std::shared_ptr<Written>> written_;
};

}  // namespace kanal::log
