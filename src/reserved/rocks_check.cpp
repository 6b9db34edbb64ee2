#include "journal_check.hpp"
#include "kanal/base/bytes.hpp"
#include "kanal/reserved/check.hpp"
#include "names.hpp"
#include "record_frame.hpp"
#include "rocks_files.hpp"

#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/utilities/checkpoint.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <cstdarg>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace kanal::reserved {
namespace {

using Weight = Finding::Weight;

/// What matters comes back as a status.
class Silent final : public rocksdb::Logger {
 public:
  using Logger::Logv;
  void Logv(const char*, va_list) override {}
};

/// Nothing is written, and a journal ends where a start would cut it.
class LookingOnly final : public rocksdb::FileSystemWrapper {
 public:
  using rocksdb::FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "LookingOnly"; }
  void end_at(const std::string& path, std::uint64_t size) { ends_[path] = size; }

  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                      rocksdb::IODebugContext* debug) override {
    auto status = FileSystemWrapper::NewSequentialFile(path, options, file, debug);
    const auto end = ends_.find(path);
    if (status.ok() && end != ends_.end())
      *file = std::make_unique<Shorter>(std::move(*file), end->second);
    return status;
  }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions&,
                                    std::unique_ptr<rocksdb::FSWritableFile>*,
                                    rocksdb::IODebugContext*) override {
    return rocksdb::IOStatus::NotSupported("looking only: " + path);
  }
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions&,
                               rocksdb::IODebugContext*) override {
    return rocksdb::IOStatus::NotSupported("looking only: " + path);
  }
  rocksdb::IOStatus RenameFile(const std::string& path, const std::string&,
                               const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {
    return rocksdb::IOStatus::NotSupported("looking only: " + path);
  }

 private:
  class Shorter final : public rocksdb::FSSequentialFileOwnerWrapper {
   public:
    Shorter(std::unique_ptr<rocksdb::FSSequentialFile>&& target, std::uint64_t size)
        : FSSequentialFileOwnerWrapper(std::move(target)), left_(size) {}
    rocksdb::IOStatus Read(std::size_t wanted, const rocksdb::IOOptions& options,
                           rocksdb::Slice* result, char* scratch,
                           rocksdb::IODebugContext* debug) override {
      wanted = static_cast<std::size_t>(std::min<std::uint64_t>(wanted, left_));
      auto status = FSSequentialFileOwnerWrapper::Read(wanted, options, result, scratch, debug);
      left_ -= std::min<std::uint64_t>(result->size(), left_);
      return status;
    }

   private:
    std::uint64_t left_;
  };
  std::map<std::string, std::uint64_t> ends_;
};

class RocksCheck {
 public:
  RocksCheck(const std::string& directory, const Session::Visitor& visitor,
             const FindingSink& found)
      : directory_(directory),
        visitor_(visitor),
        found_(found),
        files_(std::make_shared<LookingOnly>(rocksdb::FileSystem::Default())),
        env_(rocksdb::NewCompositeEnv(files_)) {}
  ReservedFigures run();

 private:
  void tell(Weight weight, const std::string& name, std::string text,
            std::optional<std::uint64_t> position = std::nullopt) {
    found_(
        {weight, name.empty() ? directory_ : directory_ + "/" + name, position, std::move(text)});
  }
  bool look_over_files();
  void look_over_journal(const std::string& name, bool journal);
  void read(rocksdb::DB& db);
  void take(const rocksdb::Slice& key, const rocksdb::Slice& value);
  void take_pointer(const ReservedName& name, Bytes content);
  void tell_channel(const ReservedName& name, std::uint64_t generation, std::string what);

  const std::string directory_;
  const Session::Visitor& visitor_;
  const FindingSink& found_;
  const std::shared_ptr<LookingOnly> files_;
  const std::unique_ptr<rocksdb::Env> env_;
  ReservedFigures figures_;
  struct Channel {
    ReservedName name;
    std::uint64_t generation = 0, records = 0;
    bool damaged = false;
  };
  std::optional<Channel> channel_;
};

ReservedFigures RocksCheck::run() {
  if (!look_over_files()) return figures_;
  rocksdb::Options options;
  options.env = env_.get();
  options.info_log = std::make_shared<Silent>();
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.paranoid_checks = true;
  options.max_open_files = 64;
  rocksdb::DB* opened = nullptr;
  const auto status = rocksdb::DB::OpenForReadOnly(options, directory_, &opened);
  const std::unique_ptr<rocksdb::DB> db(opened);
  if (!status.ok()) {
    tell(Weight::kDamage, "",
         "the database of the reserved channels cannot be opened: " + status.ToString() +
             ". The daemon does not start");
    return figures_;
  }
  figures_.readable = true;
  figures_.journal_position = db->GetLatestSequenceNumber();
  if (const auto sums = db->VerifyChecksum(); !sums.ok()) {
    tell(Weight::kDamage, "",
         "a table of the reserved channels is damaged: " + sums.ToString() +
             ". The daemon may not start");
    figures_.readable = false;
  }
  read(*db);
  return figures_;
}

