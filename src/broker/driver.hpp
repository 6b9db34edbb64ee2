// What runs a machine: stores the records a step asks for, applies them, rolls the channel when it
// has outgrown its state. The caller holds the machine's lock and is on a thread that may block.
#pragma once

#include "kanal/coordinator/machine.hpp"
#include "kanal/reserved/store.hpp"

#include <array>
#include <span>

namespace kanal::broker {

[[nodiscard]] inline Result<void> store_record(reserved::Session& session, reserved::Kind kind,
                                               const coordinator::Record& record,
                                               reserved::Durability durability) {
  const reserved::ReservedName name{kind, record.key};
  const std::array<Bytes, 1> body{record.body};
  const auto stored = record.ends_channel() ? session.erase(name, durability)
                                            : session.append(name, body, durability);
  if (!stored) return std::unexpected(stored.error());
  return {};
}

/// Replaces the channel by its live state once it has grown well past it. Failing is harmless: the
/// old run stays.
template <coordinator::Machine M>
void roll_if_grown(reserved::Session& session, reserved::Kind kind, const M& machine,
                   const std::string& key) {
  const reserved::ReservedName name{kind, key};
  const std::uint64_t stored = session.records_in(name);
  if (!coordinator::wants_roll(stored, 0)) return;  // most never get here
  const std::vector<Buffer> live = machine.snapshot(key);
  if (!coordinator::wants_roll(stored, live.size())) return;
  const std::vector<Bytes> records(live.begin(), live.end());
  if (auto rolled = session.roll(name, records, reserved::Durability::kSynced); !rolled) return;
}

/// Stores and applies the records of one step. After an error the machine must be rebuilt from its
/// channels.
template <coordinator::Machine M>
[[nodiscard]] Result<void> store_and_apply(reserved::Session& session, reserved::Kind kind,
                                           M& machine, std::span<const coordinator::Record> records,
                                           reserved::Durability durability) {
  for (const coordinator::Record& record : records) {
    if (auto stored = store_record(session, kind, record, durability); !stored) return stored;
  }
  for (const coordinator::Record& record : records) {
    if (auto applied = machine.apply(record); !applied) return applied;
    if (!record.ends_channel()) roll_if_grown(session, kind, machine, record.key);
  }
  return {};
}

}  // namespace kanal::broker
