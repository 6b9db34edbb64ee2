#include "journal.hpp"

#include "blob.hpp"

#include "kanal/base/logging.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

namespace kanal::log {
namespace {

constexpr std::size_t kDirect = 2;  // that many logs are synced each for itself
constexpr std::uint64_t kLargestPiece = 64 << 10;
constexpr std::uint64_t kLargestEntry = 4 << 20;
constexpr std::size_t kSyncEach = 32;  // files; more are written back by one call for all
constexpr std::chrono::seconds kPause{60};  // between attempts to make the file

}  // namespace

Journal::Journal(const Base& base, Options options) : base_(base), options_(std::move(options)) {}

std::string Journal::path() const {
  return options_.directory + "/" + std::string(kJournalFile);
}

std::uint64_t Journal::largest_entry() const noexcept {
  return std::min(kLargestEntry, options_.half_bytes - kJournalBlock);
}

Result<void> Journal::replayed(const std::string& directory_name) const {
  const auto found = unreplayed_.find(directory_name);
  return found == unreplayed_.end() ? Result<void>{} : std::unexpected(found->second);
}

void Journal::commit(Cores cores, const LogStore::OnSynced& on_synced) {
  std::vector<std::vector<LogStore::Synced>> news;
  std::vector<std::size_t> direct;
  std::vector<std::move_only_function<void()>> works;
  if (cores.size() > kDirect) {
    turn_.with([&] {
      write_rounds(cores, news, direct);
      works = std::exchange(later_, {});
    });
  } else {
    for (std::size_t i = 0; i < cores.size(); ++i) direct.push_back(i);
  }
  for (std::vector<LogStore::Synced>& together : news) on_synced(together);
  for (auto& work : works) base_.helpers.post(std::move(work));
  // Then each of them finds little left to do. Errors it meets itself.
  if (direct.size() > kSyncEach) (void)base_.files.sync_all(options_.directory);
  for (const std::size_t index : direct) {
    LogStore::Synced synced{index, cores[index]->sync()};
    on_synced({&synced, 1});
  }
}

void Journal::write_rounds(Cores cores, std::vector<std::vector<LogStore::Synced>>& news,
                           std::vector<std::size_t>& direct) {
  if (phase_ == Phase::kNone) make_later();
  for (std::size_t next = 0; next < cores.size();) {
    if (phase_ != Phase::kReady) {
      for (; next < cores.size(); ++next) direct.push_back(next);
      return;
    }
    std::vector<Member> members;
    std::vector<LogStore::Synced> done;
    entry_.begin({options_.id, halves_[current_].use}, next_number_);
    const std::size_t upto = gather(cores, next, members, done, direct);
    const bool stuck = upto == next;
    next = upto;
    auto written = stuck             ? begin_half()
                   : entry_.empty() ? Result<void>{}
                                    : write_entry();
    if (stuck && !written && is_out_of_handles(written.error())) {  // a later commit tries again
      for (; next < cores.size(); ++next) direct.push_back(next);
      return;
    }
    if (!written) {
      die(written.error());
      for (const Member& member : members) direct.push_back(member.index);
      members.clear();
    }
    for (const Member& member : members) {
      hold(member);
      member.core->note_durable(member.unsynced);
      auto usable = member.core->usable();
      done.push_back({member.index, usable ? Result<Sequence>(member.unsynced.end)
                                           : std::unexpected(std::move(usable.error()))});
    }
    if (!done.empty()) news.push_back(std::move(done));
  }
}

/// One entry's worth, from `next` on; returns where the next entry goes on.
std::size_t Journal::gather(Cores cores, std::size_t next, std::vector<Member>& members,
                            std::vector<LogStore::Synced>& done, std::vector<std::size_t>& direct) {
  const Half& half = halves_[current_];
  const std::uint64_t room =
      std::min(largest_entry(), options_.half_bytes - std::min(half.end, options_.half_bytes));
  const std::uint64_t largest = std::min(kLargestPiece, options_.half_bytes / 4);
  for (; next < cores.size(); ++next) {
    const std::shared_ptr<Core>& core = cores[next];
    auto unsynced = core->unsynced(largest);
    if (!unsynced) {
      direct.push_back(next);
      continue;
    }
    if (unsynced->file == nullptr) {  // another sync was quicker
      done.push_back({next, unsynced->end});
      continue;
    }
    const std::size_t bytes = static_cast<std::size_t>(unsynced->upto - unsynced->from);
    if (entry_.size_with(core->id().name, bytes) > room) return next;
    if (!add_piece(*core, *unsynced)) {
      direct.push_back(next);
      continue;
    }
    members.push_back({next, core, std::move(*unsynced)});
  }
  return next;
}

bool Journal::add_piece(const Core& core, const Core::Unsynced& unsynced) {
  const std::string directory = directory_name(core.id());
  const JournalPiece piece{core.id().topic_id,   core.id().partition, directory,
                           unsynced.file->base, unsynced.from,       {}};
  const MutableBytes into =
      entry_.add(piece, static_cast<std::size_t>(unsynced.upto - unsynced.from));
  // From the page cache: it was written a moment ago.
  const auto got = unsynced.handle->read_at(unsynced.from, into);
  if (got && *got == into.size()) return true;
  entry_.undo();
  return false;
}

Result<void> Journal::write_entry() {
  Half& half = halves_[current_];
  const std::uint64_t at = current_ * options_.half_bytes;
  const Bytes entry = entry_.finish();
  if (half.live) {
    const std::array pieces{entry};
    if (auto done = file_->write_at(at + half.end, pieces); !done) return done;
  } else {
    const Buffer header = encode_journal_header(
        {options_.half_bytes, {options_.id, half.use}, next_number_, true});
    const std::array pieces{Bytes(header), entry};
    if (auto done = file_->write_at(at, pieces); !done) return done;
  }
  if (auto done = file_->sync(); !done) return done;
  half.live = true;
  half.end += entry.size();
  ++next_number_;
  return {};
}

/// The other half from here on: all it holds is in the segments first.
Result<void> Journal::begin_half() {
  Half& other = halves_[1 - current_];
  if (auto done = settle(other.held); !done) return done;
  other.held.clear();
  other.use = ++last_use_;
  other.end = kJournalBlock;
  other.live = false;
  settle_later(current_);
  current_ = 1 - current_;
  return {};
}

void Journal::hold(const Member& member) {
  Half& half = halves_[current_];
  SegmentFile& file = *member.unsynced.file;
  if (std::exchange(file.journal_use, half.use) == half.use) return;
  half.held.push_back(
      {member.core, member.unsynced.file, member.core->path(segment_name(file.base))});
}

void Journal::settle_later(std::size_t half) {
  later([self = shared_from_this(), half, use = halves_[half].use] {
    std::vector<Held> held;
    const auto is_same = [&] { return self->halves_[half].use == use; };
    self->turn_.with([&] {
      if (is_same()) held = self->halves_[half].held;
    });
    if (held.empty() || !self->settle(held)) return;  // the next begin_half() tells
    self->turn_.with([&] {
      if (is_same()) self->halves_[half].held.clear();
    });
  });
}

/// Makes what the segments got durable there.
Result<void> Journal::settle(const std::vector<Held>& held) {
  if (held.size() > kSyncEach) {
    if (auto done = base_.files.sync_all(options_.directory); !done) return done;
  }
  Result<void> outcome;
  for (const Held& each : held) {
    const auto core = each.core.lock();
    if (core != nullptr && core->removed()) continue;
    if (core != nullptr && !core->owns_files()) {
      outcome = storage_error("The log of '" + each.path +
                              "' has failed; its last records are durable in the journal only.");
      continue;
    }
    const auto segment = each.file.lock();
    auto file = core != nullptr && segment != nullptr
                    ? core->open(*segment)
                    : Result<std::shared_ptr<File>>(
                          base_.files.open(each.path, OpenMode::kReadWrite));
    if (!file && file.error().os_error == ENOENT) continue;  // trimmed away
    auto done = file ? (*file)->sync() : std::unexpected(std::move(file.error()));
    if (done || (core != nullptr && core->removed())) continue;
    if (core != nullptr && file)
      done = std::unexpected(core->fail_for_good(std::move(done.error())));
    outcome = std::move(done);
  }
  return outcome;
}

void Journal::die(const Error& why) {
  phase_ = Phase::kDead;
  logger("log").error(
      "The shared journal failed and is not used again before the next start; each partition is "
      "synced for itself. why=\"{}\"",
      why.detail);
  later([self = shared_from_this()] {
    self->turn_.with([&] {
      for (Half& half : self->halves_) {
        if (!self->settle(half.held)) return;  // what is in the file is needed
        half.held.clear();
      }
      if (!self->base_.files.remove(self->path())) return;
      if (!self->base_.files.sync_directory(self->options_.directory)) return;
      self->phase_ = Phase::kClosed;
    });
  });
}

void Journal::close() {
  turn_.with([&] {
    if (phase_ != Phase::kReady) return;
    auto done = settle(halves_[0].held);
    if (done) done = settle(halves_[1].held);
    if (done && (halves_[0].live || halves_[1].live)) done = empty_halves();
    phase_ = done ? Phase::kClosed : Phase::kDead;
    if (done) return;
    logger("log").error("The shared journal is kept for the next start. why=\"{}\"",
                        done.error().detail);
  });
}

Result<void> Journal::empty_halves() {
  for (std::size_t i = 0; i < 2; ++i) {
    Half& half = halves_[i];
    half = Half{++last_use_, kJournalBlock, false, {}};
    const Buffer header =
        encode_journal_header({options_.half_bytes, {options_.id, half.use}, next_number_, false});
    const std::array pieces{Bytes(header)};
    if (auto done = file_->write_at(i * options_.half_bytes, pieces); !done) return done;
  }
  current_ = 0;
  return file_->sync();
}

void Journal::make_later() {
  if (making_ || base_.clock.now() < make_after_) return;
  making_ = true;
  later([self = shared_from_this()] {
    auto file = self->make();
    self->turn_.with([&] {
      self->making_ = false;
      if (self->phase_ != Phase::kNone) return;
      auto done = file ? Result<void>{} : std::unexpected(std::move(file.error()));
      if (done) {
        self->file_ = std::move(*file);
        done = self->empty_halves();
      }
      if (done) {
        self->phase_ = Phase::kReady;
        return;
      }
      self->make_after_ = self->base_.clock.now() + kPause;
      (void)self->base_.files.remove(self->path());
      logger("log").warn(
          "The shared journal could not be made; each partition is synced for itself. why=\"{}\"",
          done.error().detail);
    });
  });
}

/// Every block is written once, so that a sync has nothing to tell the file system but the data.
Result<std::unique_ptr<File>> Journal::make() {
  auto file = base_.files.open(path(), OpenMode::kCreate);
  if (!file) return file;
  const auto written = [&]() -> Result<void> {
    if (auto done = (*file)->truncate(0); !done) return done;
    const std::uint64_t size = 2 * options_.half_bytes;
    const Buffer zeros(static_cast<std::size_t>(std::min<std::uint64_t>(size, 256 << 10)));
    for (std::uint64_t at = 0; at < size; at += zeros.size()) {
      const std::array pieces{
          Bytes(zeros).first(static_cast<std::size_t>(std::min(size - at, zeros.size())))};
      if (auto done = (*file)->write_at(at, pieces); !done) return done;
    }
    if (auto done = (*file)->sync(); !done) return done;
    return base_.files.sync_directory(options_.directory);
  }();
  if (!written) return std::unexpected(written.error());
  return file;
}

}  // namespace kanal::log
