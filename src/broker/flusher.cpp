#include "flusher.hpp"

#include <algorithm>

namespace kanal::broker {

void Flusher::add(std::shared_ptr<Partition> partition) {
  {
    const std::lock_guard lock(mutex_);
    if (dirty_.empty() || dirty_.back() != partition) dirty_.push_back(std::move(partition));
    if (std::exchange(running_, true)) return;
  }
  helpers_.post([this] { run(); });
}

void Flusher::run() {
  for (std::vector<std::shared_ptr<Partition>> batch;; batch.clear()) {
    {
      const std::lock_guard lock(mutex_);
      batch.swap(dirty_);
      if (batch.empty()) {
        running_ = false;
        return;
      }
    }
    sync(batch);
  }
}

void Flusher::sync(std::vector<std::shared_ptr<Partition>>& batch) {
  std::ranges::sort(batch, {}, [](const auto& partition) { return partition->handle(); });
  const auto twice = std::ranges::unique(batch);
  batch.erase(twice.begin(), twice.end());
  std::vector<log::Progress> done;
  std::vector<log::Loss> lost;
  for (const auto& partition : batch) {
    auto end = partition->sync();
    if (end)
      done.push_back({partition->handle(), epoch_, *end});
    else if (end.error().code != ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)  // deleted: all know
      lost.push_back({partition->handle(), epoch_, std::move(end.error())});
  }
  if (!done.empty()) sink_->committed(done);
  if (!lost.empty()) sink_->lost(lost);
}

}  // namespace kanal::broker
