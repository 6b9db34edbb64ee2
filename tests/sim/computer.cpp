#include "computer.hpp"

#include "kanal/records/batch.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace kanal::sim {
namespace {

std::unexpected<Error> gone() {
  return fail(ErrorCode::KAFKA_STORAGE_ERROR, "the process is dead", EIO);
}

using Disk = test::MemoryFileSystem;

/// `what` on a disk that lets it fail. What a failed sync did not write is lost: the next one does
/// not see it, as on Linux.
template <class Change>
Result<void> struck(Disk& disk, Life::Step step, Change&& what) {
  disk.fail({.error = step == Life::Step::kFull ? ENOSPC : EIO, .sync_loses = true});
  auto done = what();
  disk.clear_faults();
  return done;
}

class ProcessFile final : public File {
 public:
  ProcessFile(Disk& disk, std::unique_ptr<File> under, std::shared_ptr<Fittings> fittings,
              std::string path)
      : disk_(disk),
        under_(std::move(under)),
        fittings_(std::move(fittings)),
        path_(std::move(path)),
        is_log_(path_.ends_with(".log")) {}

  Result<std::size_t> read_at(std::uint64_t position, MutableBytes into) const override {
    if (fittings_->life->dead()) return gone();
    return under_->read_at(position, into);
  }
  Result<void> write_at(std::uint64_t position, std::span<const Bytes> pieces) override {
    const Life::Step step = fittings_->life->step();
    switch (step) {
      case Life::Step::kDead:
        return gone();
      case Life::Step::kDie:
        tear(position, pieces);
        return gone();
      case Life::Step::kError:
      case Life::Step::kFull:
        return struck(disk_, step, [&] { return under_->write_at(position, pieces); });
      case Life::Step::kGo:
        break;
    }
    if (fittings_->mutant == Mutant::kWriteIsLost && is_log_ && fittings_->dice.one_in(40))
      return {};
    if (fittings_->mutant == Mutant::kIndexIsBelieved && path_.ends_with(".kindex"))
      return write_lies(position, pieces);
    return under_->write_at(position, pieces);
  }
  Result<void> sync() override {
    if (skips_sync()) return {};
    return change([this] { return under_->sync(); }, Life::Step::kGo);
  }
  Result<void> truncate(std::uint64_t size) override {
    if (fittings_->mutant == Mutant::kTooMuchIsCut && is_log_)
      size -= std::min<std::uint64_t>(size, 100);
    return change([this, size] { return under_->truncate(size); });
  }
  Result<void> allocate(std::uint64_t position, std::uint64_t bytes) override {
    return change([this, position, bytes] { return under_->allocate(position, bytes); });
  }
  Result<std::uint64_t> size() const override {
    if (fittings_->life->dead()) return gone();
    return under_->size();
  }
  bool cached(std::uint64_t position, std::uint64_t bytes) const noexcept override {
    return under_->cached(position, bytes);
  }
  int native_handle() const noexcept override { return -1; }

