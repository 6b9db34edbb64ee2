// Group commit for those who want acks after fsync: everything that became dirty while a sync was
// under way shares the next one. add() from any thread; the work runs on a helper; news goes to the
// sink, holding no lock.
#pragma once

#include "kanal/base/executor.hpp"
#include "kanal/broker/partition.hpp"

#include <memory>
#include <mutex>
#include <vector>

namespace kanal::broker {

class Flusher {
 public:
  Flusher(Executor& helpers, LeaderEpoch epoch) : helpers_(helpers), epoch_(epoch) {}
  void start(log::CommitSink& sink) { sink_ = &sink; }
  void add(std::shared_ptr<Partition> partition);

 private:
  void run();
  void sync(std::vector<std::shared_ptr<Partition>>& batch);

  Executor& helpers_;
  LeaderEpoch epoch_;
  log::CommitSink* sink_ = nullptr;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Partition>> dirty_;
  bool running_ = false;
};

}  // namespace kanal::broker
