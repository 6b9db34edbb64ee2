#include "flusher.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace kanal::broker {

void Flusher::add(std::vector<std::shared_ptr<Partition>> staged) {
  std::erase_if(staged, [](const auto& partition) { return !partition->queue_flush(); });
  if (staged.empty()) return;  // the sync that is queued for them has not looked yet
  {
    const std::lock_guard lock(mutex_);
    std::ranges::move(staged, std::back_inserter(dirty_));
    if (std::exchange(running_, true)) return;
  }
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