 private:
  /// Syncs go through where the disk is full.
  template <class Change>
  Result<void> change(Change&& what, std::optional<Life::Step> full = {}) {
    Life::Step step = fittings_->life->step();
    if (step == Life::Step::kFull && full) step = *full;
    if (step == Life::Step::kGo) return what();
    if (step == Life::Step::kError || step == Life::Step::kFull) return struck(disk_, step, what);
    // Killed within the call: it may have happened.
    if (step == Life::Step::kDie && fittings_->dice.percent(50)) (void)what();
    return gone();
  }
  [[nodiscard]] bool skips_sync() const {
    switch (fittings_->mutant) {
      case Mutant::kSyncDoesNothing:
        return true;
      case Mutant::kSegmentIsNotSynced:
        return is_log_;
      case Mutant::kJournalIsNotSynced:
        return path_.ends_with("/journal");
      case Mutant::kCompactedIsNotSynced:  // 00000000000000000000.7.log
        return is_log_ && std::ranges::count(path_.substr(path_.rfind('/')), '.') > 1;
      default:
        return false;
    }
  }
  /// An index in order and with its checksum, but what it says of its last block is wrong.
  Result<void> write_lies(std::uint64_t position, std::span<const Bytes> pieces) {
    constexpr std::size_t kBlock = 16, kSum = 4, kOne = 84;  // docs/storage_format.md
    Buffer all;
    for (const Bytes piece : pieces) append(all, piece);
    if (position == 0 && all.size() >= kOne) {
      const std::size_t summed = all.size() - kSum;
      std::byte* const block = all.data() + summed - kBlock;  // first, position, max timestamp
      if (all.size() > kOne) store_be(block + 4, load_be<std::uint32_t>(block + 4) + 7);
      store_be(block + 8, std::int64_t{0});
      store_be(all.data() + summed, records::crc32c(Bytes(all).first(summed)));
    }
    const Bytes lies(all);
    return under_->write_at(position, {&lies, 1});
  }
  void tear(std::uint64_t position, std::span<const Bytes> pieces) {
    Buffer all;
    for (const Bytes piece : pieces) append(all, piece);
    all.resize(static_cast<std::size_t>(fittings_->dice.below(all.size() + 1)));
    const Bytes kept(all);
    (void)under_->write_at(position, {&kept, 1});
  }

  Disk& disk_;
  const std::unique_ptr<File> under_;
  const std::shared_ptr<Fittings> fittings_;
  const std::string path_;
  const bool is_log_;
};

class ProcessFiles final : public FileSystem {
 public:
  ProcessFiles(Disk& disk, const Fittings& fittings)
      : disk_(disk), fittings_(std::make_shared<Fittings>(fittings)) {}

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override {
    if (mode == OpenMode::kCreate) {
      const Life::Step step = fittings_->life->step();
      if (step == Life::Step::kError || step == Life::Step::kFull) {
        return fail(ErrorCode::KAFKA_STORAGE_ERROR, "cannot create '" + path + "'",
                    step == Life::Step::kFull ? ENOSPC : EIO);
      }
      if (step != Life::Step::kGo) return gone();
    }
    if (fittings_->life->dead()) return gone();
    auto opened = disk_.open(path, mode);
    if (!opened) return opened;
    return std::make_unique<ProcessFile>(disk_, std::move(*opened), fittings_, path);
  }
  Result<std::vector<DirectoryEntry>> list(const std::string& directory) override {
    if (fittings_->life->dead()) return gone();
    return disk_.list(directory);
  }
  Result<bool> exists(const std::string& path) override {
    if (fittings_->life->dead()) return gone();
    return disk_.exists(path);
  }
  Result<void> create_directories(const std::string& path) override {
    return change([&] { return disk_.create_directories(path); });
  }
  Result<void> rename(const std::string& from, const std::string& to) override {
    return change([&] { return disk_.rename(from, to); });
  }
  Result<void> remove(const std::string& path) override {
    return change([&] { return disk_.remove(path); });
  }
  Result<void> remove_all(const std::string& path) override {
    return change([&] { return disk_.remove_all(path); });
  }
  Result<void> sync_directory(const std::string& path) override {
    if (fittings_->mutant == Mutant::kSyncDoesNothing ||
        fittings_->mutant == Mutant::kDirectoryIsNotSynced) {
      return {};
    }
    return change([&] { return disk_.sync_directory(path); }, Life::Step::kGo);
  }
  Result<void> sync_all(const std::string& path) override {
    if (fittings_->mutant == Mutant::kSyncDoesNothing) return {};
    return change([&] { return disk_.sync_all(path); }, Life::Step::kGo);
  }
  Result<DiskSpace> space(const std::string& path) override { return disk_.space(path); }
  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override {
    if (fittings_->life->dead()) return gone();
    return disk_.lock(path);
  }

 private:
  template <class Change>
  Result<void> change(Change&& what, std::optional<Life::Step> full = {}) {
    Life::Step step = fittings_->life->step();
    if (step == Life::Step::kFull && full) step = *full;
    if (step == Life::Step::kGo) return what();
    if (step == Life::Step::kError || step == Life::Step::kFull) return struck(disk_, step, what);
    if (step == Life::Step::kDie && fittings_->dice.percent(50)) (void)what();
    return gone();
  }

