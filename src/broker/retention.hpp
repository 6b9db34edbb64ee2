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
#include <vector>

namespace kanal::broker {

class Retention {
 public:
  struct Stage {
    Executor& helpers;
    const Clock& clock;
    log::LogStore& logs;
    std::function<std::shared_ptr<const Topics>()> topics;
    std::function<std::shared_ptr<const coordinator::BrokerConfig>()> config;
    std::function<bool()> disk_full = [] { return false; };  // then there is no time to lose
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
  using Visit = void (Retention::*)(const Topic&, const std::shared_ptr<Partition>&);
  bool walk(Visit visit);  // over all partitions; false: the slice is over
  void check(const Topic& topic, const std::shared_ptr<Partition>& partition);
  void note_future(const Partition& partition, const log::Expired& found);
  void collect(const Topic& topic, const std::shared_ptr<Partition>& partition);
  void hold(std::uint64_t limit);
  void remove(const Removal& removal);

  const Stage stage_;
  std::optional<Time> next_;  // tick() alone
  std::atomic<bool> running_ = false;

  std::mutex mutex_;  // held over a slice
  bool stopped_ = false;
  enum class Phase { kLook, kCollect, kLimit, kDone };
  Phase phase_ = Phase::kLook;
  std::string topic_;  // where the walk is
  std::size_t partition_ = 0;
  std::size_t topics_ = 0;  // met in this walk
  std::uint64_t total_ = 0;
  struct All {  // for the limit; facts of a little while ago, which a trim bears
    std::vector<log::LogFacts> logs;
    std::vector<std::shared_ptr<Partition>> partitions;  // theirs
    std::uint64_t exempt = 0;                            // bytes of topics that do not delete
  };
  All all_;
  std::deque<Removal> removals_;
  using Future = std::unordered_map<std::uint32_t, Sequence>;  // handle, base of the segment
  Future told_future_;                                         // in the last round
  Future seen_future_;                                         // in this one
};

}  // namespace kanal::broker
