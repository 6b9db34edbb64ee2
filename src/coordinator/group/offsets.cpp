#include "offsets.hpp"

namespace kanal::coordinator {

const CommittedOffset* Offsets::find(const PartitionRef& partition) const noexcept {
  const auto topic = topics_.find(partition.topic);
  if (topic == topics_.end()) return nullptr;
  const auto found = topic->second.find(partition.partition);
  return found == topic->second.end() ? nullptr : &found->second;
}

void Offsets::put(std::string topic, PartitionIndex partition, CommittedOffset offset) {
  auto at = topics_.find(topic);
  if (at == topics_.end()) at = topics_.emplace(std::move(topic), Partitions{}).first;
  if (at->second.insert_or_assign(partition, std::move(offset)).second) ++size_;
}

void Offsets::remove(const PartitionRef& partition) {
  const auto topic = topics_.find(partition.topic);
  if (topic == topics_.end()) return;
  size_ -= topic->second.erase(partition.partition);
  if (topic->second.empty()) topics_.erase(topic);
}

void Offsets::clear() noexcept {
  topics_.clear();
  size_ = 0;
}

}  // namespace kanal::coordinator
