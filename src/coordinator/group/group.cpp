#include "kanal/coordinator/group.hpp"

#include "kanal/base/check.hpp"
#include "membership.hpp"
#include "pending.hpp"
#include "records.hpp"
#include "refusals.hpp"
#include "stored_record.hpp"

namespace kanal::coordinator {
namespace {

// As Kafka counts: UTF-16 units.
std::size_t length_of(std::string_view text) {
  std::size_t units = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0U) != 0x80U) units += byte >= 0xF0U ? 2 : 1;
  }
  return units;
}

bool is_of(const Uuid& topic_id, const CommittedOffset& offset) {
  return topic_id.is_zero() || offset.topic_id == topic_id;
}

wire::LeaveGroupResponse nobody_left(const wire::LeaveGroupRequest& request) {
  wire::LeaveGroupResponse response;
  for (const auto& asked : request.members) {
    auto& answer = response.members.emplace_back();
    answer.member_id = asked.member_id;
    answer.group_instance_id = asked.group_instance_id;
    answer.error_code = ErrorCode::UNKNOWN_MEMBER_ID;
  }
  return response;
}

}  // namespace

// Most groups of a busy broker hold offsets and nothing else, so `membership` is made when needed.
struct Group::State {
  std::string id;
  const GroupLimits* limits;
  Buffer stored;                           // the GroupRecord that counts, as stored; empty: none
  Offsets offsets;                         // these three are changed by apply() alone
  PendingOffsets pending;                  // of open transactions
  std::unique_ptr<Membership> membership;  // null: no members since the start
  // A group goes on existing when its last offset goes, until the next round of expiry.
  bool exists = false;

  [[nodiscard]] GroupState state() const noexcept {
    if (!exists) return GroupState::kDead;
    return membership ? membership->state() : GroupState::kEmpty;
  }
  [[nodiscard]] bool stores_nothing() const noexcept {
    return stored.empty() && offsets.empty() && pending.empty();
  }

  void join(const Turn& turn, const JoinCommand& command);
  void sync(const Turn& turn, const wire::SyncGroupRequest& request);
  [[nodiscard]] ErrorCode heartbeat(Time now, const wire::HeartbeatRequest& request);
  void leave(const Turn& turn, const wire::LeaveGroupRequest& request);
  void commit(const Turn& turn, const CommitCommand& command);
  void commit(const Turn& turn, const TxnCommitCommand& command);
  template <class Encode>
  [[nodiscard]] bool put_offsets(const Turn& turn, const std::vector<OffsetToCommit>& offsets,
                                 ErrorCode error, const Encode& encode) const;
  [[nodiscard]] ErrorCode check_commit(Time now, const CommitCommand& command);
  [[nodiscard]] ErrorCode check_commit(const TxnCommitCommand& command);
  [[nodiscard]] ErrorCode check_without_members(std::int32_t generation,
                                                bool knows_group_id_not_found);
  [[nodiscard]] ErrorCode end_offsets(const Turn& turn, const EndOffsetsCommand& command) const;
  void delete_offsets(const Turn& turn, const DeleteOffsetsCommand& command);
  [[nodiscard]] ErrorCode check_delete_offsets() const;
  [[nodiscard]] ErrorCode delete_group(const Turn& turn);
  void forget_topics(const Turn& turn, const std::set<Uuid>& topic_ids);
  void expire_offsets(const Turn& turn);
  [[nodiscard]] bool may_expire() const;
  [[nodiscard]] bool expired(Timestamp wall, const CommittedOffset& offset) const;
  void end(const Turn& turn);
  /// Each once; of a zero topic id: whatever the partition has.
  using Removals = std::set<std::tuple<std::string_view, PartitionIndex, Uuid>>;
  void remove(const Turn& turn, const Removals& removals) const;
  [[nodiscard]] Result<void> apply(Bytes body);
  void apply(const wire::OffsetTombstoneRecord& tombstone);
  [[nodiscard]] Result<void> apply(wire::PendingOffsetRecord& record);
};

