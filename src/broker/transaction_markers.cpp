#include "transaction_markers.hpp"

#include <algorithm>
#include <utility>

#include "kanal/base/logging.hpp"
#include "kanal/broker/groups.hpp"

namespace kanal::broker {

TransactionMarkers::TransactionMarkers(Broker& broker, coordinator::WriteMarkers end)
    : broker_(broker), end_(std::move(end)) {
  for (const auto& [topic, partitions] : end_.topics) {
    for (const PartitionIndex partition : partitions) left_.push_back({&topic, partition});
  }
  for (const std::string& group : end_.groups) groups_.push_back(&group);
}

bool TransactionMarkers::acks_after_sync() const {
  if (broker_.acks_after_sync()) return true;
  const auto topics = broker_.topics();
  return std::ranges::any_of(end_.topics, [&](const auto& named) {
    const TopicPtr topic = topics->find(named.first);
    return topic != nullptr && topic->config().flush_messages == 1;
  });
}

void TransactionMarkers::write(std::size_t most) {
  Broker::Together together(broker_);
  const std::size_t end = std::min(left_.size(), next_ + most);
  for (; next_ < end; ++next_) write(together, left_[next_]);
  if (next_ < left_.size()) return;
  for (const std::string* group : std::exchange(groups_, {})) end_offsets(*group);
}

void TransactionMarkers::write(Broker::Together& together, const Target& target) {
  const TopicPtr topic = broker_.topics()->find(*target.topic);
  const auto partition = topic != nullptr ? topic->partition(target.partition) : nullptr;
  if (partition == nullptr) return;  // deleted, and its records with it
  const log::EndMarker marker{
      .producer = end_.producer_id,
      .epoch = end_.producer_epoch,
      .type = end_.commit ? records::ControlType::kCommit : records::ControlType::kAbort,
      .coordinator_epoch = end_.coordinator_epoch.value(),
      .version = static_cast<std::int16_t>(end_.version)};
  auto appended = together.append_marker(partition, marker);
  if (appended) {
    if (appended->committed) return;
    tickets_.push_back({partition, appended->last});
    ticket_targets_.push_back(target);
    return;
  }
  switch (appended.error().code) {
    case ErrorCode::UNKNOWN_TOPIC_OR_PARTITION:  // deleted meanwhile
      return;
    case ErrorCode::INVALID_PRODUCER_EPOCH:
    case ErrorCode::TRANSACTION_COORDINATOR_FENCED:
      // A marker of another end stands there already (an administrator's): this one is late, and
      // would be for ever.
      logger("broker").warn("A marker came too late. channel={} producer_id={} reason=\"{}\"",
                            partition->id().name, end_.producer_id.value(),
                            appended.error().detail);
      return;
    default:
      again_.push_back(target);
  }
}

void TransactionMarkers::end_offsets(const std::string& group) {
  const ErrorCode error =
      broker_.groups().end_transaction(group, end_.producer_id, end_.producer_epoch, end_.commit);
  if (error != ErrorCode::NONE) groups_again_.push_back(&group);
}

bool TransactionMarkers::round_done() const noexcept {
  return next_ == left_.size() && groups_.empty();
}

bool TransactionMarkers::begin_round() {
  for (std::size_t i = 0; i < tickets_.size(); ++i) {
    if (Broker::outcome(tickets_[i]) == ErrorCode::KAFKA_STORAGE_ERROR)
      again_.push_back(ticket_targets_[i]);
  }
  tickets_.clear();
  ticket_targets_.clear();
  left_ = std::exchange(again_, {});
  next_ = 0;
  groups_ = std::exchange(groups_again_, {});
  return !left_.empty() || !groups_.empty();
}

}  // namespace kanal::broker
