// The contract of the state machines (catalog, cluster state, producer ids, groups,
// transactions). A machine is plain synchronous C++: it runs to completion, cannot suspend, reads
// no clock and draws no randomness (times and fresh ids come with the command). The broker's driver
// guards it with one mutex and does the rest:
//   effects = step(now, command)   checks against the state; changes no saved state
//   store effects.records, in order; synced where the machine says so (its kSynced)
//   apply(record) for each         the only writer of saved state, used live and at recovery
//   carry out effects.actions, then release effects.replies
// If storing fails, nothing is applied, the command is answered KAFKA_STORAGE_ERROR and, the
// outcome being unknown, the machine is rebuilt from its channels. Replay equals life.
#pragma once

#include "kanal/base/bytes.hpp"
#include "kanal/base/clock.hpp"
#include "kanal/base/error.hpp"

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kanal::coordinator {

/// One record of a reserved channel. `key` is the part of the channel's name after the machine's
/// own prefix (a topic for _KAFKA_CONFIG_, empty for _KAFKA_PIDS_ and _KAFKA_CLUSTER_).
struct Record {
  std::string key;
  Buffer body;  // empty: the end of the channel, stored by erasing it
  [[nodiscard]] bool ends_channel() const noexcept { return body.empty(); }
  friend bool operator==(const Record&, const Record&) = default;
};

/// What a step asks for. Actions are plain data and idempotent: after a crash they may be repeated.
template <class ReplyType, class ActionType>
struct Effects {
  std::vector<Record> records;
  std::vector<ReplyType> replies;
  std::vector<ActionType> actions;
};
struct NoAction {};

/// Where a reply goes: the driver's number of the request, never the same twice for one channel.
using WaiterId = std::uint64_t;
struct PassTime {};  // a command: next_deadline() has passed

template <class M>
concept Machine = requires(M machine, const M& constant, Time now, std::string_view key,
                           const typename M::Command& command, const Record& record) {
  { machine.step(now, command) } -> std::same_as<typename M::Effects>;
  // An error means damage or a newer format: recovery stops with it. Live, it is a bug.
  { machine.apply(record) } -> std::same_as<Result<void>>;
  // The channel's live state as records: replaying them alone gives the same state.
  { constant.snapshot(key) } -> std::same_as<std::vector<Buffer>>;
  { M::kSynced } -> std::convertible_to<bool>;
};

/// Whether a channel's generation has outgrown its live state, so that the driver rolls it to
/// snapshot(key).
[[nodiscard]] constexpr bool wants_roll(std::uint64_t records_in_generation,
                                        std::uint64_t live_records) noexcept {
  return records_in_generation > 64 && records_in_generation > 4 * live_records;
}

}  // namespace kanal::coordinator
