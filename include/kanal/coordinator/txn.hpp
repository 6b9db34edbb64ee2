// The transaction machine: one transactional id (KIP-98) with its producer id and epoch and the
// transaction it is in: version 1 and version 2 (KIP-890), re-initialization (KIP-360), fencing.
// Channel _KAFKA_TXN_.{transactional id}. Codes and the order of the checks are Kafka 4.4's. One
// object an id, used under that id's lock (rank 1) by whatever thread the driver is on; the step,
// its storing and apply() are one hold of it. `now` is time that stands still while the broker is
// stalled, `wall` what is stored. An end is a prepared record, then WriteMarkers to carry out, then
// MarkersWritten: only then is it complete and its request answered. The driver asks
// next_deadline() after each step and sends PassTime. States and answers: docs/transactions.md.
#pragma once

#include "kanal/base/ids.hpp"
#include "kanal/coordinator/machine.hpp"
#include "kanal/coordinator/name_pattern.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kanal::coordinator {

/// Fixed while the broker runs.
struct TransactionSettings {
  std::chrono::milliseconds max_timeout{900'000};        // transaction.max.timeout.ms
  std::chrono::milliseconds id_expiration{604'800'000};  // transactional.id.expiration.ms
  LeaderEpoch coordinator_epoch{0};                      // in markers: of this start
};

/// What the client speaks: Produce 12, TxnOffsetCommit 5, EndTxn 5 and later are version 2. The
/// values are those of WriteTxnMarkers.
enum class TransactionVersion : std::int8_t { k1 = 0, k2 = 2 };

/// Values as stored, and as Kafka numbers them.
enum class TransactionState : std::int8_t {
  kEmpty = 0,
  kOngoing = 1,
  kPrepareCommit = 2,
  kPrepareAbort = 3,
  kCompleteCommit = 4,
  kCompleteAbort = 5,
  kDead = 6,               // the id is not known
  kPrepareEpochFence = 7,  // never here, but a filter may name it
};
/// "Empty", "PrepareCommit", …: as DescribeTransactions and ListTransactions spell them.
[[nodiscard]] std::string_view to_string(TransactionState state) noexcept;
[[nodiscard]] std::optional<TransactionState> transaction_state(std::string_view name) noexcept;

struct TransactionPartition {
  std::string_view topic;
  PartitionIndex partition;
};
/// By name, as in Kafka: a marker goes to what has the name when it is written. Partitions ascend.
using TransactionTopics = std::map<std::string, std::vector<PartitionIndex>, std::less<>>;
using TransactionGroups = std::set<std::string, std::less<>>;

// Commands. Below the version in brackets the client does not know PRODUCER_FENCED and is told
// INVALID_PRODUCER_EPOCH: set knows_fenced to false.

struct InitProducerIdCommand {  // [v4]; of a request without a transactional id none is made
  std::chrono::milliseconds timeout{0};
  ProducerId producer_id = kNoProducerId;  // KIP-360: what the producer has had so far
  ProducerEpoch producer_epoch = kNoProducerEpoch;
  bool enable_2pc = false, keep_prepared = false;  // v6, not stable yet
  bool knows_fenced = true;
};
/// AddPartitionsToTxn and AddOffsetsToTxn [v2], and what Produce and TxnOffsetCommit of version 2
/// add by themselves; see also verify(), which costs less.
struct AddToTransactionCommand {
  ProducerId producer_id;
  ProducerEpoch producer_epoch;
  TransactionVersion version = TransactionVersion::k1;  // AddPartitionsToTxn: k2 from v4 on
  std::vector<TransactionPartition> partitions;         // that exist: checked by the handler
  std::optional<std::string_view> group;
  bool knows_fenced = true;
};
struct EndTransactionCommand {  // EndTxn [v2]
  ProducerId producer_id;
  ProducerEpoch producer_epoch;
  bool commit = false;
  TransactionVersion version = TransactionVersion::k1;  // k2 from v5 on
  bool knows_fenced = true;
};
/// Every marker of that end is written, and committed where the broker waits for that.
struct MarkersWritten {
  WaiterId end = 0;
};
/// A marker cannot be written for now, and is tried on: who waits for the end is answered, as
/// Kafka answers once it is prepared. Its outcome is decided.
struct MarkersDelayed {
  WaiterId end = 0;
};
struct ExpireTransactionalId {};  // a round of transactional.id.expiration.ms
/// The logs know more of its producer than the id does: a power cut took the newest of what was
/// stored of it. What is open is aborted, and the producer id is never used again.
struct ReplaceProducerId {};

struct TransactionCommand {
  WaiterId waiter = 0;  // the last five get no reply of their own
  Timestamp wall = kNoTimestamp;
  ProducerId fresh = kNoProducerId;  // a new id if needs_producer_id(), else not looked at
  std::variant<InitProducerIdCommand, AddToTransactionCommand, EndTransactionCommand,
               MarkersWritten, MarkersDelayed, ExpireTransactionalId, ReplaceProducerId, PassTime>
      what;
};

struct TransactionReply {
  WaiterId waiter = 0;
  ErrorCode error = ErrorCode::NONE;
  // InitProducerId, and EndTxn of version 2: what to use from now on. Else none.
  ProducerId producer_id = kNoProducerId;
  ProducerEpoch producer_epoch = kNoProducerEpoch;
  friend bool operator==(const TransactionReply&, const TransactionReply&) = default;
};

/// To be carried out once what the step returned is stored, and tried until it is done; a partition
/// or group that does not exist any more is skipped. Then MarkersWritten. The lock need not be held
/// meanwhile: nothing is admitted. Idempotent: after a crash it comes again out of loaded().
struct WriteMarkers {
  WaiterId end = 0;  // which end: the number of the command it comes from
  bool commit = false;
  ProducerId producer_id;
  ProducerEpoch producer_epoch;  // of version 2: already raised
  LeaderEpoch coordinator_epoch;
  TransactionVersion version = TransactionVersion::k1;
  TransactionTopics topics;  // a control batch in each partition
  TransactionGroups groups;  // whose pending offsets of this producer become visible, or go
};

/// What is stored of an id. kDead: nothing.
struct TransactionFacts {
  ProducerId producer_id = kNoProducerId;
  ProducerEpoch producer_epoch = kNoProducerEpoch;
  ProducerEpoch last_producer_epoch = kNoProducerEpoch;  // its owner's before the last raise
  ProducerId previous_producer_id = kNoProducerId;       // exhausted, and just replaced
  ProducerId next_producer_id = kNoProducerId;           // when the prepared end is complete
  TransactionVersion version = TransactionVersion::k1;
  TransactionState state = TransactionState::kDead;
  std::chrono::milliseconds timeout{0};
  Timestamp started = kNoTimestamp;  // of the transaction, or of the last one
  Timestamp updated = kNoTimestamp;
  TransactionTopics topics;
  TransactionGroups groups;

