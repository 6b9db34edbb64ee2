// Threads for work that may block (sync, cold reads, unlink), behind the Executor seam. post() from
// any thread; work runs once, in the order posted where one thread is free. stop() lets what was
// posted finish and joins. Threads at ease (nice 10) take what time the others leave, and a little.
#pragma once

#include "kanal/base/executor.hpp"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace kanal::server {

class HelperPool final : public Executor {
 public:
  enum class Pace { kNormal, kAtEase };
  explicit HelperPool(std::size_t threads, Pace pace = Pace::kNormal);
  ~HelperPool() override;
  void post(std::move_only_function<void()> work) override;
  void stop();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable work_or_stop_;
  std::deque<std::move_only_function<void()>> queue_;
  bool stopping_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace kanal::server
