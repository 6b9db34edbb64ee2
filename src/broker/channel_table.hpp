// Open channels by their handle: what the engine's news (committed, lost) is looked up with. Any
// thread.
#pragma once

#include "kanal/broker/partition.hpp"

#include <memory>
#include <mutex>
#include <vector>

namespace kanal::broker {

class ChannelTable {
 public:
  ChannelHandle reserve() {
    const std::lock_guard lock(mutex_);
    partitions_.emplace_back();
    return ChannelHandle(static_cast<std::uint32_t>(partitions_.size() - 1));
  }
  void set(ChannelHandle handle, const std::shared_ptr<Partition>& partition) {
    const std::lock_guard lock(mutex_);
    partitions_[handle.value()] = partition;
  }
  [[nodiscard]] std::shared_ptr<Partition> find(ChannelHandle handle) {
    const std::lock_guard lock(mutex_);
    return handle.value() < partitions_.size() ? partitions_[handle.value()].lock() : nullptr;
  }

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<Partition>> partitions_;
};

}  // namespace kanal::broker
