// How an end is carried out: decided (synced, where its markers are), its markers written in
// slices and committed, then complete. An end is owned by State::ends and used on its I/O thread
// alone; whoever resumes it holds it weakly.
#include <algorithm>
#include <limits>
#include <utility>

#include "kanal/base/check.hpp"
#include "kanal/base/logging.hpp"
#include "reserved_sync.hpp"
#include "transactions_state.hpp"

namespace kanal::broker {
namespace {

using namespace std::chrono_literals;
using Status = SlotStatus;

constexpr std::size_t kSlice = 64;    // markers until the loop runs again
constexpr Duration kAgainAfter = 1s;  // what could not be written
constexpr auto kPatience = 10s;       // of who wants no end under way …
constexpr auto kGlance = 100ms;       // … and looks so often whether it still does

bool pending(const Ticket& ticket) {
  return Broker::outcome(ticket) == ErrorCode::REQUEST_TIMED_OUT;
}

}  // namespace

struct Transactions::State::End {
  End(Broker& broker, TransactionSlotPtr of, coordinator::WriteMarkers what)
      : slot(std::move(of)),
        markers(broker, std::move(what)),
        decided(!markers.acks_after_sync()) {}
  const TransactionSlotPtr slot;
  TransactionMarkers markers;
  IoThread* io = nullptr;
  bool decided;  // for good
  std::shared_ptr<ReservedSync::Wait> deciding;
  std::shared_ptr<FetchWait> commits;
};

// The gate

std::shared_ptr<Event> Transactions::State::enter(IoThread& io) {
  const std::lock_guard lock(mutex);
  if (!paused) {
    ++deciding;
    return nullptr;
  }
  return at_gate.emplace_back(std::make_shared<Event>(io));
}

void Transactions::State::leave() {
  const std::lock_guard lock(mutex);
  --deciding;
  quiet.notify_all();
}

Result<void> Transactions::State::close_gate(const std::function<bool()>& cancelled) {
  std::unique_lock lock(mutex);
  CHECK(!paused, "one snapshot is made at a time");
  paused = true;
  const auto is_quiet = [this] { return deciding == 0 && ends.empty() && failed.empty(); };
  for (auto left = kPatience / kGlance; left > 0 && !cancelled(); --left) {
    if (quiet.wait_for(lock, kGlance, is_quiet)) return {};
  }
  lock.unlock();
  open_gate();
  return kanal::fail(ErrorCode::KAFKA_STORAGE_ERROR,
                     "A transaction is being ended, and its markers cannot be written for now.");
}

void Transactions::State::open_gate() {
  std::vector<std::shared_ptr<Event>> held;
  {
    const std::lock_guard lock(mutex);
    paused = false;
    held.swap(at_gate);
  }
  for (auto& event : held) {
    IoThread& io = event->io();
    io.post([passes = std::move(event)] { passes->fire(); });
  }
}

Result<Transactions::Pause> Transactions::pause(const std::function<bool()>& cancelled) {
  if (auto closed = state_->close_gate(cancelled); !closed) return std::unexpected(closed.error());
  return Pause(*state_);
}

Transactions::Pause::~Pause() {
  if (state_ != nullptr) state_->open_gate();
}

// An end's way

void Transactions::State::begin_end(const TransactionSlotPtr& slot,
                                    coordinator::WriteMarkers markers, IoThread* io) {
  const auto end = std::make_shared<End>(stage.broker, slot, std::move(markers));
  // Before others can see it: take_up_ends() looks for those without a thread.
  end->io = io != nullptr ? io : deadlines.home(*slot);
  keep(end);
  if (io != nullptr)
    advance(end);
  else if (end->io != nullptr)
    resume_later(end);
}

void Transactions::State::keep(const EndPtr& end) {
  const std::lock_guard lock(mutex);
  ends.emplace(end.get(), end);
}

void Transactions::State::drop(const EndPtr& end) {
  const std::lock_guard lock(mutex);
  ends.erase(end.get());
  quiet.notify_all();
}

/// `this` is there for as long as the end is.
std::move_only_function<void()> Transactions::State::resumption(const EndPtr& end) {
  return [this, weak = std::weak_ptr(end)] {
    if (const EndPtr held = weak.lock()) advance(held);
  };
}

void Transactions::State::resume_later(const EndPtr& end) {
  end->io->post(resumption(end));
}

void Transactions::State::advance(const EndPtr& end) {
  if (stopped.load(std::memory_order_relaxed)) return;  // the next start goes on with it
  if (!decide(end)) return;
  end->markers.write(kSlice);
  if (!end->markers.round_done()) return resume_later(end);
  if (!commit(end)) return;
  if (!end->markers.begin_round()) return complete(end);
  // Its outcome is decided, so who waits need not wait for the disk.
  step_own(end->slot, coordinator::MarkersDelayed{end->markers.end().end});
  end->io->add_timer(stage.broker.clock().now() + kAgainAfter, resumption(end));
}

bool Transactions::State::decide(const EndPtr& end) {
  if (end->decided) return true;
  if (end->deciding == nullptr) {
    end->deciding = stage.syncs.join(*end->io);
    end->deciding->event.then(resumption(end));
    return false;
  }
  if (!end->deciding->event.fired()) return false;
  end->decided = end->deciding->outcome.has_value();
  if (end->decided) return true;
  // What is stored is not known: it is read anew, and comes here again.
  Aftermath after;
  end->slot->live.with([&](LiveTransaction& live) {
    if (live.status == Status::kUsable)
      fail(*end->slot, live, end->deciding->outcome.error(), after);
  });
  finish(end->slot, after);
  drop(end);
  return false;
}

bool Transactions::State::commit(const EndPtr& end) {
  const auto& tickets = end->markers.tickets();
  if (end->commits != nullptr) std::exchange(end->commits, nullptr)->leave();
  if (std::ranges::none_of(tickets, pending)) return true;
  const auto wait = std::make_shared<FetchWait>(*end->io, std::numeric_limits<std::int64_t>::max());
  for (const Ticket& ticket : tickets) {
    if (pending(ticket)) ticket.partition->watch_commits(*wait);
  }
  // Asked again now that we are watching: a commit in between must not be slept through.
  if (std::ranges::none_of(tickets, pending)) {
    wait->leave();
    return true;
  }
  end->commits = wait;
  wait->event().then(resumption(end));
  return false;
}

void Transactions::State::complete(const EndPtr& end) {
  drop(end);
  step_own(end->slot, coordinator::MarkersWritten{end->markers.end().end});
}

void Transactions::State::take_up_ends() {
  std::vector<EndPtr> waiting;
  {
    const std::lock_guard lock(mutex);
    for (const auto& [at, end] : ends) {
      if (end->io == nullptr) waiting.push_back(end);
    }
  }
  for (const EndPtr& end : waiting) {
    end->io = deadlines.home(*end->slot);
    resume_later(end);
  }
}

// At the start: one thread, that may block

Result<void> Transactions::State::finish_prepared(const TransactionSlotPtr& slot,
                                                  TransactionsReport& report) {
  Aftermath after;
  auto effects = slot->live.with([&](LiveTransaction& live) {
    const coordinator::WaiterId number = ++live.last_number;
    auto asked = live.machine.loaded(stalls.now(), stage.broker.clock().wall(), number);
    settle(live, after);
    return asked;
  });
  finish(slot, after);
  if (effects.actions.empty()) return {};
  ++report.ended;
  return finish_end(slot, std::move(effects.actions.front()));
}

Result<void> Transactions::State::finish_end(const TransactionSlotPtr& slot,
                                             coordinator::WriteMarkers markers) {
  const auto end = std::make_shared<End>(stage.broker, slot, std::move(markers));
  if (!end->decided) {
    if (auto synced = stage.syncs.now(); !synced) return synced;
    end->decided = true;
  }
  end->markers.write(std::numeric_limits<std::int32_t>::max());
  for (const Ticket& ticket : end->markers.tickets()) {
    if (const auto synced = ticket.partition->sync()) ticket.partition->commit(*synced);
  }
  if (end->markers.begin_round()) {
    logger("broker").warn(
        "A transaction was ended and not all of its markers can be written yet. id={}", slot->id);
    keep(end);
    return {};
  }
  step_own(slot, coordinator::MarkersWritten{end->markers.end().end});
  return {};
}

}  // namespace kanal::broker
