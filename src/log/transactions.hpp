// The transactions of one partition (KIP-98, KIP-890): which are open, which have ended with a
// marker that readers do not see yet, which were aborted; what Kafka lets in of them. What is known
// of each producer (epoch, coordinator epoch, where its transaction began) stands in ProducerState.
// Under the partition's lock. Only the aborted ones are stored by themselves: open ones come back
// from the producers, and after a start nothing is unseen.
#pragma once

#include "aborted.hpp"

#include "kanal/log/partition.hpp"

#include <optional>
#include <set>
#include <vector>

namespace kanal::log {

/// INVALID_TXN_STATE: a batch outside of any transaction while its producer has one open.
[[nodiscard]] Result<void> check_transaction(const ProducerState& producers,
                                             const records::BatchHeader& header);
/// INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, INVALID_REQUEST (no such producer can
/// be). A repeat of what ended the last transaction is let in: it changes nothing.
[[nodiscard]] Result<void> check_marker(const ProducerState& producers, const EndMarker& marker);

class Transactions {
 public:
  /// The first transactional batch, with the producer's state already as it is after it.
  void began(Offset first);
  /// `marker`'s offset is above all offsets before.
  void ended(ProducerId producer, Offset first, Offset marker, bool aborted);
  void committed(Offset high_watermark);
  void trim(Offset start) { aborted_.trim(start); }
  /// Where the first transaction begins that is open, or whose marker is not committed.
  [[nodiscard]] std::optional<Offset> first_unstable() const noexcept;
  [[nodiscard]] AbortedTransactions& aborted() noexcept { return aborted_; }
  [[nodiscard]] const AbortedTransactions& aborted() const noexcept { return aborted_; }

  /// Nothing that one made anew would not know.
  [[nodiscard]] bool idle() const noexcept {
    return open_.empty() && unseen_.empty() && aborted_.empty() && aborted_.start() == Offset(0);
  }

  /// The open ones of what was decoded before; `below` is where the log ended then.
  Result<void> restore_open(const ProducerState& producers, Offset below);

 private:
  struct Unseen {
    Offset first, marker;
  };
  std::set<Offset> open_;       // where they begin
  std::vector<Unseen> unseen_;  // both rise: an earlier end that began later cannot matter
  AbortedTransactions aborted_;
};

}  // namespace kanal::log
