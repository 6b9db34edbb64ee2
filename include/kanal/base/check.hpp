// CHECK(condition, "what should hold"): only a bug can break it. On in release; ends the process
// with a line that names the place, since going on with broken invariants could damage the log.
#pragma once

namespace kanal {
[[noreturn]] void check_failed(const char* condition, const char* message, const char* file,
                               int line) noexcept;
}

#define CHECK(condition, message)                      \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::kanal::check_failed(#condition, message, __FILE__, __LINE__))
