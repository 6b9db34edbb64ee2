#include "kanal/broker/groups.hpp"

#include <utility>

#include "driver.hpp"
#include "groups_state.hpp"
#include "kanal/base/check.hpp"
#include "kanal/base/logging.hpp"
#include "kanal/broker/broker.hpp"

namespace kanal::broker {
namespace {

using namespace std::chrono_literals;
using coordinator::Group;
using coordinator::GroupCommand;
using coordinator::GroupReply;
using coordinator::PartitionErrors;
using Status = SlotStatus;

constexpr auto kUnavailable = ErrorCode::COORDINATOR_NOT_AVAILABLE;
constexpr auto kLoading = ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;

/// The machine's answer, or one made of the error that kept it from answering.
template <class Answer>
Answer answer_or(std::optional<GroupAnswer>& given, ErrorCode error, Answer otherwise) {
  if (given) {
    if (auto* answer = std::get_if<Answer>(&*given)) return std::move(*answer);
    if (const auto* code = std::get_if<ErrorCode>(&*given)) error = *code;
  }
  if constexpr (std::is_same_v<Answer, ErrorCode>)
    otherwise = error;
  else if constexpr (requires { otherwise.error_code; })
    otherwise.error_code = error;
  else
    otherwise.group = error;
  return otherwise;
}

ErrorCode error_of(const std::optional<GroupAnswer>& answer, ErrorCode error) {
  return answer || error != ErrorCode::NONE ? error : kUnavailable;
}

/// Words of a client as a log line may show them: bounded, and on the one line.
std::string cleaned(std::string_view words) {
  constexpr std::size_t kMost = 255;  // as many as Kafka's clients send
  std::string text(words.substr(0, kMost));
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7F) c = '?';
  }
  return text;
}

/// KIP-800: for people who wonder why a group rebalances.
void log_reason(std::string_view what, std::string_view group, std::string_view member,
                std::optional<std::string_view> reason) {
  spdlog::logger& log = logger("broker");
  if (!reason || reason->empty() || !log.should_log(spdlog::level::debug)) return;
  log.debug("A member gives its reason. request={} group={} member={} reason={}", what,
            cleaned(group), cleaned(member), cleaned(*reason));
}

PartitionErrors with_each(PartitionErrors errors, std::size_t partitions) {
  if (errors.group != ErrorCode::NONE && errors.partitions.empty())
    errors.partitions.assign(partitions, errors.group);
  return errors;
}

}  // namespace

Groups::Groups(Stage stage) : state_(std::make_unique<State>(std::move(stage))) {}
Groups::~Groups() = default;

// Members

Task<wire::JoinGroupResponse> Groups::join(Context& context, coordinator::JoinCommand command) {
  const wire::JoinGroupRequest& request = *command.request;
  log_reason("JoinGroup", request.group_id, request.member_id, request.reason);
  const auto waiter = std::make_shared<GroupWaiter>(context.io);
  auto stepped = state_->submit(request.group_id, command, State::IfUnknown::kMake, waiter);
  std::optional<GroupAnswer> answer = std::move(stepped.answer);
  const ErrorCode error = stepped.error;
  if (stepped.slot != nullptr) answer = co_await state_->wait(context, std::move(stepped), waiter);
  wire::JoinGroupResponse otherwise;
  otherwise.member_id = std::string(request.member_id);
  otherwise.protocol_name = std::nullopt;
  co_return answer_or(answer, error_of(answer, error), std::move(otherwise));
}

Task<wire::SyncGroupResponse> Groups::sync(Context& context,
                                           const wire::SyncGroupRequest& request) {
  const auto waiter = std::make_shared<GroupWaiter>(context.io);
  auto stepped = state_->submit(request.group_id, coordinator::SyncCommand{&request},
                                State::IfUnknown::kAskOnly, waiter);
  std::optional<GroupAnswer> answer = std::move(stepped.answer);
  const ErrorCode error = stepped.error;
  if (stepped.slot != nullptr) answer = co_await state_->wait(context, std::move(stepped), waiter);
  wire::SyncGroupResponse otherwise;
  co_return answer_or(answer, error_of(answer, error), std::move(otherwise));
}

ErrorCode Groups::heartbeat(const wire::HeartbeatRequest& request) {
  auto stepped = state_->submit(request.group_id, coordinator::HeartbeatCommand{&request},
                                State::IfUnknown::kAskOnly);
  // As Kafka while it loads: nobody is sent away from a group that comes back.
  if (stepped.error == kLoading) return ErrorCode::NONE;
  return answer_or(stepped.answer, stepped.error, ErrorCode::NONE);
}

