// What runs beside the requests of transactions: deadlines, loading and rebuilding, expiry.
#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "driver.hpp"
#include "kanal/base/check.hpp"
#include "kanal/base/logging.hpp"
#include "producer_ids.hpp"
#include "transactions_state.hpp"

namespace kanal::broker {
namespace {

using namespace std::chrono_literals;
using Status = SlotStatus;
constexpr ProducerEpoch kLastEpoch{std::numeric_limits<std::int16_t>::max()};

coordinator::TransactionSettings settings_of(const Transactions::Stage& stage) {
  coordinator::TransactionSettings settings;
  settings.max_timeout = std::chrono::milliseconds(stage.config->transaction_max_timeout_ms);
  settings.id_expiration = std::chrono::milliseconds(stage.config->transactional_id_expiration_ms);
  settings.coordinator_epoch = stage.epoch;
  return settings;
}

}  // namespace

Transactions::State::State(Stage given)
    : stage(std::move(given)),
      settings(settings_of(stage)),
      stalls(stage.stalls),
      last_expiry(stage.broker.clock().now()),
      last_failure_logged(Time(Time::min().time_since_epoch() / 2)),
      deadlines({.clock = stage.broker.clock(),
                 .stalls = stage.stalls,
                 .next = [](const LiveTransaction& live) -> std::optional<Time> {
                   if (live.status != Status::kUsable) return std::nullopt;
                   return live.machine.next_deadline();
                 },
                 .pass = [this](const TransactionSlotPtr& slot) { pass_time(slot); }}) {}

Result<void> Transactions::start(TransactionsReport& report) {
  return state_->load(report);
}

void Transactions::attach(IoThread& io) {
  state_->deadlines.attach(io);
}

void Transactions::tick() {
  state_->deadlines.arm_loaded();
  state_->take_up_ends();
  state_->post_rebuild();
  const Time now = state_->stage.broker.clock().now();
  const std::chrono::milliseconds every(
      state_->stage.config->transaction_expired_cleanup_interval_ms);
  if (now - state_->last_expiry.load() < every) return;
  state_->last_expiry.store(now);
  state_->stage.helpers.post([state = state_.get()] { state->expire(0); });
}

void Transactions::stop() {
  state_->stopped.store(true);
}

// Deadlines

void Transactions::State::pass_time(const TransactionSlotPtr& slot) {
  if (stopped.load()) return;
  IoThread& io = *deadlines.home(*slot);
  if (const auto gate = enter(io)) return gate->then([this, slot] { pass_time(slot); });
  const Deciding entered(*this);
  coordinator::TransactionCommand command = this->command(coordinator::PassTime{});
  Aftermath after;
  bool needs_producer_id = false;
  slot->live.with([&](LiveTransaction& live) {
    if (live.status != Status::kUsable) return;
    live.due.reset();
    const auto next = live.machine.next_deadline();
    if (next && *next <= stalls.now()) {
      if (live.machine.needs_producer_id(command)) {
        const auto fresh = stage.producer_ids.take();
        needs_producer_id = !fresh.has_value();
        command.fresh = fresh.value_or(kNoProducerId);
      }
      if (!needs_producer_id) (void)step(*slot, live, command, after);
    }
    if (!needs_producer_id) settle(live, after);
  });
  if (needs_producer_id) {
    stage.helpers.post([this, slot] {
      if (stage.producer_ids.refill()) {
        deadlines.home(*slot)->post([this, slot] { pass_time(slot); });
        return;
      }
      Aftermath later;  // tried again by the timer
      slot->live.with([&](LiveTransaction& live) { settle(live, later); });
      finish(slot, later);
    });
    return;
  }
  finish(slot, after);
  if (after.end) begin_end(slot, std::move(*after.end), nullptr);
}

// Loading

Result<void> Transactions::State::load(TransactionsReport& report) {
  auto replayed = replay_into_slots(stage.session, reserved::Kind::kTxn, table, settings);
  if (!replayed) return replayed;
  for (std::size_t shard = 0; shard < TransactionTable::kShards; ++shard) {
    for (const TransactionSlotPtr& loaded : table.shard(shard)) {
      if (auto done = finish_prepared(loaded, report); !done) return done;
    }
  }
  report.ids = table.size();
  return reconcile(report);
}

// A power cut can take the newest of one file and leave that of another: then the logs know more of
// a producer than its id does. Nobody was told that such a transaction was committed, or that was
// lost with the rest. What is open in a log is aborted there, and the producer id is given up, so
// that neither its records nor its epochs are ever taken for those of a later transaction.

struct Transactions::State::Known {
  TransactionSlotPtr slot;
  ProducerEpoch epoch;
  bool prepared;
};

struct Transactions::State::Behind {
  std::unordered_map<ProducerId, Known> known;
  struct Orphan {
    std::shared_ptr<Partition> partition;
    ProducerId producer;
  };
  std::vector<Orphan> orphans;
  std::vector<TransactionSlotPtr> ids;

