// The last offset of each key of a part of a log, in a fixed amount of memory: 24 bytes a key, by
// digest. When it is full the pass ends there and the next one goes on. One thread.
#pragma once

#include "kanal/base/ids.hpp"
#include "kanal/records/compact.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace kanal::log {

class KeyMap {
 public:
  struct Limits {
    std::uint64_t bytes = 0;
    double load = 0.9;                     // of the slots may be taken
    std::uint64_t most_keys = UINT64_MAX;  // no more are to be expected: saves memory
  };
  explicit KeyMap(const Limits& limits);

  /// False if the key is new and there is no room. A later call for a key replaces its offset.
  bool put(const records::KeyDigest& key, Offset offset);
  [[nodiscard]] std::optional<Offset> find(const records::KeyDigest& key) const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t room() const noexcept { return room_; }  // keys it takes

 private:
  struct Slot {
    records::KeyDigest key;
    std::int64_t sequence = 0;  // offset + 1; 0: free
  };
  static_assert(sizeof(Slot) == 24);
  [[nodiscard]] std::size_t slot_of(const records::KeyDigest& key) const noexcept;

  std::vector<Slot> slots_;
  std::size_t room_ = 0;
  std::size_t size_ = 0;
};

}  // namespace kanal::log