wire::LeaveGroupResponse Groups::leave(const wire::LeaveGroupRequest& request) {
  for (const auto& member : request.members)
    log_reason("LeaveGroup", request.group_id, member.member_id, member.reason);
  auto stepped = state_->submit(request.group_id, coordinator::LeaveCommand{&request},
                                State::IfUnknown::kAskOnly);
  return answer_or(stepped.answer, stepped.error, wire::LeaveGroupResponse());
}

// Offsets and groups

PartitionErrors Groups::commit(std::string_view group, coordinator::CommitCommand command) {
  return state_->commit(group, std::move(command));
}

PartitionErrors Groups::commit_pending(std::string_view group,
                                       coordinator::TxnCommitCommand command) {
  return state_->commit(group, std::move(command));
}

template <class Command>
PartitionErrors Groups::State::commit(std::string_view group, Command command) {
  const std::size_t partitions = command.offsets.size();
  // A consumer without membership makes the group by its first commit; a member's must be there.
  const auto if_unknown = command.generation < 0 ? IfUnknown::kMake : IfUnknown::kAskOnly;
  auto stepped = submit(group, std::move(command), if_unknown);
  return with_each(answer_or(stepped.answer, stepped.error, PartitionErrors()), partitions);
}

ErrorCode Groups::end_transaction(std::string_view group, ProducerId producer_id,
                                  ProducerEpoch epoch, bool commit) {
  const coordinator::EndOffsetsCommand command{
      .producer_id = producer_id, .producer_epoch = epoch, .commit = commit};
  auto stepped = state_->submit(group, command, State::IfUnknown::kAskOnly);
  return answer_or(stepped.answer, stepped.error, ErrorCode::NONE);
}

PartitionErrors Groups::delete_offsets(std::string_view group,
                                       coordinator::DeleteOffsetsCommand command) {
  const std::size_t partitions = command.partitions.size();
  auto stepped = state_->submit(group, std::move(command), State::IfUnknown::kAskOnly);
  return with_each(answer_or(stepped.answer, stepped.error, PartitionErrors()), partitions);
}

ErrorCode Groups::remove(std::string_view group) {
  auto stepped =
      state_->submit(group, coordinator::DeleteGroupCommand{}, State::IfUnknown::kAskOnly);
  return answer_or(stepped.answer, stepped.error, ErrorCode::NONE);
}

// Reading

ErrorCode Groups::visit(std::string_view group, const Visitor& visit) const {
  switch (state_->table.visit_live(group, visit)) {
    case Status::kUsable:
      return ErrorCode::NONE;
    case Status::kFailed:
      return kLoading;
    case Status::kDropped:
      break;
  }
  return ErrorCode::GROUP_ID_NOT_FOUND;
}

void Groups::for_each(const Visitor& visit) const {
  state_->table.for_each_live(visit);
}

std::size_t Groups::size() const {
  return state_->table.size();
}

void Groups::for_each_lag(const std::function<void(const GroupLag&)>& visit) const {
  const std::shared_ptr<const Topics> topics = state_->stage.topics();
  for_each([&](const Group& group) {
    TopicPtr topic;
    group.for_each_offset([&](std::string_view name, PartitionIndex index,
                              const coordinator::CommittedOffset& committed) {
      if (topic == nullptr || topic->id() != committed.topic_id)
        topic = topics->find(committed.topic_id);
      const auto partition = topic != nullptr ? topic->partition(index) : nullptr;
      if (partition == nullptr) return;
      const auto end =
          partition->with_log([](log::Partition& log) { return log.watermarks().high_watermark; });
      if (!end) return;
      const std::int64_t lag = std::max<std::int64_t>(*end - committed.offset, 0);
      visit({group.id(), name, index, committed.offset, lag});
    });
  });
}

// Steps

GroupCommand Groups::State::command(What what) const {
  const std::int32_t most = std::max(max_bytes.load(std::memory_order_relaxed), 0);
  return {.waiter = 0,
          .wall = stage.clock.wall(),
          .what = std::move(what),
          .max_bytes = static_cast<std::size_t>(most)};
}

