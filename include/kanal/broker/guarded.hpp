// Guarded<T>: a value that is reached only under its mutex, inside a callback that cannot suspend.
// Ranks (catalog 0 < transaction 1 < group 2 < partition 3) must rise while locks are nested; debug
// builds check it.
#pragma once

#include "kanal/base/check.hpp"

#include <mutex>
#include <type_traits>
#include <utility>

namespace kanal::broker {

enum class Rank : int { kCatalog = 0, kTransaction = 1, kGroup = 2, kPartition = 3 };

namespace detail {
class RankCheck {  // the rank this thread holds, innermost
 public:
#ifndef NDEBUG
  explicit RankCheck(Rank rank) : before_(held_) {
    CHECK(static_cast<int>(rank) > held_, "locks are taken in the order of their ranks");
    held_ = static_cast<int>(rank);
  }
  ~RankCheck() { held_ = before_; }
  RankCheck(const RankCheck&) = delete;
  RankCheck& operator=(const RankCheck&) = delete;

 private:
  static inline thread_local int held_ = -1;
  int before_;
#else
  explicit RankCheck(Rank) {}
#endif
};
}  // namespace detail

template <class T, Rank kRank>
class Guarded {
 public:
  template <class... Args>
  explicit Guarded(Args&&... args) : value_(std::forward<Args>(args)...) {}

  template <class Use>
  decltype(auto) with(Use&& use) {
    static_assert(!std::is_reference_v<std::invoke_result_t<Use, T&>>,
                  "nothing guarded leaves by reference");
    const detail::RankCheck check(kRank);
    const std::lock_guard lock(mutex_);
    return std::forward<Use>(use)(value_);
  }

 private:
  std::mutex mutex_;
  T value_;
};

}  // namespace kanal::broker
