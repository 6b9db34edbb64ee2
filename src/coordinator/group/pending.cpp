#include "pending.hpp"

#include "kanal/base/check.hpp"

#include <algorithm>
#include <tuple>

namespace kanal::coordinator {

const PendingOffsets::Producer* PendingOffsets::find(ProducerId producer_id) const noexcept {
  const auto found = producers_.find(producer_id);
  return found == producers_.end() ? nullptr : &found->second;
}

std::size_t PendingOffsets::count(const PartitionRef& partition,
                                  const Uuid& topic_id) const noexcept {
  const auto topic = open_.find(partition.topic);
  if (topic == open_.end()) return 0;
  const auto open = topic->second.find(partition.partition);
  if (open == topic->second.end()) return 0;
  if (topic_id.is_zero()) return open->second.size();
  return static_cast<std::size_t>(std::ranges::count_if(open->second, [&](ProducerId id) {
    const Topics& topics = producers_.find(id)->second.topics;
    const PendingOffset& pending =
        topics.find(partition.topic)->second.find(partition.partition)->second;
    return pending.offset.topic_id == topic_id;
  }));
}

std::vector<PendingOffsets::Entry> PendingOffsets::in_order() const {
  std::vector<Entry> entries;
  entries.reserve(size_);
  for (const auto& [id, producer] : producers_) {
    for (const auto& [topic, partitions] : producer.topics) {
      for (const auto& [partition, pending] : partitions) {
        entries.push_back({id, producer.epoch, {topic, partition}, &pending});
      }
    }
  }
  std::ranges::sort(entries, {}, [](const Entry& entry) {
    return std::tuple(entry.partition.topic, entry.partition.partition, entry.pending->order);
  });
  return entries;
}

void PendingOffsets::put(ProducerId producer_id, ProducerEpoch epoch, const PartitionRef& partition,
                         CommittedOffset offset) {
  const Producer* known = find(producer_id);
  if (known != nullptr && known->epoch < epoch) drop(producer_id);
  Producer& producer = producers_[producer_id];
  producer.epoch = epoch;
  auto topic = producer.topics.find(partition.topic);
  if (topic == producer.topics.end()) {
    topic = producer.topics.emplace(std::string(partition.topic), Partitions{}).first;
  }
  const auto [at, added] = topic->second.insert_or_assign(
      partition.partition, PendingOffset{std::move(offset), ++last_order_});
  if (!added) return;
  ++producer.size;
  ++size_;
  auto open = open_.find(partition.topic);
  if (open == open_.end()) open = open_.emplace(std::string(partition.topic), Open{}).first;
  open->second[partition.partition].insert(producer_id);
}

template <class Visit>
void PendingOffsets::visit(const PartitionRef& partition, const Visit& visit) {
  const auto topic = open_.find(partition.topic);
  if (topic == open_.end()) return;
  const auto open = topic->second.find(partition.partition);
  if (open == topic->second.end()) return;
  for (const ProducerId id : open->second) visit(id, at(id, partition));
}

PendingOffset& PendingOffsets::at(ProducerId producer_id, const PartitionRef& partition) {
  const auto producer = producers_.find(producer_id);
  CHECK(producer != producers_.end(), "an open producer has pending offsets");
  const auto topic = producer->second.topics.find(partition.topic);
  CHECK(topic != producer->second.topics.end(), "an open topic has pending offsets");
  const auto pending = topic->second.find(partition.partition);
  CHECK(pending != topic->second.end(), "an open partition has a pending offset");
  return pending->second;
}

void PendingOffsets::supersede(const PartitionRef& partition) {
  visit(partition, [](ProducerId, PendingOffset& pending) { pending.superseded = true; });
}

void PendingOffsets::restore(const PartitionRef& partition) {
  visit(partition, [](ProducerId, PendingOffset& pending) { pending.superseded = false; });
}

void PendingOffsets::end(ProducerId producer_id, ProducerEpoch epoch, Offsets* into) {
  const auto found = producers_.find(producer_id);
  if (found == producers_.end() || epoch < found->second.epoch) return;
  for (auto& [topic, partitions] : found->second.topics) {
    for (auto& [partition, pending] : partitions) {
      if (into == nullptr || pending.superseded) continue;
      visit({topic, partition}, [&](ProducerId, PendingOffset& other) {
        if (other.order < pending.order) other.superseded = true;
      });
      into->put(topic, partition, std::move(pending.offset));
    }
  }
  drop(producer_id);
}

void PendingOffsets::remove(const PartitionRef& partition, const Uuid& topic_id) {
  std::vector<ProducerId> gone;
  visit(partition, [&](ProducerId id, const PendingOffset& pending) {
    if (topic_id.is_zero() || pending.offset.topic_id == topic_id) gone.push_back(id);
  });
  for (const ProducerId id : gone) {
    close(id, partition);
    const auto producer = producers_.find(id);
    const auto topic = producer->second.topics.find(partition.topic);
    topic->second.erase(partition.partition);
    if (topic->second.empty()) producer->second.topics.erase(topic);
    if (--producer->second.size == 0) producers_.erase(producer);
  }
}

// Out of the index by partition; the producer's own entry is the caller's.
void PendingOffsets::close(ProducerId producer_id, const PartitionRef& partition) {
  const auto topic = open_.find(partition.topic);
  const auto open = topic->second.find(partition.partition);
  size_ -= open->second.erase(producer_id);
  if (open->second.empty()) topic->second.erase(open);
  if (topic->second.empty()) open_.erase(topic);
}

void PendingOffsets::drop(ProducerId producer_id) {
  const auto found = producers_.find(producer_id);
  for (const auto& [topic, partitions] : found->second.topics) {
    for (const auto& [partition, pending] : partitions) close(producer_id, {topic, partition});
  }
  producers_.erase(found);
}

void PendingOffsets::clear() noexcept {
  producers_.clear();
  open_.clear();
  size_ = 0;
}

}  // namespace kanal::coordinator
