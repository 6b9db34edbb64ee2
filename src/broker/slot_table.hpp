// Live machines by id: a slot each, in shards with a leaf lock. A Slot has its `id` and is made of
// it and what find_or_add is given. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kanal::broker {

enum class SlotStatus : std::uint8_t {
  kUsable,
  kFailed,   // a write failed; the machine is for reading only
  kDropped,  // out of the table
};

template <class Slot>
class SlotTable {
 public:
  static constexpr std::size_t kShards = 64;
  using SlotPtr = std::shared_ptr<Slot>;

  /// Null if there is none.
  [[nodiscard]] SlotPtr find(std::string_view id) const {
    const Shard& shard = shards_[shard_of(id)];
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.slots.find(id);
    return found != shard.slots.end() ? found->second : nullptr;
  }
  template <class... Given>
  SlotPtr find_or_add(std::string_view id, const Given&... given) {
    Shard& shard = shards_[shard_of(id)];
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.slots.find(id);
    if (found != shard.slots.end()) return found->second;
    auto slot = std::make_shared<Slot>(std::string(id), given...);
    shard.slots.emplace(slot->id, slot);
    return slot;
  }
  /// Takes out a slot that was marked as dropped.
  void erase(const SlotPtr& slot) {
    Shard& shard = shards_[shard_of(slot->id)];
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.slots.find(slot->id);
    if (found != shard.slots.end() && found->second == slot) shard.slots.erase(found);
  }
  [[nodiscard]] std::vector<SlotPtr> shard(std::size_t index) const {
    const Shard& shard = shards_[index];
    std::vector<SlotPtr> slots;
    const std::lock_guard lock(shard.mutex);
    slots.reserve(shard.slots.size());
    for (const auto& [id, slot] : shard.slots) slots.push_back(slot);
    return slots;
  }
  /// `visit` runs under the lock of each that has a machine with anything in it, in no order; what
  /// is made or dropped meanwhile may be missed.
  template <class Visit>
  void for_each_live(const Visit& visit) const {
    for (std::size_t index = 0; index < kShards; ++index) {
      for (const SlotPtr& slot : shard(index)) {
        slot->live.with([&](auto& live) {
          if (live.status != SlotStatus::kDropped && !live.machine.vacant()) visit(live.machine);
        });
      }
    }
  }
  /// The same for one; kFailed: it is for reading anew, and was not visited.
  template <class Visit>
  SlotStatus visit_live(std::string_view id, const Visit& visit) const {
    const SlotPtr slot = find(id);
    if (slot == nullptr) return SlotStatus::kDropped;
    return slot->live.with([&](auto& live) {
      if (live.status != SlotStatus::kUsable) return live.status;
      if (live.machine.vacant()) return SlotStatus::kDropped;
      visit(live.machine);
      return SlotStatus::kUsable;
    });
  }
  [[nodiscard]] std::size_t size() const {
    std::size_t all = 0;
    for (const Shard& shard : shards_) {
      const std::lock_guard lock(shard.mutex);
      all += shard.slots.size();
    }
    return all;
  }
  /// Which of `threads` runs the deadlines of an id.
  [[nodiscard]] static std::size_t home(std::string_view id, std::size_t threads) noexcept {
    return hash(id) / kShards % threads;
  }

 private:
  static std::size_t hash(std::string_view id) noexcept {
    return std::hash<std::string_view>{}(id);
  }
  struct Hash {
    // Not noexcept: then the table keeps each hash, and growing it reads no names.
    std::size_t operator()(std::string_view id) const { return hash(id); }
  };
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_map<std::string_view, SlotPtr, Hash> slots;  // keys live in the slots
  };
  static std::size_t shard_of(std::string_view id) noexcept { return hash(id) % kShards; }

  std::array<Shard, kShards> shards_;
};

}  // namespace kanal::broker
