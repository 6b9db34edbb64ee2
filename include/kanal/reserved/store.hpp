// The storage seam of the reserved `_KAFKA_…` channels: append-only runs of small versioned
// records, replaced as a whole by snapshot and roll. RocksDB is the embedded default; memory_store
// is for tests. append, roll, erase: any thread, may block for a write, `synced` ones for a sync
// (so on helper threads). No atomicity across channels; within one channel an append is all or
// nothing. Appended before it returns. One journal for all channels: a synced write makes every
// earlier one durable. An error means that nothing was kept, but for a crash right after it, which
// may bring the write to life.
#pragma once

#include "kanal/base/bytes.hpp"
#include "kanal/base/error.hpp"
#include "kanal/base/ids.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace kanal::reserved {

enum class Kind : std::uint8_t { kCluster = 1, kConfig = 2, kPids = 3, kOffsets = 4, kTxn = 5 };

/// A reserved channel without its generation: `_KAFKA_CONFIG_.{key}`; key is empty for kCluster and
/// kPids. Any bytes as key: encoded without clash inside the store, shown as they are.
struct ReservedName {
  Kind kind = Kind::kCluster;
  std::string key;
  friend bool operator==(const ReservedName&, const ReservedName&) = default;
  friend auto operator<=>(const ReservedName&, const ReservedName&) = default;
};
[[nodiscard]] std::string to_string(const ReservedName& name, std::uint64_t generation);

enum class Durability { kWritten, kSynced };

struct Stored {
  std::uint64_t position = 0;  // counts up within a session
  bool committed = true;
};

class Session {  // the reserved channels of one slot, under one leader epoch
 public:
  virtual ~Session() = default;
  virtual Result<Stored> append(const ReservedName& name, std::span<const Bytes> records,
                                Durability durability) = 0;
  virtual Result<Stored> roll(const ReservedName& name, std::span<const Bytes> snapshot,
                              Durability durability) = 0;
  virtual Result<Stored> erase(const ReservedName& name, Durability durability) = 0;
  using Visitor = std::function<Result<void>(const ReservedName&, Bytes record)>;
  /// Every live record, channel by channel in its order. Damage is an error that names the channel.
  virtual Result<void> replay(const Visitor& visitor) = 0;
  /// The same for the channels of one kind, and for one channel; they read nothing else.
  virtual Result<void> replay_kind(Kind kind, const Visitor& visitor) = 0;
  virtual Result<void> replay_channel(const ReservedName& name, const Visitor& visitor) = 0;
  /// Records in the channel's live generation: the machine's driver rolls when it has grown well
  /// past its state.
  [[nodiscard]] virtual std::uint64_t records_in(const ReservedName& name) const = 0;
};

class Store {
 public:
  virtual ~Store() = default;
  virtual Result<std::unique_ptr<Session>>
  open() = 0;                        // helper thread, may block; one session at a time
  virtual Result<void> flush() = 0;  // everything written is durable; at shutdown
  /// Counts up with every record written, over restarts too; not one for one.
  [[nodiscard]] virtual std::uint64_t journal_position() const = 0;
};

[[nodiscard]] Result<std::unique_ptr<Store>> open_rocks_store(const std::string& directory);
[[nodiscard]] std::unique_ptr<Store> make_memory_store();

}  // namespace kanal::reserved
