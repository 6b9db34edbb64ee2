// Transactions as handlers see them: one machine (coordinator/txn.hpp) a transactional id, under
// its own lock (rank 1). A batch is verified or added, and appended, in one hold of that lock, so
// that no end comes between (KIP-890). An end is stored, its markers are written, in slices that
// let the loop run, then it is complete and answered; a marker that cannot be written is tried on.
// An id whose channel cannot be written answers 15 to who waits, is rebuilt from its channel and
// answers 14 meanwhile. Any thread; Tasks resume on the calling context's I/O thread. Deadlines
// stand still while the broker is stalled.
#pragma once

#include "kanal/base/executor.hpp"
#include "kanal/broker/context.hpp"
#include "kanal/coordinator/broker_config.hpp"
#include "kanal/coordinator/txn.hpp"
#include "kanal/reserved/store.hpp"

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

namespace kanal::broker {

class ProducerIdSource;
class ReservedSync;
class Stalls;

struct TransactionsReport {  // for the log line of the start
  std::size_t ids = 0;
  std::size_t ended = 0;    // transactions that were prepared, whose markers were written
  std::size_t orphans = 0;  // transactions open in a partition that no id knows of: aborted there
};

/// Who writes inside of a transaction.
struct TransactionWriter {
  std::string_view id;
  ProducerId producer_id;
  ProducerEpoch producer_epoch;
  coordinator::TransactionVersion version = coordinator::TransactionVersion::k1;
};

class Transactions {
  struct State;

 public:
  /// What they stand on; everything outlives them.
  struct Stage {
    Broker& broker;
    reserved::Session& session;
    ProducerIdSource& producer_ids;
    ReservedSync& syncs;
    Executor& helpers;
    Stalls& stalls;  // ticked and attached by the broker
    std::shared_ptr<const coordinator::BrokerConfig> config;
    LeaderEpoch epoch;  // of this start
  };
  explicit Transactions(Stage stage);
  ~Transactions();

  // What clients ask. A reply comes when all markers that it needs are written.
  Task<coordinator::TransactionReply> init(Context& context, std::string_view id,
                                           coordinator::InitProducerIdCommand command);
  Task<coordinator::TransactionReply> end(Context& context, std::string_view id,
                                          coordinator::EndTransactionCommand command);
  /// Written, not synced: see Broker::reserved_synced.
  [[nodiscard]] ErrorCode add(std::string_view id, coordinator::AddToTransactionCommand command);
  /// NONE if it is part of the open transaction.
  [[nodiscard]] ErrorCode verify(const TransactionWriter& writer,
                                 const coordinator::TransactionPartition& partition) const;

  // Writing inside of a transaction: `append` is called once, under the id's lock, whatever the
  // outcome, with the error of each partition (of the group): NONE if it may write. Version 1 has
  // to have added it before; version 2 adds it here. Neither is for the client as it is: see
  // coordinator::writer_error.
  using Append = std::function<void(std::span<const ErrorCode> errors)>;
  void write(const TransactionWriter& writer,
             std::span<const coordinator::TransactionPartition> partitions, const Append& append);
  void write_offsets(const TransactionWriter& writer, std::string_view group, const Append& append);

  // Reading. `visit` runs under the id's lock: short, and no lock of rank 1 or lower.
  using Visitor = std::function<void(const coordinator::Transaction& transaction)>;
  /// NONE if visited, else TRANSACTIONAL_ID_NOT_FOUND or COORDINATOR_LOAD_IN_PROGRESS.
  ErrorCode visit(std::string_view id, const Visitor& visit) const;
  /// All of them, in no order; those that are made or dropped meanwhile may be missed.
  void for_each(const Visitor& visit) const;
  [[nodiscard]] std::size_t size() const;

  // For the broker
  /// Replays every id, writes the markers of what was prepared, and aborts what is open in a log
  /// and in no transaction (a power cut has taken the newer one of two files' ends). Blocks.
  Result<void> start(TransactionsReport& report);
  /// I/O threads that carry out markers and deadlines; before the first request.
  void attach(IoThread& io);
  /// Every second, from one I/O thread: stalls, expiry of ids, what failed.
  void tick();
  /// While it lives no end is decided and none is under way: requests for one wait. So a copy of
  /// the logs and channels has each transaction before its end or after it, in all of them.
  class Pause {
   public:
    ~Pause();
    Pause(Pause&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
    Pause& operator=(Pause&&) = delete;

   private:
    friend class Transactions;
    explicit Pause(State& state) : state_(&state) {}
    State* state_;
  };
  /// Blocks until the ends under way are complete; an error if one cannot be for now, or once
  /// `cancelled`. A thread of its own, one at a time.
  Result<Pause> pause(const std::function<bool()>& cancelled);
  /// From now on everything is answered COORDINATOR_NOT_AVAILABLE, and no marker is begun.
  void stop();

 private:
  std::unique_ptr<State> state_;
};

}  // namespace kanal::broker
