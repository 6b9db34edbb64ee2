#include "kanal/coordinator/group.hpp"

#include "kanal/base/check.hpp"
#include "membership.hpp"
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
  Offsets offsets;                         // these two are changed by apply() alone
  std::unique_ptr<Membership> membership;  // null: no members since the start
  // A group goes on existing when its last offset goes, until the next round of expiry.
  bool exists = false;

  [[nodiscard]] GroupState state() const noexcept {
    if (!exists) return GroupState::kDead;
    return membership ? membership->state() : GroupState::kEmpty;
  }
  [[nodiscard]] bool stores_nothing() const noexcept { return stored.empty() && offsets.empty(); }

  void join(const Turn& turn, const JoinCommand& command);
  void sync(const Turn& turn, const wire::SyncGroupRequest& request);
  [[nodiscard]] ErrorCode heartbeat(Time now, const wire::HeartbeatRequest& request);
  void leave(const Turn& turn, const wire::LeaveGroupRequest& request);
  void commit(const Turn& turn, const CommitCommand& command);
  [[nodiscard]] ErrorCode check_commit(Time now, const CommitCommand& command);
  void delete_offsets(const Turn& turn, const DeleteOffsetsCommand& command);
  [[nodiscard]] ErrorCode check_delete_offsets() const;
  [[nodiscard]] ErrorCode delete_group(const Turn& turn);
  void forget_topics(const Turn& turn, const std::set<Uuid>& topic_ids);
  void expire_offsets(const Turn& turn);
  [[nodiscard]] bool may_expire() const;
  [[nodiscard]] bool expired(Timestamp wall, const CommittedOffset& offset) const;
  void end(const Turn& turn);
  void remove(const Turn& turn, const std::vector<PartitionRef>& partitions) const;
  [[nodiscard]] Result<void> apply(Bytes body);
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
  const bool existed = exists;
  PartitionErrors errors;
  errors.partitions.assign(command.offsets.size(), check_commit(turn.now, command));
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < command.offsets.size(); ++i) {
    if (errors.partitions[i] != ErrorCode::NONE) continue;
    const OffsetToCommit& asked = command.offsets[i];
    if (length_of(asked.metadata) > static_cast<std::size_t>(limits->offset_metadata_max_bytes)) {
      errors.partitions[i] = ErrorCode::OFFSET_METADATA_TOO_LARGE;
      continue;
    }
    CommittedOffset offset;
    offset.topic_id = asked.topic_id;
    offset.offset = asked.offset;
    offset.leader_epoch = asked.leader_epoch;
    offset.metadata = asked.metadata;
    offset.committed = turn.wall;
    if (command.retention_ms) offset.expires = turn.wall + *command.retention_ms;
    Buffer body = encode_commit({asked.topic, asked.partition}, offset);
    bytes += id.size() + body.size();
    if (bytes > turn.max_bytes) {  // all or nothing, as Kafka's batch
      turn.effects.records.clear();
      errors.partitions.assign(command.offsets.size(), ErrorCode::UNKNOWN_SERVER_ERROR);
      exists = existed;
      break;
    }
    turn.effects.records.push_back({id, std::move(body)});
  }
  turn.reply(std::move(errors));
}

ErrorCode Group::State::check_commit(Time now, const CommitCommand& command) {
  if (exists && membership) return membership->check_commit(now, command);
  if (command.generation < 0) {
    exists = true;  // a group that is used for its offsets only
    return ErrorCode::NONE;
  }
  if (exists) return ErrorCode::UNKNOWN_MEMBER_ID;
  return command.knows_group_id_not_found ? ErrorCode::GROUP_ID_NOT_FOUND
                                          : ErrorCode::ILLEGAL_GENERATION;
}

void Group::State::delete_offsets(const Turn& turn, const DeleteOffsetsCommand& command) {
  PartitionErrors errors;
  errors.group = check_delete_offsets();
  if (errors.group != ErrorCode::NONE) {
    turn.reply(std::move(errors));
    return;
  }
  std::set<std::pair<std::string_view, PartitionIndex>> found;  // each once
  for (const auto& [topic, partition] : command.partitions) {
    if (membership && membership->subscribed_to(topic)) {
      errors.partitions.push_back(ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC);
      continue;
    }
    errors.partitions.push_back(ErrorCode::NONE);
    if (offsets.find({topic, partition}) != nullptr) found.emplace(topic, partition);
  }
  std::vector<PartitionRef> partitions;
  partitions.reserve(found.size());
  for (const auto& [topic, partition] : found) partitions.push_back({topic, partition});
  remove(turn, partitions);
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
  std::vector<PartitionRef> gone;
  for (const auto& [topic, partitions] : offsets.topics()) {
    for (const auto& [partition, offset] : partitions) {
      if (topic_ids.contains(offset.topic_id)) gone.push_back({topic, partition});
    }
  }
  remove(turn, gone);
}

void Group::State::expire_offsets(const Turn& turn) {
  if (!exists || !may_expire()) return;
  std::vector<PartitionRef> gone;
  for (const auto& [topic, partitions] : offsets.topics()) {
    if (membership && membership->subscribed_to(topic)) continue;
    for (const auto& [partition, offset] : partitions) {
      if (expired(turn.wall, offset)) gone.push_back({topic, partition});
    }
  }
  const bool in_use =
      membership && (membership->state() != GroupState::kEmpty || membership->has_pending());
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
void Group::State::remove(const Turn& turn, const std::vector<PartitionRef>& partitions) const {
  if (partitions.empty()) return;
  if (stored.empty() && partitions.size() == offsets.size()) {
    turn.effects.records.push_back({id, {}});
    return;
  }
  for (const PartitionRef& partition : partitions) {
    turn.effects.records.push_back({id, encode_tombstone(partition)});
  }
}

Result<void> Group::apply(const Record& record) {
  CHECK(record.key == state_->id, "the record is of this group");
  if (record.ends_channel()) {
    state_->stored = {};
    state_->offsets.clear();
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
    offsets.put(std::move(commit->topic), commit->partition, std::move(offset));
  } else if (const auto* tombstone = std::get_if<wire::OffsetTombstoneRecord>(&*record)) {
    offsets.remove({tombstone->topic, tombstone->partition});
  } else {
    stored.assign(body.begin(), body.end());
  }
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

std::vector<Buffer> Group::snapshot(std::string_view) const {
  std::vector<Buffer> records;
  records.reserve(live_records());
  if (!state_->stored.empty()) records.push_back(state_->stored);
  for (const auto& [topic, partitions] : state_->offsets.topics()) {
    for (const auto& [partition, offset] : partitions) {
      records.push_back(encode_commit({topic, partition}, offset));
    }
  }
  return records;
}

std::uint64_t Group::live_records() const noexcept {
  return state_->offsets.size() + (state_->stored.empty() ? 0 : 1);
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