  Disk& disk_;
  const std::shared_ptr<Fittings> fittings_;
};

class ProcessSession final : public reserved::Session {
 public:
  ProcessSession(std::unique_ptr<reserved::Session> under, std::shared_ptr<Fittings> fittings,
                 std::shared_ptr<StoreTrouble> trouble)
      : under_(std::move(under)), fittings_(std::move(fittings)), trouble_(std::move(trouble)) {}

  Result<reserved::Stored> append(const reserved::ReservedName& name,
                                  std::span<const Bytes> records,
                                  reserved::Durability durability) override {
    if (forgets(name.kind)) return reserved::Stored{};
    write_late();
    return write([&] { return under_->append(name, records, durability); });
  }
  Result<reserved::Stored> roll(const reserved::ReservedName& name, std::span<const Bytes> snapshot,
                                reserved::Durability durability) override {
    if (fittings_->mutant == Mutant::kRolledBeforeWritten) {
      for (const Bytes record : snapshot) late_.emplace_back(record.begin(), record.end());
      late_name_ = name;
      return write([&] { return under_->roll(name, {}, durability); });
    }
    return write([&] { return under_->roll(name, snapshot, durability); });
  }
  Result<reserved::Stored> erase(const reserved::ReservedName& name,
                                 reserved::Durability durability) override {
    return write([&] { return under_->erase(name, durability); });
  }
  Result<void> replay(const Visitor& visitor) override {
    if (fittings_->life->dead()) return gone();
    return under_->replay(visitor);
  }
  Result<void> replay_kind(reserved::Kind kind, const Visitor& visitor) override {
    if (fittings_->life->dead()) return gone();
    return under_->replay_kind(kind, visitor);
  }
  Result<void> replay_channel(const reserved::ReservedName& name, const Visitor& visitor) override {
    if (fittings_->life->dead()) return gone();
    return under_->replay_channel(name, visitor);
  }
  [[nodiscard]] std::uint64_t records_in(const reserved::ReservedName& name) const override {
    return under_->records_in(name);
  }

 private:
  void write_late() {
    if (late_.empty()) return;
    const std::vector<Bytes> records(late_.begin(), late_.end());
    (void)write(
        [&] { return under_->append(*late_name_, records, reserved::Durability::kWritten); });
    late_.clear();
  }
  bool forgets(reserved::Kind kind) {
    switch (fittings_->mutant) {
      case Mutant::kTopicIsForgotten:
        return kind == reserved::Kind::kConfig && fittings_->dice.one_in(4);
      case Mutant::kProducerIdsRepeat:
        return kind == reserved::Kind::kPids;
      case Mutant::kCommitIsNotStored:
        return kind == reserved::Kind::kOffsets && fittings_->dice.one_in(8);
      case Mutant::kOffsetsAreResetByARestart:
        return kind == reserved::Kind::kOffsets;
      default:
        return false;
    }
  }
  template <class Write>
  Result<reserved::Stored> write(Write&& what) {
    const Life::Step step = fittings_->life->step();
    if (step == Life::Step::kDead) return gone();
    if (step == Life::Step::kDie) {
      if (fittings_->dice.percent(50)) (void)what();
      return gone();
    }
    if (step == Life::Step::kError) trouble_->broken = true;
    if (step == Life::Step::kFull) trouble_->full_writes = full_ + 1;
    if (trouble_->broken) return fail(ErrorCode::KAFKA_STORAGE_ERROR, "the store is broken", EIO);
    if (full_ < trouble_->full_writes) {
      ++full_;
      return fail(ErrorCode::KAFKA_STORAGE_ERROR, "the disk of the store is full", ENOSPC);
    }
    return what();
  }

