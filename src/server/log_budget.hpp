// How many lines clients may cause in the log: so many a second for each kind, the rest is counted
// and the count put on the next line that is written. Any thread, lock-free; counts may be off by a
// few where threads meet.
#pragma once

#include "kanal/base/clock.hpp"

#include <atomic>
#include <cstdint>
#include <optional>

namespace kanal::server {

class LogBudget {
 public:
  explicit LogBudget(std::uint32_t lines_per_second) : limit_(lines_per_second) {}

  /// The number of lines left out since the last one written, or nothing if this one is to be left
  /// out too.
  [[nodiscard]] std::optional<std::uint64_t> take(Time now) noexcept {
    const std::int64_t second = now.time_since_epoch() / std::chrono::seconds(1);
    if (second_.exchange(second, std::memory_order_relaxed) != second)
      used_.store(0, std::memory_order_relaxed);
    if (used_.fetch_add(1, std::memory_order_relaxed) >= limit_) {
      left_out_.fetch_add(1, std::memory_order_relaxed);
      return std::nullopt;
    }
    return left_out_.exchange(0, std::memory_order_relaxed);
  }

 private:
  const std::uint32_t limit_;
  std::atomic<std::int64_t> second_{-1};
  std::atomic<std::uint32_t> used_{0};
  std::atomic<std::uint64_t> left_out_{0};
};

}  // namespace kanal::server
