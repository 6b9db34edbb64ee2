#include "helper_pool.hpp"

#include <pthread.h>
#include <unistd.h>

#include "kanal/base/logging.hpp"

#include <cerrno>
#include <string>

namespace kanal::server {

HelperPool::HelperPool(std::size_t threads, Pace pace) {
  constexpr int kAtEase = 10;
  const std::string name = pace == Pace::kAtEase ? "kanal-ease-" : "kanal-help-";
  for (std::size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this, pace] {
      // Linux has a priority for each thread.
      errno = 0;
      if (pace == Pace::kAtEase && ::nice(kAtEase) == -1 && errno != 0)
        logger("server").warn("A thread keeps its priority. errno={}", errno);
      run();
    });
    ::pthread_setname_np(threads_.back().native_handle(), (name + std::to_string(i)).c_str());
  }
}

HelperPool::~HelperPool() {
  stop();
}

void HelperPool::post(std::move_only_function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }
  work_or_stop_.notify_one();
}

void HelperPool::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_or_stop_.notify_all();
  threads_.clear();
}

void HelperPool::run() {
  for (;;) {
    std::move_only_function<void()> work;
    {
      std::unique_lock lock(mutex_);
      work_or_stop_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
  }
}

}  // namespace kanal::server
