#include "key_map.hpp"

#include <algorithm>

namespace kanal::log {

KeyMap::KeyMap(const Limits& limits) {
  const double load = std::clamp(limits.load, 0.1, 0.95);
  std::uint64_t slots = std::max<std::uint64_t>(limits.bytes / sizeof(Slot), 2);
  // Half empty is enough where all keys fit anyway.
  if (limits.most_keys < slots / 2) slots = std::max<std::uint64_t>(limits.most_keys * 2, 2);
  slots_.resize(static_cast<std::size_t>(slots));
  room_ = std::clamp<std::size_t>(static_cast<std::size_t>(static_cast<double>(slots) * load), 1,
                                  slots_.size() - 1);
}

bool KeyMap::put(const records::KeyDigest& key, Offset offset) {
  Slot& slot = slots_[slot_of(key)];
  if (slot.sequence == 0) {
    if (size_ == room_) return false;
    slot.key = key;
    ++size_;
  }
  slot.sequence = to_sequence(offset).value();
  return true;
}

std::optional<Offset> KeyMap::find(const records::KeyDigest& key) const noexcept {
  const Slot& slot = slots_[slot_of(key)];
  if (slot.sequence == 0) return std::nullopt;
  return to_offset(Sequence(slot.sequence));
}

/// Where the key is, or the free slot where it would be. One is always free.
std::size_t KeyMap::slot_of(const records::KeyDigest& key) const noexcept {
  __extension__ using Wide = unsigned __int128;
  auto at = static_cast<std::size_t>((static_cast<Wide>(key.low) * slots_.size()) >> 64);
  while (slots_[at].sequence != 0 && slots_[at].key != key) {
    if (++at == slots_.size()) at = 0;
  }
  return at;
}

}  // namespace kanal::log
