// Randomness behind the Random seam: a fast generator seeded by the kernel, one for each thread.
// Any thread. Good for ids that must not collide; not for secrets.
#pragma once

#include "kanal/base/random.hpp"

namespace kanal::server {

class SystemRandom final : public Random {
 public:
  std::uint64_t next() override;
};

}  // namespace kanal::server
