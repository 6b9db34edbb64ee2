// Removes old segments while the broker runs: every log.retention.check.interval.ms each partition
// is asked what its topic's retention.ms and retention.bytes no longer keep, then the limit for all
// logs together is held; what was removed is unlinked once file.delete.delay.ms has passed. All of
// it on helper threads, in slices of a few milliseconds that let other work in between. Configs are
// read anew in each slice. tick() from one thread, stop() from any; after stop() nothing is
// touched.
#pragma once

#include "kanal/base/clock.hpp"
#include "kanal/base/executor.hpp"
#include "kanal/broker/partition.hpp"
#include "kanal/broker/topics.hpp"
#include "kanal/coordinator/broker_config.hpp"

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace kanal::broker {

class Retention {
 public:
  struct Stage {
    Executor& helpers;
    const Clock& clock;
    log::LogStore& logs;
    std::function<std::shared_ptr<const Topics>()> topics;
    std::function<std::shared_ptr<const coordinator::BrokerConfig>()> config;
  };
  explicit Retention(Stage stage) : stage_(std::move(stage)) {}
  void tick();
  /// Waits for a slice under way.
  void stop();

 private:
  struct Removal {
    std::shared_ptr<Partition> partition;
    std::size_t segments = 0;
    std::uint64_t bytes = 0;
    Offset start;
    std::string_view why;
  };
  void tidy();
  void slice();
  bool advance();
  bool look();  // false: the slice is over
  void check(const Topic& topic, const std::shared_ptr<Partition>& partition);
  void note_future(const Partition& partition, const log::Expired& found);
  void plan_limit(std::uint64_t limit);
  void remove(const Removal& removal);

  const Stage stage_;
  std::optional<Time> next_;  // tick() alone
  std::atomic<bool> running_ = false;

  std::mutex mutex_;  // held over a slice
  bool stopped_ = false;
  std::string topic_;  // where the round is
  std::size_t partition_ = 0;
  bool looked_ = false;   // at every partition
  bool limited_ = false;  // the limit for all logs was looked at
  std::uint64_t total_ = 0;
  std::deque<Removal> removals_;
  std::unordered_map<std::uint32_t, Sequence> future_;  // told already: handle, base of the segment
};

}  // namespace kanal::broker
