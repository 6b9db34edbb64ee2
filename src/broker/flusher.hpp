// Group commit for those who want acks after sync: everything that became dirty while a sync was
// under way shares the next one, and one is under way at a time. add() from any thread; the work
// runs on an executor that should have nothing else to do; news goes to the sink, holding no lock.
#pragma once

#include "kanal/base/executor.hpp"
#include "kanal/broker/partition.hpp"

#include <memory>
#include <mutex>
#include <vector>

namespace kanal::broker {

class Flusher {
 public:
  Flusher(Executor& executor, log::LogStore& logs, LeaderEpoch epoch)
      : executor_(executor), logs_(logs), epoch_(epoch) {}
  void start(log::CommitSink& sink) { sink_ = &sink; }
  /// Partitions with staged records, of one request: one sync makes them all durable.
  void add(std::vector<std::shared_ptr<Partition>> staged);

 private:
  void run();
  void sync(const std::vector<std::shared_ptr<Partition>>& batch);

  Executor& executor_;
  log::LogStore& logs_;
  LeaderEpoch epoch_;
  log::CommitSink* sink_ = nullptr;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Partition>> dirty_;  // each once: Partition::queue_flush
  bool running_ = false;
};

}  // namespace kanal::broker
