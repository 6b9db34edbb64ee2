// What Groups is made of: the table, the store, the clockwork of deadlines, the background sweeps.
// groups.cpp has what requests do, groups_background.cpp what runs beside them. Locks: a group's
// (rank 2); the table's shards and mutex_ are leaves.
#pragma once

#include "deadlines.hpp"
#include "group_table.hpp"
#include "kanal/broker/groups.hpp"
#include "kanal/broker/topics.hpp"
#include "stalls.hpp"

#include <atomic>
#include <deque>
#include <mutex>
#include <vector>

namespace kanal::broker {

struct Groups::State {
  explicit State(Stage given);

  // Requests
  /// How a step went: an answer, or an error of the group as a whole, or neither: parked.
  struct Stepped {
    std::optional<GroupAnswer> answer;
    ErrorCode error = ErrorCode::NONE;
    GroupSlotPtr slot;  // where it is parked, and under which number
    coordinator::WaiterId waiter = 0;
  };
  using What = decltype(coordinator::GroupCommand::what);
  [[nodiscard]] coordinator::GroupCommand command(What what) const;
  enum class IfUnknown { kMake, kAskOnly };
  /// Steps the group of that name. kAskOnly: a group that does not exist is asked, not made.
  Stepped submit(std::string_view group, What what, IfUnknown if_unknown,
                 const std::shared_ptr<GroupWaiter>& waiter = nullptr);
  /// CommitCommand or TxnCommitCommand.
  template <class Command>
  coordinator::PartitionErrors commit(std::string_view group, Command command);
  /// Waits for a parked reply; nothing if the connection ended or the group failed.
  Task<std::optional<GroupAnswer>> wait(Context& context, Stepped stepped,
                                        std::shared_ptr<GroupWaiter> waiter);

  /// What a step leaves to be done without the group's lock.
  struct Aftermath {
    std::vector<std::shared_ptr<GroupWaiter>> woken;
    bool arm = false;
    bool vacant = false;
    bool failed = false;
    bool list = false;     // as failed, for mend()
    bool rebuild = false;  // at once
  };
  /// Under the group's lock, of a usable group.
  std::optional<GroupAnswer> step(GroupSlot& slot, LiveGroup& live,
                                  coordinator::GroupCommand& command, Aftermath& after);
  void fail(GroupSlot& slot, LiveGroup& live, const Error& why, Aftermath& after);
  void settle(LiveGroup& live, Aftermath& after);
  void finish(const GroupSlotPtr& slot, Aftermath& after);
  /// Steps a command of the broker's own, if the group is usable.
  void step_own(const GroupSlotPtr& slot, What what);

  // Deadlines
  [[nodiscard]] std::optional<Time> exact_deadline(LiveGroup& live) const;
  void pass_time(const GroupSlotPtr& slot);

  // Background
  Result<void> load(GroupsReport& report);
  void finish_load(const GroupSlotPtr& slot, GroupsReport& report);
  /// Reads a failed group, marked as `rebuilding`, anew from its channel. If it fails,
  /// may_rebuild() says no for a while.
  void rebuild(const GroupSlotPtr& slot);
  [[nodiscard]] bool may_rebuild() const;
  void post_mend();
  /// Reads anew what failed, in turn, up to the first that cannot be read: that one comes last the
  /// next time, so it does not keep the others.
  void mend();
  /// Whether the group need not stay in the list.
  bool mend(const GroupSlotPtr& slot);
  /// Forgets offsets whose topics are not there any more.
  void forget_missing_topics(const GroupSlotPtr& slot);
  struct Sweep {
    std::function<void(const GroupSlotPtr&)> each;
    std::function<void()> done;  // may be empty; not called if the broker stops meanwhile
  };
  /// All groups, shard by shard, each shard a task of its own on the helper threads.
  void sweep(const Sweep& task, std::size_t shard = 0);
  /// Takes the offsets of deleted topics out of all groups, until nothing was deleted meanwhile.
  void forget();

  Stage stage;
  coordinator::GroupLimits limits;
  GroupTable table;
  Stalls& stalls;
  std::atomic<bool> stopped = false;
  std::atomic<std::int32_t> max_bytes{1'048'588};  // of the records of a step
  std::atomic<Time> last_expiry;
  std::atomic<Time> last_failure_logged;
  std::atomic<Time> rebuild_after;  // by the clock: no attempt before, since one has failed
  Deadlines<GroupSlot> deadlines;

  std::mutex mutex;
  std::deque<GroupSlotPtr> failed;  // wait for being read anew; each once, see LiveGroup::listed
  bool mending = false;             // a task for them is posted or runs
  bool forgetting = false;          // a sweep for deleted topics runs
  bool forget_again = false;        // and one more has to follow
};

}  // namespace kanal::broker