Group::Group(std::string id, const GroupLimits& limits)
    : state_(std::make_unique<State>(std::move(id), &limits)) {}
Group::~Group() = default;
Group::Group(Group&&) noexcept = default;
Group& Group::operator=(Group&&) noexcept = default;

Group::Effects Group::step(Time now, const GroupCommand& command) {
  Effects effects;
  State& state = *state_;
  const Turn turn{now, command.wall, command.waiter, command.max_bytes, state.id, effects};
  if (const auto* heartbeat = std::get_if<HeartbeatCommand>(&command.what)) {
    turn.reply(state.heartbeat(now, *heartbeat->request));
  } else if (const auto* commit = std::get_if<CommitCommand>(&command.what)) {
    state.commit(turn, *commit);
  } else if (const auto* pending = std::get_if<TxnCommitCommand>(&command.what)) {
    state.commit(turn, *pending);
  } else if (const auto* ended = std::get_if<EndOffsetsCommand>(&command.what)) {
    turn.reply(state.end_offsets(turn, *ended));
  } else if (const auto* join = std::get_if<JoinCommand>(&command.what)) {
    state.join(turn, *join);
  } else if (const auto* sync = std::get_if<SyncCommand>(&command.what)) {
    state.sync(turn, *sync->request);
  } else if (const auto* leave = std::get_if<LeaveCommand>(&command.what)) {
    state.leave(turn, *leave->request);
  } else if (const auto* offsets = std::get_if<DeleteOffsetsCommand>(&command.what)) {
    state.delete_offsets(turn, *offsets);
  } else if (std::holds_alternative<DeleteGroupCommand>(command.what)) {
    turn.reply(state.delete_group(turn));
  } else if (const auto* topics = std::get_if<ForgetTopicsCommand>(&command.what)) {
    state.forget_topics(turn, topics->topic_ids);
  } else if (std::holds_alternative<ExpireOffsetsCommand>(command.what)) {
    state.expire_offsets(turn);
  } else if (std::holds_alternative<PassTime>(command.what)) {
    if (state.membership) state.membership->pass_time(turn);
  }
  return effects;
}

void Group::State::join(const Turn& turn, const JoinCommand& command) {
  const wire::JoinGroupRequest& request = *command.request;
  if (id.empty()) {
    turn.reply(join_refusal(request.member_id, ErrorCode::INVALID_GROUP_ID));
    return;
  }
  if (request.session_timeout < limits->min_session_timeout ||
      request.session_timeout > limits->max_session_timeout) {
    turn.reply(join_refusal(request.member_id, ErrorCode::INVALID_SESSION_TIMEOUT));
    return;
  }
  const bool is_new = !exists;
  if (is_new && !request.member_id.empty()) {
    turn.reply(join_refusal(request.member_id, ErrorCode::UNKNOWN_MEMBER_ID));
    return;
  }
  exists = true;
  if (!membership) membership = std::make_unique<Membership>(*limits);
  membership->join(turn, command);
  if (!is_new || !turn.effects.records.empty()) return;
  // As in Kafka a group exists from the first JoinGroup on, whatever the answer.
  wire::GroupRecord record;
  record.written = turn.wall;
  turn.effects.records.push_back({id, encode_group(record)});
}

void Group::State::sync(const Turn& turn, const wire::SyncGroupRequest& request) {
  if (id.empty()) {
    turn.reply(sync_refusal(ErrorCode::INVALID_GROUP_ID));
  } else if (!membership) {
    turn.reply(sync_refusal(ErrorCode::UNKNOWN_MEMBER_ID));
  } else {
    membership->sync(turn, request);
  }
}

ErrorCode Group::State::heartbeat(Time now, const wire::HeartbeatRequest& request) {
  if (id.empty()) return ErrorCode::INVALID_GROUP_ID;
  if (!membership) return ErrorCode::UNKNOWN_MEMBER_ID;
  return membership->heartbeat(now, request);
}

