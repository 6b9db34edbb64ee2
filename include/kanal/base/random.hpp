// The Random seam: fresh ids come from here and travel into machines as data.
#pragma once

#include "kanal/base/ids.hpp"

#include <cstdint>

namespace kanal {

class Random {
 public:
  virtual ~Random() = default;
  virtual std::uint64_t next() = 0;  // uniform over all 64-bit values; safe from any thread
};

/// A random id that is neither zero nor one of Kafka's reserved ones (…0001) and, as Kafka's, does
/// not start with '-'.
[[nodiscard]] Uuid fresh_uuid(Random& random);

}  // namespace kanal
