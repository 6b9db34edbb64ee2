// The Clock seam. Core layers get times as arguments; only broker and server ask a Clock.
// now() counts on while the machine sleeps (CLOCK_BOOTTIME) and never goes back; wall() may jump.
#pragma once

#include "kanal/base/ids.hpp"

#include <chrono>

namespace kanal {

struct BootClock {  // only names the epoch of Time; there is no now() to call by accident
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;
};
using Time = BootClock::time_point;
using Duration = BootClock::duration;
using Deadline = Time;

class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Time now() const noexcept = 0;
  [[nodiscard]] virtual Timestamp wall() const noexcept = 0;  // ms since 1970
};

}  // namespace kanal
