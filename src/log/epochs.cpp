#include "epochs.hpp"

#include <algorithm>

namespace kanal::log {

void Epochs::note(LeaderEpoch epoch, Offset first_offset) {
  if (epoch.value() < 0 || epoch <= latest()) return;
  entries_.push_back({epoch, first_offset});
}

void Epochs::trim(Offset start) {
  std::size_t below = 0;
  while (below < entries_.size() && entries_[below].first_offset <= start) ++below;
  if (below == 0) return;
  entries_[below - 1].first_offset = start;
  entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(below - 1));
}

LeaderEpoch Epochs::latest() const noexcept {
  return entries_.empty() ? kNoLeaderEpoch : entries_.back().epoch;
}

LeaderEpoch Epochs::at(Offset offset) const noexcept {
  const auto after = std::ranges::upper_bound(entries_, offset, {}, &EpochEntry::first_offset);
  return after == entries_.begin() ? kNoLeaderEpoch : (after - 1)->epoch;
}

EpochEnd Epochs::end_of(LeaderEpoch epoch, LeaderEpoch current, Offset end) const noexcept {
  if (epoch == kNoLeaderEpoch || epoch > current) return {};
  if (epoch == current) return {epoch, end};
  const auto after = std::ranges::upper_bound(entries_, epoch, {}, &EpochEntry::epoch);
  // No later entry: the current epoch begins at the end of the log.
  const Offset next = after == entries_.end() ? end : after->first_offset;
  return {after == entries_.begin() ? epoch : (after - 1)->epoch, next};
}

void Epochs::encode(BlobWriter& writer) const {
  writer.number(static_cast<std::uint32_t>(entries_.size()));
  for (const EpochEntry& entry : entries_) {
    writer.id(entry.epoch);
    writer.id(entry.first_offset);
  }
}

Result<void> Epochs::decode(BlobReader& reader) {
  entries_.clear();
  const auto count = reader.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && reader.good(); ++i) {
    const auto epoch = reader.id<LeaderEpoch>();
    const auto first = reader.id<Offset>();
    const bool later =
        epoch > latest() && (entries_.empty() || first >= entries_.back().first_offset);
    if (reader.good() && (first.value() < 0 || !later)) {
      return storage_error("The leader epochs are out of order.");
    }
    note(epoch, first);
  }
  if (!reader.good()) return storage_error("The leader epochs are cut short.");
  return {};
}

Result<void> check_not_later(const ChannelId& id, LeaderEpoch latest, LeaderEpoch current) {
  if (latest <= current) return {};
  return storage_error("The channel " + id.name + " was written under leader epoch " +
                       std::to_string(latest.value()) + ", this start has only " +
                       std::to_string(current.value()) + ".");
}

}  // namespace kanal::log
