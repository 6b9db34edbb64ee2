// What runs a machine: stores the records a step asks for, applies them, rolls the channel when it
// has outgrown its state. The caller holds the machine's lock and is on a thread that may block.
#pragma once

#include "kanal/coordinator/machine.hpp"
#include "kanal/reserved/store.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

namespace kanal::broker {

/// Stores `records`, all of one channel: in one write, unless they end it.
[[nodiscard]] inline Result<void> store_records(reserved::Session& session, reserved::Kind kind,
                                                std::span<const coordinator::Record> records,
                                                reserved::Durability durability) {
  const reserved::ReservedName name{kind, records.front().key};
  std::vector<Bytes> bodies;
  bodies.reserve(records.size());
  const auto append = [&]() -> Result<void> {
    if (bodies.empty()) return {};
    auto stored = session.append(name, bodies, durability);
    bodies.clear();
    if (!stored) return std::unexpected(std::move(stored.error()));
    return {};
  };
  for (const coordinator::Record& record : records) {
    if (!record.ends_channel()) {
      bodies.emplace_back(record.body);
      continue;
    }
    if (auto appended = append(); !appended) return appended;
    if (auto erased = session.erase(name, durability); !erased)
      return std::unexpected(std::move(erased.error()));
  }
  return append();
}

/// Applies what is stored of `kind` to a fresh machine. After an error it must not be stepped.
template <coordinator::Machine M>
[[nodiscard]] Result<void> replay_into(reserved::Session& session, reserved::Kind kind,
                                       M& machine) {
  const auto visit = [&](const reserved::ReservedName& name, Bytes record) -> Result<void> {
    return machine.apply({name.key, Buffer(record.begin(), record.end())});
  };
  return session.replay_kind(kind, visit);
}

/// The same for the machines of a table: each stored channel of `kind` has, or gets, its slot.
template <class Table, class... Given>
[[nodiscard]] Result<void> replay_into_slots(reserved::Session& session, reserved::Kind kind,
                                             Table& table, const Given&... given) {
  typename Table::SlotPtr slot;
  coordinator::Record record;
  const auto visit = [&](const reserved::ReservedName& name, Bytes body) -> Result<void> {
    if (slot == nullptr || slot->id != name.key) {
      slot = table.find_or_add(name.key, given...);
      record.key = name.key;
    }
    record.body.assign(body.begin(), body.end());
    return slot->live.with([&](auto& live) { return live.machine.apply(record); });
  };
  return session.replay_kind(kind, visit);
}

/// How many records the channel's live state takes; 0 if only a snapshot tells.
template <coordinator::Machine M>
std::uint64_t live_records(const M& machine, const std::string& key) {
  if constexpr (requires { machine.live_records(); })
    return machine.live_records();
  else if constexpr (requires { machine.live_records(key); })
    return machine.live_records(key);
  else
    return 0;
}

/// Replaces the channel by its live state once it has grown well past it. Failing is harmless: the
/// old run stays.
template <coordinator::Machine M>
void roll_if_grown(reserved::Session& session, const reserved::ReservedName& name, const M& machine,
                   reserved::Durability durability) {
  const std::uint64_t stored = session.records_in(name);
  if (!coordinator::wants_roll(stored, live_records(machine, name.key))) return;
  const std::vector<Buffer> live = machine.snapshot(name.key);
  if (!coordinator::wants_roll(stored, live.size())) return;
  const std::vector<Bytes> records(live.begin(), live.end());
  if (auto rolled = session.roll(name, records, durability); !rolled) return;
}

/// Stores and applies the records of one step, those of one channel in one write, so all of them or
/// none. After an error the machine must be rebuilt from its channels.
template <coordinator::Machine M>
[[nodiscard]] Result<void> store_and_apply(reserved::Session& session, reserved::Kind kind,
                                           M& machine, std::span<const coordinator::Record> records,
                                           reserved::Durability durability) {
  for (auto rest = records; !rest.empty();) {
    const auto other = std::ranges::find_if(
        rest, [&](const auto& record) { return record.key != rest.front().key; });
    const auto run = rest.first(static_cast<std::size_t>(other - rest.begin()));
    if (auto stored = store_records(session, kind, run, durability); !stored) return stored;
    rest = rest.subspan(run.size());
  }
  for (const coordinator::Record& record : records) {
    if (auto applied = machine.apply(record); !applied) return applied;
  }
  for (const coordinator::Record& record : records) {
    const bool last = &record == &records.back() || (&record + 1)->key != record.key;
    if (last && !record.ends_channel())
      roll_if_grown(session, reserved::ReservedName{kind, record.key}, machine, durability);
  }
  return {};
}

}  // namespace kanal::broker
