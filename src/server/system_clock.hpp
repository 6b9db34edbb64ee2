// The machine's clock behind the Clock seam: BOOTTIME, which counts on while the machine sleeps.
// Any thread.
#pragma once

#include "kanal/base/clock.hpp"

namespace kanal::server {

class SystemClock final : public Clock {
 public:
  [[nodiscard]] Time now() const noexcept override;
  [[nodiscard]] Timestamp wall() const noexcept override;
};

}  // namespace kanal::server
