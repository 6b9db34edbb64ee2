// The live groups by id: a slot each, in shards with a leaf lock. A slot whose group is vacant is
// marked dropped under the group's lock and then taken out; who finds a dropped slot looks again.
// Any thread.
#pragma once

#include "kanal/broker/guarded.hpp"
#include "kanal/broker/io_thread.hpp"
#include "kanal/coordinator/group.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kanal::broker {

using GroupAnswer = decltype(coordinator::GroupReply::answer);

/// A parked request. The answer is written under the group's lock, then the event is posted.
struct GroupWaiter {
  explicit GroupWaiter(IoThread& io) : event(io) {}
  Event event;
  std::optional<GroupAnswer> answer;  // none when it is woken: the group failed
};

struct LiveGroup {  // under the group's lock
  LiveGroup(const std::string& id, const coordinator::GroupLimits& limits)
      : machine(id, limits) {}

  enum class Status : std::uint8_t {
    kUsable,
    kFailed,   // a write failed; the machine is for reading only
    kDropped,  // out of the table
  };
  Status status = Status::kUsable;
  bool rebuilding = false;
  bool listed = false;  // among those to be read anew
  std::optional<Time> due;  // group time that a timer is set for, or that a barrier runs for
  coordinator::Group machine;
  coordinator::WaiterId last_waiter = 0;
  std::unordered_map<coordinator::WaiterId, std::shared_ptr<GroupWaiter>> parked;
};

struct GroupSlot {
  GroupSlot(std::string name, const coordinator::GroupLimits& limits)
      : id(std::move(name)), live(id, limits) {}
  const std::string id;
  Guarded<LiveGroup, Rank::kGroup> live;
  std::optional<Timers::Id> timer;  // on the group's home thread only
};
using GroupSlotPtr = std::shared_ptr<GroupSlot>;

class GroupTable {
 public:
  static constexpr std::size_t kShards = 64;

  /// Null if there is none.
  [[nodiscard]] GroupSlotPtr find(std::string_view id) const {
    const Shard& shard = shards_[shard_of(id)];
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.slots.find(id);
    return found != shard.slots.end() ? found->second : nullptr;
  }
  GroupSlotPtr find_or_add(std::string_view id, const coordinator::GroupLimits& limits) {
    Shard& shard = shards_[shard_of(id)];
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.slots.find(id);
    if (found != shard.slots.end()) return found->second;
    auto slot = std::make_shared<GroupSlot>(std::string(id), limits);
    shard.slots.emplace(slot->id, slot);
    return slot;
  }
  /// Takes out a slot that was marked as dropped.
  void erase(const GroupSlotPtr& slot) {
    Shard& shard = shards_[shard_of(slot->id)];
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.slots.find(slot->id);
    if (found != shard.slots.end() && found->second == slot) shard.slots.erase(found);
  }
  [[nodiscard]] std::vector<GroupSlotPtr> shard(std::size_t index) const {
    const Shard& shard = shards_[index];
    std::vector<GroupSlotPtr> slots;
    const std::lock_guard lock(shard.mutex);
    slots.reserve(shard.slots.size());
    for (const auto& [id, slot] : shard.slots) slots.push_back(slot);
    return slots;
  }
  [[nodiscard]] std::size_t size() const {
    std::size_t all = 0;
    for (const Shard& shard : shards_) {
      const std::lock_guard lock(shard.mutex);
      all += shard.slots.size();
    }
    return all;
  }
  [[nodiscard]] static std::size_t hash(std::string_view id) noexcept {
    return std::hash<std::string_view>{}(id);
  }

 private:
  struct Hash {
    // Not noexcept: then the table keeps each hash, and growing it reads no names.
    std::size_t operator()(std::string_view id) const { return hash(id); }
  };
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_map<std::string_view, GroupSlotPtr, Hash> slots;  // keys live in the slots
  };
  static std::size_t shard_of(std::string_view id) noexcept { return hash(id) % kShards; }

  std::array<Shard, kShards> shards_;
};

}  // namespace kanal::broker
