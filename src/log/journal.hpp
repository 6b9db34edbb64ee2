// The shared journal: makes the unsynced tails of many logs durable by one write and one fdatasync
// of a pre-written file. Made when it is first needed. One commit at a time holds turn_ (before a
// core's own turn, never inside one); the file of the half that is full is synced on a helper while
// the other half is used, and a half is reused only when all it holds is durable in the segments. A
// failed write ends the journal for this process: everybody syncs for himself. Helper threads, any
// of them; may wait for the disk. docs/storage_format.md has the bytes.
#pragma once

#include "core.hpp"
#include "journal_format.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kanal::log {

class Journal : public std::enable_shared_from_this<Journal> {
 public:
  struct Options {
    std::string directory;  // of the channels
    std::uint64_t half_bytes = 32 << 20;
    std::uint64_t id = 0;  // random
  };
  struct Base {
    FileSystem& files;
    Executor& helpers;
    const Clock& clock;
  };
  Journal(const Base& base, Options options);

  /// Before any channel is opened: what is live in the file goes into the segments it belongs to
  /// and is synced there; then the journal is empty. An error: nothing may be opened.
  Result<void> replay();
  /// Whether the replay could do what concerns the channel.
  [[nodiscard]] Result<void> replayed(const std::string& directory_name) const;
  /// Whether it could do all; else the file is kept, and the next start does it all once more.
  [[nodiscard]] bool complete() const noexcept { return unreplayed_.empty(); }
  /// What it found damaged, records that may be missing; empty: nothing.
  [[nodiscard]] const std::string& damage() const noexcept { return damage_; }

  /// Makes all that is staged in `cores` durable. News of one entry come together.
  void commit(std::span<const std::shared_ptr<Core>> cores, const LogStore::OnSynced& on_synced);
  /// The logs have been synced and take no more: the journal is left empty, unless a log failed
  /// whose records are durable only here.
  void close();

 private:
  struct Held {  // a segment that a half has bytes of
    std::weak_ptr<Core> core;
    std::weak_ptr<SegmentFile> file;
    std::string path;
  };
  struct Half {
    std::uint64_t use = 0;
    std::uint64_t end = kJournalBlock;  // where the next entry goes
    bool live = false;
    std::vector<Held> held;  // what has to be synced before the half is used again
  };
  enum class Phase {
    kNone,    // there is no file, or it is being made
    kReady,
    kDead,    // until the next start; what is in the file counts
    kClosed,  // the same, and nothing in the file counts
  };
  struct Member {
    std::size_t index;  // in the commit
    std::shared_ptr<Core> core;
    Core::Unsynced unsynced;
  };
  using Cores = std::span<const std::shared_ptr<Core>>;

  // journal.cpp, in the turn
  void write_rounds(Cores cores, std::vector<std::vector<LogStore::Synced>>& news,
                    std::vector<std::size_t>& direct);
  std::size_t gather(Cores cores, std::size_t next, std::vector<Member>& members,
                     std::vector<LogStore::Synced>& done, std::vector<std::size_t>& direct);
  bool add_piece(const Core& core, const Core::Unsynced& unsynced);
  Result<void> write_entry();
  Result<void> begin_half();
  void hold(const Member& member);
  void die(const Error& why);
  Result<void> empty_halves();
  [[nodiscard]] std::uint64_t largest_entry() const noexcept;
  [[nodiscard]] std::string path() const;

  // Outside of it
  /// In the turn: runs on a helper once the turn is over.
  void later(std::move_only_function<void()> work) { later_.push_back(std::move(work)); }
  void make_later();
  Result<std::unique_ptr<File>> make();
  Result<void> settle(const std::vector<Held>& held);
  void settle_later(std::size_t half);

  // journal_replay.cpp
  struct Found;
  Result<Found> read(File& file, std::uint64_t size);
  void apply(const Found& found);
  Result<void> keep_damaged();
  Result<void> reset(std::unique_ptr<File> file, std::uint64_t size, const Found& found);

  const Base base_;
  const Options options_;
  Turn turn_;
  // In the turn:
  Phase phase_ = Phase::kNone;
  bool making_ = false;
  Time make_after_ = Time::min();
  std::unique_ptr<File> file_;
  Half halves_[2];
  std::size_t current_ = 0;
  std::uint64_t last_use_ = 0, next_number_ = 1;
  JournalEntry entry_;
  std::vector<std::move_only_function<void()>> later_;
  // Set by replay():
  std::map<std::string, Error> unreplayed_;
  std::string damage_;
};

}  // namespace kanal::log
