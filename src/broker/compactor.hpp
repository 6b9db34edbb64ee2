// Compacts logs while the broker runs (log.cleaner.*): each of log.cleaner.threads workers takes
// the log with the largest dirty part of those that are due, cleans it, looks again, and rests for
// log.cleaner.backoff.ms when nothing is. All of it on threads that have time (Executor), in slices
// of a few milliseconds in which the workers take turns, within
// log.cleaner.io.max.bytes.per.second, of which each worker gets the same. A log whose pass fails
// is set aside until its topic's configs change or the broker restarts. While the disk is full all
// passes rest. tick() from one thread, stop() from any; after stop() nothing is touched.
#pragma once

#include "kanal/base/clock.hpp"
#include "kanal/base/executor.hpp"
#include "kanal/base/random.hpp"
#include "kanal/broker/partition.hpp"
#include "kanal/broker/topics.hpp"
#include "kanal/coordinator/broker_config.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace kanal::broker {

class Compactor {
 public:
  struct Stage {
    Executor& at_ease;
    const Clock& clock;
    Random& random;
    std::function<std::shared_ptr<const Topics>()> topics;
    std::function<std::shared_ptr<const coordinator::BrokerConfig>()> config;
    std::function<bool()> disk_full = [] { return false; };  // then nothing is written
  };
  explicit Compactor(Stage stage) : stage_(std::move(stage)) {}
  void tick();
  /// Waits for slices under way.
  void stop();

 private:
  struct Candidate {
    std::shared_ptr<Partition> partition;
    coordinator::TopicConfig config;
    log::Cleanable range;
  };
  struct Worker {
    std::mutex mutex;      // held over a slice
    bool running = false;  // posted; else the next tick goes on
    double took = 0;       // bytes, those of each tick before counting half as much
    std::optional<Time> rests_until;
    // The look at all logs.
    std::string topic;
    std::size_t partition = 0;
    std::optional<Candidate> best;
    // The pass.
    std::optional<Candidate> cleaning;
    std::unique_ptr<log::Compaction> pass;
    std::uint64_t bytes_before = 0;
    Time began;
  };
  struct Aside {
    std::weak_ptr<const Partition> partition;
    coordinator::TopicConfig config;  // in force when it failed
    std::optional<Time> until;        // nothing: for good
  };
  enum class Next { kGoOn, kRest };

  std::vector<Worker*> ready(std::size_t threads, Time now);
  void post(Worker& worker);
  void slice(Worker& worker);
  Next advance(Worker& worker);
  bool look(Worker& worker);  // false: the slice is over
  void check(Worker& worker, const Topic& topic, const std::shared_ptr<Partition>& partition);
  [[nodiscard]] bool is_taken(ChannelHandle log, const coordinator::TopicConfig& config);
  void begin(Worker& worker);
  Next step(Worker& worker);
  void end(Worker& worker);
  void report(const Worker& worker, const log::CompactionStats& stats);
  void fail(Worker& worker, const Error& why);
  void set_aside(const Candidate& failed, const Error& why);
  void forget_deleted();
  [[nodiscard]] std::uint64_t allowance();
  void spend(Worker& worker, std::uint64_t bytes);
  void refill(double rate, Time now);

  const Stage stage_;
  std::atomic<bool> stopped_ = false;
  std::mutex tick_mutex_;  // of workers_; before a worker's
  std::vector<std::unique_ptr<Worker>> workers_;

  std::mutex mutex_;  // of all below; never held with a partition's lock or over a slice
  std::unordered_set<std::uint32_t> taken_;  // handles
  std::unordered_map<std::uint32_t, Aside> set_aside_;
  double allowance_ = 0;  // bytes; below zero after a large step
  std::optional<Time> refilled_;
};

}  // namespace kanal::broker
