#include "compactor.hpp"

#include "kanal/base/logging.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace kanal::broker {
namespace {

using namespace std::chrono_literals;
constexpr auto kSlice = 5ms;
constexpr auto kRetry = 60s;         // a full disk, no file handles
constexpr std::size_t kLooks = 256;  // partitions of a slice, where the clock stands still
constexpr std::size_t kSteps = 16;   // the same for a pass
constexpr std::uint64_t kStep = 256 << 10;
constexpr auto kLongestRest = 24h * 3650;

bool may_pass(const Error& why) {
  return why.os_error == ENOSPC || why.os_error == EDQUOT || why.os_error == EMFILE ||
         why.os_error == ENFILE;
}

log::CompactionRules rules_of(const coordinator::TopicConfig& config) {
  return {config.min_compaction_lag_ms, config.max_compaction_lag_ms,
          config.min_cleanable_dirty_ratio};
}

}  // namespace

void Compactor::tick() {
  const std::lock_guard ticking(tick_mutex_);
  const auto config = stage_.config();
  if (stopped_ || !config->log_cleaner_enable || stage_.disk_full()) return;
  const Time now = stage_.clock.now();
  refill(config->log_cleaner_io_max_bytes_per_second, now);
  const auto threads = static_cast<std::size_t>(std::max(config->log_cleaner_threads, 0));
  while (workers_.size() < threads) {
    auto worker = std::make_unique<Worker>();
    worker->rests_until =
        now + std::min<std::chrono::milliseconds>(
                  std::chrono::milliseconds(config->log_cleaner_backoff_ms), kLongestRest);
    workers_.push_back(std::move(worker));
  }
  for (Worker* worker : ready(threads, now)) post(*worker);
}

/// Who took least of late comes first: where bytes are short, the first may take them all.
std::vector<Compactor::Worker*> Compactor::ready(std::size_t threads, Time now) {
  std::vector<Worker*> workers;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = *workers_[i];
    const std::unique_lock hold(worker.mutex, std::try_to_lock);
    if (!hold || worker.running) continue;
    worker.took /= 2;
    if (worker.pass == nullptr) {
      if (i >= threads || (worker.rests_until && now < *worker.rests_until)) continue;
    } else if (allowance() == 0) {
      continue;
    }
    worker.running = true;
    workers.push_back(&worker);
  }
  std::ranges::stable_sort(workers, {}, &Worker::took);
  return workers;
}

void Compactor::stop() {
  const std::lock_guard ticking(tick_mutex_);
  stopped_ = true;
  for (const auto& worker : workers_) {
    const std::lock_guard hold(worker->mutex);
    worker->pass.reset();
  }
}

void Compactor::post(Worker& worker) {
  stage_.at_ease.post([this, &worker] { slice(worker); });
}

void Compactor::slice(Worker& worker) {
  {
    const std::lock_guard hold(worker.mutex);
    if (stopped_) return;
    if (advance(worker) == Next::kRest) {
      worker.running = false;
      return;
    }
  }
  post(worker);  // not under the lock: an executor may run it at once
}

Compactor::Next Compactor::advance(Worker& worker) {
  if (worker.pass != nullptr) return step(worker);
  if (!look(worker)) return Next::kGoOn;
  worker.topic.clear();
  worker.partition = 0;
  forget_deleted();
  if (stage_.disk_full()) worker.best.reset();
  if (worker.best) begin(worker);
  if (worker.pass != nullptr) return Next::kGoOn;
  worker.rests_until =
      stage_.clock.now() +
      std::min<std::chrono::milliseconds>(
          std::chrono::milliseconds(stage_.config()->log_cleaner_backoff_ms), kLongestRest);
  return Next::kRest;
}

bool Compactor::look(Worker& worker) {
  const Time until = stage_.clock.now() + kSlice;
  std::size_t looks = 0;
  bool done = true;
  stage_.topics()->visit_from(worker.topic, [&](const TopicPtr& topic) {
    if (topic->name() != worker.topic) {
      worker.topic = topic->name();
      worker.partition = 0;
    }
    const std::size_t count = topic->config().cleanup_compact ? topic->partitions.size() : 0;
    do {
      if (looks == kLooks || (looks > 0 && stage_.clock.now() > until)) {
        done = false;
        return false;
      }
      ++looks;
      if (worker.partition < count) check(worker, *topic, topic->partitions[worker.partition++]);
    } while (worker.partition < count);
    return true;
  });
  return done;
}

void Compactor::check(Worker& worker, const Topic& topic,
                      const std::shared_ptr<Partition>& partition) {
  if (is_taken(partition->handle(), topic.config())) return;
  const auto log = partition->with_log([](log::Partition& held) { return &held.log(); });
  if (!log) return;
  const auto dirty = (*log)->first_dirty();  // may wait for the disk, so without the lock
  if (!dirty) {
    set_aside({partition, topic.config(), {}}, dirty.error());
    return;
  }
  const log::CompactionRules rules = rules_of(topic.config());
  const auto range = partition->with_log(
      [&](log::Partition& held) { return held.cleanable(*dirty, rules, stage_.clock.wall()); });
  if (!range || !range->wanted(rules)) return;
  if (worker.best && worker.best->range.ratio() >= range->ratio()) return;
  worker.best = Candidate{partition, topic.config(), *range};
}

/// Another worker has it, or it is set aside.
bool Compactor::is_taken(ChannelHandle log, const coordinator::TopicConfig& config) {
  const std::lock_guard hold(mutex_);
  if (taken_.contains(log.value())) return true;
  const auto aside = set_aside_.find(log.value());
  if (aside == set_aside_.end()) return false;
  const bool over = aside->second.config != config ||
                    (aside->second.until && stage_.clock.now() >= *aside->second.until);
  if (over) set_aside_.erase(aside);
  return !over;
}

