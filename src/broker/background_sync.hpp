// Syncs what was acknowledged before it was synced: a partition a second after it was first
// written (flush.ms: sooner), after flush.messages records, and all that are dirty after 64 MiB.
// Costs grow with what is dirty; one sync at a time on the helpers, in slices, and no writer ever
// waits for one. Any thread; what is due is looked for by a timer of the attached I/O thread and by
// tick().
#pragma once

#include "kanal/base/clock.hpp"
#include "kanal/base/executor.hpp"
#include "kanal/broker/io_thread.hpp"
#include "kanal/broker/partition.hpp"

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

namespace kanal::broker {

class BackgroundSync {
 public:
  struct Stage {
    Executor& helpers;
    const Clock& clock;
    /// Writes everything back at once, so that many partitions find little left to do.
    std::function<void()> write_back;
  };
  explicit BackgroundSync(Stage stage) : stage_(std::move(stage)) {}

  void attach(IoThread& io);
  /// What an append asked for.
  void appended(const std::shared_ptr<Partition>& partition, const AppendNews& news,
                std::uint64_t bytes);
  void tick();
  /// Nothing is begun any more; what is under way ends with the helpers.
  void stop();

 private:
  struct Due {
    std::shared_ptr<Partition> partition;
    bool timed;
  };
  using Lock = std::unique_lock<std::mutex>;
  void wait(const std::shared_ptr<Partition>& partition, Duration within);
  void take_due(Time now);  // in the lock
  void start_if_needed(Lock lock);
  void arm(const Lock& held);
  void run();

  const Stage stage_;
  std::atomic<std::uint64_t> bytes_ = 0;  // written since all were due
  std::mutex mutex_;
  IoThread* io_ = nullptr;
  std::multimap<Time, std::shared_ptr<Partition>> waiting_;  // each once: Partition::sync_waits
  std::deque<Due> due_;
  std::size_t written_back_ = 0;  // of the first in due_
  Time armed_ = Time::max();  // when the timer comes
  bool running_ = false, stopped_ = false;
};

}  // namespace kanal::broker
