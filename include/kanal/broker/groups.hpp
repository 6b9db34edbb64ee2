// Consumer groups as handlers see them. Each is a machine (coordinator/group.hpp) under its own
// lock (rank 2); it is made when somebody joins or commits and goes when nothing of it is left, so
// asking for an unknown group leaves nothing behind. A request is stepped, stored (written, not
// synced, as Kafka's) and answered on the caller's I/O thread; a join or sync may park until
// another request, or a deadline, completes it. A group whose channel cannot be written answers its
// parked requests with 15, is rebuilt from its channel and answers 14 meanwhile. Any thread; Tasks
// resume on the calling context's I/O thread. Deadlines stand still while the broker is stalled.
#pragma once

#include "kanal/base/executor.hpp"
#include "kanal/broker/context.hpp"
#include "kanal/coordinator/broker_config.hpp"
#include "kanal/coordinator/group.hpp"
#include "kanal/reserved/store.hpp"

#include <functional>
#include <memory>
#include <string_view>

namespace kanal::broker {

class Stalls;
class Topics;

/// How far a group is behind on one partition: the high watermark less the committed offset, never
/// below 0.
struct GroupLag {
  std::string_view group, topic;
  PartitionIndex partition;
  Offset committed;
  std::int64_t lag = 0;
};

struct GroupsReport {  // for the log line of the start
  std::size_t groups = 0;
};

class Groups {
 public:
  /// What they stand on; everything outlives them.
  struct Stage {
    reserved::Session& session;
    Executor& helpers;
    const Clock& clock;
    Stalls& stalls;  // ticked and attached by the broker
    std::shared_ptr<const coordinator::BrokerConfig> config;
    /// The topics of this moment.
    std::function<std::shared_ptr<const Topics>()> topics;
  };
  explicit Groups(Stage stage);
  ~Groups();

  // Members
  Task<wire::JoinGroupResponse> join(Context& context, coordinator::JoinCommand command);
  Task<wire::SyncGroupResponse> sync(Context& context, const wire::SyncGroupRequest& request);
  [[nodiscard]] ErrorCode heartbeat(const wire::HeartbeatRequest& request);
  [[nodiscard]] wire::LeaveGroupResponse leave(const wire::LeaveGroupRequest& request);

  // Offsets and groups. Each partition has an error of its own, also where `group` has one.
  [[nodiscard]] coordinator::PartitionErrors commit(std::string_view group,
                                                    coordinator::CommitCommand command);
  /// Inside of a transaction whose lock (rank 1) the caller holds, so that no end comes between.
  [[nodiscard]] coordinator::PartitionErrors commit_pending(std::string_view group,
                                                            coordinator::TxnCommitCommand command);
  /// The marker: all that the producer has pending in the group, of that epoch and earlier ones,
  /// becomes visible or goes. NONE also if there is nothing; else to be tried again later.
  [[nodiscard]] ErrorCode end_transaction(std::string_view group, ProducerId producer_id,
                                          ProducerEpoch epoch, bool commit);
  [[nodiscard]] coordinator::PartitionErrors delete_offsets(
      std::string_view group, coordinator::DeleteOffsetsCommand command);
  [[nodiscard]] ErrorCode remove(std::string_view group);

  // Reading. `visit` runs under the group's lock: it must be short and take no lock of rank 2 or
  // lower.
  using Visitor = std::function<void(const coordinator::Group& group)>;
  /// NONE if visited, else GROUP_ID_NOT_FOUND or COORDINATOR_LOAD_IN_PROGRESS.
  ErrorCode visit(std::string_view group, const Visitor& visit) const;
  /// All of them, in no order; groups that are made or dropped meanwhile may be missed.
  void for_each(const Visitor& visit) const;
  [[nodiscard]] std::size_t size() const;
  /// Every committed offset of a partition that exists, with its lag.
  void for_each_lag(const std::function<void(const GroupLag&)>& visit) const;

  // For the broker
  /// Replays every group and forgets offsets of topics that are gone. Blocks.
  Result<void> start(GroupsReport& report);
  /// I/O threads that may park and run deadlines; before the first request.
  void attach(IoThread& io);
  /// What may be stored at once from now on: message.max.bytes.
  void limit_records(std::int32_t bytes);
  /// Every second, from one I/O thread: stalls, expiry of offsets.
  void tick();
  /// Topics were deleted: their offsets go, on helper threads.
  void forget_deleted_topics();
  /// From now on everything is answered COORDINATOR_NOT_AVAILABLE. What is parked is released by
  /// Broker::release_parked.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kanal::broker