void Group::State::leave(const Turn& turn, const wire::LeaveGroupRequest& request) {
  if (id.empty()) {
    wire::LeaveGroupResponse response;
    response.error_code = ErrorCode::INVALID_GROUP_ID;
    turn.reply(std::move(response));
  } else if (!membership) {
    turn.reply(nobody_left(request));
  } else {
    membership->leave(turn, request);
  }
}

void Group::State::commit(const Turn& turn, const CommitCommand& command) {
  const auto encode = [&](const PartitionRef& partition, CommittedOffset offset) {
    if (command.retention_ms) offset.expires = turn.wall + *command.retention_ms;
    return encode_commit(partition, offset);
  };
  const bool existed = exists;
  const ErrorCode error = check_commit(turn.now, command);
  if (!put_offsets(turn, command.offsets, error, encode)) exists = existed;
}

void Group::State::commit(const Turn& turn, const TxnCommitCommand& command) {
  const auto encode = [&](const PartitionRef& partition, const CommittedOffset& offset) {
    return encode_pending(command.producer_id, command.producer_epoch, partition, offset);
  };
  const bool existed = exists;
  const ErrorCode error = check_commit(command);
  if (!put_offsets(turn, command.offsets, error, encode)) exists = existed;
}

// All or nothing, as Kafka's batch: whether it was not too large.
template <class Encode>
bool Group::State::put_offsets(const Turn& turn, const std::vector<OffsetToCommit>& asked,
                               ErrorCode error, const Encode& encode) const {
  PartitionErrors errors;
  errors.partitions.assign(asked.size(), error);
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < asked.size() && error == ErrorCode::NONE; ++i) {
    const OffsetToCommit& each = asked[i];
    if (length_of(each.metadata) > static_cast<std::size_t>(limits->offset_metadata_max_bytes)) {
      errors.partitions[i] = ErrorCode::OFFSET_METADATA_TOO_LARGE;
      continue;
    }
    CommittedOffset offset;
    offset.topic_id = each.topic_id;
    offset.offset = each.offset;
    offset.leader_epoch = each.leader_epoch;
    offset.metadata = each.metadata;
    offset.committed = turn.wall;
    Buffer body = encode({each.topic, each.partition}, std::move(offset));
    bytes += id.size() + body.size();
    if (bytes > turn.max_bytes) {
      turn.effects.records.clear();
      errors.partitions.assign(asked.size(), ErrorCode::UNKNOWN_SERVER_ERROR);
      turn.reply(std::move(errors));
      return false;
    }
    turn.effects.records.push_back({id, std::move(body)});
  }
  turn.reply(std::move(errors));
  return true;
}

ErrorCode Group::State::check_commit(Time now, const CommitCommand& command) {
  if (exists && membership) return membership->check_commit(now, command);
  return check_without_members(command.generation, command.knows_group_id_not_found);
}

ErrorCode Group::State::check_commit(const TxnCommitCommand& command) {
  const PendingOffsets::Producer* producer = pending.find(command.producer_id);
  const ErrorCode error =
      exists && membership
          ? membership->check_commit(command)
          : check_without_members(command.generation, command.knows_group_id_not_found);
  if (error != ErrorCode::NONE || producer == nullptr) return error;
  return command.producer_epoch < producer->epoch ? ErrorCode::INVALID_PRODUCER_EPOCH
                                                  : ErrorCode::NONE;
}

ErrorCode Group::State::check_without_members(std::int32_t generation,
                                              bool knows_group_id_not_found) {
  if (generation < 0) {
    exists = true;  // a group that is used for its offsets only
    return ErrorCode::NONE;
  }
  if (exists) return ErrorCode::UNKNOWN_MEMBER_ID;
  return knows_group_id_not_found ? ErrorCode::GROUP_ID_NOT_FOUND : ErrorCode::ILLEGAL_GENERATION;
}