Groups::State::Stepped Groups::State::submit(std::string_view group, What what,
                                             IfUnknown if_unknown,
                                             const std::shared_ptr<GroupWaiter>& waiter) {
  if (stopped.load(std::memory_order_relaxed)) return {{}, kUnavailable, nullptr, 0};
  GroupCommand command = this->command(std::move(what));
  for (;;) {
    GroupSlotPtr slot =
        if_unknown == IfUnknown::kMake ? table.find_or_add(group, limits) : table.find(group);
    if (slot == nullptr) {
      Group nobody(std::string(group), limits);
      auto effects = nobody.step(stalls.now(), command);
      CHECK(!effects.replies.empty() && effects.records.empty(),
            "a group that does not exist refuses at once");
      return {std::move(effects.replies.front().answer), ErrorCode::NONE, nullptr, 0};
    }
    Stepped stepped;
    Aftermath after;
    const bool dropped = slot->live.with([&](LiveGroup& live) {
      if (live.status == Status::kDropped) return true;
      if (live.status == Status::kFailed) {
        stepped.error = kLoading;
        return false;
      }
      stepped.answer = step(*slot, live, command, after);
      if (after.failed) {
        stepped.error = kUnavailable;
      } else if (!stepped.answer) {
        CHECK(waiter != nullptr, "only who can wait is parked");
        live.parked.emplace(command.waiter, waiter);
        stepped.slot = slot;
        stepped.waiter = command.waiter;
      }
      settle(live, after);
      return false;
    });
    if (dropped) {
      table.erase(slot);
      continue;
    }
    finish(slot, after);
    return stepped;
  }
}

std::optional<GroupAnswer> Groups::State::step(GroupSlot& slot, LiveGroup& live,
                                               GroupCommand& command, Aftermath& after) {
  command.waiter = ++live.last_waiter;
  auto effects = live.machine.step(stalls.now(), command);
  if (!effects.records.empty()) {
    auto stored = store_and_apply(stage.session, reserved::Kind::kOffsets, live.machine,
                                  effects.records, reserved::Durability::kWritten);
    if (!stored) {
      fail(slot, live, stored.error(), after);
      return std::nullopt;
    }
  }
  std::optional<GroupAnswer> own;
  for (GroupReply& reply : effects.replies) {
    if (reply.waiter == command.waiter) {
      own = std::move(reply.answer);
      continue;
    }
    const auto parked = live.parked.find(reply.waiter);
    if (parked == live.parked.end()) continue;  // its connection is gone
    parked->second->answer = std::move(reply.answer);
    after.woken.push_back(std::move(parked->second));
    live.parked.erase(parked);
  }
  return own;
}

void Groups::State::settle(LiveGroup& live, Aftermath& after) {
  if (live.status != Status::kUsable) return;
  if (live.machine.vacant() && live.parked.empty()) {
    live.status = Status::kDropped;
    live.due.reset();
    after.vacant = true;
    return;
  }
  const std::optional<Time> next = live.machine.next_deadline();
  if (!next || (live.due && *live.due <= *next)) return;
  live.due = *next;
  after.arm = true;
}

void Groups::State::fail(GroupSlot& slot, LiveGroup& live, const Error& why, Aftermath& after) {
  live.status = Status::kFailed;
  live.due.reset();
  after.failed = true;
  after.list = !std::exchange(live.listed, true);
  after.rebuild = live.rebuilding = may_rebuild();
  for (auto& [id, waiter] : live.parked) after.woken.push_back(std::move(waiter));
  live.parked.clear();
  const Time now = stage.clock.now();
  Time last = last_failure_logged.load();
  if (now - last < 1s || !last_failure_logged.compare_exchange_strong(last, now)) return;
  logger("broker").error(
      "A group could not be stored; it is read anew from its channel. group={} reason={}", slot.id,
      why.detail);
}

void Groups::State::finish(const GroupSlotPtr& slot, Aftermath& after) {
  for (auto& waiter : after.woken) {
    IoThread& io = waiter->event.io();
    io.post([held = std::move(waiter)] { held->event.fire(); });
  }
  if (after.vacant) table.erase(slot);
  if (after.arm) deadlines.arm(slot);
  if (after.list) {
    const std::lock_guard lock(mutex);
    failed.push_back(slot);
  }
  if (after.rebuild) stage.helpers.post([this, slot] { rebuild(slot); });
}

void Groups::State::step_own(const GroupSlotPtr& slot, What what) {
  GroupCommand command = this->command(std::move(what));
  Aftermath after;
  slot->live.with([&](LiveGroup& live) {
    if (live.status != Status::kUsable) return;
    (void)step(*slot, live, command, after);
    settle(live, after);
  });
  finish(slot, after);
}

Task<std::optional<GroupAnswer>> Groups::State::wait(Context& context, Stepped stepped,
                                                     std::shared_ptr<GroupWaiter> waiter) {
  co_await context.broker.park(context, waiter->event, Time::max());
  // Under the lock, since a connection that ended may meet its answer here. The member stays.
  co_return stepped.slot->live.with([&](LiveGroup& live) {
    live.parked.erase(stepped.waiter);
    return std::move(waiter->answer);
  });
}

}  // namespace kanal::broker
