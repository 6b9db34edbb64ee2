// The live groups by id: a slot each. A slot whose group is vacant is marked dropped under the
// group's lock and then taken out; who finds a dropped slot looks again. Any thread.
#pragma once

#include "kanal/broker/guarded.hpp"
#include "kanal/broker/io_thread.hpp"
#include "kanal/coordinator/group.hpp"
#include "slot_table.hpp"

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

namespace kanal::broker {

using GroupAnswer = decltype(coordinator::GroupReply::answer);

/// A parked request. The answer is written under the group's lock, then the event is posted.
struct GroupWaiter {
  explicit GroupWaiter(IoThread& io) : event(io) {}
  Event event;
  std::optional<GroupAnswer> answer;  // none when it is woken: the group failed
};

struct LiveGroup {  // under the group's lock
  LiveGroup(const std::string& id, const coordinator::GroupLimits& limits) : machine(id, limits) {}

  SlotStatus status = SlotStatus::kUsable;
  bool rebuilding = false;
  bool listed = false;      // among those to be read anew
  std::optional<Time> due;  // group time that a timer is set for, or that a barrier runs for
  coordinator::Group machine;
  coordinator::WaiterId last_waiter = 0;
  std::unordered_map<coordinator::WaiterId, std::shared_ptr<GroupWaiter>> parked;
};

struct GroupSlot {
  using Live = LiveGroup;
  GroupSlot(std::string name, const coordinator::GroupLimits& limits)
      : id(std::move(name)), live(id, limits) {}
  const std::string id;
  Guarded<LiveGroup, Rank::kGroup> live;
  std::optional<Timers::Id> timer;  // on the group's home thread only
};
using GroupSlotPtr = std::shared_ptr<GroupSlot>;

using GroupTable = SlotTable<GroupSlot>;

}  // namespace kanal::broker
