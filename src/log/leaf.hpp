// The log layer's only locks. Leaf<T> guards what the partition's owner shares with helper threads
// (rank 4: nothing else is locked, called back or read from a disk while it is held). Turn lets
// helper threads sync one channel one after the other; it is held over disk calls, so it is never
// taken under a partition's lock.
#pragma once

#include <mutex>
#include <optional>
#include <utility>

namespace kanal::log {

template <class T>
class Leaf {
 public:
  template <class Use>
  decltype(auto) with(Use&& use) {
    const std::lock_guard hold(mutex_);
    return std::forward<Use>(use)(value_);
  }

 private:
  std::mutex mutex_;
  T value_;
};

class Turn {
 public:
  template <class Use>
  decltype(auto) with(Use&& use) {
    const std::lock_guard hold(mutex_);
    return std::forward<Use>(use)();
  }
  /// Nothing where somebody else has the turn. `use` answers an optional.
  template <class Use>
  auto try_with(Use&& use) -> decltype(std::forward<Use>(use)()) {
    const std::unique_lock hold(mutex_, std::try_to_lock);
    if (!hold) return std::nullopt;
    return std::forward<Use>(use)();
  }

 private:
  std::mutex mutex_;
};

}  // namespace kanal::log
