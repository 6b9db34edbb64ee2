#include "records.hpp"

#include "stored_record.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace kanal::coordinator {
namespace {

template <class StoredType>
void put_members(StoredType& record, const TransactionTopics& topics,
                 const TransactionGroups& groups) {
  record.topics.reserve(topics.size());
  for (const auto& [name, partitions] : topics) {
    auto& topic = record.topics.emplace_back();
    topic.name = name;
    topic.partitions = partitions;
  }
  record.groups.assign(groups.begin(), groups.end());
}

/// They are stored in order, each once.
template <class StoredType>
Result<void> take_members(StoredType& record, TransactionTopics& topics,
                          TransactionGroups& groups) {
  for (auto& topic : record.topics) {
    if (topic.name.empty() || (!topics.empty() && topic.name <= topics.rbegin()->first)) {
      return corrupt("topics without name or order");
    }
    const auto& partitions = topic.partitions;
    if (partitions.empty() || partitions.front().value() < 0 ||
        std::ranges::adjacent_find(partitions, std::greater_equal()) != partitions.end()) {
      return corrupt("partitions of a topic are missing, negative or without order");
    }
    topics.emplace_hint(topics.end(), std::move(topic.name), std::move(topic.partitions));
  }
  for (auto& group : record.groups) {
    if (!groups.empty() && group <= *groups.rbegin()) return corrupt("groups without order");
    groups.emplace_hint(groups.end(), std::move(group));
  }
  return {};
}

Result<TransactionVersion> version_of(std::int8_t number) {
  const auto version = static_cast<TransactionVersion>(number);
  if (version != TransactionVersion::k1 && version != TransactionVersion::k2) {
    return corrupt("a transaction version that is not known");
  }
  return version;
}

/// There is one, and sums and differences of two of them are times too.
bool is_time(Timestamp time) {
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max() / 4;
  return time != kNoTimestamp && time.value() >= -kFar && time.value() <= kFar;
}

Result<void> check_identity(const TransactionFacts& facts) {
  if (facts.producer_id.value() < 0 || facts.producer_epoch.value() < 0) {
    return corrupt("no producer id or epoch");
  }
  if (facts.last_producer_epoch < kNoProducerEpoch || facts.last_producer_epoch >= kLastEpoch ||
      facts.previous_producer_id < kNoProducerId || facts.next_producer_id < kNoProducerId) {
    return corrupt("a producer id or epoch out of range");
  }
  // Only while an end is prepared is the last epoch used, and the new id known.
  const bool raised_to_last = facts.producer_epoch == kLastEpoch;
  const bool changes_id = facts.next_producer_id != kNoProducerId;
  if (raised_to_last != changes_id || (changes_id && !facts.prepared())) {
    return corrupt("an exhausted producer epoch without the id that follows");
  }
  return {};
}

Result<void> check(const TransactionFacts& facts) {
  if (auto identity = check_identity(facts); !identity) return identity;
  if (facts.timeout <= std::chrono::milliseconds::zero()) return corrupt("no transaction timeout");
  const bool open = facts.state == TransactionState::kOngoing || facts.prepared();
  if (!open && !(facts.topics.empty() && facts.groups.empty())) {
    return corrupt("partitions or groups without an open transaction");
  }
  const bool never_began = facts.state == TransactionState::kEmpty;
  if (never_began ? facts.started != kNoTimestamp : !is_time(facts.started)) {
    return corrupt("a transaction without start");
  }
  if (!is_time(facts.updated)) return corrupt("no time of the update");
  return {};
}

Result<TransactionFacts> facts_of(wire::TransactionRecord& record) {
  TransactionFacts facts;
  facts.producer_id = record.producer_id;
  facts.producer_epoch = record.producer_epoch;
  facts.last_producer_epoch = record.last_producer_epoch;
  facts.previous_producer_id = record.previous_producer_id;
  facts.next_producer_id = record.next_producer_id;
  auto version = version_of(record.transaction_version);
  if (!version) return std::unexpected(version.error());
  facts.version = *version;
  facts.state = static_cast<TransactionState>(record.state);
  if (facts.state < TransactionState::kEmpty || facts.state > TransactionState::kCompleteAbort) {
    return corrupt("a transaction state that is not known");
  }
  facts.timeout = record.timeout;
  facts.started = record.started;
  facts.updated = record.updated;
  if (auto taken = take_members(record, facts.topics, facts.groups); !taken) {
    return std::unexpected(taken.error());
  }
  if (auto checked = check(facts); !checked) return std::unexpected(checked.error());
  return facts;
}

Result<TransactionAddition> addition_of(wire::TransactionAddRecord& record) {
  TransactionAddition addition;
  auto version = version_of(record.transaction_version);
  if (!version) return std::unexpected(version.error());
  addition.version = *version;
  addition.added = record.added;
  if (!is_time(record.added)) return corrupt("no time of the update");
  if (auto taken = take_members(record, addition.topics, addition.groups); !taken) {
    return std::unexpected(taken.error());
  }
  return addition;
}

template <class Change>
Result<TransactionChange> as_change(Result<Change> change) {
  if (!change) return std::unexpected(std::move(change.error()));
  return TransactionChange(std::move(*change));
}

}  // namespace

Buffer encode_transaction(const TransactionFacts& facts) {
  wire::TransactionRecord record;
  record.producer_id = facts.producer_id;
  record.producer_epoch = facts.producer_epoch;
  record.last_producer_epoch = facts.last_producer_epoch;
  record.previous_producer_id = facts.previous_producer_id;
  record.next_producer_id = facts.next_producer_id;
  record.transaction_version = static_cast<std::int8_t>(facts.version);
  record.state = static_cast<std::int8_t>(facts.state);
  record.timeout = facts.timeout;
  record.started = facts.started;
  record.updated = facts.updated;
  put_members(record, facts.topics, facts.groups);
  return encode_record(record);
}

Buffer encode_addition(const TransactionAddition& addition) {
  wire::TransactionAddRecord record;
  record.transaction_version = static_cast<std::int8_t>(addition.version);
  record.added = addition.added;
  put_members(record, addition.topics, addition.groups);
  return encode_record(record);
}

Result<TransactionChange> decode_transaction_record(Bytes body) {
  auto record = wire::decode_stored(body);
  if (!record) return std::unexpected(std::move(record.error()));
  if (auto* whole = std::get_if<wire::TransactionRecord>(&*record)) {
    return as_change(facts_of(*whole));
  }
  if (auto* added = std::get_if<wire::TransactionAddRecord>(&*record)) {
    return as_change(addition_of(*added));
  }
  return of_another_channel();
}

}  // namespace kanal::coordinator
