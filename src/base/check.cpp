#include "kanal/base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace kanal {

void check_failed(const char* condition, const char* message, const char* file, int line) noexcept {
  std::fprintf(stderr, "kanald: bug: %s (%s) at %s:%d\n", message, condition, file, line);
  std::abort();
}

}  // namespace kanal
