// Group commit of the reserved channels: they have one journal, so one sync makes everything that
// was written before it began durable, for all who wait. One at a time. join() on an I/O thread,
// after the write; the sync runs on an executor.
#pragma once

#include "kanal/base/executor.hpp"
#include "kanal/broker/io_thread.hpp"
#include "kanal/reserved/store.hpp"

#include <memory>
#include <mutex>
#include <vector>

namespace kanal::broker {

class ReservedSync {
 public:
  struct Wait {
    explicit Wait(IoThread& io) : event(io) {}
    Event event;
    Result<void> outcome;  // once fired
  };

  ReservedSync(Executor& executor, reserved::Store& store) : executor_(executor), store_(store) {}
  std::shared_ptr<Wait> join(IoThread& io);
  /// The same where nothing else runs yet; blocks.
  Result<void> now() { return store_.flush(); }

 private:
  void run();

  Executor& executor_;
  reserved::Store& store_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Wait>> waiting_;
  bool running_ = false;
};

}  // namespace kanal::broker
