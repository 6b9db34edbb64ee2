// The time of groups and transactions: it stands still while the broker itself is stalled (a slow
// disk, SIGSTOP, a suspended machine), so that nobody is expired who could not be heard. A loop
// that wakes more than 500 ms late, or a barrier that takes that long, is a stall. A barrier lets
// each I/O thread accept, read and handle once what its sockets hold; it runs before a deadline
// expires anybody. Any thread.
#pragma once

#include "kanal/base/clock.hpp"
#include "kanal/broker/io_thread.hpp"

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace kanal::broker {

class Stalls {
 public:
  explicit Stalls(const Clock& clock) : clock_(clock) {}

  /// Before the first request.
  void attach(IoThread& io);

  /// Group time: the clock's less all stalls so far. Steps back when a stall is found.
  [[nodiscard]] Time now() const noexcept { return clock_.now() - total(); }
  [[nodiscard]] Duration total() const noexcept {
    return Duration(total_.load(std::memory_order_acquire));
  }
  /// When, by the clock, a group time comes if no stall does.
  [[nodiscard]] Time by_clock(Time group_time) const noexcept;

  /// What was due at `due` by the clock runs only now.
  void ran(Time due);
  /// Called every second.
  void tick();
  /// Runs `then`, on some I/O thread, once every I/O thread has read and handled what was there.
  void after_barrier(std::move_only_function<void()> then);

 private:
  struct Barrier {
    Time begin;
    int rounds_left = 0;
    std::atomic<std::size_t> threads_left = 0;
    std::vector<std::move_only_function<void()>> then;
  };
  void begin_barrier();
  void round(const std::shared_ptr<Barrier>& barrier);
  void hop(IoThread& io, std::shared_ptr<Barrier> barrier, int hops_left);
  void end(Barrier& barrier);
  void add(Time from, Time until);

  const Clock& clock_;
  std::vector<IoThread*> threads_;
  std::atomic<Duration::rep> total_ = 0;

  std::mutex mutex_;
  Time stalled_from_, stalled_until_;  // the latest stall: several may see parts of the same
  std::optional<Time> last_tick_;
  bool barrier_runs_ = false;
  std::vector<std::move_only_function<void()>> waiting_;  // for the next barrier
};

}  // namespace kanal::broker
