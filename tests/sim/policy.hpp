// What a simulated topic keeps: the configs of retention and compaction as they are asked for, and
// the history of them, since what an earlier one removed stays removed. Times are of the wall
// clock, in ms. Plain data, one thread.
#pragma once

#include "dice.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace kanal::sim {

struct Policy {
  bool deletes = true, compacts = false;
  std::int64_t retention_ms = 604'800'000, retention_bytes = -1;
  std::int64_t delete_retention_ms = 86'400'000, min_lag_ms = 0;
  // How soon things happen; nothing is checked by them.
  std::int64_t segment_ms = 604'800'000, segment_bytes = 1 << 30;
  std::int64_t file_delete_delay_ms = 60'000;
  const char* dirty_ratio = "0.5";
};

/// Of a topic whose records have keys where `keyed`: only those may be compacted.
[[nodiscard]] Policy roll_policy(Dice& dice, bool keyed);
[[nodiscard]] std::vector<std::pair<std::string, std::string>> configs_of(const Policy& policy);

/// Every policy that is or was in force, or may be.
class Policies {
 public:
  struct Term {
    Policy policy;
    std::int64_t until = std::numeric_limits<std::int64_t>::max();  // when it surely ended
  };
  [[nodiscard]] bool empty() const noexcept { return terms_.empty(); }
  void ask(const Policy& policy) { terms_.push_back({policy}); }
  /// The one asked for last is in force, and no other.
  void settle(std::int64_t now) {
    for (std::size_t i = 0; i + 1 < terms_.size(); ++i)
      terms_[i].until = std::min(terms_[i].until, now);
  }
  template <class Fits>
  [[nodiscard]] bool any(Fits&& fits) const {
    return std::ranges::any_of(terms_, fits);
  }
  [[nodiscard]] bool ever_kept() const {
    return any([](const Term& term) { return !term.policy.deletes; });
  }
  [[nodiscard]] bool ever_compacted() const {
    return any([](const Term& term) { return term.policy.compacts; });
  }

 private:
  std::vector<Term> terms_;
};

}  // namespace kanal::sim
