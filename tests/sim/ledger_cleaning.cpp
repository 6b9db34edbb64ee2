// What retention and compaction may have removed.
#include <fmt/format.h>

#include "ledger.hpp"

namespace kanal::sim {

/// The first offset from the known start on that no policy let retention remove, `upto` at most.
std::int64_t RecordLedger::removable_end(const LogKey& key, Log& log, std::int64_t upto) const {
  const auto policies = policies_.find(key.first);
  std::int64_t offset = std::max(log.trim_limit, log.start);
  if (policies == policies_.end()) return offset;
  if (log.passed > offset) log.passed = 0, log.passed_bytes = 0;
  const auto id_at = [&log](std::int64_t at) {
    return at < static_cast<std::int64_t>(log.known.size())
               ? log.known[static_cast<std::size_t>(at)]
               : 0;
  };
  const auto pass = [&](std::int64_t to) {
    for (; log.passed < to; ++log.passed) {
      if (const RecordId id = id_at(log.passed); id != 0)
        log.passed_bytes += lanes_[(id >> 32) - 1].bytes[static_cast<std::uint32_t>(id)];
    }
  };
  for (; offset < upto; ++offset) {
    pass(offset);
    const RecordId id = id_at(offset);
    if (id == 0) continue;  // never acknowledged and never read
    const Lane& lane = lanes_[(id >> 32) - 1];
    const std::int64_t made = lane.made[static_cast<std::uint32_t>(id)];
    const std::uint64_t gone = log.passed_bytes + lane.bytes[static_cast<std::uint32_t>(id)];
    const bool may_go = policies->second.any([&](const Policies::Term& term) {
      if (!term.policy.deletes) return false;
      const std::int64_t until = std::min(term.until, now());
      if (term.policy.retention_ms >= 0 && made + term.policy.retention_ms < until) return true;
      // What stays has as many bytes.
      return term.policy.retention_bytes >= 0 &&
             log.sent_bytes >= gone + static_cast<std::uint64_t>(term.policy.retention_bytes);
    });
    if (!may_go) break;
  }
  return offset;
}

void RecordLedger::check_start(const LogKey& key, Log& log, std::int64_t start, const char* when) {
  if (start <= std::max(log.trim_limit, log.start)) return;
  const std::int64_t end = removable_end(key, log, start);
  if (end < start) {
    return fail(key, fmt::format("the log starts at {}{}, {} was to be kept", start, when, end));
  }
  log.trim_limit = start;
}

/// Whether the records from `from` to `to` may be missing.
bool RecordLedger::check_gap(const LogKey& key, const Log& log, std::int64_t from,
                             std::int64_t to) {
  if (from >= to) return true;
  if (!policies_[key.first].ever_compacted()) {
    fail(key, fmt::format("offsets {} to {} are missing", from, to - 1));
    return false;
  }
  const auto known = static_cast<std::int64_t>(log.known.size());
  for (std::int64_t at = from; at < std::min(to, known); ++at) {
    if (log.known[static_cast<std::size_t>(at)] == 0 || is_superseded(key, log, at)) continue;
    fail(key, fmt::format("offset {} is missing, record {:x} of {} was to be kept", at,
                          log.known[static_cast<std::size_t>(at)],
                          key_text(log.known[static_cast<std::size_t>(at)])));
    return false;
  }
  return true;
}

/// A later record of its key is there that could be cleaned, or it is a tombstone that had its
/// time.
bool RecordLedger::is_superseded(const LogKey& key, const Log& log, std::int64_t offset) const {
  const RecordId id = log.known[static_cast<std::size_t>(offset)];
  const Policies& policies = policies_.at(key.first);
  const auto made_at = [&](RecordId record) {
    return lanes_[(record >> 32) - 1].made[static_cast<std::uint32_t>(record)];
  };
  for (auto at = static_cast<std::size_t>(offset) + 1; at < log.known.size(); ++at) {
    const RecordId later = log.known[at];
    if (later == 0 || key_of(later) != key_of(id)) continue;
    const bool cleanable = policies.any([&](const Policies::Term& term) {
      return term.policy.compacts && made_at(later) + term.policy.min_lag_ms <= now();
    });
    if (cleanable) return true;
  }
  const bool had_its_time = policies.any([&](const Policies::Term& term) {
    return term.policy.compacts && made_at(id) + term.policy.delete_retention_ms <= now();
  });
  return (is_tombstone(id) && had_its_time) || is_open(key, key_of(id));
}

/// Whether a record of the key was sent and nobody knows what became of it.
bool RecordLedger::is_open(const LogKey& key, int record_key) const {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const Lane& lane = lanes_[i];
    if (lane.log != key) continue;
    for (std::size_t number = 0; number < lane.where.size(); ++number) {
      const RecordId id = (static_cast<RecordId>(i + 1) << 32) | number;
      if (lane.sent[number] > lane.seen[number] && key_of(id) == record_key) return true;
    }
  }
  return false;
}

}  // namespace kanal::sim
