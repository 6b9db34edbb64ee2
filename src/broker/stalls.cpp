#include "stalls.hpp"

#include <algorithm>
#include <memory>

#include "kanal/base/logging.hpp"

namespace kanal::broker {
namespace {

using namespace std::chrono_literals;
constexpr Duration kSlack = 500ms;
constexpr Duration kTick = 1s;
// A connection is accepted in one pass of its listener's loop, read in a later one of its own
// thread's loop, and its request may start another pass later: three rounds over all threads with
// three passes each have that behind them.
constexpr int kRounds = 3;
constexpr int kHops = 3;

}  // namespace

void Stalls::attach(IoThread& io) {
  threads_.push_back(&io);
  // The first tick comes a second from now: a stall before it is to be seen by it too.
  const std::lock_guard lock(mutex_);
  if (!last_tick_) last_tick_ = clock_.now();
}

Time Stalls::by_clock(Time group_time) const noexcept {
  const Duration stalled = total();
  return group_time > Time::max() - stalled ? Time::max() : group_time + stalled;
}

void Stalls::ran(Time due) {
  const Time now = clock_.now();
  if (now - due > kSlack) add(due, now);
}

void Stalls::tick() {
  const Time now = clock_.now();
  std::optional<Time> before;
  {
    const std::lock_guard lock(mutex_);
    before = std::exchange(last_tick_, now);
  }
  if (before && now - *before > kTick + kSlack) add(*before + kTick, now);
}

void Stalls::add(Time from, Time until) {
  Duration added;
  {
    const std::lock_guard lock(mutex_);
    if (from > stalled_until_ || until < stalled_from_) {
      added = until - from;
      stalled_from_ = from;
      stalled_until_ = until;
    } else {  // another view of the same stall
      added = std::max(stalled_from_ - from, Duration(0)) +
              std::max(until - stalled_until_, Duration(0));
      stalled_from_ = std::min(stalled_from_, from);
      stalled_until_ = std::max(stalled_until_, until);
    }
    total_.fetch_add(added.count(), std::memory_order_release);
  }
  if (added <= kSlack) return;
  logger("broker").warn(
      "The broker stood still; deadlines of groups and transactions move by as much. ms={}",
      added / 1ms);
}

void Stalls::after_barrier(std::move_only_function<void()> then) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(then));
    if (std::exchange(barrier_runs_, true)) return;
  }
  begin_barrier();
}

void Stalls::begin_barrier() {
  const auto barrier = std::make_shared<Barrier>();
  barrier->begin = clock_.now();
  barrier->rounds_left = kRounds;
  {
    const std::lock_guard lock(mutex_);
    barrier->then.swap(waiting_);
  }
  round(barrier);
}

void Stalls::round(const std::shared_ptr<Barrier>& barrier) {
  if (barrier->rounds_left-- == 0 || threads_.empty()) return end(*barrier);
  barrier->threads_left = threads_.size();
  for (IoThread* io : threads_) hop(*io, barrier, kHops);
}

void Stalls::hop(IoThread& io, std::shared_ptr<Barrier> barrier, int hops_left) {
  if (hops_left == 0) {
    if (--barrier->threads_left == 0) round(barrier);
    return;
  }
  io.post([this, &io, held = std::move(barrier), hops_left]() mutable {
    hop(io, std::move(held), hops_left - 1);
  });
}

void Stalls::end(Barrier& barrier) {
  ran(barrier.begin);
  for (auto& then : barrier.then) then();
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) {
      barrier_runs_ = false;
      return;
    }
  }
  begin_barrier();
}

}  // namespace kanal::broker
