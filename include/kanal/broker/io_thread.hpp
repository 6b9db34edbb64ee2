// One I/O thread: its io_context(1), timers, scratch buffers and parked waits. Everything but
// post() is for that thread alone. Event is how a coroutine of this thread sleeps until somebody
// fires it or a deadline passes.
#pragma once

#include "kanal/base/clock.hpp"
#include "kanal/broker/task.hpp"
#include "kanal/broker/timers.hpp"
#include "kanal/records/validate.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <unordered_set>

namespace boost::asio {
class io_context;
}

namespace kanal::broker {

struct Context;

class IoThread {
 public:
  IoThread(const Clock& clock, int index);
  ~IoThread();

  [[nodiscard]] boost::asio::io_context& context() noexcept;
  [[nodiscard]] const Clock& clock() const noexcept { return clock_; }
  [[nodiscard]] int index() const noexcept { return index_; }
  [[nodiscard]] records::Scratch& scratch() noexcept { return *scratch_; }

  /// Runs `work` on this thread, later. Any thread.
  void post(std::move_only_function<void()> work);

  Timers::Id add_timer(Time deadline, std::move_only_function<void()> action);
  void cancel_timer(const Timers::Id& id);

  /// Requests of this thread that wait; what a stop has to release. This thread only.
  std::unordered_set<Context*>& parked() noexcept { return parked_; }

  /// Runs the loop until stop(). The calling thread becomes this I/O thread.
  void run();
  void stop();  // any thread
  /// For the simulation: runs what is ready and the timers due by the clock; whether anything ran.
  bool poll();
  [[nodiscard]] std::optional<Time> next_timer() const { return timers_.next(); }

 private:
  struct Loop;
  void arm();
  const Clock& clock_;
  int index_;
  std::unique_ptr<Loop> loop_;
  Timers timers_;
  std::unordered_set<Context*> parked_;
  std::unique_ptr<records::Scratch> scratch_;
};

/// A one-shot signal for one waiting coroutine of one I/O thread. fire() on that thread only;
/// others post it.
class Event {
 public:
  explicit Event(IoThread& io) : io_(io) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void fire();
  [[nodiscard]] bool fired() const noexcept { return fired_; }
  /// True if fired, false if the deadline came first.
  Task<bool> wait_until(Time deadline);
  /// In place of a coroutine: `then` is posted once it is fired.
  void then(std::move_only_function<void()> then);
  [[nodiscard]] IoThread& io() const noexcept { return io_; }

 private:
  void resume();
  IoThread& io_;
  bool fired_ = false;
  std::move_only_function<void()> waiting_;
};

}  // namespace kanal::broker
