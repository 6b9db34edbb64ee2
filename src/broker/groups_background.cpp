// What runs beside the requests of groups: deadlines, loading and rebuilding, expiry of offsets.
#include <algorithm>
#include <utility>

#include "driver.hpp"
#include "groups_state.hpp"
#include "kanal/base/logging.hpp"

namespace kanal::broker {
namespace {

using namespace std::chrono_literals;
using Status = SlotStatus;
constexpr Duration kRebuildPause = 1s;  // between attempts that fail

coordinator::GroupLimits limits_of(const coordinator::BrokerConfig& config) {
  coordinator::GroupLimits limits;
  limits.min_session_timeout = std::chrono::milliseconds(config.group_min_session_timeout_ms);
  limits.max_session_timeout = std::chrono::milliseconds(config.group_max_session_timeout_ms);
  limits.initial_rebalance_delay =
      std::chrono::milliseconds(config.group_initial_rebalance_delay_ms);
  limits.max_size = config.group_max_size;
  limits.offset_metadata_max_bytes = config.offset_metadata_max_bytes;
  limits.offsets_retention_ms =
      std::chrono::milliseconds(std::chrono::minutes(config.offsets_retention_minutes)).count();
  return limits;
}

}  // namespace

Groups::State::State(Stage given)
    : stage(std::move(given)),
      limits(limits_of(*stage.config)),
      stalls(stage.stalls),
      last_expiry(stage.clock.now()),
      last_failure_logged(Time(Time::min().time_since_epoch() / 2)),
      rebuild_after(Time::min()),
      deadlines({.clock = stage.clock,
                 .stalls = stage.stalls,
                 .next = [this](LiveGroup& live) { return exact_deadline(live); },
                 .pass = [this](const GroupSlotPtr& slot) { pass_time(slot); }}) {}

Result<void> Groups::start(GroupsReport& report) {
  return state_->load(report);
}

void Groups::attach(IoThread& io) {
  state_->deadlines.attach(io);
}

void Groups::limit_records(std::int32_t bytes) {
  state_->max_bytes.store(bytes, std::memory_order_relaxed);
}

void Groups::tick() {
  state_->deadlines.arm_loaded();
  state_->post_mend();
  const Time now = state_->stage.clock.now();
  const std::chrono::milliseconds every(state_->stage.config->offsets_retention_check_interval_ms);
  if (now - state_->last_expiry.load() < every) return;
  state_->last_expiry.store(now);
  state_->sweep({.each =
                     [state = state_.get()](const GroupSlotPtr& slot) {
                       state->step_own(slot, coordinator::ExpireOffsetsCommand{});
                     },
                 .done = {}});
}

void Groups::forget_deleted_topics() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->forget_again = true;
    if (std::exchange(state_->forgetting, true)) return;
  }
  state_->stage.helpers.post([state = state_.get()] { state->forget(); });
}

void Groups::stop() {
  state_->stopped.store(true);
}

// Deadlines

std::optional<Time> Groups::State::exact_deadline(LiveGroup& live) const {
  if (live.status != Status::kUsable) return std::nullopt;
  const std::optional<Time> next = live.machine.next_deadline();
  // Heartbeats have moved most deadlines on.
  return next && *next <= stalls.now() ? live.machine.tighten_deadline() : next;
}

void Groups::State::pass_time(const GroupSlotPtr& slot) {
  if (stopped.load()) return;
  Aftermath after;
  slot->live.with([&](LiveGroup& live) {
    if (live.status != Status::kUsable) return;
    live.due.reset();
    const auto next = live.machine.next_deadline();
    if (next && *next <= stalls.now()) {
      coordinator::GroupCommand command = this->command(coordinator::PassTime{});
      (void)step(*slot, live, command, after);
    }
    settle(live, after);
  });
  finish(slot, after);
}

// Loading

Result<void> Groups::State::load(GroupsReport& report) {
  auto replayed = replay_into_slots(stage.session, reserved::Kind::kOffsets, table, limits);
  if (!replayed) return replayed;
  for (std::size_t shard = 0; shard < GroupTable::kShards; ++shard) {
    for (const GroupSlotPtr& loaded : table.shard(shard)) finish_load(loaded, report);
  }
  return {};
}