  const std::unique_ptr<reserved::Session> under_;
  const std::shared_ptr<Fittings> fittings_;
  const std::shared_ptr<StoreTrouble> trouble_;
  std::uint64_t full_ = 0;
  std::optional<reserved::ReservedName> late_name_;  // kRolledBeforeWritten
  std::vector<Buffer> late_;
};

class ProcessStore final : public reserved::Store {
 public:
  ProcessStore(reserved::MemoryStore& store, const Fittings& fittings,
               std::shared_ptr<StoreTrouble> trouble)
      : store_(store),
        fittings_(std::make_shared<Fittings>(fittings)),
        trouble_(std::move(trouble)) {}

  Result<std::unique_ptr<reserved::Session>> open() override {
    if (fittings_->life->dead()) return gone();
    auto opened = store_.open();
    if (!opened) return opened;
    return std::make_unique<ProcessSession>(std::move(*opened), fittings_, trouble_);
  }
  Result<void> flush() override {
    const Life::Step step = fittings_->life->step();
    if (step == Life::Step::kDie || step == Life::Step::kDead) {
      if (step == Life::Step::kDie && fittings_->dice.percent(50)) (void)store_.flush();
      return gone();
    }
    if (step != Life::Step::kGo) trouble_->broken = true;
    if (trouble_->broken) return fail(ErrorCode::KAFKA_STORAGE_ERROR, "the store is broken", EIO);
    return store_.flush();
  }
  [[nodiscard]] std::uint64_t journal_position() const override {
    return store_.journal_position();
  }

 private:
  reserved::MemoryStore& store_;
  const std::shared_ptr<Fittings> fittings_;
  const std::shared_ptr<StoreTrouble> trouble_;
};

}  // namespace

std::unique_ptr<FileSystem> process_files(test::MemoryFileSystem& disk, const Fittings& fittings) {
  return std::make_unique<ProcessFiles>(disk, fittings);
}

std::unique_ptr<reserved::Store> process_store(reserved::MemoryStore& store,
                                               const Fittings& fittings,
                                               std::shared_ptr<StoreTrouble> trouble) {
  return std::make_unique<ProcessStore>(store, fittings, std::move(trouble));
}

void SlowHelpers::post(std::move_only_function<void()> work) {
  Time due = clock_.now();
  if (most_.count() > 0 && dice_.percent(60)) {
    due += Duration(
        static_cast<std::int64_t>(dice_.below(static_cast<std::uint64_t>(most_.count()) + 1)));
  }
  queue_.emplace(std::pair(due, ++posted_), std::move(work));
}

bool SlowHelpers::run_one() {
  if (queue_.empty() || queue_.begin()->first.first > clock_.now()) return false;
  auto work = std::move(queue_.begin()->second);
  queue_.erase(queue_.begin());
  work();
  return true;
}

std::optional<Time> SlowHelpers::next() const {
  if (queue_.empty()) return std::nullopt;
  return queue_.begin()->first.first;
}

void SlowHelpers::run_all() {
  while (!queue_.empty()) {
    auto work = std::move(queue_.begin()->second);
    queue_.erase(queue_.begin());
    work();
  }
}

void SlowHelpers::drop_all() {
  while (!queue_.empty()) {  // what a job holds may post another as it goes
    auto dropped = std::move(queue_);
    queue_.clear();
  }
}

Computer::Computer() {
  (void)disk.create_directories("/data");
  (void)disk.sync_directory("/");
}

void Computer::power_cut(Dice& dice) {
  test::MemoryFileSystem::PowerCut survives;
  const int mood = dice.between(0, 3);  // all of it lost, all but the last, anything
  const auto some = [&dice, mood](std::size_t most) -> std::size_t {
    if (mood == 0) return 0;
    if (mood == 1) return most;
    return static_cast<std::size_t>(dice.below(most + 1));
  };
  survives.keep_writes = [&some](std::string_view, std::size_t unsynced) { return some(unsynced); };
  survives.keep_bytes = [&some](std::size_t bytes) { return some(bytes); };
  survives.keep_names = [&some](std::string_view, std::size_t unsynced) { return some(unsynced); };
  disk.power_cut(survives);
  store.power_cut(some(store.unsynced_writes()));
}

}  // namespace kanal::sim
