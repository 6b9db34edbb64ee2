// Moves recovery points while the broker runs, so that a start after kill -9 scans little: a
// partition that was written is checkpointed after 60 s, or at once when 64 MiB have gathered.
// Costs grow with what was written, not with what exists. Any thread; the writing runs on a helper,
// one partition at a time.
#pragma once

#include "kanal/base/clock.hpp"
#include "kanal/base/executor.hpp"
#include "kanal/broker/partition.hpp"

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace kanal::broker {

class Checkpointer {
 public:
  explicit Checkpointer(Executor& helpers) : helpers_(helpers) {}
  void became_dirty(std::shared_ptr<Partition> partition, Time now);
  void due(std::shared_ptr<Partition> partition);
  void tick(Time now);

 private:
  void run(std::vector<std::shared_ptr<Partition>> batch);

  Executor& helpers_;
  std::mutex mutex_;
  struct Dirty {
    Time since;
    std::weak_ptr<Partition> partition;
  };
  std::deque<Dirty> dirty_;  // oldest first
};

}  // namespace kanal::broker
