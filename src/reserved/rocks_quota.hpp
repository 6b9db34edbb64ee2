// Under the RocksDB store: a disk quota that is used up (EDQUOT) is told as a full disk is. RocksDB
// makes a plain I/O error of it, after which the store would take no more writes until the next
// start, and of the error number only its text is left. Used by RocksDB's own threads too; without
// state.
#pragma once

#include <rocksdb/file_system.h>

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace kanal::reserved {

class QuotaFiles final : public rocksdb::FileSystemWrapper {
  using Status = rocksdb::IOStatus;
  using Options = rocksdb::IOOptions;
  using Debug = rocksdb::IODebugContext;
  using Slice = rocksdb::Slice;
  using WritableFile = std::unique_ptr<rocksdb::FSWritableFile>;

 public:
  using rocksdb::FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "QuotaFiles"; }

  Status NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                         WritableFile* file, Debug* debug) override {
    return wrapped(FileSystemWrapper::NewWritableFile(path, options, file, debug), *file);
  }
  Status ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                            WritableFile* file, Debug* debug) override {
    return wrapped(FileSystemWrapper::ReopenWritableFile(path, options, file, debug), *file);
  }
  Status ReuseWritableFile(const std::string& path, const std::string& old,
                           const rocksdb::FileOptions& options, WritableFile* file,
                           Debug* debug) override {
    return wrapped(FileSystemWrapper::ReuseWritableFile(path, old, options, file, debug), *file);
  }
  Status CreateDir(const std::string& path, const Options& options, Debug* debug) override {
    return told(FileSystemWrapper::CreateDir(path, options, debug));
  }
  Status CreateDirIfMissing(const std::string& path, const Options& options,
                            Debug* debug) override {
    return told(FileSystemWrapper::CreateDirIfMissing(path, options, debug));
  }
  Status RenameFile(const std::string& from, const std::string& to, const Options& options,
                    Debug* debug) override {
    return told(FileSystemWrapper::RenameFile(from, to, options, debug));
  }
  Status LinkFile(const std::string& from, const std::string& to, const Options& options,
                  Debug* debug) override {
    return told(FileSystemWrapper::LinkFile(from, to, options, debug));
  }

 private:
  class Writing final : public rocksdb::FSWritableFileOwnerWrapper {
    using Check = rocksdb::DataVerificationInfo;

   public:
    using FSWritableFileOwnerWrapper::FSWritableFileOwnerWrapper;
    Status Append(const Slice& data, const Options& options, Debug* debug) override {
      return told(FSWritableFileOwnerWrapper::Append(data, options, debug));
    }
    Status Append(const Slice& data, const Options& options, const Check& check,
                  Debug* debug) override {
      return told(FSWritableFileOwnerWrapper::Append(data, options, check, debug));
    }
    Status PositionedAppend(const Slice& data, std::uint64_t at, const Options& options,
                            Debug* debug) override {
      return told(FSWritableFileOwnerWrapper::PositionedAppend(data, at, options, debug));
    }
    Status PositionedAppend(const Slice& data, std::uint64_t at, const Options& options,
                            const Check& check, Debug* debug) override {
      return told(FSWritableFileOwnerWrapper::PositionedAppend(data, at, options, check, debug));
    }
    Status Truncate(std::uint64_t size, const Options& options, Debug* debug) override {
      return told(FSWritableFileOwnerWrapper::Truncate(size, options, debug));
    }
    Status Allocate(std::uint64_t at, std::uint64_t size, const Options& options,
                    Debug* debug) override {
      return told(FSWritableFileOwnerWrapper::Allocate(at, size, options, debug));
    }
    Status RangeSync(std::uint64_t at, std::uint64_t size, const Options& options,
                     Debug* debug) override {
      return told(FSWritableFileOwnerWrapper::RangeSync(at, size, options, debug));
    }
    Status Flush(const Options& options, Debug* debug) override {
      return told(FSWritableFileOwnerWrapper::Flush(options, debug));
    }
    Status Sync(const Options& options, Debug* debug) override {
      return told(FSWritableFileOwnerWrapper::Sync(options, debug));
    }
    Status Fsync(const Options& options, Debug* debug) override {
      return told(FSWritableFileOwnerWrapper::Fsync(options, debug));
    }
    Status Close(const Options& options, Debug* debug) override {
      return told(FSWritableFileOwnerWrapper::Close(options, debug));
    }
  };

  static Status told(Status status) {
    static const std::string kQuota = std::generic_category().message(EDQUOT);
    if (!status.IsIOError() || status.getState() == nullptr ||
        !std::string_view(status.getState()).ends_with(kQuota)) {
      return status;
    }
    Status full = Status::NoSpace(status.getState());
    full.SetRetryable(true);
    return full;
  }
  static Status wrapped(Status status, WritableFile& file) {
    if (status.ok()) file = std::make_unique<Writing>(std::move(file));
    return told(std::move(status));
  }
};

}  // namespace kanal::reserved
