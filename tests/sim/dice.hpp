// The simulation's randomness: splitmix64, so that a seed means the same run everywhere. Every
// actor has dice of its own, forked from the run's, so that one more roll here moves nothing there.
// One thread.
#pragma once

#include "kanal/base/clock.hpp"
#include "kanal/base/random.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace kanal::sim {

/// Scatters a number over all 64 bits.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t value) noexcept {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

class Dice final : public Random {
 public:
  explicit Dice(std::uint64_t seed) noexcept : state_(seed) {}

  std::uint64_t next() override { return mix(state_ += 0x9e3779b97f4a7c15ULL); }
  /// 0 <= result < end.
  [[nodiscard]] std::uint64_t below(std::uint64_t end) { return next() % end; }
  /// Both ends included.
  [[nodiscard]] int between(int low, int high) {
    return low + static_cast<int>(below(static_cast<std::uint64_t>(high - low + 1)));
  }
  [[nodiscard]] bool percent(int of_hundred) {
    return below(100) < static_cast<unsigned>(of_hundred);
  }
  [[nodiscard]] bool one_in(std::uint64_t many) { return below(many) == 0; }
  [[nodiscard]] Duration milliseconds(int low, int high) {
    return std::chrono::milliseconds(between(low, high));
  }
  template <class Sequence>
  [[nodiscard]] auto& pick(Sequence& from) {
    return from[static_cast<std::size_t>(below(std::size(from)))];
  }
  [[nodiscard]] Dice fork() { return Dice(next()); }

 private:
  std::uint64_t state_;
};

}  // namespace kanal::sim