  [[nodiscard]] bool exists() const noexcept { return state != TransactionState::kDead; }
  [[nodiscard]] bool prepared() const noexcept {
    return state == TransactionState::kPrepareCommit || state == TransactionState::kPrepareAbort;
  }
  /// The last epoch that a client may have is reached; one more is left to fence it with.
  [[nodiscard]] bool exhausted() const noexcept { return producer_epoch.value() >= 32'766; }
  friend bool operator==(const TransactionFacts&, const TransactionFacts&) = default;
};

/// ListTransactions. An empty list lets everything through.
struct TransactionFilter {
  std::vector<ProducerId> producer_ids;
  bool by_state = false;  // also when no state that was named is known
  std::set<TransactionState> states;
  std::int64_t duration_ms = -1;  // below 0: any
  std::optional<NamePattern> pattern;
};

class Transaction {
 public:
  using Command = TransactionCommand;
  using Effects = coordinator::Effects<TransactionReply, WriteMarkers>;
  static constexpr bool kSynced = false;  // the driver syncs where acks after sync are asked for
  /// So that a transaction is bounded: each group costs a name. Then POLICY_VIOLATION.
  static constexpr std::size_t kMaxGroups = 1'000;
  /// What an open transaction has left at least after a restart (as Kafka, which looks every 10 s).
  static constexpr std::chrono::milliseconds kGrace{10'000};

  Transaction(std::string id, const TransactionSettings& settings);  // which outlive it

  [[nodiscard]] Effects step(Time now, const TransactionCommand& command);
  Result<void> apply(const Record& record);
  /// After the replay, before the first step: the markers of a prepared end, under this number.
  [[nodiscard]] Effects loaded(Time now, Timestamp wall, WaiterId number);
  [[nodiscard]] std::vector<Buffer> snapshot(std::string_view id) const;
  [[nodiscard]] std::uint64_t live_records() const noexcept { return facts_.exists() ? 1 : 0; }
  /// Whether the command has to bring a fresh producer id, stored as taken before.
  [[nodiscard]] bool needs_producer_id(const TransactionCommand& command) const noexcept;

  /// AddPartitionsToTxn's verify only, and before every append: NONE if it is part of the open
  /// transaction, TRANSACTION_ABORTABLE if not (a client of version 2 then adds it). What a
  /// Produce or TxnOffsetCommit request is told of it: writer_error().
  [[nodiscard]] ErrorCode verify(ProducerId producer_id, ProducerEpoch epoch,
                                 const TransactionPartition& partition) const noexcept;
  [[nodiscard]] ErrorCode verify_group(ProducerId producer_id, ProducerEpoch epoch,
                                       std::string_view group) const noexcept;

  [[nodiscard]] std::optional<Time> next_deadline() const noexcept;
  /// The id is not known: the driver drops the object.
  [[nodiscard]] bool vacant() const noexcept { return !facts_.exists(); }
  [[nodiscard]] const std::string& id() const noexcept { return id_; }
  [[nodiscard]] const TransactionFacts& facts() const noexcept { return facts_; }
  [[nodiscard]] bool listed(const TransactionFilter& filter, Timestamp wall) const;

 private:
  struct Turn;
  struct PendingEnd {  // its markers are being written
    WaiterId end = 0;
    std::optional<WaiterId> waiter;  // who is answered when they are
    enum class For : std::uint8_t { kEndTxn, kInitProducerId } what = For::kEndTxn;
  };

  void init(const Turn& turn, const InitProducerIdCommand& command);
  [[nodiscard]] ErrorCode check_init(const InitProducerIdCommand& command) const noexcept;
  void add(const Turn& turn, const AddToTransactionCommand& command);
  [[nodiscard]] ErrorCode check_add(const AddToTransactionCommand& command) const noexcept;
  void end(const Turn& turn, const EndTransactionCommand& command);
  [[nodiscard]] ErrorCode check_end(const EndTransactionCommand& command) const noexcept;
  void end_ongoing(const Turn& turn, bool commit, TransactionVersion version,
                   std::optional<PendingEnd::For> answered);
  void replace(const Turn& turn);
  void begin_end(const Turn& turn, const TransactionFacts& next,
                 std::optional<PendingEnd::For> answered);
  void complete(const Turn& turn, WaiterId end);
  void answer_end(const Turn& turn, const TransactionFacts& completed);
  void expire(const Turn& turn) const;
  [[nodiscard]] ErrorCode verify_producer(ProducerId producer_id,
                                          ProducerEpoch epoch) const noexcept;
  [[nodiscard]] WriteMarkers markers(WaiterId end, const TransactionFacts& prepared) const;

  std::string id_;
  const TransactionSettings* settings_;
  TransactionFacts facts_;         // changed by apply() alone
  std::optional<PendingEnd> end_;  // these two are the session: not stored
  Time deadline_ = Time::max();    // of the open transaction
};
static_assert(Machine<Transaction>);

/// What a Produce (knows: v11 and later) or TxnOffsetCommit request (v4 and later) is told if
/// verify() or the add says so. Below v12 Produce makes NOT_ENOUGH_REPLICAS of
/// CONCURRENT_TRANSACTIONS: old clients repeat that.
[[nodiscard]] ErrorCode writer_error(ErrorCode error, bool knows_transaction_abortable) noexcept;

}  // namespace kanal::coordinator
