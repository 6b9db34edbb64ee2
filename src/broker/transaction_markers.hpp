// The markers of one end, and the pending offsets that go along: written in slices, in rounds until
// nothing is left; what does not exist any more is skipped. One thread at a time.
#pragma once

#include "kanal/broker/broker.hpp"
#include "kanal/coordinator/txn.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace kanal::broker {

class TransactionMarkers {
 public:
  TransactionMarkers(Broker& broker, coordinator::WriteMarkers end);

  [[nodiscard]] const coordinator::WriteMarkers& end() const noexcept { return end_; }
  /// Whether one of them has to be on the disk before it counts: then so has the decision before.
  [[nodiscard]] bool acks_after_sync() const;
  /// The next `most` of this round.
  void write(std::size_t most);
  [[nodiscard]] bool round_done() const noexcept;
  /// Written, and not known to be committed yet.
  [[nodiscard]] const std::vector<Ticket>& tickets() const noexcept { return tickets_; }
  /// None of them is pending any more. Whether another round is needed: something could not be
  /// written, or was lost since.
  [[nodiscard]] bool begin_round();

 private:
  struct Target {
    const std::string* topic;
    PartitionIndex partition;
  };
  void write(Broker::Together& together, const Target& target);
  void end_offsets(const std::string& group);

  Broker& broker_;
  const coordinator::WriteMarkers end_;
  std::vector<Target> left_, again_;  // names live in end_
  std::size_t next_ = 0;              // of left_
  std::vector<const std::string*> groups_, groups_again_;
  std::vector<Ticket> tickets_;
  std::vector<Target> ticket_targets_;
};

}  // namespace kanal::broker