void Compactor::begin(Worker& worker) {
  worker.cleaning = std::exchange(worker.best, std::nullopt);
  const Candidate& candidate = *worker.cleaning;
  {
    const std::lock_guard hold(mutex_);
    if (!taken_.insert(candidate.partition->handle().value()).second) {
      worker.cleaning.reset();
      return;
    }
  }
  const auto config = stage_.config();
  log::CompactionOptions options;
  options.delete_retention_ms = candidate.config.delete_retention_ms;
  options.map_bytes =
      static_cast<std::uint64_t>(std::max<std::int64_t>(config->log_cleaner_dedupe_buffer_size, 0) /
                                 std::max(config->log_cleaner_threads, 1));
  options.map_load = config->log_cleaner_io_buffer_load_factor;
  options.now = stage_.clock.wall();
  options.secret = {stage_.random.next(), stage_.random.next()};
  auto pass = candidate.partition->with_log([&](log::Partition& log) {
    worker.bytes_before = log.bytes();
    return log.compact(candidate.range, options);
  });
  worker.began = stage_.clock.now();
  if (pass) {
    worker.pass = std::move(*pass);
  } else {
    end(worker);
  }
}

Compactor::Next Compactor::step(Worker& worker) {
  const Time until = stage_.clock.now() + kSlice;
  for (std::size_t i = 0; i < kSteps && stage_.clock.now() <= until; ++i) {
    const std::uint64_t bytes = stage_.disk_full() ? 0 : std::min(kStep, allowance());
    if (bytes == 0) return Next::kRest;  // the next tick goes on
    const auto stepped = worker.pass->step(bytes);
    spend(worker, worker.pass->take_io());
    if (!stepped) {
      fail(worker, stepped.error());
      return Next::kGoOn;
    }
    if (*stepped != log::Compaction::Step::kMore) {
      const auto adopted = worker.cleaning->partition->with_log([](log::Partition& log) {
        log.adopt_rewritten();
        return true;
      });
      if (!adopted || *stepped == log::Compaction::Step::kDone) {
        end(worker);
        return Next::kGoOn;
      }
    }
  }
  return Next::kGoOn;
}

/// What a finished pass has done.
void Compactor::report(const Worker& worker, const log::CompactionStats& stats) {
  const Candidate& cleaned = *worker.cleaning;
  const auto bytes = cleaned.partition->with_log([](log::Partition& log) { return log.bytes(); });
  if (!bytes) return;
  const auto took = std::chrono::duration<double>(stage_.clock.now() - worker.began).count();
  logger("broker").info(
      "A log was compacted. channel={} from={} upto={} keys={} records={} kept={} keyless={} "
      "bytes_read={} bytes_written={} log_bytes={} before={} seconds={:.3f}",
      cleaned.partition->id().name, to_offset(cleaned.range.first_dirty).value(),
      to_offset(stats.first_dirty).value(), stats.keys, stats.records_read, stats.records_kept,
      stats.keyless, stats.bytes_indexed + stats.bytes_read, stats.bytes_written, *bytes,
      worker.bytes_before, took);
}

void Compactor::end(Worker& worker) {
  if (worker.pass != nullptr) {
    const log::CompactionStats stats = worker.pass->stats();
    worker.pass.reset();
    if (!stats.superseded && stats.first_dirty <= worker.cleaning->range.first_dirty) {
      fail(worker, {ErrorCode::UNKNOWN_SERVER_ERROR, "A pass got nowhere."});
      return;
    }
    if (!stats.superseded) report(worker, stats);
  }
  const std::lock_guard hold(mutex_);
  taken_.erase(worker.cleaning->partition->handle().value());
  worker.cleaning.reset();
}

void Compactor::fail(Worker& worker, const Error& why) {
  worker.pass.reset();
  set_aside(*worker.cleaning, why);
  end(worker);
}

/// The log is told and set aside, as Kafka's uncleanable partitions.
void Compactor::set_aside(const Candidate& failed, const Error& why) {
  const bool there = failed.partition->with_log([](log::Partition&) { return true; }).has_value();
  if (!there || stopped_) return;
  const bool later = may_pass(why);
  if (later) {
    logger("broker").warn("A log could not be compacted; it is tried again. channel={} reason={}",
                          failed.partition->id().name, why.detail);
  } else {
    logger("broker").error(
        "A log cannot be compacted; it is set aside until its topic's configs change or the "
        "broker restarts. channel={} reason={}",
        failed.partition->id().name, why.detail);
  }
  const std::lock_guard hold(mutex_);
  set_aside_.insert_or_assign(
      failed.partition->handle().value(),
      Aside{failed.partition, failed.config,
            later ? std::optional(stage_.clock.now() + kRetry) : std::nullopt});
}

void Compactor::forget_deleted() {
  const std::lock_guard hold(mutex_);
  std::erase_if(set_aside_, [](const auto& aside) { return aside.second.partition.expired(); });
}

void Compactor::refill(double rate, Time now) {
  const std::lock_guard hold(mutex_);
  const double seconds = refilled_ ? std::chrono::duration<double>(now - *refilled_).count() : 1.0;
  refilled_ = now;
  allowance_ = std::min(rate, allowance_ + rate * seconds);
}

std::uint64_t Compactor::allowance() {
  const std::lock_guard hold(mutex_);
  if (allowance_ < 1) return 0;
  return allowance_ >= static_cast<double>(kStep) ? kStep : static_cast<std::uint64_t>(allowance_);
}

void Compactor::spend(Worker& worker, std::uint64_t bytes) {
  worker.took += static_cast<double>(bytes);
  const std::lock_guard hold(mutex_);
  allowance_ -= static_cast<double>(bytes);
}

}  // namespace kanal::broker
