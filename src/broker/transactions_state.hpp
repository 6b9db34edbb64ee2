// What Transactions is made of: the table, the store, the ends under way, the clockwork of
// deadlines. transactions.cpp has what requests do, transaction_ends.cpp how ends are carried out,
// transactions_background.cpp what runs beside them. Locks: an id's (rank 1); the table's shards
// and mutex are leaves.
#pragma once

#include "deadlines.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/broker/transactions.hpp"
#include "stalls.hpp"
#include "transaction_markers.hpp"
#include "transaction_table.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace kanal::broker {

struct Transactions::State {
  explicit State(Stage given);

  using What = decltype(coordinator::TransactionCommand::what);
  using Reply = coordinator::TransactionReply;

  // Requests
  /// How a step went: a reply, or neither: parked, or it needs a fresh producer id first.
  struct Stepped {
    std::optional<Reply> reply;
    bool needs_producer_id = false;
    TransactionSlotPtr slot;                       // where it is parked
    std::optional<coordinator::WriteMarkers> end;  // to be carried out
  };
  enum class IfUnknown { kMake, kAskOnly };
  /// Steps the id. kAskOnly: an id that is not known is asked, not made.
  Stepped submit(std::string_view id, coordinator::TransactionCommand command, IfUnknown if_unknown,
                 const std::shared_ptr<TransactionWaiter>& waiter = nullptr);
  [[nodiscard]] coordinator::TransactionCommand command(What what) const;
  [[nodiscard]] static Reply refusal(ErrorCode error);
  /// submit() with a producer id where one is needed, and the wait for what it parks.
  Task<Reply> ask(Context& context, std::string_view id, What what, IfUnknown if_unknown);

  /// What a step leaves to be done without the id's lock.
  struct Aftermath {
    std::shared_ptr<TransactionWaiter> woken;
    std::optional<coordinator::WriteMarkers> end;
    bool arm = false;
    bool vacant = false;
    bool failed = false;
  };
  /// Under the lock of a usable id.
  std::optional<Reply> step(TransactionSlot& slot, LiveTransaction& live,
                            coordinator::TransactionCommand& command, Aftermath& after);
  /// The same, and parks the asker if there is no reply yet.
  std::optional<Reply> step_asked(TransactionSlot& slot, LiveTransaction& live,
                                  coordinator::TransactionCommand& command,
                                  const std::shared_ptr<TransactionWaiter>& waiter,
                                  Aftermath& after);
  void fail(TransactionSlot& slot, LiveTransaction& live, const Error& why, Aftermath& after);
  void settle(LiveTransaction& live, Aftermath& after);
  /// All but the end.
  void finish(const TransactionSlotPtr& slot, Aftermath& after);
  /// Steps a command of the broker's own, if the id is usable.
  void step_own(const TransactionSlotPtr& slot, What what);

  // Writing
  struct Checked {
    std::span<const coordinator::TransactionPartition> partitions;
    std::span<ErrorCode> errors;
  };
  /// Under the lock: verifies each, and adds what a writer of version 2 has not added.
  void check_writer(TransactionSlot& slot, LiveTransaction& live, const TransactionWriter& writer,
                    const Checked& checked, Aftermath& after);
  ErrorCode step_add(TransactionSlot& slot, LiveTransaction& live,
                     coordinator::AddToTransactionCommand add, Aftermath& after);
  /// `use` runs under the lock of a usable id; else its error is returned.
  template <class Use>
  ErrorCode with_usable(std::string_view id, Use&& use);

  // The gate that an end passes before it is decided
  /// Null if it is open, and then leave() has to follow; else what to wait for.
  std::shared_ptr<Event> enter(IoThread& io);
  void leave();
  /// One that has entered.
  class Deciding {
   public:
    explicit Deciding(State& state) : state_(&state) {}
    ~Deciding() { state_->leave(); }
    Deciding(const Deciding&) = delete;
    Deciding& operator=(const Deciding&) = delete;

   private:
    State* state_;
  };
  Result<void> close_gate(const std::function<bool()>& cancelled);
  void open_gate();

  // Ends
  struct End;  // under way
  using EndPtr = std::shared_ptr<End>;
  /// Carries out an end: here, if this is the thread of `io`, as far as nothing has to be waited
  /// for; else on the id's home thread.
  void begin_end(const TransactionSlotPtr& slot, coordinator::WriteMarkers markers, IoThread* io);
  void keep(const EndPtr& end);
  void drop(const EndPtr& end);
  std::move_only_function<void()> resumption(const EndPtr& end);
  void resume_later(const EndPtr& end);
  void advance(const EndPtr& end);
  /// Whether the decision is where it has to be before the first marker; else it waits for that.
  bool decide(const EndPtr& end);
  /// Whether nothing of the round is pending any more; else it waits for that.
  bool commit(const EndPtr& end);
  void complete(const EndPtr& end);
  /// Those from before there were threads.
  void take_up_ends();

  // Deadlines
  void pass_time(const TransactionSlotPtr& slot);  // on its home thread

  // Background
  Result<void> load(TransactionsReport& report);
  /// Markers of what was prepared when the broker ended; blocks.
  Result<void> finish_prepared(const TransactionSlotPtr& slot, TransactionsReport& report);
  Result<void> finish_end(const TransactionSlotPtr& slot, coordinator::WriteMarkers markers);
  struct Known;   // of a producer id, by the ids
  struct Behind;  // what the logs know and the ids don't
  Result<void> reconcile(TransactionsReport& report);
  void compare(const Topic& topic, const std::shared_ptr<Partition>& partition,
               Behind& behind) const;
  void abort_orphans(const Behind& behind);
  Result<void> replace_producer_id(const TransactionSlotPtr& slot);
  void post_rebuild();
  void rebuild_failed();
  bool rebuild(const TransactionSlotPtr& slot);
  void expire(std::size_t shard);

  Stage stage;
  coordinator::TransactionSettings settings;
  TransactionTable table;
  Stalls& stalls;
  std::atomic<bool> stopped = false;
  std::atomic<Time> last_expiry;
  std::atomic<Time> last_failure_logged;
  Deadlines<TransactionSlot> deadlines;

  std::mutex mutex;
  std::condition_variable quiet;  // fewer are deciding, under way or failed
  std::size_t deciding = 0;
  bool paused = false;
  std::vector<std::shared_ptr<Event>> at_gate;
  std::unordered_map<End*, EndPtr> ends;   // under way
  std::vector<TransactionSlotPtr> failed;  // wait for being read anew
  bool rebuilding = false;                 // a task for them is posted or runs
};

}  // namespace kanal::broker
