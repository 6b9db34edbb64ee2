// The offsets inside of open transactions, by producer and by partition: nobody sees them before
// the transaction ends. Changed by apply() alone; used under the group's lock. Of two offsets of a
// partition the one that was written later counts, whether it was committed by itself or by the end
// of its transaction, and whichever end came first (as Kafka, which compares record offsets).
#pragma once

#include "offsets.hpp"

#include <set>

namespace kanal::coordinator {

struct PendingOffset {
  CommittedOffset offset;
  std::uint64_t order = 0;  // of writing, among those of the partition
  bool superseded = false;  // what is committed was written later
};

class PendingOffsets {
 public:
  using Partitions = std::map<PartitionIndex, PendingOffset>;
  using Topics = std::map<std::string, Partitions, std::less<>>;
  struct Producer {  // one transaction's
    ProducerEpoch epoch;
    Topics topics;
    std::size_t size = 0;
  };
  struct Entry {
    ProducerId producer_id;
    ProducerEpoch producer_epoch;
    PartitionRef partition;
    const PendingOffset* pending;
  };

  [[nodiscard]] bool empty() const noexcept { return producers_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] const std::map<ProducerId, Producer>& producers() const noexcept {
    return producers_;
  }
  /// Null if nothing of the producer is pending.
  [[nodiscard]] const Producer* find(ProducerId producer_id) const noexcept;
  /// How many are pending for a partition of that topic id; zero: of any.
  [[nodiscard]] std::size_t count(const PartitionRef& partition,
                                  const Uuid& topic_id) const noexcept;
  /// By partition, those of one in the order of writing.
  [[nodiscard]] std::vector<Entry> in_order() const;

  /// Takes the place of what the producer has pending there, and of all it has of earlier epochs.
  void put(ProducerId producer_id, ProducerEpoch epoch, const PartitionRef& partition,
           CommittedOffset offset);
  /// One was committed that is later than all that are pending there.
  void supersede(const PartitionRef& partition);
  /// The end of what the producer has pending up to that epoch: `into` takes what is committed.
  void end(ProducerId producer_id, ProducerEpoch epoch, Offsets* into);
  void remove(const PartitionRef& partition, const Uuid& topic_id);
  /// Nothing is committed any more that would be later.
  void restore(const PartitionRef& partition);
  void clear() noexcept;

 private:
  template <class Visit>
  void visit(const PartitionRef& partition, const Visit& visit);
  PendingOffset& at(ProducerId producer_id, const PartitionRef& partition);
  void close(ProducerId producer_id, const PartitionRef& partition);
  void drop(ProducerId producer_id);

  std::map<ProducerId, Producer> producers_;  // none without offsets
  using Open = std::map<PartitionIndex, std::set<ProducerId>>;
  std::map<std::string, Open, std::less<>> open_;  // the same, by partition; no empty ones
  std::size_t size_ = 0;
  std::uint64_t last_order_ = 0;
};

}  // namespace kanal::coordinator
