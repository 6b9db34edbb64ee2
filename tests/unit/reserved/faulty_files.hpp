// A file system under RocksDB that fails the i-th change (write, sync, create, rename), can be
// full, and can cut the power: everything not synced since is gone from the files.
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace kanal::reserved {

class FaultyFiles final : public rocksdb::FileSystemWrapper {
 public:
  FaultyFiles() : FileSystemWrapper(rocksdb::FileSystem::Default()) {
    no_space_.SetRetryable(true);  // as RocksDB's own
  }
  const char* Name() const override { return "FaultyFiles"; }

  /// Changes so far; the one numbered `change` (from 1) fails, and all after it while `lasting`.
  [[nodiscard]] std::uint64_t changes() const {
    const std::lock_guard guard(lock_);
    return changes_;
  }
  /// Of them those this thread made: RocksDB has threads of its own, which tidy up after a failure.
  [[nodiscard]] std::uint64_t changes_of_this_thread() const {
    const std::lock_guard guard(lock_);
    const auto found = by_thread_.find(std::this_thread::get_id());
    return found == by_thread_.end() ? 0 : found->second;
  }
  void fail_change(std::uint64_t change, bool lasting) {
    const std::lock_guard guard(lock_);
    fails_at_ = change;
    lasting_ = lasting;
  }
  /// Writes answer "no space left" until it is set back.
  void set_full(bool full) {
    const std::lock_guard guard(lock_);
    full_ = full;
  }
  /// A full disk has no room for new files either.
  void refuse_files_when_full() { files_take_space_ = true; }
  /// Where there is no space it is a quota that is used up: told as RocksDB tells what it does not
  /// know.
  void use_quota() {
    const std::lock_guard guard(lock_);
    no_space_ = rocksdb::IOStatus::IOError("While appending to file: a", std::strerror(EDQUOT));
  }
  /// The change so numbered finds no space, once, whatever it is.
  void fill_at(std::uint64_t change) {
    const std::lock_guard guard(lock_);
    full_at_ = change;
  }
  /// Syncs answer "no space left" until it is set back: what was written is there all the same.
  void fill_syncs(bool full) {
    const std::lock_guard guard(lock_);
    syncs_full_ = full;
  }
  /// Cuts every file back to what was synced. Only with the database closed.
  void cut_power() {
    const std::lock_guard guard(lock_);
    for (const auto& [path, length] : synced_) {
      std::error_code gone;
      if (std::filesystem::exists(path, gone)) std::filesystem::resize_file(path, length);
    }
    synced_.clear();
    fails_at_.reset();
  }

  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override {
    if (auto failed = change(files_take_space_); !failed.ok()) return failed;
    auto status = FileSystemWrapper::NewWritableFile(path, options, file, debug);
    if (!status.ok()) return status;
    const std::lock_guard guard(lock_);
    synced_[path] = 0;
    *file = std::make_unique<WritableFile>(std::move(*file), *this, path);
    return status;
  }
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override {
    if (auto failed = change(false); !failed.ok()) return failed;
    auto status = FileSystemWrapper::RenameFile(from, to, options, debug);
    const std::lock_guard guard(lock_);
    if (const auto at = synced_.find(from); status.ok() && at != synced_.end()) {
      synced_[to] = at->second;
      synced_.erase(from);
    }
    return status;
  }
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override {
    if (auto failed = change(false); !failed.ok()) return failed;
    const std::lock_guard guard(lock_);
    synced_.erase(path);
    return FileSystemWrapper::DeleteFile(path, options, debug);
  }

 private:
  class WritableFile final : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    WritableFile(std::unique_ptr<rocksdb::FSWritableFile>&& target, FaultyFiles& files,
                 std::string path)
        : FSWritableFileOwnerWrapper(std::move(target)), files_(files), path_(std::move(path)) {}
    using FSWritableFileOwnerWrapper::Append;
    rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override {
      if (auto failed = files_.change(true); !failed.ok()) return failed;
      written_ += data.size();
      return FSWritableFileOwnerWrapper::Append(data, options, debug);
    }
    rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
      return synced(FSWritableFileOwnerWrapper::Sync(options, debug));
    }
    rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options,
                            rocksdb::IODebugContext* debug) override {
      return synced(FSWritableFileOwnerWrapper::Fsync(options, debug));
    }

   private:
    rocksdb::IOStatus synced(rocksdb::IOStatus status) {
      if (auto failed = files_.change(false); !failed.ok()) return failed;
      const std::lock_guard guard(files_.lock_);
      if (files_.syncs_full_) return files_.no_space_;
      const auto at = files_.synced_.find(path_);
      // A file still open is known by its old name after a rename; those are synced before it.
      if (status.ok() && at != files_.synced_.end()) at->second = written_;
      return status;
    }
    FaultyFiles& files_;
    std::string path_;
    std::uint64_t written_ = 0;
  };

  rocksdb::IOStatus change(bool takes_space) {
    const std::lock_guard guard(lock_);
    ++changes_;
    ++by_thread_[std::this_thread::get_id()];
    if ((full_ && takes_space) || full_at_ == changes_) return no_space_;
    if (fails_at_ && (changes_ == *fails_at_ || (lasting_ && changes_ > *fails_at_))) {
      return rocksdb::IOStatus::IOError("injected");
    }
    return rocksdb::IOStatus::OK();
  }

  mutable std::mutex lock_;
  std::uint64_t changes_ = 0;
  std::map<std::thread::id, std::uint64_t> by_thread_;
  std::optional<std::uint64_t> fails_at_;
  bool lasting_ = false;
  rocksdb::IOStatus no_space_ = rocksdb::IOStatus::NoSpace("the disk is full");
  bool full_ = false;
  std::atomic<bool> files_take_space_ = false;
  bool syncs_full_ = false;
  std::optional<std::uint64_t> full_at_;
  std::map<std::string, std::uint64_t> synced_;  // bytes of each file that a power cut leaves
};

}  // namespace kanal::reserved
