// The committed offsets of one group, by topic and partition. Changed by apply() alone; used under
// the group's lock.
#pragma once

#include "kanal/coordinator/group.hpp"

#include <map>

namespace kanal::coordinator {

struct PartitionRef {
  std::string_view topic;
  PartitionIndex partition;
};

class Offsets {
 public:
  using Partitions = std::map<PartitionIndex, CommittedOffset>;
  using Topics = std::map<std::string, Partitions, std::less<>>;

  [[nodiscard]] bool empty() const noexcept { return topics_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] const Topics& topics() const noexcept { return topics_; }
  [[nodiscard]] const CommittedOffset* find(const PartitionRef& partition) const noexcept;

  void put(std::string topic, PartitionIndex partition, CommittedOffset offset);
  void remove(const PartitionRef& partition);
  void clear() noexcept;

 private:
  Topics topics_;  // no topic without partitions
  std::size_t size_ = 0;
};

}  // namespace kanal::coordinator