ErrorCode Group::State::end_offsets(const Turn& turn, const EndOffsetsCommand& command) const {
  const PendingOffsets::Producer* producer = pending.find(command.producer_id);
  if (producer == nullptr || command.producer_epoch < producer->epoch) return ErrorCode::NONE;
  const bool is_all = producer->size == pending.size() && offsets.empty() && stored.empty();
  turn.effects.records.push_back({id, is_all && !command.commit ? Buffer{} : encode_end(command)});
  return ErrorCode::NONE;
}

void Group::State::delete_offsets(const Turn& turn, const DeleteOffsetsCommand& command) {
  PartitionErrors errors;
  errors.group = check_delete_offsets();
  if (errors.group != ErrorCode::NONE) {
    turn.reply(std::move(errors));
    return;
  }
  Removals found;
  for (const auto& [topic, partition] : command.partitions) {
    if (membership && membership->subscribed_to(topic)) {
      errors.partitions.push_back(ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC);
      continue;
    }
    errors.partitions.push_back(ErrorCode::NONE);
    const PartitionRef ref{topic, partition};
    if (offsets.find(ref) != nullptr || pending.count(ref, {}) > 0) {
      found.insert({topic, partition, {}});
    }
  }
  remove(turn, found);
  turn.reply(std::move(errors));
}

ErrorCode Group::State::check_delete_offsets() const {
  if (id.empty()) return ErrorCode::INVALID_GROUP_ID;
  if (!exists) return ErrorCode::GROUP_ID_NOT_FOUND;
  if (state() != GroupState::kEmpty && !membership->is_consumer_group()) {
    return ErrorCode::NON_EMPTY_GROUP;
  }
  return ErrorCode::NONE;
}

ErrorCode Group::State::delete_group(const Turn& turn) {
  if (!exists) return ErrorCode::GROUP_ID_NOT_FOUND;
  if (state() != GroupState::kEmpty) return ErrorCode::NON_EMPTY_GROUP;
  end(turn);
  return ErrorCode::NONE;
}

void Group::State::end(const Turn& turn) {
  exists = false;
  membership.reset();
  if (!stores_nothing()) turn.effects.records.push_back({id, {}});
}

void Group::State::forget_topics(const Turn& turn, const std::set<Uuid>& topic_ids) {
  Removals gone;
  for (const auto& [topic, partitions] : offsets.topics()) {
    for (const auto& [partition, offset] : partitions) {
      if (topic_ids.contains(offset.topic_id)) gone.insert({topic, partition, offset.topic_id});
    }
  }
  for (const auto& [producer_id, producer] : pending.producers()) {
    for (const auto& [topic, partitions] : producer.topics) {
      for (const auto& [partition, each] : partitions) {
        const Uuid& topic_id = each.offset.topic_id;
        if (topic_ids.contains(topic_id)) gone.insert({topic, partition, topic_id});
      }
    }
  }
  remove(turn, gone);
}

void Group::State::expire_offsets(const Turn& turn) {
  if (!exists || !may_expire()) return;
  Removals gone;
  for (const auto& [topic, partitions] : offsets.topics()) {
    if (membership && membership->subscribed_to(topic)) continue;
    for (const auto& [partition, offset] : partitions) {
      if (pending.count({topic, partition}, {}) > 0 || !expired(turn.wall, offset)) continue;
      gone.insert({topic, partition, {}});
    }
  }
  const bool in_use =
      !pending.empty() ||
      (membership && (membership->state() != GroupState::kEmpty || membership->has_pending()));
  if (gone.size() == offsets.size() && !in_use) {
    end(turn);
  } else {
    remove(turn, gone);
  }
}

// KIP-211: of an empty group all offsets; while there are consumers, those of topics that none of
// them is subscribed to, if that is known.
bool Group::State::may_expire() const {
  if (!membership || membership->protocol_type().empty()) return true;
  if (membership->state() == GroupState::kEmpty) return true;
  return membership->state() == GroupState::kStable && membership->is_consumer_group() &&
         membership->knows_subscription();
}

