// For tests of the group machine: a group with its records kept, as a driver without a disk would
// keep them, a clock to move by hand, and requests in one line.
#pragma once

#include "kanal/coordinator/group.hpp"
#include "kanal/wire/stored.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace kanal::coordinator {

using std::chrono::milliseconds;
using std::chrono::seconds;

inline Uuid topic_uuid(std::uint8_t number) {
  Uuid id;
  id.bytes[15] = number;
  return id;
}

/// What a consumer of these topics sends as metadata (version 0 of the subscription).
inline std::string subscription(const std::vector<std::string>& topics) {
  std::string bytes("\0\0\0\0\0", 5);
  bytes += static_cast<char>(topics.size());
  for (const std::string& topic : topics) {
    bytes += std::string("\0", 1) + static_cast<char>(topic.size()) + topic;
  }
  return bytes + std::string("\xff\xff\xff\xff", 4);
}

struct TestProtocol {
  std::string name, metadata;
};
struct JoinArgs {
  std::string member = "";
  std::string instance = "";
  std::vector<TestProtocol> protocols = {{"range", subscription({"orders"})}};
  std::string type = "consumer";
  milliseconds session{10'000}, rebalance{60'000};
  std::string client = "app";
  int version = 9;
};
struct MemberArgs {
  std::string member;
  std::int32_t generation = 1;
  std::string instance = "";
};

