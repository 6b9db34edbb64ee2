#include "flusher.hpp"

namespace kanal::broker {

void Flusher::add(std::shared_ptr<Partition> partition) {
  if (!partition->queue_flush()) return;
  std::unique_lock lock(mutex_);
  dirty_.push_back(std::move(partition));
  if (requests_ == 0) start_if_needed(std::move(lock));
}

void Flusher::begin_request() {
  const std::lock_guard lock(mutex_);
  ++requests_;
}

void Flusher::end_request() {
  std::unique_lock lock(mutex_);
  --requests_;
  // Also while others are being staged: nobody waits for somebody else's request.
  start_if_needed(std::move(lock));
}

void Flusher::start_if_needed(std::unique_lock<std::mutex> lock) {
  if (running_ || dirty_.empty()) return;
  running_ = true;
  lock.unlock();
  executor_.post([this] { run(); });
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

void Flusher::sync(const std::vector<std::shared_ptr<Partition>>& batch) {
  std::vector<log::ChannelLog*> logs;
  std::vector<Partition*> partitions;
  for (const auto& partition : batch) {
    partition->take_flush();  // before the sync looks: what is staged from here on asks again
    log::ChannelLog* log = partition->channel();
    if (log == nullptr) continue;  // deleted: who waits has been told
    logs.push_back(log);
    partitions.push_back(partition.get());
  }
  std::vector<log::Progress> done;
  std::vector<log::Loss> lost;
  logs_.sync(logs, [&](std::span<log::LogStore::Synced> news) {
    done.clear();
    lost.clear();
    for (log::LogStore::Synced& each : news) {
      const ChannelHandle handle = partitions[each.index]->handle();
      if (each.end)
        done.push_back({handle, epoch_, *each.end});
      else if (partitions[each.index]->channel() != nullptr)
        lost.push_back({handle, epoch_, std::move(each.end.error())});
    }
    if (!done.empty()) sink_->committed(done);
    if (!lost.empty()) sink_->lost(lost);
  });
}

}  // namespace kanal::broker