bool Group::State::expired(Timestamp wall, const CommittedOffset& offset) const {
  if (offset.expires) return wall >= *offset.expires;
  Timestamp base = offset.committed;
  if (membership && !membership->protocol_type().empty() &&
      membership->state() == GroupState::kEmpty && membership->since() != kNoTimestamp) {
    base = membership->since();
  }
  return wall - base >= limits->offsets_retention_ms;
}

// A channel of tombstones only is no channel.
void Group::State::remove(const Turn& turn, const Removals& removals) const {
  if (removals.empty()) return;
  std::size_t count = 0;
  for (const auto& [topic, partition, topic_id] : removals) {
    const CommittedOffset* offset = offsets.find({topic, partition});
    if (offset != nullptr && is_of(topic_id, *offset)) ++count;
    count += pending.count({topic, partition}, topic_id);
  }
  if (stored.empty() && count == offsets.size() + pending.size()) {
    turn.effects.records.push_back({id, {}});
    return;
  }
  for (const auto& [topic, partition, topic_id] : removals) {
    turn.effects.records.push_back({id, encode_tombstone({topic, partition}, topic_id)});
  }
}

Result<void> Group::apply(const Record& record) {
  CHECK(record.key == state_->id, "the record is of this group");
  if (record.ends_channel()) {
    state_->stored = {};
    state_->offsets.clear();
    state_->pending.clear();
    return {};
  }
  if (auto applied = state_->apply(record.body); !applied) {
    return std::unexpected(damaged("_KAFKA_OFFSETS_." + record.key, applied.error()));
  }
  return {};
}

Result<void> Group::State::apply(Bytes body) {
  auto record = decode_group_record(body);
  if (!record) return std::unexpected(record.error());
  exists = true;
  if (auto* commit = std::get_if<wire::OffsetCommitRecord>(&*record)) {
    CommittedOffset offset = committed_offset(*commit);
    pending.supersede({commit->topic, commit->partition});
    offsets.put(std::move(commit->topic), commit->partition, std::move(offset));
  } else if (const auto* tombstone = std::get_if<wire::OffsetTombstoneRecord>(&*record)) {
    apply(*tombstone);
  } else if (auto* put = std::get_if<wire::PendingOffsetRecord>(&*record)) {
    return apply(*put);
  } else if (const auto* ended = std::get_if<wire::PendingOffsetsEndRecord>(&*record)) {
    pending.end(ended->producer_id, ended->producer_epoch, ended->committed ? &offsets : nullptr);
  } else {
    stored.assign(body.begin(), body.end());
  }
  return {};
}

void Group::State::apply(const wire::OffsetTombstoneRecord& tombstone) {
  const PartitionRef partition{tombstone.topic, tombstone.partition};
  pending.remove(partition, tombstone.topic_id);
  const CommittedOffset* offset = offsets.find(partition);
  if (offset == nullptr || !is_of(tombstone.topic_id, *offset)) return;
  offsets.remove(partition);
  pending.restore(partition);
}

Result<void> Group::State::apply(wire::PendingOffsetRecord& record) {
  const PendingOffsets::Producer* producer = pending.find(record.producer_id);
  if (producer != nullptr && record.producer_epoch < producer->epoch) {
    return corrupt("a producer's pending offsets go back to an earlier epoch");
  }
  pending.put(record.producer_id, record.producer_epoch, {record.topic, record.partition},
              pending_offset(record));
  return {};
}

