#include "system_clock.hpp"

#include <time.h>

namespace kanal::server {
namespace {

std::chrono::nanoseconds read_clock(clockid_t clock) noexcept {
  timespec value{};
  ::clock_gettime(clock, &value);
  return std::chrono::seconds(value.tv_sec) + std::chrono::nanoseconds(value.tv_nsec);
}

}  // namespace

Time SystemClock::now() const noexcept {
  return Time(read_clock(CLOCK_BOOTTIME));
}

Timestamp SystemClock::wall() const noexcept {
  return Timestamp(read_clock(CLOCK_REALTIME) / std::chrono::milliseconds(1));
}

}  // namespace kanal::server
