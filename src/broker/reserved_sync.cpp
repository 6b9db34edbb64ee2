#include "reserved_sync.hpp"

#include <utility>

namespace kanal::broker {

std::shared_ptr<ReservedSync::Wait> ReservedSync::join(IoThread& io) {
  auto wait = std::make_shared<Wait>(io);
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(wait);
    if (std::exchange(running_, true)) return wait;
  }
  executor_.post([this] { run(); });
  return wait;
}

void ReservedSync::run() {
  for (std::vector<std::shared_ptr<Wait>> batch;; batch.clear()) {
    {
      const std::lock_guard lock(mutex_);
      batch.swap(waiting_);
      if (batch.empty()) {
        running_ = false;
        return;
      }
    }
    const auto done = store_.flush();
    for (auto& wait : batch) {
      wait->outcome = done;
      IoThread& io = wait->event.io();
      io.post([held = std::move(wait)] { held->event.fire(); });
    }
  }
}

}  // namespace kanal::broker
