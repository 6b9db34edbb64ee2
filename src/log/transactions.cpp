#include "transactions.hpp"

#include <algorithm>
#include <limits>
#include <string>

namespace kanal::log {
namespace {

constexpr std::int16_t kEpochsRaised = 2;  // from this transaction.version on by every end
constexpr ProducerEpoch kLastEpoch{std::numeric_limits<std::int16_t>::max()};

}  // namespace

Result<void> check_transaction(const ProducerState& producers, const records::BatchHeader& header) {
  if (header.is_transactional()) return {};
  const auto found = producers.producers().find(header.producer_id);
  if (found == producers.producers().end() || !found->second.in_transaction()) return {};
  return fail(ErrorCode::INVALID_TXN_STATE, "The producer " +
                                                std::to_string(header.producer_id.value()) +
                                                " has a transaction open since offset " +
                                                std::to_string(found->second.transaction.value()) +
                                                ", the batch is not part of it.");
}

Result<void> check_marker(const ProducerState& producers, const EndMarker& marker) {
  if (marker.producer.value() < 0 || marker.epoch.value() < 0)
    return fail(ErrorCode::INVALID_REQUEST, "A marker needs a producer id and an epoch.");
  const auto found = producers.producers().find(marker.producer);
  const ProducerState::Producer unknown;  // as Kafka's: no coordinator was before epoch -1
  const ProducerState::Producer& producer =
      found == producers.producers().end() ? unknown : found->second;
  const std::string who = "The marker of producer " + std::to_string(marker.producer.value());
  bool stale = marker.epoch < producer.epoch;
  if (marker.version >= kEpochsRaised && marker.epoch == producer.epoch) {
    // It would end a transaction that began after it was decided. The last epoch of an id cannot be
    // raised any more.
    stale = producer.in_transaction() && marker.epoch != kLastEpoch;
  }
  if (stale) {
    return fail(ErrorCode::INVALID_PRODUCER_EPOCH,
                who + " has the epoch " + std::to_string(marker.epoch.value()) +
                    ", the last one seen is " + std::to_string(producer.epoch.value()) + ".");
  }
  if (marker.coordinator_epoch < producer.coordinator_epoch) {
    return fail(ErrorCode::TRANSACTION_COORDINATOR_FENCED,
                who + " has the coordinator epoch " + std::to_string(marker.coordinator_epoch) +
                    ", the last one seen is " + std::to_string(producer.coordinator_epoch) + ".");
  }
  return {};
}

void Transactions::began(Offset first) {
  open_.insert(first);
}

void Transactions::ended(ProducerId producer, Offset first, Offset marker, bool aborted) {
  open_.erase(first);
  if (aborted) aborted_.add({producer, first, marker, open_.empty() ? marker + 1 : *open_.begin()});
  while (!unseen_.empty() && unseen_.back().first > first) unseen_.pop_back();
  unseen_.push_back({first, marker});
}

void Transactions::committed(Offset high_watermark) {
  if (unseen_.empty()) return;
  const auto stays = std::ranges::lower_bound(unseen_, high_watermark, {}, &Unseen::marker);
  unseen_.erase(unseen_.begin(), stays);
}

std::optional<Offset> Transactions::first_unstable() const noexcept {
  std::optional<Offset> first;
  if (!open_.empty()) first = *open_.begin();
  if (!unseen_.empty() && (!first || unseen_.front().first < *first)) first = unseen_.front().first;
  return first;
}

Result<void> Transactions::restore_open(const ProducerState& producers, Offset below) {
  open_.clear();
  unseen_.clear();
  for (const auto& [id, producer] : producers.producers()) {
    if (!producer.in_transaction()) continue;
    if (producer.transaction >= below || !open_.insert(producer.transaction).second) {
      return storage_error("The producer " + std::to_string(id.value()) +
                           " has a transaction that begins at an offset that it cannot have.");
    }
  }
  return {};
}

}  // namespace kanal::log