void Group::loaded(Time now) {
  State& state = *state_;
  CHECK(!state.membership, "a group is loaded before its first step");
  state.exists = !state.stores_nothing();
  if (state.stored.empty()) return;
  auto record = decode_group_record(state.stored);
  CHECK(record, "apply has checked it");
  Effects none;
  const Turn turn{now, kNoTimestamp, 0, 0, state.id, none};
  state.membership = std::make_unique<Membership>(*state.limits);
  state.membership->restore(std::move(std::get<wire::GroupRecord>(*record)), turn);
  CHECK(none.records.empty() && none.replies.empty(), "nobody waits for a group that is loaded");
}

// Of a partition's offsets the later one has to come later, here too.
std::vector<Buffer> Group::snapshot(std::string_view) const {
  const State& state = *state_;
  std::vector<Buffer> records;
  records.reserve(live_records());
  if (!state.stored.empty()) records.push_back(state.stored);
  const std::vector<PendingOffsets::Entry> pending = state.pending.in_order();
  const auto put_pending = [&](bool superseded) {
    for (const auto& [producer_id, epoch, partition, each] : pending) {
      if (each->superseded != superseded) continue;
      records.push_back(encode_pending(producer_id, epoch, partition, each->offset));
    }
  };
  put_pending(true);
  for (const auto& [topic, partitions] : state.offsets.topics()) {
    for (const auto& [partition, offset] : partitions) {
      records.push_back(encode_commit({topic, partition}, offset));
    }
  }
  put_pending(false);
  return records;
}

std::uint64_t Group::live_records() const noexcept {
  return state_->offsets.size() + state_->pending.size() + (state_->stored.empty() ? 0 : 1);
}

std::optional<Time> Group::next_deadline() const noexcept {
  if (!state_->membership || state_->membership->next_deadline() == kNever) return std::nullopt;
  return state_->membership->next_deadline();
}

std::optional<Time> Group::tighten_deadline() noexcept {
  if (state_->membership) state_->membership->tighten_deadline();
  return next_deadline();
}

bool Group::vacant() const noexcept {
  return !state_->exists && state_->stores_nothing();
}

const std::string& Group::id() const noexcept {
  return state_->id;
}

GroupState Group::state() const noexcept {
  return state_->state();
}

std::string_view Group::protocol_type() const noexcept {
  return state_->membership ? state_->membership->protocol_type() : std::string_view{};
}

wire::DescribeGroupsResponse::Group Group::describe() const {
  wire::DescribeGroupsResponse::Group group;
  group.group_id = state_->id;
  group.group_state = to_string(state());
  if (state_->membership) state_->membership->describe(group);
  return group;
}

const CommittedOffset* Group::committed(std::string_view topic, const Uuid& topic_id,
                                        PartitionIndex partition) const noexcept {
  const CommittedOffset* found = state_->offsets.find({topic, partition});
  if (found == nullptr || topic_id.is_zero() || found->topic_id == topic_id) return found;
  return nullptr;
}

void Group::for_each_offset(const OffsetVisitor& visit) const {
  for (const auto& [topic, partitions] : state_->offsets.topics()) {
    for (const auto& [partition, offset] : partitions) visit(topic, partition, offset);
  }
}

bool Group::has_pending(std::string_view topic, const Uuid& topic_id,
                        PartitionIndex partition) const noexcept {
  return state_->pending.count({topic, partition}, topic_id) > 0;
}

void Group::for_each_pending(const std::function<void(const Pending&)>& visit) const {
  for (const auto& [id, producer] : state_->pending.producers()) {
    for (const auto& [topic, partitions] : producer.topics) {
      for (const auto& [partition, each] : partitions) {
        visit({id, producer.epoch, topic, partition, each.offset});
      }
    }
  }
}

std::string_view to_string(GroupState state) noexcept {
  switch (state) {
    case GroupState::kEmpty:
      return "Empty";
    case GroupState::kPreparingRebalance:
      return "PreparingRebalance";
    case GroupState::kCompletingRebalance:
      return "CompletingRebalance";
    case GroupState::kStable:
      return "Stable";
    case GroupState::kDead:
      break;
  }
  return "Dead";
}

}  // namespace kanal::coordinator
