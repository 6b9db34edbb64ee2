// The group machine: one consumer group of the classic protocol (JoinGroup … LeaveGroup, KIP-62,
// KIP-345, KIP-394, KIP-429, KIP-800) with its committed offsets. Channel _KAFKA_OFFSETS_.{group};
// the answers and the order of the checks are Kafka 4.4's; what is left to the handler is said at
// the commands. Offsets of open transactions are pending (KIP-98, KIP-447). One object a group,
// used under that group's lock (rank 2) by whatever thread the driver is on. `now` is group time:
// it stands still while the broker is stalled, so that a stall expires nobody. JoinGroup and
// SyncGroup may be parked: their reply comes out of a later step. The driver asks next_deadline()
// after each step and sends PassTime once it has passed (at once if it has), so a heartbeat costs
// no timer. The states, and what each request gets: docs/groups.md.
#pragma once

#include "kanal/base/ids.hpp"
#include "kanal/coordinator/machine.hpp"
#include "kanal/wire/messages/describe_groups.hpp"
#include "kanal/wire/messages/heartbeat.hpp"
#include "kanal/wire/messages/join_group.hpp"
#include "kanal/wire/messages/leave_group.hpp"
#include "kanal/wire/messages/sync_group.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kanal::coordinator {

/// Broker configs of groups that are fixed while the broker runs (as in Kafka).
struct GroupLimits {
  std::chrono::milliseconds min_session_timeout{6'000};
  std::chrono::milliseconds max_session_timeout{1'800'000};
  std::chrono::milliseconds initial_rebalance_delay{3'000};
  std::int32_t max_size = 2'147'483'647;
  std::int32_t offset_metadata_max_bytes = 4'096;
  std::int64_t offsets_retention_ms = 604'800'000;
};

struct JoinCommand {
  /// A rebalance timeout below 0 (v0 has none) is the session timeout.
  const wire::JoinGroupRequest* request = nullptr;
  std::string_view client_id, client_host;  // host as Kafka shows it: "/127.0.0.1"
  Uuid fresh;                               // for a new member id
  bool needs_member_id = true;              // v4 and later (KIP-394)
  bool knows_skip_assignment = true;        // v9 and later
};
struct SyncCommand {
  /// The handler refuses v5 and later without protocol type and name (INCONSISTENT_GROUP_PROTOCOL).
  const wire::SyncGroupRequest* request = nullptr;
};
struct HeartbeatCommand {
  const wire::HeartbeatRequest* request = nullptr;
};
struct LeaveCommand {
  /// Below v3 the handler fills `members` with the one, and lifts its error to the top level.
  const wire::LeaveGroupRequest* request = nullptr;
};

struct OffsetToCommit {
  std::string_view topic;
  Uuid topic_id;  // of the catalog; a topic made again has another
  PartitionIndex partition;
  Offset offset;
  LeaderEpoch leader_epoch{-1};
  std::string_view metadata;
};
struct CommitCommand {
  std::int32_t generation = -1;
  std::string_view member_id;
  std::optional<std::string_view> instance_id;
  bool knows_group_id_not_found = false;     // v9 and later; else ILLEGAL_GENERATION
  std::optional<std::int64_t> retention_ms;  // v2-4, if not -1: expires at wall + retention_ms
  std::vector<OffsetToCommit> offsets;       // topics exist: checked by the handler
};
/// TxnOffsetCommit: nobody sees the offsets before the transaction ends (EndOffsetsCommand). That
/// it is open, and who may write in it, is the caller's to know.
struct TxnCommitCommand {
  ProducerId producer_id;
  ProducerEpoch producer_epoch;
  std::int32_t generation = -1;  // v3 and later (KIP-447), as the next two
  std::string_view member_id;
  std::optional<std::string_view> instance_id;
  bool knows_group_id_not_found = false;  // v6 and later; else ILLEGAL_GENERATION
  std::vector<OffsetToCommit> offsets;    // topics exist: checked by the handler
};
/// The end of a producer's transaction up to that epoch: what it has pending becomes visible at
/// once, or goes. Nothing if it has none, so it may be repeated.
struct EndOffsetsCommand {
  ProducerId producer_id;
  ProducerEpoch producer_epoch;
  bool commit = false;
};
struct DeleteOffsetsCommand {  // OffsetDelete
  std::vector<std::pair<std::string_view, PartitionIndex>> partitions;
};
struct DeleteGroupCommand {};
struct ForgetTopicsCommand {  // the topics were deleted
  std::set<Uuid> topic_ids;
};
struct ExpireOffsetsCommand {};  // Kafka's cleanup round; ends a group that nothing is left of

struct GroupCommand {
  WaiterId waiter = 0;            // not used by the last three, which get no reply of their own
  Timestamp wall = kNoTimestamp;  // commit timestamps, and since when the group is empty
  std::variant<JoinCommand, SyncCommand, HeartbeatCommand, LeaveCommand, CommitCommand,
               TxnCommitCommand, EndOffsetsCommand, DeleteOffsetsCommand, DeleteGroupCommand,
               ForgetTopicsCommand, ExpireOffsetsCommand, PassTime>
      what;
  /// Of the records of one step: message.max.bytes as it stands. What would be larger is not stored
  /// and answered UNKNOWN_SERVER_ERROR; a group without members, and what removes, always fits.
  std::size_t max_bytes = 1'048'588;
};

/// CommitCommand, TxnCommitCommand, DeleteOffsetsCommand: one error for each partition, in the
/// command's order.
struct PartitionErrors {
  ErrorCode group = ErrorCode::NONE;  // OffsetDelete: the answer's top level error
  std::vector<ErrorCode> partitions;
};
struct GroupReply {
  WaiterId waiter = 0;
  std::variant<ErrorCode, wire::JoinGroupResponse, wire::SyncGroupResponse,
               wire::LeaveGroupResponse, PartitionErrors>
      answer;  // ErrorCode: Heartbeat, DeleteGroup, EndOffsets
};

enum class GroupState : std::uint8_t {
  kEmpty,
  kPreparingRebalance,
  kCompletingRebalance,
  kStable,
  kDead,
};
/// "Empty", "PreparingRebalance", …: as ListGroups and DescribeGroups spell them.
[[nodiscard]] std::string_view to_string(GroupState state) noexcept;

struct CommittedOffset {
  Uuid topic_id;
  Offset offset;
  LeaderEpoch leader_epoch{-1};
  std::string metadata;
  Timestamp committed = kNoTimestamp;
  std::optional<Timestamp> expires;
};

class Group {
 public:
  using Command = GroupCommand;
  using Effects = coordinator::Effects<GroupReply, NoAction>;
  static constexpr bool kSynced = false;  // as Kafka: written, not synced

  Group(std::string id, const GroupLimits& limits);  // the limits outlive it
  ~Group();
  Group(Group&&) noexcept;
  Group& operator=(Group&&) noexcept;

  [[nodiscard]] Effects step(Time now, const GroupCommand& command);
  Result<void> apply(const Record& record);
  /// After the replay, before the first step: members get a whole session timeout from `now` on (as
  /// after a failover). Not needed for a group without records.
  void loaded(Time now);
  [[nodiscard]] std::vector<Buffer> snapshot(std::string_view group) const;
  [[nodiscard]] std::uint64_t live_records() const noexcept;

  /// When PassTime is due at the latest; a lower bound, cheap to ask. Nothing: nobody waits.
  [[nodiscard]] std::optional<Time> next_deadline() const noexcept;
  /// The same, exact: corrects what next_deadline() says. Looks at every member.
  std::optional<Time> tighten_deadline() noexcept;
  /// The group does not exist (nothing stored, nobody here): the driver drops the object.
  [[nodiscard]] bool vacant() const noexcept;

  [[nodiscard]] const std::string& id() const noexcept;
  [[nodiscard]] GroupState state() const noexcept;  // kDead if the group does not exist
  /// Empty for a group that only holds offsets.
  [[nodiscard]] std::string_view protocol_type() const noexcept;
  /// All but authorized operations.
  [[nodiscard]] wire::DescribeGroupsResponse::Group describe() const;

  /// Null if nothing is committed, or only for an earlier topic of that name (a zero id: any).
  [[nodiscard]] const CommittedOffset* committed(std::string_view topic, const Uuid& topic_id,
                                                 PartitionIndex partition) const noexcept;
  /// In order of topic and partition.
  using OffsetVisitor =
      std::function<void(std::string_view topic, PartitionIndex, const CommittedOffset&)>;
  void for_each_offset(const OffsetVisitor& visit) const;
  /// Whether an open transaction has an offset for the partition (a zero id: for any topic of that
  /// name). RequireStable (KIP-447) then gets no offset.
  [[nodiscard]] bool has_pending(std::string_view topic, const Uuid& topic_id,
                                 PartitionIndex partition) const noexcept;
  /// In order of producer, topic and partition.
  struct Pending {
    ProducerId producer_id;
    ProducerEpoch producer_epoch;
    std::string_view topic;
    PartitionIndex partition;
    const CommittedOffset& offset;
  };
  void for_each_pending(const std::function<void(const Pending&)>& visit) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};
static_assert(Machine<Group>);

}  // namespace kanal::coordinator
