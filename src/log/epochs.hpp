// The leader epochs of one partition and where each began (KIP-101, KIP-320): an entry at the first
// append under an epoch, cut from the front by a trim, rebuilt from batch headers. Answers as
// Kafka's leader does, for which the current epoch is known from the moment it leads: it counts
// from the end of the log until something is appended under it. Under the partition's lock.
#pragma once

#include "blob.hpp"

#include "kanal/log/partition.hpp"

#include <vector>

namespace kanal::log {

class Epochs {
 public:
  /// `epoch` never falls from call to call; nothing happens for the one already noted.
  void note(LeaderEpoch epoch, Offset first_offset);
  void trim(Offset start);
  [[nodiscard]] LeaderEpoch latest() const noexcept;
  /// Nothing known: kNoLeaderEpoch.
  [[nodiscard]] LeaderEpoch at(Offset offset) const noexcept;
  /// `current` leads now, the log ends at `end` for readers.
  [[nodiscard]] EpochEnd end_of(LeaderEpoch epoch, LeaderEpoch current, Offset end) const noexcept;
  [[nodiscard]] const std::vector<EpochEntry>& entries() const noexcept { return entries_; }

  void encode(BlobWriter& writer) const;
  Result<void> decode(BlobReader& reader);

 private:
  std::vector<EpochEntry> entries_;
};

/// KAFKA_STORAGE_ERROR where the log has a later epoch than the one that this start was given: log
/// and reserved channels are not of one copy.
Result<void> check_not_later(const ChannelId& id, LeaderEpoch latest, LeaderEpoch current);

}  // namespace kanal::log
