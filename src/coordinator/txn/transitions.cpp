#include "transitions.hpp"

#include "kanal/base/check.hpp"
#include "stored_record.hpp"

#include <algorithm>

namespace kanal::coordinator {

bool contains(const TransactionTopics& topics, const TransactionPartition& partition) noexcept {
  const auto found = topics.find(partition.topic);
  return found != topics.end() && std::ranges::binary_search(found->second, partition.partition);
}

void insert(TransactionTopics& topics, std::string_view topic, PartitionIndex partition) {
  auto found = topics.find(topic);
  if (found == topics.end()) found = topics.emplace(std::string(topic), 0).first;
  auto& partitions = found->second;
  const auto at = std::ranges::lower_bound(partitions, partition);
  if (at == partitions.end() || *at != partition) partitions.insert(at, partition);
}

Claim claim(const TransactionFacts& facts, ProducerId producer_id, ProducerEpoch epoch) noexcept {
  if (producer_id == facts.producer_id) {
    if (epoch == facts.producer_epoch) return Claim::kCurrent;
    const bool repeated = epoch == facts.last_producer_epoch && epoch + 1 == facts.producer_epoch;
    return repeated ? Claim::kRepeated : Claim::kNone;
  }
  const bool repeated = producer_id != kNoProducerId && producer_id == facts.previous_producer_id &&
                        epoch == facts.last_producer_epoch && facts.producer_epoch.value() == 0;
  return repeated ? Claim::kRepeated : Claim::kNone;
}

bool takes_new_id(const TransactionFacts& facts, std::optional<Claim> claim) noexcept {
  if (!facts.exists()) return true;
  return facts.exhausted() && (!claim || *claim == Claim::kCurrent);
}

TransactionFacts initialized(const TransactionFacts& facts, const Initialization& with) {
  CHECK(!facts.prepared() && facts.state != TransactionState::kOngoing,
        "an id is initialized while no transaction is open");
  TransactionFacts next = facts;
  next.state = TransactionState::kEmpty;
  next.timeout = with.timeout;
  next.started = kNoTimestamp;
  next.updated = with.wall;
  if (with.claim == Claim::kRepeated) return next;  // the epoch it made is the present one
  next.previous_producer_id = kNoProducerId;
  next.last_producer_epoch = with.claim && facts.exists() ? facts.producer_epoch : kNoProducerEpoch;
  if (takes_new_id(facts, with.claim)) {
    CHECK(with.fresh != kNoProducerId, "the driver asks needs_producer_id()");
    next.previous_producer_id = facts.producer_id;
    next.producer_id = with.fresh;
    next.producer_epoch = ProducerEpoch(0);
  } else {
    ++next.producer_epoch;
  }
  return next;
}

TransactionFacts prepared(const TransactionFacts& facts, const Ending& with) {
  TransactionFacts next = facts;
  next.state = with.commit ? TransactionState::kPrepareCommit : TransactionState::kPrepareAbort;
  next.version = with.version;
  next.previous_producer_id = kNoProducerId;
  next.updated = with.wall;
  // KIP-890: it is allowed to abort what has not begun; then it began just now.
  if (facts.state != TransactionState::kOngoing) next.started = with.wall;
  if (with.version == TransactionVersion::k1) return next;
  if (facts.exhausted() || with.replace) {
    CHECK(with.fresh != kNoProducerId, "the driver asks needs_producer_id()");
    next.next_producer_id = with.fresh;
  }
  next.last_producer_epoch = facts.producer_epoch;
  next.producer_epoch = with.replace ? kLastEpoch : facts.producer_epoch + 1;
  return next;
}

TransactionFacts completed(const TransactionFacts& prepared, Timestamp wall) {
  CHECK(prepared.prepared(), "what is prepared is completed");
  TransactionFacts next = prepared;
  next.state = prepared.state == TransactionState::kPrepareCommit
                   ? TransactionState::kCompleteCommit
                   : TransactionState::kCompleteAbort;
  next.updated = wall;
  next.topics.clear();
  next.groups.clear();
  if (prepared.next_producer_id != kNoProducerId) {
    next.previous_producer_id = prepared.producer_id;
    next.producer_id = prepared.next_producer_id;
    next.producer_epoch = ProducerEpoch(0);
    next.next_producer_id = kNoProducerId;
  }
  return next;
}

void add(TransactionFacts& facts, const TransactionAddition& addition) {
  CHECK(facts.exists() && !facts.prepared(), "nothing is added to what is ending");
  if (facts.state != TransactionState::kOngoing) {
    facts.state = TransactionState::kOngoing;
    facts.started = addition.added;
    facts.previous_producer_id = kNoProducerId;  // whoever began knows the new one
  }
  facts.version = addition.version;
  facts.updated = addition.added;
  for (const auto& [topic, partitions] : addition.topics) {
    for (const PartitionIndex partition : partitions) insert(facts.topics, topic, partition);
  }
  facts.groups.insert(addition.groups.begin(), addition.groups.end());
}

namespace {

// An end that has nothing to mark is stored as complete at once.
bool may_follow(TransactionState from, TransactionState to) {
  const bool open = from == TransactionState::kOngoing;
  const bool prepared =
      from == TransactionState::kPrepareCommit || from == TransactionState::kPrepareAbort;
  switch (to) {
    case TransactionState::kEmpty:
      return !open && !prepared;
    case TransactionState::kPrepareCommit:
    case TransactionState::kPrepareAbort:
      return open;
    case TransactionState::kCompleteCommit:
      return from == TransactionState::kPrepareCommit || open;
    case TransactionState::kCompleteAbort:
      return from != TransactionState::kPrepareCommit;
    default:
      return false;  // Ongoing comes from what is added
  }
}

// A producer id that was exhausted, or is replaced, is fenced with its last epoch; then comes the
// next one.
bool identity_may_follow(const TransactionFacts& from, const TransactionFacts& to) {
  if (to.producer_id == from.producer_id) {
    return to.producer_epoch == from.producer_epoch ||
           to.producer_epoch == from.producer_epoch + 1 ||
           (to.producer_epoch == kLastEpoch && to.next_producer_id != kNoProducerId);
  }
  if (from.prepared() && to.producer_id != from.next_producer_id) return false;
  return to.previous_producer_id == from.producer_id && to.producer_epoch.value() == 0;
}

}  // namespace

Result<void> check_successor(const TransactionFacts& from, const TransactionFacts& to) {
  if (!from.exists()) return {};  // the first of a generation
  if (!may_follow(from.state, to.state)) {
    return corrupt(std::string(to_string(to.state)) + " cannot follow " +
                   std::string(to_string(from.state)));
  }
  if (!identity_may_follow(from, to)) return corrupt("the producer id or epoch goes back or jumps");
  if (to.prepared() && (to.topics != from.topics || to.groups != from.groups)) {
    return corrupt("other partitions or groups are ended than were added");
  }
  return {};
}

}  // namespace kanal::coordinator
