// Timers of one I/O thread: a deadline and what to do then, in order of deadline. The owner asks
// next() and calls run_due(now), so a simulation drives it with a manual clock. One thread only.
#pragma once

#include "kanal/base/clock.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

namespace kanal::broker {

class Timers {
 public:
  using Id = std::pair<Time, std::uint64_t>;

  Id add(Time deadline, std::move_only_function<void()> action) {
    const Id id{deadline, ++last_};
    entries_.emplace(id, std::move(action));
    return id;
  }
  void cancel(const Id& id) { entries_.erase(id); }
  [[nodiscard]] std::optional<Time> next() const {
    if (entries_.empty()) return std::nullopt;
    return entries_.begin()->first.first;
  }
  void run_due(Time now) {
    while (!entries_.empty() && entries_.begin()->first.first <= now) {
      auto action = std::move(entries_.begin()->second);
      entries_.erase(entries_.begin());
      action();
    }
  }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

 private:
  std::map<Id, std::move_only_function<void()>> entries_;
  std::uint64_t last_ = 0;
};

}  // namespace kanal::broker