  void give_up(const TransactionSlotPtr& slot) {
    if (std::ranges::find(ids, slot) == ids.end()) ids.push_back(slot);
  }
};

Result<void> Transactions::State::reconcile(TransactionsReport& report) {
  Behind behind;
  for (std::size_t shard = 0; shard < TransactionTable::kShards; ++shard) {
    for (const TransactionSlotPtr& slot : table.shard(shard)) {
      slot->live.with([&](LiveTransaction& live) {
        const auto& facts = live.machine.facts();
        behind.known.emplace(facts.producer_id,
                             Known{slot, facts.producer_epoch, facts.prepared()});
      });
    }
  }
  stage.broker.topics()->for_each([&](const TopicPtr& topic) {
    for (const auto& partition : topic->partitions) compare(*topic, partition, behind);
  });
  report.orphans = behind.orphans.size();
  abort_orphans(behind);
  for (const TransactionSlotPtr& slot : behind.ids) {
    if (auto done = replace_producer_id(slot); !done) return done;
  }
  return {};
}

void Transactions::State::compare(const Topic& topic, const std::shared_ptr<Partition>& partition,
                                  Behind& behind) const {
  std::vector<ProducerId> open;
  (void)partition->with_log([&](log::Partition& log) {
    for (const auto& [id, producer] : log.producers().producers()) {
      const auto known = behind.known.find(id);
      if (known != behind.known.end() && producer.epoch > known->second.epoch)
        behind.give_up(known->second.slot);
      if (producer.in_transaction()) open.push_back(id);
    }
    return true;
  });
  const coordinator::TransactionPartition here{topic.name(), partition->id().partition};
  for (const ProducerId id : open) {
    const auto known = behind.known.find(id);
    if (known != behind.known.end()) {
      const bool in_it = known->second.slot->live.with([&](LiveTransaction& live) {
        return live.machine.verify(id, known->second.epoch, here) == ErrorCode::NONE;
      });
      if (in_it || known->second.prepared) continue;
      behind.give_up(known->second.slot);
    }
    behind.orphans.push_back({partition, id});
  }
}

void Transactions::State::abort_orphans(const Behind& behind) {
  Broker::Together together(stage.broker);
  for (const Behind::Orphan& orphan : behind.orphans) {
    const log::EndMarker marker{.producer = orphan.producer,
                                .epoch = kLastEpoch,
                                .type = records::ControlType::kAbort,
                                .coordinator_epoch = stage.epoch.value()};
    const auto aborted = together.append_marker(orphan.partition, marker);
    logger("broker").warn(
        "Records of a transaction that nothing else is known of are aborted. channel={} "
        "producer_id={} done={}",
        orphan.partition->id().name, orphan.producer.value(), aborted.has_value());
  }
}

Result<void> Transactions::State::replace_producer_id(const TransactionSlotPtr& slot) {
  auto fresh = stage.producer_ids.take();
  if (!fresh) {
    if (auto filled = stage.producer_ids.refill(); !filled) return filled;
    fresh = stage.producer_ids.take();
    CHECK(fresh.has_value(), "nobody else takes ids at the start");
  }
  logger("broker").warn(
      "The logs know more of a transactional id's producer than the id does: it gets a new one. "
      "id={} producer_id={}",
      slot->id, fresh->value());
  coordinator::TransactionCommand command = this->command(coordinator::ReplaceProducerId{});
  command.fresh = *fresh;
  Aftermath after;
  slot->live.with([&](LiveTransaction& live) {
    (void)step(*slot, live, command, after);
    settle(live, after);
  });
  finish(slot, after);
  return after.end ? finish_end(slot, std::move(*after.end)) : Result<void>();
}

void Transactions::State::post_rebuild() {
  {
    const std::lock_guard lock(mutex);
    if (failed.empty() || std::exchange(rebuilding, true)) return;
  }
  stage.helpers.post([this] { rebuild_failed(); });
}

/// Up to the first that cannot be read: that one comes last the next time, a second later.
void Transactions::State::rebuild_failed() {
  std::unique_lock lock(mutex);
  for (std::size_t left = failed.size(); left > 0 && !stopped.load(); --left) {
    const TransactionSlotPtr slot = std::move(failed.front());
    failed.erase(failed.begin());
    lock.unlock();
    const bool rebuilt = rebuild(slot);
    lock.lock();
    if (rebuilt) continue;
    failed.push_back(slot);
    break;
  }
  rebuilding = false;
  quiet.notify_all();
}

bool Transactions::State::rebuild(const TransactionSlotPtr& slot) {
  coordinator::Transaction machine(slot->id, settings);
  const auto visit = [&](const reserved::ReservedName& name, Bytes body) -> Result<void> {
    return machine.apply({name.key, Buffer(body.begin(), body.end())});
  };
  if (auto read = stage.session.replay_channel({reserved::Kind::kTxn, slot->id}, visit); !read) {
    logger("broker").error("A transactional id could not be read from its channel. id={} reason={}",
                           slot->id, read.error().detail);
    return false;
  }
  Aftermath after;
  slot->live.with([&](LiveTransaction& live) {
    const coordinator::WaiterId number = ++live.last_number;
    auto effects = machine.loaded(stalls.now(), stage.broker.clock().wall(), number);
    live.machine = std::move(machine);
    live.status = Status::kUsable;
    live.due.reset();
    for (auto& end : effects.actions) after.end = std::move(end);
    settle(live, after);
  });
  finish(slot, after);
  if (after.end) begin_end(slot, std::move(*after.end), nullptr);
  return true;
}

void Transactions::State::expire(std::size_t shard) {
  if (stopped.load() || shard == TransactionTable::kShards) return;
  for (const TransactionSlotPtr& slot : table.shard(shard))
    step_own(slot, coordinator::ExpireTransactionalId{});
  stage.helpers.post([this, shard] { expire(shard + 1); });
}

}  // namespace kanal::broker
