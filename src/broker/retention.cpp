#include "retention.hpp"

#include "kanal/base/logging.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace kanal::broker {
namespace {

using namespace std::chrono_literals;
constexpr auto kFirst = 30s;  // after the start, as Kafka's log.initial.task.delay.ms
constexpr auto kWhileFull = 5s;  // between rounds
constexpr auto kSlice = 5ms;
constexpr std::size_t kLooks = 256;   // partitions of a slice, where the clock stands still
constexpr std::size_t kRemovals = 8;  // of a slice: each may sync

}  // namespace

void Retention::tick() {
  const Time now = stage_.clock.now();
  const std::chrono::milliseconds every(stage_.config()->log_retention_check_interval_ms);
  if (!next_) next_ = now + std::min<std::chrono::milliseconds>(every, kFirst);
  if (stage_.disk_full()) next_ = std::min(*next_, now + kWhileFull);
  if (running_.exchange(true)) return;
  const bool due = now >= *next_;
  if (due) next_ = now + std::min<std::chrono::milliseconds>(every, 24h * 3650);
  stage_.helpers.post([this, due] { due ? slice() : tidy(); });
}

void Retention::stop() {
  const std::lock_guard hold(mutex_);
  stopped_ = true;
}

void Retention::tidy() {
  const bool more = [&] {
    const std::lock_guard hold(mutex_);
    return !stopped_ && stage_.logs.tidy(stage_.disk_full());
  }();
  if (more) {
    stage_.helpers.post([this] { tidy(); });
  } else {
    running_ = false;
  }
}

void Retention::slice() {
  bool done = false;
  {
    const std::lock_guard hold(mutex_);
    if (stopped_) return;
    done = advance();
  }
  // Not under the lock: an executor may run it at once.
  stage_.helpers.post([this, done] { done ? tidy() : slice(); });
}

/// A slice of the round; whether it was the last.
bool Retention::advance() {
  for (std::size_t i = 0; i < kRemovals && !removals_.empty(); ++i) {
    remove(removals_.front());
    removals_.pop_front();
  }
  if (!removals_.empty()) return false;
  const std::uint64_t limit = stage_.config()->node.retention_total_bytes;
  if (phase_ == Phase::kLook) {
    if (!walk(&Retention::check)) return false;
    phase_ = Phase::kCollect;
    if (!removals_.empty()) return false;
  }
  if (phase_ == Phase::kCollect && limit > 0 && total_ > limit) {  // without what goes anyway
    if (!walk(&Retention::collect)) return false;
    phase_ = Phase::kLimit;
    return false;
  }
  if (phase_ == Phase::kLimit) {
    hold(limit);
    all_ = {};
    phase_ = Phase::kDone;
    if (!removals_.empty()) return false;
  }
  phase_ = Phase::kLook;
  total_ = 0;
  told_future_ = std::exchange(seen_future_, {});
  return true;
}

bool Retention::walk(Visit visit) {
  const Time until = stage_.clock.now() + kSlice;
  std::size_t looks = 0;
  bool done = true;
  stage_.topics()->visit_from(topic_, [&](const TopicPtr& topic) {
    if (topic->name() != topic_) {
      topic_ = topic->name();
      partition_ = 0;
      ++topics_;
    }
    while (partition_ < topic->partitions.size()) {
      if (looks++ == kLooks || removals_.size() >= kRemovals || stage_.clock.now() > until) {
        done = false;
        return false;
      }
      (this->*visit)(*topic, topic->partitions[partition_++]);
    }
    return true;
  });
  if (!done) return false;
  topic_.clear();
  partition_ = topics_ = 0;
  return true;
}

void Retention::check(const Topic& topic, const std::shared_ptr<Partition>& partition) {
  const coordinator::TopicConfig& config = topic.config();
  const log::RetentionRules rules{config.retention_ms, config.retention_bytes};
  log::Expired found;
  const auto bytes = partition->with_log([&](log::Partition& log) {
    if (config.cleanup_delete) found = log.expired(rules, stage_.clock.wall());
    return log.bytes();
  });
  if (!bytes) return;
  total_ += *bytes - found.bytes;
  if (found.from_future) note_future(*partition, found);
  if (found.count == 0) return;
  const std::string_view why = found.by_size == 0             ? "retention.ms"
                               : found.by_size == found.count ? "retention.bytes"
                                                              : "retention.bytes, retention.ms";
  removals_.push_back({partition, found.count, found.bytes, to_offset(found.start), why});
}

void Retention::note_future(const Partition& partition, const log::Expired& found) {
  const std::uint32_t handle = partition.handle().value();
  seen_future_[handle] = found.start;
  const auto told = told_future_.find(handle);
  if (told != told_future_.end() && told->second == found.start) return;
  logger("broker").warn(
      "A segment has a timestamp in the future: by time it and all behind it stay until the clock "
      "is past it. channel={} segment={}",
      partition.id().name, to_offset(found.start).value());
}

void Retention::collect(const Topic& topic, const std::shared_ptr<Partition>& partition) {
  auto facts = partition->with_log([](log::Partition& log) { return log.facts(); });
  if (!facts || facts->segments.empty()) return;
  if (topic.config().cleanup_delete) {
    facts->topic = topics_;
    all_.logs.push_back(std::move(*facts));
    all_.partitions.push_back(partition);
  } else {
    for (const auto& segment : facts->segments) all_.exempt += segment.bytes;
  }
}

void Retention::hold(std::uint64_t limit) {
  const auto& logs = all_.logs;
  const auto counts = log::over_limit(logs, limit - std::min(limit, all_.exempt));
  std::uint64_t removed = 0;
  for (std::size_t i = 0; i < logs.size(); ++i) {
    if (counts[i] == 0) continue;
    std::uint64_t bytes = 0;
    for (std::size_t j = 0; j < counts[i]; ++j) bytes += logs[i].segments[j].bytes;
    removals_.push_back({all_.partitions[i], counts[i], bytes,
                         to_offset(logs[i].segments[counts[i]].base), "log.retention.total.bytes"});
    removed += bytes;
  }
  if (total_ - std::min(total_, removed) > limit) {
    logger("broker").warn(
        "The logs stay above log.retention.total.bytes: the rest is written to, or of topics that "
        "keep what they have. limit={} bytes={}",
        limit, total_ - std::min(total_, removed));
  }
}

void Retention::remove(const Removal& removal) {
  auto done = removal.partition->trim(removal.start);
  if (done) {
    logger("broker").info(
        "Old segments were removed. channel={} segments={} bytes={} log_start={} why={}",
        removal.partition->id().name, removal.segments, removal.bytes, removal.start.value(),
        removal.why);
  } else if (done.error().code != ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) {
    logger("broker").warn("Old segments could not be removed. channel={} reason={}",
                          removal.partition->id().name, done.error().detail);
  }
}

}  // namespace kanal::broker
