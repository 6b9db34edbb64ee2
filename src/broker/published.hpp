// An immutable value that one writer replaces and every thread reads. A plain lock around a shared
// pointer: GCC 12's std::atomic<std::shared_ptr> releases its own lock bit with relaxed order, and
// an uncontended mutex costs no more. Any thread; the lock is a leaf and held for one copy.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

namespace kanal::broker {

template <class T>
class Published {
 public:
  [[nodiscard]] std::shared_ptr<const T> load() const {
    const std::lock_guard lock(mutex_);
    return value_;
  }
  void store(std::shared_ptr<const T> value) {
    {
      const std::lock_guard lock(mutex_);
      value_.swap(value);
    }
    // What was replaced may be the last reference to much: it goes without the lock.
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const T> value_;
};

}  // namespace kanal::broker