/// False: there is nothing to open.
bool RocksCheck::look_over_files() {
  std::vector<std::string> names;
  if (const auto listed = env_->GetChildren(directory_, &names); !listed.ok()) {
    tell(Weight::kDamage, "", "it cannot be listed: " + listed.ToString());
    return false;
  }
  std::ranges::sort(names);
  if (std::ranges::find(names, "NEW") != names.end()) {
    tell(Weight::kRecoverable, "NEW",
         "the first start ended while it made the database; it is made anew, nothing was stored");
    return false;
  }
  bool has_journal = false;
  for (const std::string& name : names) {
    if (name.ends_with(".log")) has_journal = true;
    if (name.ends_with(".log") || name.starts_with("MANIFEST-"))
      look_over_journal(name, name.ends_with(".log"));
  }
  if (!has_journal) {
    tell(Weight::kDamage, "",
         "the database has lost its journal (*.log): the daemon does not start");
  }
  return true;
}

void RocksCheck::look_over_journal(const std::string& name, bool journal) {
  std::string content;
  const std::string path = directory_ + "/" + name;
  if (const auto status = rocksdb::ReadFileToString(env_.get(), path, &content); !status.ok())
    return tell(Weight::kDamage, name, "it cannot be read: " + status.ToString());
  const JournalState state = check_journal(as_bytes(content));
  switch (state.what) {
    case JournalState::What::kDamaged:
      return tell(Weight::kDamage, name,
                  "it is damaged: the daemon does not start", state.at);
    case JournalState::What::kHole:
      files_->end_at(path, state.at);
      return tell(Weight::kRecoverable, name,
                  "a power cut left a hole of zeros in what was not synced; a start cuts it there",
                  state.at);
    case JournalState::What::kWhole:
      break;
  }
  const std::string_view rest =
      std::string_view(content).substr(std::min(state.at, content.size()));
  if (rest.find_first_not_of('\0') == std::string_view::npos) return;
  tell(Weight::kRecoverable, name,
       journal ? "its last record is torn; it is cut off: what a crash left of a write that was "
                 "not stored"
               : "its last record is torn; the database opens without it",
       state.at);
}

void RocksCheck::read(rocksdb::DB& db) {
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  options.verify_checksums = true;
  const std::unique_ptr<rocksdb::Iterator> at(db.NewIterator(options));
  for (at->SeekToFirst(); at->Valid(); at->Next()) take(at->key(), at->value());
  if (at->status().ok()) return;
  figures_.readable = false;
  tell(Weight::kDamage, "",
       "the reserved channels cannot be read" +
           (channel_ ? " after " + to_string(channel_->name) : "") + ": " +
           at->status().ToString());
}

void RocksCheck::take(const rocksdb::Slice& key, const rocksdb::Slice& value) {
  figures_.bytes += key.size() + value.size();
  const auto parsed = parse_key({key.data(), key.size()});
  if (!parsed) {
    return tell(
        Weight::kDamage, "",
        "a key of no channel: " + key.ToString(/*hex=*/true) + ". The daemon does not start");
  }
  const auto content = unframe({key.data(), key.size()}, as_bytes({value.data(), value.size()}));
  if (!content) return tell_channel(parsed->name, parsed->generation, content.error().detail);
  if (parsed->number == 0) return take_pointer(parsed->name, *content);
  if (!channel_ || channel_->name != parsed->name || channel_->generation != parsed->generation)
    return tell_channel(parsed->name, parsed->generation, "a record of no live generation");
  if (parsed->number != channel_->records + 1) {
    tell_channel(parsed->name, parsed->generation,
                 "record " + std::to_string(channel_->records + 1) + " is missing");
  }
  channel_->records = parsed->number;
  ++figures_.records;
  if (channel_->damaged) return;
  if (auto done = visitor_(parsed->name, *content); !done) {
    tell_channel(parsed->name, parsed->generation,
                 "record " + std::to_string(parsed->number) + ": " + done.error().detail);
  }
}

void RocksCheck::take_pointer(const ReservedName& name, Bytes content) {
  ++figures_.channels;
  channel_ = Channel{name, 0, 0, false};
  if (content.size() == sizeof channel_->generation)
    channel_->generation = load_be<std::uint64_t>(content.data());
  if (channel_->generation == 0) tell_channel(name, 0, "its generation pointer is not one");
}

void RocksCheck::tell_channel(const ReservedName& name, std::uint64_t generation,
                              std::string what) {
  const bool told = channel_ && channel_->name == name && std::exchange(channel_->damaged, true);
  if (told) return;
  tell(Weight::kDamage, "",
       (generation > 0 ? to_string(name, generation) : to_string(name)) + " is damaged: " + what +
           ". The daemon does not start");
}

}  // namespace

ReservedFigures check_rocks_store(const std::string& directory, const Session::Visitor& visitor,
                                  const FindingSink& found) {
  return RocksCheck(directory, visitor, found).run();
}

Result<void> copy_database(rocksdb::DB& database, const std::string& directory) {
  const auto failed = [&](const rocksdb::Status& status) -> Result<void> {
    return std::unexpected(
        storage_error("the reserved store cannot be copied to " + directory, status));
  };
  // A start takes a store without a journal for a damaged one, and an empty journal is not copied.
  rocksdb::WriteBatch nothing;
  nothing.PutLogData("copy");
  if (const auto status = database.Write({}, &nothing); !status.ok()) return failed(status);
  rocksdb::Checkpoint* made = nullptr;
  const rocksdb::Status status = rocksdb::Checkpoint::Create(&database, &made);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  if (!status.ok()) return failed(status);
  constexpr std::uint64_t kNeverFlush = UINT64_MAX;  // the journal is copied instead
  const rocksdb::Status copied = checkpoint->CreateCheckpoint(directory, kNeverFlush);
  return copied.ok() ? Result<void>{} : failed(copied);
}

}  // namespace kanal::reserved
