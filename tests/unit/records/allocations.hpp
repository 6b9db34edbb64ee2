// See allocations.cpp; counts belong to the calling thread.
#pragma once

#include <cstddef>

namespace kanal::records::allocations {

struct Count {
  std::size_t calls = 0;
  std::size_t largest = 0;  // bytes of the largest one
};
[[nodiscard]] Count count() noexcept;
void note(std::size_t size) noexcept;
void reset() noexcept;

}  // namespace kanal::records::allocations
