// Counts what this test program allocates through operator new: for tests that say "no allocation"
// or "bounded".
#include "allocations.hpp"

#include <cstdlib>
#include <new>

namespace kanal::records::allocations {
namespace {
thread_local Count current;
}
Count count() noexcept {
  return current;
}
void note(std::size_t size) noexcept {
  ++current.calls;
  if (size > current.largest) current.largest = size;
}
void reset() noexcept {
  current = {};
}
}  // namespace kanal::records::allocations

void* operator new(std::size_t size) {
  kanal::records::allocations::note(size);
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
