// The files under the RocksDB store: fewer syncs at open, and what is looked over before RocksDB
// sees the directory. Used by rocks_store.cpp, by one thread at a time; FewerSyncs by RocksDB's own
// threads too.
#pragma once

#include "kanal/base/error.hpp"

#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace kanal::reserved {

/// Opening costs RocksDB twelve syncs for a new database, five for an old one. Those of OPTIONS and
/// IDENTITY guard nothing we read; those of a new database's first MANIFEST and CURRENT are
/// followed by a second round at once. What is left: MANIFEST, CURRENT and the directory.
class FewerSyncs final : public rocksdb::FileSystemWrapper {
 public:
  using rocksdb::FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "FewerSyncs"; }
  void set_creating(bool creating) {
    creating_ = creating;
    first_current_ = creating;
  }

  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override {
    auto status = FileSystemWrapper::NewWritableFile(path, options, file, debug);
    if (status.ok() && guards_nothing(path)) *file = std::make_unique<Unsynced>(std::move(*file));
    return status;
  }
  rocksdb::IOStatus NewDirectory(const std::string& path, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* directory,
                                 rocksdb::IODebugContext* debug) override {
    auto status = FileSystemWrapper::NewDirectory(path, options, directory, debug);
    if (status.ok()) *directory = std::make_unique<Directory>(std::move(*directory), *this);
    return status;
  }

 private:
  class Unsynced final : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    using FSWritableFileOwnerWrapper::FSWritableFileOwnerWrapper;
    rocksdb::IOStatus Sync(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {
      return rocksdb::IOStatus::OK();
    }
    rocksdb::IOStatus Fsync(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {
      return rocksdb::IOStatus::OK();
    }
  };
  class Directory final : public rocksdb::FSDirectoryWrapper {
   public:
    Directory(std::unique_ptr<rocksdb::FSDirectory>&& target, FewerSyncs& files)
        : FSDirectoryWrapper(std::move(target)), files_(files) {}
    rocksdb::IOStatus FsyncWithDirOptions(const rocksdb::IOOptions& options,
                                          rocksdb::IODebugContext* debug,
                                          const rocksdb::DirFsyncOptions& why) override {
      if (files_.guards_nothing(why)) return rocksdb::IOStatus::OK();
      return FSDirectoryWrapper::FsyncWithDirOptions(options, debug, why);
    }

   private:
    FewerSyncs& files_;
  };

  [[nodiscard]] bool guards_nothing(std::string_view path) const {
    const std::string_view name = path.substr(path.rfind('/') + 1);
    return name.starts_with("OPTIONS-") || name == "000000.dbtmp" ||  // becomes IDENTITY
           (creating_ && (name == "MANIFEST-000001" || name == "000001.dbtmp"));
  }
  [[nodiscard]] bool guards_nothing(const rocksdb::DirFsyncOptions& why) {
    if (why.reason != rocksdb::DirFsyncOptions::kFileRenamed) return false;
    const std::string_view path = why.renamed_new_name;
    const std::string_view name = path.substr(path.rfind('/') + 1);
    if (name.starts_with("OPTIONS-") || name == "IDENTITY") return true;
    return name == "CURRENT" && first_current_.exchange(false);
  }

  // RocksDB's own threads read them.
  std::atomic<bool> creating_ = false;
  std::atomic<bool> first_current_ = false;  // of a database being made: not renamed yet
};

/// Whether the database is to be made. The mark stands while it is being made, so that one left
/// half-made by a power cut is made anew, and one that has lost a file is never taken for new.
/// Journals are looked over, and cut at a hole that a power cut left.
[[nodiscard]] Result<bool> prepare_directory(rocksdb::Env& env, const std::string& directory);
/// To be removed once the database is made.
[[nodiscard]] std::string new_mark(const std::string& directory);

/// `directory`, which is not there yet, becomes a database with what this one holds now.
[[nodiscard]] Result<void> copy_database(rocksdb::DB& database, const std::string& directory);

[[nodiscard]] Error storage_error(const std::string& what, const rocksdb::Status& status);

}  // namespace kanal::reserved
