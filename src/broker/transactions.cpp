#include "kanal/broker/transactions.hpp"

#include <algorithm>
#include <utility>

#include "driver.hpp"
#include "kanal/base/check.hpp"
#include "kanal/base/logging.hpp"
#include "transactions_state.hpp"

namespace kanal::broker {
namespace {

using namespace std::chrono_literals;
using coordinator::Transaction;
using coordinator::TransactionCommand;
using coordinator::TransactionPartition;
using coordinator::TransactionReply;
using coordinator::TransactionVersion;
using Status = SlotStatus;

constexpr auto kUnavailable = ErrorCode::COORDINATOR_NOT_AVAILABLE;
constexpr auto kLoading = ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;

}  // namespace

Transactions::Transactions(Stage stage) : state_(std::make_unique<State>(std::move(stage))) {}
Transactions::~Transactions() = default;

Task<TransactionReply> Transactions::init(Context& context, std::string_view id,
                                          coordinator::InitProducerIdCommand command) {
  return state_->ask(context, id, std::move(command), State::IfUnknown::kMake);
}

Task<TransactionReply> Transactions::end(Context& context, std::string_view id,
                                         coordinator::EndTransactionCommand command) {
  return state_->ask(context, id, std::move(command), State::IfUnknown::kAskOnly);
}

ErrorCode Transactions::add(std::string_view id, coordinator::AddToTransactionCommand command) {
  const auto stepped =
      state_->submit(id, state_->command(std::move(command)), State::IfUnknown::kAskOnly);
  CHECK(stepped.reply.has_value(), "an addition is answered at once");
  return stepped.reply->error;
}

ErrorCode Transactions::verify(const TransactionWriter& writer,
                               const TransactionPartition& partition) const {
  ErrorCode verified = ErrorCode::NONE;
  const ErrorCode refused =
      state_->with_usable(writer.id, [&](const TransactionSlotPtr&, LiveTransaction& live) {
        verified = live.machine.verify(writer.producer_id, writer.producer_epoch, partition);
      });
  return refused != ErrorCode::NONE ? refused : verified;
}

// Writing

template <class Use>
ErrorCode Transactions::State::with_usable(std::string_view id, Use&& use) {
  if (stopped.load(std::memory_order_relaxed)) return kUnavailable;
  for (;;) {
    const TransactionSlotPtr slot = table.find(id);
    if (slot == nullptr) {
      return id.empty() ? ErrorCode::INVALID_REQUEST : ErrorCode::INVALID_PRODUCER_ID_MAPPING;
    }
    const Status status = slot->live.with([&](LiveTransaction& live) {
      if (live.status == Status::kUsable) use(slot, live);
      return live.status;
    });
    if (status == Status::kUsable) return ErrorCode::NONE;
    // A write of this very use may have failed it.
    if (status == Status::kFailed) return kLoading;
    table.erase(slot);
  }
}

void Transactions::write(const TransactionWriter& writer,
                         std::span<const TransactionPartition> partitions, const Append& append) {
  std::vector<ErrorCode> errors(partitions.size(), ErrorCode::NONE);
  State::Aftermath after;
  TransactionSlotPtr used;
  const ErrorCode refused =
      state_->with_usable(writer.id, [&](const TransactionSlotPtr& slot, LiveTransaction& live) {
        used = slot;
        state_->check_writer(*slot, live, writer, {partitions, errors}, after);
        append(errors);
      });
  if (used != nullptr) {
    state_->finish(used, after);
    return;
  }
  std::ranges::fill(errors, refused);
  append(errors);
}

void Transactions::State::check_writer(TransactionSlot& slot, LiveTransaction& live,
                                       const TransactionWriter& writer, const Checked& checked,
                                       Aftermath& after) {
  coordinator::AddToTransactionCommand add{.producer_id = writer.producer_id,
                                           .producer_epoch = writer.producer_epoch,
                                           .version = writer.version,
                                           .partitions = {},
                                           .group = std::nullopt};
  for (std::size_t i = 0; i < checked.partitions.size(); ++i) {
    const TransactionPartition& partition = checked.partitions[i];
    checked.errors[i] = live.machine.verify(writer.producer_id, writer.producer_epoch, partition);
    if (checked.errors[i] == ErrorCode::TRANSACTION_ABORTABLE) add.partitions.push_back(partition);
  }
  if (add.partitions.empty() || writer.version == TransactionVersion::k1) return;
  const ErrorCode added = step_add(slot, live, std::move(add), after);
  std::ranges::replace(checked.errors, ErrorCode::TRANSACTION_ABORTABLE, added);
}

void Transactions::write_offsets(const TransactionWriter& writer, std::string_view group,
                                 const Append& append) {
  State::Aftermath after;
  TransactionSlotPtr used;
  ErrorCode error = state_->with_usable(writer.id, [&](const TransactionSlotPtr& slot,
                                                       LiveTransaction& live) {
    used = slot;
    ErrorCode checked = live.machine.verify_group(writer.producer_id, writer.producer_epoch, group);
    if (checked == ErrorCode::TRANSACTION_ABORTABLE && writer.version == TransactionVersion::k2) {
      coordinator::AddToTransactionCommand add{.producer_id = writer.producer_id,
                                               .producer_epoch = writer.producer_epoch,
                                               .version = writer.version,
                                               .partitions = {},
                                               .group = group};
      checked = state_->step_add(*slot, live, std::move(add), after);
    }
    append({&checked, 1});
  });
  if (used != nullptr)
    state_->finish(used, after);
  else
    append({&error, 1});
}

ErrorCode Transactions::State::step_add(TransactionSlot& slot, LiveTransaction& live,
                                        coordinator::AddToTransactionCommand add,
                                        Aftermath& after) {
  TransactionCommand command = this->command(std::move(add));
  const auto reply = step(slot, live, command, after);
  settle(live, after);
  return reply ? reply->error : kUnavailable;
}

// Reading

ErrorCode Transactions::visit(std::string_view id, const Visitor& visit) const {
  switch (state_->table.visit_live(id, visit)) {
    case Status::kUsable:
      return ErrorCode::NONE;
    case Status::kFailed:
      return kLoading;
    case Status::kDropped:
      break;
  }
  return ErrorCode::TRANSACTIONAL_ID_NOT_FOUND;
}

void Transactions::for_each(const Visitor& visit) const {
  state_->table.for_each_live(visit);
}

std::size_t Transactions::size() const {
  return state_->table.size();
}

// Steps

TransactionCommand Transactions::State::command(What what) const {
  return {.waiter = 0,
          .wall = stage.broker.clock().wall(),
          .fresh = kNoProducerId,
          .what = std::move(what)};
}

Task<TransactionReply> Transactions::State::ask(Context& context, std::string_view id, What what,
                                                IfUnknown if_unknown) {
  const auto waiter = std::make_shared<TransactionWaiter>(context.io);
  while (const auto gate = enter(context.io)) {
    co_await stage.broker.park(context, *gate, Time::max());
    if (context.cancelled) co_return refusal(kUnavailable);
  }
  std::optional<Deciding> entered(std::in_place, *this);
  TransactionCommand command = this->command(std::move(what));
  Stepped stepped = submit(id, command, if_unknown, waiter);
  while (stepped.needs_producer_id) {
    const Result<ProducerIdentity> fresh = co_await stage.broker.new_producer_id(context);
    if (!fresh) co_return refusal(kUnavailable);
    command.fresh = fresh->id;
    stepped = submit(id, command, if_unknown, waiter);
  }
  if (stepped.end) begin_end(stepped.slot, std::move(*stepped.end), &context.io);
  entered.reset();
  if (stepped.reply) {
    if (stepped.reply->error != ErrorCode::NONE) co_return *stepped.reply;
    const Result<void> synced = co_await stage.broker.reserved_synced(context);
    co_return synced ? *stepped.reply : refusal(kUnavailable);
  }
  const auto answered = [&] {
    return stepped.slot->live.with([&](LiveTransaction&) { return waiter->reply.has_value(); });
  };
  if (!answered()) co_await stage.broker.park(context, waiter->event, Time::max());
  // Under the lock, since a connection that ended may meet its reply here. The end goes on.
  co_return stepped.slot->live.with([&](LiveTransaction& live) {
    if (live.parked == waiter) live.parked.reset();
    return waiter->reply.value_or(refusal(kUnavailable));
  });
}

TransactionReply Transactions::State::refusal(ErrorCode error) {
  TransactionReply reply;
  reply.error = error;
  return reply;
}

Transactions::State::Stepped Transactions::State::submit(
    std::string_view id, TransactionCommand command, IfUnknown if_unknown,
    const std::shared_ptr<TransactionWaiter>& waiter) {
  Stepped stepped;
  if (stopped.load(std::memory_order_relaxed)) {
    stepped.reply = refusal(kUnavailable);
    return stepped;
  }
  for (;;) {
    const TransactionSlotPtr slot =
        if_unknown == IfUnknown::kMake ? table.find_or_add(id, settings) : table.find(id);
    if (slot == nullptr) {
      Transaction nobody(std::string(id), settings);
      const auto effects = nobody.step(stalls.now(), command);
      CHECK(!effects.replies.empty() && effects.records.empty(),
            "an id that is not known refuses at once");
      stepped.reply = effects.replies.front();
      return stepped;
    }
    Aftermath after;
    const bool dropped = slot->live.with([&](LiveTransaction& live) {
      if (live.status == Status::kDropped) return true;
      if (live.status == Status::kFailed)
        stepped.reply = refusal(kLoading);
      else if (command.fresh == kNoProducerId && live.machine.needs_producer_id(command))
        stepped.needs_producer_id = true;
      else
        stepped.reply = step_asked(*slot, live, command, waiter, after);
      settle(live, after);
      return false;
    });
    if (dropped) {
      table.erase(slot);
      continue;
    }
    if (!stepped.reply) stepped.slot = slot;
    stepped.end = std::exchange(after.end, std::nullopt);
    finish(slot, after);
    return stepped;
  }
}

std::optional<TransactionReply> Transactions::State::step_asked(
    TransactionSlot& slot, LiveTransaction& live, TransactionCommand& command,
    const std::shared_ptr<TransactionWaiter>& waiter, Aftermath& after) {
  auto reply = step(slot, live, command, after);
  if (reply || after.failed) return after.failed ? refusal(kUnavailable) : reply;
  CHECK(waiter != nullptr && live.parked == nullptr, "one who can wait is parked, and one only");
  live.parked = waiter;
  live.parked_as = command.waiter;
  return std::nullopt;
}

std::optional<TransactionReply> Transactions::State::step(TransactionSlot& slot,
                                                          LiveTransaction& live,
                                                          TransactionCommand& command,
                                                          Aftermath& after) {
  command.waiter = ++live.last_number;
  auto effects = live.machine.step(stalls.now(), command);
  if (!effects.records.empty()) {
    auto stored = store_and_apply(stage.session, reserved::Kind::kTxn, live.machine,
                                  effects.records, reserved::Durability::kWritten);
    if (!stored) {
      fail(slot, live, stored.error(), after);
      return std::nullopt;
    }
  }
  for (coordinator::WriteMarkers& end : effects.actions) after.end = std::move(end);
  std::optional<TransactionReply> own;
  for (const TransactionReply& reply : effects.replies) {
    if (reply.waiter == command.waiter) {
      own = reply;
    } else if (live.parked != nullptr && live.parked_as == reply.waiter) {
      live.parked->reply = reply;
      after.woken = std::exchange(live.parked, nullptr);
    }
  }
  return own;
}

void Transactions::State::settle(LiveTransaction& live, Aftermath& after) {
  if (live.status != Status::kUsable) return;
  if (live.machine.vacant()) {
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

void Transactions::State::fail(TransactionSlot& slot, LiveTransaction& live, const Error& why,
                               Aftermath& after) {
  live.status = Status::kFailed;
  live.due.reset();
  after.failed = true;
  after.woken = std::exchange(live.parked, nullptr);
  const Time now = stage.broker.clock().now();
  Time last = last_failure_logged.load();
  if (now - last < 1s || !last_failure_logged.compare_exchange_strong(last, now)) return;
  logger("broker").error(
      "A transactional id could not be stored; it is read anew from its channel. id={} reason={}",
      slot.id, why.detail);
}

void Transactions::State::finish(const TransactionSlotPtr& slot, Aftermath& after) {
  if (after.woken != nullptr) {
    IoThread& io = after.woken->event.io();
    io.post([held = std::move(after.woken)] { held->event.fire(); });
  }
  if (after.vacant) table.erase(slot);
  if (after.arm) deadlines.arm(slot);
  if (after.failed) {
    const std::lock_guard lock(mutex);
    failed.push_back(slot);
    if (!std::exchange(rebuilding, true)) stage.helpers.post([this] { rebuild_failed(); });
  }
}

void Transactions::State::step_own(const TransactionSlotPtr& slot, What what) {
  TransactionCommand command = this->command(std::move(what));
  Aftermath after;
  slot->live.with([&](LiveTransaction& live) {
    if (live.status != Status::kUsable) return;
    (void)step(*slot, live, command, after);
    settle(live, after);
  });
  finish(slot, after);
}

}  // namespace kanal::broker
