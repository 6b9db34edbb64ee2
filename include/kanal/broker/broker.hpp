// The facade that handlers see: topics, appends, long polls, the catalog's changes, producer ids.
// It owns what outlives a request. Any I/O thread may call it; Tasks resume on the calling
// context's I/O thread. Nothing here blocks a thread.
#pragma once

#include "kanal/base/executor.hpp"
#include "kanal/base/file_system.hpp"
#include "kanal/base/random.hpp"
#include "kanal/broker/context.hpp"
#include "kanal/broker/fetch_sessions.hpp"
#include "kanal/broker/partition.hpp"
#include "kanal/broker/topics.hpp"
#include "kanal/coordinator/broker_config.hpp"
#include "kanal/coordinator/catalog.hpp"
#include "kanal/coordinator/cluster_state.hpp"
#include "kanal/reserved/store.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kanal::broker {

/// What the broker stands on; everything outlives it.
struct Foundations {
  FileSystem& files;
  Executor& helpers;
  const Clock& clock;
  Random& random;
  /// Opens the reserved channels kept in a directory; the simulation brings a store of its own.
  std::function<Result<std::unique_ptr<reserved::Store>>(const std::string& directory)> open_store =
      reserved::open_rocks_store;
  /// For the syncs that acknowledgements wait for; where there is none, the helpers do them.
  Executor* syncs = nullptr;
  /// For compaction, which has time; where there is none, the helpers do it.
  Executor* at_ease = nullptr;
};
struct BrokerOptions {
  std::string data_dir;
  coordinator::BrokerConfig kafka;
  std::size_t max_open_log_files = 1024;
  bool cut_damaged_logs = false;  // log.recovery=truncate
  std::uint64_t reserve_bytes = 0;  // kept for a full disk; 0: none
  std::uint64_t journal_bytes = 64 << 20;  // made when many partitions share a sync
};

/// For the log line of the start.
struct StartReport {
  std::size_t topics = 0, partitions = 0;
  std::size_t recovered = 0;  // partitions whose log had to be scanned
  std::size_t broken = 0;     // partitions that could not be opened
  std::size_t cut_logs = 0;   // partitions that log.recovery=truncate took records from
  std::uint64_t cut_bytes = 0;
  std::size_t groups = 0;
  std::size_t transactional_ids = 0;
  std::size_t ended_transactions = 0;  // decided before, and whose markers were written now
};

struct ProducerIdentity {
  ProducerId id = kNoProducerId;
  ProducerEpoch epoch = kNoProducerEpoch;
};

class Groups;
class Transactions;
struct SnapshotReport;  // snapshot.hpp

class Broker final : public log::CommitSink {
 public:
  /// Opens `data_dir` (lock, format, reserved channels, every partition) and takes the next leader
  /// epoch. Blocks.
  static Result<std::unique_ptr<Broker>> start(const Foundations& foundations,
                                               const BrokerOptions& options, StartReport& report);
  ~Broker() override;

  // Facts
  [[nodiscard]] std::shared_ptr<const Topics> topics() const noexcept;
  /// In force now; a change makes a new one.
  [[nodiscard]] std::shared_ptr<const coordinator::BrokerConfig> config() const noexcept;
  /// What is set while running: broker, groups, client metrics.
  [[nodiscard]] std::shared_ptr<const coordinator::DynamicConfigs> dynamic_configs() const;
  [[nodiscard]] const std::string& cluster_id() const noexcept;
  [[nodiscard]] NodeId node_id() const noexcept;
  [[nodiscard]] LeaderEpoch leader_epoch() const noexcept;  // this start's
  /// Position in the journal of the reserved channels, where every change of the metadata goes.
  [[nodiscard]] Offset metadata_end() const;
  [[nodiscard]] const Clock& clock() const noexcept;
  [[nodiscard]] Random& random() const noexcept;
  [[nodiscard]] FileSystem& files() noexcept;
  [[nodiscard]] const std::string& data_dir() const noexcept;
  /// Leadership is asked, not assumed: the node that leads the channel; on one machine always this
  /// one.
  [[nodiscard]] NodeId leader(const ChannelId& channel) const noexcept;

