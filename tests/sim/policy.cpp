#include "policy.hpp"

namespace kanal::sim {

Policy roll_policy(Dice& dice, bool keyed) {
  Policy policy;
  policy.compacts = keyed && dice.percent(75);
  policy.deletes = policy.compacts ? dice.percent(30) : dice.percent(85);
  if (dice.percent(60)) policy.retention_ms = dice.between(500, 60'000);
  if (dice.percent(10)) policy.retention_ms = -1;
  if (dice.percent(40)) policy.retention_bytes = dice.between(0, 60'000);
  const std::int64_t tombstones[] = {0, 500, 5'000, 60'000, 86'400'000};
  policy.delete_retention_ms = dice.pick(tombstones);
  const std::int64_t lags[] = {0, 0, 0, 5'000, 60'000, 600'000};
  policy.min_lag_ms = dice.pick(lags);
  policy.segment_ms = dice.between(100, 10'000);
  if (dice.percent(50)) policy.segment_bytes = dice.between(9'000, 20'000);  // a batch fits
  const std::int64_t delays[] = {0, 1'000, 60'000};
  policy.file_delete_delay_ms = dice.pick(delays);
  const char* ratios[] = {"0", "0.01", "0.3"};
  policy.dirty_ratio = dice.pick(ratios);
  return policy;
}

std::vector<std::pair<std::string, std::string>> configs_of(const Policy& policy) {
  std::string cleanup = policy.compacts ? "compact" : "";
  if (policy.deletes) cleanup += cleanup.empty() ? "delete" : ",delete";
  return {{"cleanup.policy", cleanup},
          {"retention.ms", std::to_string(policy.retention_ms)},
          {"retention.bytes", std::to_string(policy.retention_bytes)},
          {"delete.retention.ms", std::to_string(policy.delete_retention_ms)},
          {"min.compaction.lag.ms", std::to_string(policy.min_lag_ms)},
          {"segment.ms", std::to_string(policy.segment_ms)},
          {"internal.segment.bytes", std::to_string(policy.segment_bytes)},
          {"file.delete.delay.ms", std::to_string(policy.file_delete_delay_ms)},
          {"min.cleanable.dirty.ratio", policy.dirty_ratio}};
}

}  // namespace kanal::sim
