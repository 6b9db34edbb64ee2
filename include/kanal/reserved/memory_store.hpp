// The reserved channels in memory, for tests and the simulation: keeps synced and unsynced writes
// apart and fails the i-th write, with RocksDB's rules (one journal: a synced write makes all
// earlier ones durable; a power cut keeps a prefix of the unsynced ones). What it holds outlives
// sessions, as a disk does. Any thread; one leaf lock.
#pragma once

#include "kanal/reserved/store.hpp"

#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace kanal::reserved {

class MemoryStore final : public Store {
 public:
  Result<std::unique_ptr<Session>> open() override;
  Result<void> flush() override;
  [[nodiscard]] std::uint64_t journal_position() const override;

  /// Writes (append, roll, erase, flush) so far.
  [[nodiscard]] std::uint64_t writes() const;
  [[nodiscard]] std::uint64_t records_in(const ReservedName& name) const;
  enum class Failure {
    kNothingWritten,
    kWrittenUnsynced,  // the error comes after the bytes: a crash may bring them to life
    kDiskFull,         // like kNothingWritten, with ENOSPC
  };
  /// Fails one write: 1 is the next one.
  void fail_write(std::uint64_t from_now, Failure failure);
  /// Like kill -9: the session is dead, everything written is there.
  void kill();
  /// The session is dead; of the unsynced writes the first `survivors` are there.
  void power_cut(std::size_t survivors);
  [[nodiscard]] std::size_t unsynced_writes() const;
  /// From now on replay meets damage at this record (counted from 1).
  void damage(const ReservedName& name, std::uint64_t record);

 private:
  friend class MemorySession;
  struct Write {
    enum class What { kAppend, kRoll, kErase } what;
    ReservedName name;
    std::vector<Buffer> records;
  };
  struct Channel {
    std::uint64_t generation = 1;
    std::vector<Buffer> records;
  };
  using Channels = std::map<ReservedName, Channel>;
  static void carry_out(Channels& channels, const Write& write);

  Result<Stored> store(std::uint64_t session, Write write, Durability durability);
  using Filter = std::function<bool(const ReservedName&)>;
  Result<void> replay(std::uint64_t session, const Filter& wanted,
                      const Session::Visitor& visitor) const;
  void close(std::uint64_t session);
  void make_durable();

  mutable std::mutex lock_;
  Channels channels_;            // what this process sees
  Channels durable_;             // what a power cut leaves
  std::vector<Write> unsynced_;  // what lies between them
  std::map<ReservedName, std::uint64_t> damaged_;
  std::uint64_t session_ = 0;  // of the live session; 0: none
  std::uint64_t sessions_ = 0;
  std::uint64_t writes_ = 0;
  std::uint64_t position_ = 0;
  std::optional<std::pair<std::uint64_t, Failure>> to_fail_;  // the writes_ that fails
};

}  // namespace kanal::reserved