  // Waiting. `deadline` bounds each; a closed connection or a stopping broker ends it early.
  /// Whether nothing has to be awaited for these tickets: the rule without acks after sync. Asked
  /// before `committed`, so that the hot path makes no coroutine frame.
  [[nodiscard]] static bool is_committed(std::span<const Ticket> tickets);
  /// Returns when every ticket is committed or lost, at the deadline, or when the connection ends.
  Task<void> committed(Context& context, std::span<const Ticket> tickets, Time deadline);
  /// NONE; KAFKA_STORAGE_ERROR where the records were lost; REQUEST_TIMED_OUT where they may still
  /// commit.
  [[nodiscard]] static ErrorCode outcome(const Ticket& ticket);
  /// Parks on `wait` until it is woken, the deadline, or the connection's end.
  Task<void> park(Context& context, FetchWait& wait, Time deadline);
  /// The same for an event of the caller's, which outlives the task.
  Task<void> park(Context& context, Event& event, Time deadline);
  /// Brings cold bytes into memory on a helper thread; then ask again.
  Task<Result<void>> load(Context& context, log::Miss miss);
  /// Runs `work` on a helper thread (it may block) and resumes here.
  Task<void> on_helper(Context& context, std::move_only_function<void()> work);

  /// Syncs everything that was written to reserved channels, together with all who ask meanwhile;
  /// nothing to wait for unless the whole broker acknowledges after sync
  /// (log.flush.interval.messages=1), or `also`.
  Task<Result<void>> reserved_synced(Context& context, bool also = false);
  [[nodiscard]] bool acks_after_sync() const noexcept;  // of the whole broker

  /// The appends of one request: what Partition::append does, plus the bookkeeping of syncs and
  /// checkpoints. Those that are acknowledged after a sync begin one together, at the end.
  class Together {
   public:
    explicit Together(Broker& broker) : broker_(broker) {}
    ~Together();
    Together(const Together&) = delete;
    Together& operator=(const Together&) = delete;
    Result<log::AppendResult> append(const std::shared_ptr<Partition>& partition,
                                     records::CheckedBatch& batch,
                                     const log::AppendTerms& terms = {});
    /// The end of a transaction. Written also while a full disk refuses records: it is small, and
    /// readers wait for it. Meeting a full disk it gives the reserve up and is to be tried again.
    Result<log::AppendResult> append_marker(const std::shared_ptr<Partition>& partition,
                                            const log::EndMarker& marker);

   private:
    void follow(const std::shared_ptr<Partition>& partition,
                const Result<log::AppendResult>& appended, const AppendNews& news);

    Broker& broker_;
    std::vector<std::shared_ptr<Partition>> staged_;
  };

  // The catalog: one change at a time, stored and synced before it is seen or answered.
  Task<std::vector<coordinator::CatalogReply>> change_catalog(
      Context& context, std::vector<coordinator::CatalogCommand> commands);
  /// What is set while running, one command a resource (`running` is filled in here): stored and
  /// synced, then in force, then answered.
  Task<std::vector<Result<void>>> change_configs(Context& context,
                                                 std::vector<coordinator::AlterConfigs> commands);
  /// Calls `listener` at once and after every change of the broker's configs, from one thread at a
  /// time that may block.
  void on_config_change(std::function<void(const coordinator::BrokerConfig&)> listener);
  /// A fresh producer id with epoch 0 (idempotent producers, no transactional id).
  Task<Result<ProducerIdentity>> new_producer_id(Context& context);

  [[nodiscard]] FetchSessions& fetch_sessions() noexcept;
  [[nodiscard]] Groups& groups() noexcept;
  [[nodiscard]] Transactions& transactions() noexcept;

  /// I/O threads that may park requests; before the first request.
  void attach(IoThread& io);
  /// First half of a stop: answers what is parked with what is there and lets nothing park any
  /// more. The I/O threads go on, so that the answers leave.
  void release_parked();
  /// Second half, once no request can come any more (connections closed or I/O threads stopped):
  /// checkpoints all partitions and closes the stores. Blocks up to `deadline`.
  Result<void> stop(Deadline deadline);
  /// Makes `directory` a copy of everything the broker keeps, while it goes on; see snapshot.hpp.
  /// Blocks: a thread of its own.
  Result<SnapshotReport> snapshot(const std::string& directory,
                                  const std::function<bool()>& cancelled);
  /// Periodic work (checkpoints, syncs in the background, groups, retention, compaction, the
  /// reserve for a full disk, producer expiry); posted to helpers. Called every second from one I/O
  /// thread.
  void tick();

  // log::CommitSink, from flusher and engine threads
  void committed(std::span<const log::Progress> progress) noexcept override;
  void lost(std::span<const log::Loss> losses) noexcept override;

 private:
  struct State;
  explicit Broker(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kanal::broker