inline std::optional<std::string_view> optional_text(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return text;
}
inline Buffer buffer(std::string_view text) {
  const Bytes bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

struct OffsetArgs {
  std::string_view topic = "orders";
  std::int32_t partition = 0;
  std::int64_t offset = 1;
  std::string_view metadata = "";
  std::uint8_t topic_id = 1;
};
inline OffsetToCommit to_commit(const OffsetArgs& args) {
  OffsetToCommit offset;
  offset.topic = args.topic;
  offset.topic_id = topic_uuid(args.topic_id);
  offset.partition = PartitionIndex(args.partition);
  offset.offset = Offset(args.offset);
  offset.metadata = args.metadata;
  return offset;
}

struct ProducerArgs {
  std::int64_t id = 1;
  std::int16_t epoch = 0;
};

class LiveGroup {
 public:
  explicit LiveGroup(GroupLimits limits = {}, std::string id = "g")
      : limits_(limits), group_(std::move(id), limits_) {}
  LiveGroup(const LiveGroup&) = delete;
  LiveGroup& operator=(const LiveGroup&) = delete;
  virtual ~LiveGroup() = default;

  WaiterId join(const JoinArgs& args) {
    wire::JoinGroupRequest request;
    request.group_id = group_.id();
    request.session_timeout = args.session;
    if (args.version > 0) request.rebalance_timeout = args.rebalance;
    request.member_id = args.member;
    request.group_instance_id = optional_text(args.instance);
    request.protocol_type = args.type;
    for (const TestProtocol& each : args.protocols) {
      auto& protocol = request.protocols.emplace_back();
      protocol.name = each.name;
      protocol.metadata = as_bytes(each.metadata);
    }
    JoinCommand command;
    command.request = &request;
    command.client_id = args.client;
    command.client_host = "/127.0.0.1";
    command.fresh.bytes[0] = static_cast<std::uint8_t>(++fresh_ >> 16U);
    command.fresh.bytes[1] = static_cast<std::uint8_t>(fresh_ >> 8U);
    command.fresh.bytes[2] = static_cast<std::uint8_t>(fresh_);
    command.needs_member_id = args.version >= 4;
    command.knows_skip_assignment = args.version >= 9;
    return run(command);
  }
  WaiterId sync(const MemberArgs& args, const std::map<std::string, std::string>& assignments = {},
                const std::string& type = "", const std::string& protocol = "") {
    wire::SyncGroupRequest request;
    request.group_id = group_.id();
    request.generation_id = args.generation;
    request.member_id = args.member;
    request.group_instance_id = optional_text(args.instance);
    request.protocol_type = optional_text(type);
    request.protocol_name = optional_text(protocol);
    for (const auto& [member, bytes] : assignments) {
      auto& assignment = request.assignments.emplace_back();
      assignment.member_id = member;
      assignment.assignment = as_bytes(bytes);
    }
    return run(SyncCommand{&request});
  }
  ErrorCode heartbeat(const MemberArgs& args) {
    wire::HeartbeatRequest request;
    request.group_id = group_.id();
    request.generation_id = args.generation;
    request.member_id = args.member;
    request.group_instance_id = optional_text(args.instance);
    return answer<ErrorCode>(run(HeartbeatCommand{&request}));
  }
  wire::LeaveGroupResponse leave(const std::vector<MemberArgs>& members) {
    wire::LeaveGroupRequest request;
    request.group_id = group_.id();
    for (const MemberArgs& each : members) {
      auto& member = request.members.emplace_back();
      member.member_id = each.member;
      member.group_instance_id = optional_text(each.instance);
    }
    return answer<wire::LeaveGroupResponse>(run(LeaveCommand{&request}));
  }
  ErrorCode leave(const std::string& member, const std::string& instance = "") {
    return leave({{.member = member, .instance = instance}}).members.at(0).error_code;
  }
  std::vector<ErrorCode> commit(CommitCommand command) {
    return answer<PartitionErrors>(run(std::move(command))).partitions;
  }
  ErrorCode commit(const MemberArgs& args, std::int64_t offset = 1,
                   const std::string& topic = "orders", std::int32_t partition = 0) {
    CommitCommand command;
    command.generation = args.generation;
    command.member_id = args.member;
    command.instance_id = optional_text(args.instance);
    command.offsets.push_back(
        to_commit({.topic = topic, .partition = partition, .offset = offset}));
    return commit(std::move(command)).at(0);
  }
  /// As a tool does, without being a member.
  ErrorCode commit_outside(std::int64_t offset, const std::string& topic = "orders",
                           std::int32_t partition = 0) {
    return commit({.member = "", .generation = -1}, offset, topic, partition);
  }
  /// Inside of a transaction. Without a member, as below v3, if none is given.
  std::vector<ErrorCode> commit_pending(const ProducerArgs& producer,
                                        const std::vector<OffsetArgs>& offsets,
                                        const MemberArgs& member = {.member = "", .generation = -1},
                                        int version = 5) {
    TxnCommitCommand command;
    command.producer_id = ProducerId(producer.id);
    command.producer_epoch = ProducerEpoch(producer.epoch);
    command.generation = member.generation;
    command.member_id = member.member;
    command.instance_id = optional_text(member.instance);
    command.knows_group_id_not_found = version >= 6;
    for (const OffsetArgs& offset : offsets) command.offsets.push_back(to_commit(offset));
    return answer<PartitionErrors>(run(std::move(command))).partitions;
  }
  ErrorCode pend(const ProducerArgs& producer, const OffsetArgs& offset) {
    return commit_pending(producer, std::vector{offset}).at(0);
  }
  ErrorCode end_transaction(const ProducerArgs& producer, bool commit) {
    const EndOffsetsCommand command{.producer_id = ProducerId(producer.id),
                                    .producer_epoch = ProducerEpoch(producer.epoch),
                                    .commit = commit};
    return answer<ErrorCode>(run(command));
  }
  PartitionErrors delete_offsets(
      const std::vector<std::pair<std::string, std::int32_t>>& partitions) {
    DeleteOffsetsCommand command;
    for (const auto& [topic, partition] : partitions) {
      command.partitions.emplace_back(topic, PartitionIndex(partition));
    }
    return answer<PartitionErrors>(run(std::move(command)));
  }
  ErrorCode delete_group() { return answer<ErrorCode>(run(DeleteGroupCommand{})); }
  void forget_topics(std::set<Uuid> ids) { run(ForgetTopicsCommand{std::move(ids)}); }
  void expire_offsets() { run(ExpireOffsetsCommand{}); }

  /// Moves the clock; everything that falls due in between happens at its time.
  void pass(milliseconds time) {
    const Time until = now_ + time;
    while (group_.next_deadline() && *group_.next_deadline() <= until) {
      advance_to(std::max(now_, *group_.next_deadline()));
      run(PassTime{});
    }
    advance_to(until);
  }
  /// Time passes until the request is answered.
  void await(WaiterId waiter) {
    while (parked(waiter)) pass(std::chrono::ceil<milliseconds>(*group_.next_deadline() - now_));
  }
  /// Only the clock, as if the driver were late.
  void skip(milliseconds time) { advance_to(now_ + time); }

  template <class Answer>
  const Answer& answer(WaiterId waiter) {
    const auto found = answers_.find(waiter);
    if (found == answers_.end()) throw std::runtime_error("not answered yet");
    return std::get<Answer>(found->second);
  }
  const wire::JoinGroupResponse& joined(WaiterId waiter) {
    return answer<wire::JoinGroupResponse>(waiter);
  }
  const wire::SyncGroupResponse& synced(WaiterId waiter) {
    return answer<wire::SyncGroupResponse>(waiter);
  }
  [[nodiscard]] bool parked(WaiterId waiter) const { return !answers_.contains(waiter); }

  /// Joins a new dynamic member: asks for an id and comes back with it. The second request.
  std::pair<std::string, WaiterId> enter(JoinArgs args = {}) {
    if (args.version >= 4 && args.instance.empty()) {
      args.member = joined(join(args)).member_id;
      return {args.member, join(args)};
    }
    return {"", join(args)};
  }
  /// One member that has just become the only one of a stable group.
  std::string stable_alone(const JoinArgs& args = {}, const std::string& assignment = "all") {
    const WaiterId waiter = enter(args).second;
    pass(limits_.initial_rebalance_delay);
    const wire::JoinGroupResponse answer = joined(waiter);
    EXPECT_EQ(answer.error_code, ErrorCode::NONE);
    sync({.member = answer.member_id, .generation = answer.generation_id},
         {{answer.member_id, assignment}});
    EXPECT_EQ(group_.state(), GroupState::kStable);
    return answer.member_id;
  }
  /// `count` members of a stable group, the leader first.
  std::vector<std::string> stable(int count, const JoinArgs& args = {}) {
    std::vector<WaiterId> waiters;
    for (int i = 0; i < count; ++i) {
      JoinArgs each = args;
      if (!each.instance.empty()) each.instance += std::to_string(i);
      waiters.push_back(enter(each).second);
    }
    await(waiters.at(0));
    std::string leader = joined(waiters.at(0)).leader;
    std::vector<std::string> members{leader};
    std::map<std::string, std::string> assignments;
    for (const WaiterId waiter : waiters) {
      const std::string id = joined(waiter).member_id;
      if (id != leader) members.push_back(id);
      assignments[id] = "of " + id;
    }
    const std::int32_t generation = joined(waiters.at(0)).generation_id;
    for (const std::string& member : members) {
      sync({.member = member, .generation = generation}, assignments);
    }
    EXPECT_EQ(group_.state(), GroupState::kStable);
    return members;
  }

  /// A machine made from the records alone, as after kill -9.
  [[nodiscard]] std::unique_ptr<LiveGroup> restarted() const { return from(stored_); }
  [[nodiscard]] std::unique_ptr<LiveGroup> from(const std::vector<Buffer>& records) const {
    auto other = std::make_unique<LiveGroup>(limits_, group_.id());
    for (const Buffer& body : records) {
      EXPECT_TRUE(other->group_.apply({group_.id(), body}));
    }
    other->stored_ = records;
    other->now_ = now_;
    other->wall_ = wall_;
    other->fresh_ = fresh_ + 1'000;
    other->group_.loaded(now_);
    return other;
  }

  std::size_t max_bytes = GroupCommand{}.max_bytes;  // of the steps to come

  Group& group() { return group_; }
  [[nodiscard]] const Group& group() const { return group_; }
  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] Timestamp wall() const { return wall_; }
  std::vector<Buffer>& stored() { return stored_; }
  [[nodiscard]] const Group::Effects& effects() const { return effects_; }

 private:
  template <class What>
  WaiterId run(What what) {
    GroupCommand command{
        .waiter = ++waiter_, .wall = wall_, .what = std::move(what), .max_bytes = max_bytes};
    effects_ = group_.step(now_, command);
    for (const Record& record : effects_.records) {
      EXPECT_EQ(record.key, group_.id());
      if (record.ends_channel()) {
        stored_.clear();
      } else {
        stored_.push_back(record.body);
      }
      EXPECT_TRUE(group_.apply(record));
    }
    for (const GroupReply& reply : effects_.replies) {
      EXPECT_TRUE(answers_.emplace(reply.waiter, reply.answer).second) << "one reply a request";
    }
    return waiter_;
  }
  void advance_to(Time time) {
    wall_ = wall_ + std::chrono::duration_cast<milliseconds>(time - now_).count();
    now_ = time;
  }

  GroupLimits limits_;
  Group group_;
  Group::Effects effects_;
  std::vector<Buffer> stored_;
  using Answer = decltype(GroupReply::answer);
  std::map<WaiterId, Answer> answers_;
  WaiterId waiter_ = 0;
  std::uint32_t fresh_ = 0;
  Time now_{seconds{1'000}};
  Timestamp wall_{1'700'000'000'000};
};

inline GroupLimits without_delay() {
  GroupLimits limits;
  limits.initial_rebalance_delay = milliseconds{0};
  return limits;
}

}  // namespace kanal::coordinator
