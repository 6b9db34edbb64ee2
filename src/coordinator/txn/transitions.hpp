// How what is stored of a transactional id goes from one state to the next, and which of such steps
// can be. Plain functions of values; the machine says which step is taken.
#pragma once

#include "kanal/coordinator/txn.hpp"

namespace kanal::coordinator {

/// The last epoch a client gets is one below it, so that it can always be fenced.
inline constexpr ProducerEpoch kLastEpoch{32'767};

/// Partitions and groups that a transaction takes in.
struct TransactionAddition {
  TransactionVersion version = TransactionVersion::k1;
  Timestamp added = kNoTimestamp;
  TransactionTopics topics;
  TransactionGroups groups;
  [[nodiscard]] bool empty() const noexcept { return topics.empty() && groups.empty(); }
};

[[nodiscard]] bool contains(const TransactionTopics& topics,
                            const TransactionPartition& partition) noexcept;
void insert(TransactionTopics& topics, std::string_view topic, PartitionIndex partition);

/// KIP-360: whether the producer may ask for the next epoch of what it has: it is the present
/// owner, or repeats the request that made the present epoch.
enum class Claim : std::uint8_t { kCurrent, kRepeated, kNone };
[[nodiscard]] Claim claim(const TransactionFacts& facts, ProducerId producer_id,
                          ProducerEpoch epoch) noexcept;

/// A step of InitProducerId on an id that is not known, or has no open transaction.
struct Initialization {
  std::chrono::milliseconds timeout{0};
  Timestamp wall = kNoTimestamp;
  ProducerId fresh = kNoProducerId;
  std::optional<Claim> claim;  // none: the producer named no id
};
[[nodiscard]] bool takes_new_id(const TransactionFacts& facts, std::optional<Claim> claim) noexcept;
[[nodiscard]] TransactionFacts initialized(const TransactionFacts& facts,
                                           const Initialization& with);

struct Ending {
  bool commit = false;
  TransactionVersion version = TransactionVersion::k1;
  Timestamp wall = kNoTimestamp;
  ProducerId fresh = kNoProducerId;  // taken if version 2 finds the epochs exhausted, or …
  bool replace = false;              // … the producer id is to be used no more
};
[[nodiscard]] TransactionFacts prepared(const TransactionFacts& facts, const Ending& with);
[[nodiscard]] TransactionFacts completed(const TransactionFacts& prepared, Timestamp wall);
/// Begins a transaction if there is none.
void add(TransactionFacts& facts, const TransactionAddition& addition);

/// Whether one stored state may follow the other in a channel.
[[nodiscard]] Result<void> check_successor(const TransactionFacts& from,
                                           const TransactionFacts& to);

}  // namespace kanal::coordinator