void Groups::State::finish_load(const GroupSlotPtr& slot, GroupsReport& report) {
  Aftermath after;
  slot->live.with([&](LiveGroup& live) {
    live.machine.loaded(stalls.now());
    settle(live, after);
    ++report.groups;
  });
  finish(slot, after);
  if (!after.vacant) return forget_missing_topics(slot);
  // Its last offset was taken from it; what is left of its channel says nothing any more.
  const reserved::ReservedName channel{reserved::Kind::kOffsets, slot->id};
  (void)stage.session.erase(channel, reserved::Durability::kWritten);
}

bool Groups::State::may_rebuild() const {
  return !stopped.load() && stage.clock.now() >= rebuild_after.load();
}

void Groups::State::rebuild(const GroupSlotPtr& slot) {
  coordinator::Group machine(slot->id, limits);
  const auto visit = [&](const reserved::ReservedName& name, Bytes body) -> Result<void> {
    return machine.apply({name.key, Buffer(body.begin(), body.end())});
  };
  const auto replayed = stage.session.replay_channel({reserved::Kind::kOffsets, slot->id}, visit);
  Aftermath after;
  slot->live.with([&](LiveGroup& live) {
    live.rebuilding = false;
    if (!replayed) return;
    live.machine = std::move(machine);
    live.machine.loaded(stalls.now());
    live.status = Status::kUsable;
    live.due.reset();
    settle(live, after);
  });
  finish(slot, after);
  if (replayed) {
    forget_missing_topics(slot);
    return;
  }
  rebuild_after.store(stage.clock.now() + kRebuildPause);
  logger("broker").error("A group could not be read from its channel. group={} reason={}", slot->id,
                         replayed.error().detail);
}

void Groups::State::post_mend() {
  {
    const std::lock_guard lock(mutex);
    if (failed.empty() || std::exchange(mending, true)) return;
  }
  stage.helpers.post([this] { mend(); });
}

void Groups::State::mend() {
  std::unique_lock lock(mutex);
  // An attempt that fails ends this: may_rebuild() says no for a while.
  for (std::size_t left = failed.size(); left > 0 && may_rebuild(); --left) {
    const GroupSlotPtr slot = std::move(failed.front());
    failed.pop_front();
    lock.unlock();
    const bool still_failed = !mend(slot);
    lock.lock();
    if (still_failed) failed.push_back(slot);
  }
  mending = false;
}

bool Groups::State::mend(const GroupSlotPtr& slot) {
  bool rebuilds = false;
  const bool failed_still = slot->live.with([&](LiveGroup& live) {
    live.listed = live.status == Status::kFailed;
    if (live.listed) rebuilds = !std::exchange(live.rebuilding, true);
    return live.listed;
  });
  if (!failed_still) return true;  // should it fail from here on, fail() lists it
  if (rebuilds) rebuild(slot);
  // Also what failed again meanwhile: fail() has not listed it, since it was.
  return !slot->live.with(
      [](LiveGroup& live) { return live.listed = live.status == Status::kFailed; });
}

// Sweeps

void Groups::State::sweep(const Sweep& task, std::size_t shard) {
  if (stopped.load()) return;
  if (shard == GroupTable::kShards) {
    if (task.done) task.done();
    return;
  }
  for (const GroupSlotPtr& slot : table.shard(shard)) task.each(slot);
  stage.helpers.post([this, task, shard] { sweep(task, shard + 1); });
}

void Groups::State::forget() {
  {
    const std::lock_guard lock(mutex);
    if (!std::exchange(forget_again, false)) {
      forgetting = false;
      return;
    }
  }
  sweep({.each = [this](const GroupSlotPtr& slot) { forget_missing_topics(slot); },
         .done = [this] { forget(); }});
}

void Groups::State::forget_missing_topics(const GroupSlotPtr& slot) {
  std::set<Uuid> missing;
  slot->live.with([&](LiveGroup& live) {
    if (live.status != Status::kUsable) return;
    // Taken under the group's lock: whatever is committed here was found in this picture or in an
    // earlier one.
    const std::shared_ptr<const Topics> topics = stage.topics();
    Uuid last;
    const auto look = [&](const coordinator::CommittedOffset& offset) {
      if (offset.topic_id == last) return;
      last = offset.topic_id;
      if (topics->find(last) == nullptr) missing.insert(last);
    };
    live.machine.for_each_offset([&](std::string_view, PartitionIndex,
                                     const coordinator::CommittedOffset& offset) { look(offset); });
    live.machine.for_each_pending(
        [&](const coordinator::Group::Pending& pending) { look(pending.offset); });
  });
  if (!missing.empty()) step_own(slot, coordinator::ForgetTopicsCommand{std::move(missing)});
}

}  // namespace kanal::broker
