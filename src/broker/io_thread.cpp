#include "kanal/broker/io_thread.hpp"

#include <sys/timerfd.h>
#include <unistd.h>

#include <boost/asio/async_result.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <cstdint>

#include "kanal/base/check.hpp"

namespace kanal::broker {
namespace asio = boost::asio;

struct IoThread::Loop {
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  asio::posix::stream_descriptor timer{context};
  std::optional<Time> armed;
  bool waiting = false;
};

IoThread::IoThread(const Clock& clock, int index)
    : clock_(clock),
      index_(index),
      loop_(std::make_unique<Loop>()),
      scratch_(std::make_unique<records::Scratch>()) {
  // BOOTTIME counts on while the machine sleeps, as Clock::now() does.
  const int fd = ::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
  CHECK(fd >= 0, "a timer descriptor is to be had");
  loop_->timer.assign(fd);
}

IoThread::~IoThread() = default;

asio::io_context& IoThread::context() noexcept {
  return loop_->context;
}

void IoThread::post(std::move_only_function<void()> work) {
  asio::post(loop_->context, std::move(work));
}

Timers::Id IoThread::add_timer(Time deadline, std::move_only_function<void()> action) {
  const Timers::Id id = timers_.add(deadline, std::move(action));
  if (!loop_->armed || deadline < *loop_->armed) arm();
  return id;
}

void IoThread::cancel_timer(const Timers::Id& id) {
  timers_.cancel(id);
}

void IoThread::arm() {
  const std::optional<Time> next = timers_.next();
  if (!next || *next == Time::max()) return;
  const auto since_boot = std::max<std::int64_t>(next->time_since_epoch().count(), 1);
  itimerspec at{};
  at.it_value.tv_sec = since_boot / 1'000'000'000;
  at.it_value.tv_nsec = since_boot % 1'000'000'000;
  ::timerfd_settime(loop_->timer.native_handle(), TFD_TIMER_ABSTIME, &at, nullptr);
  loop_->armed = *next;
  if (loop_->waiting) return;
  loop_->waiting = true;
  auto on_ready = [this](const boost::system::error_code& error) {
    loop_->waiting = false;
    if (error) return;
    std::uint64_t expirations = 0;
    if (::read(loop_->timer.native_handle(), &expirations, sizeof expirations) < 0) expirations = 0;
    loop_->armed.reset();
    timers_.run_due(clock_.now());
    if (!loop_->armed) arm();
  };
  loop_->timer.async_wait(asio::posix::stream_descriptor::wait_read, std::move(on_ready));
}

void IoThread::run() {
  loop_->context.run();
}

void IoThread::stop() {
  loop_->context.stop();
}

bool IoThread::poll() {
  timers_.run_due(clock_.now());
  return loop_->context.poll() > 0;
}

void Event::fire() {
  if (fired_) return;
  fired_ = true;
  resume();
}

void Event::resume() {
  if (!waiting_) return;
  // Posted, not called: whoever fires may hold iterators or be another coroutine's stack.
  io_.post(std::exchange(waiting_, nullptr));
}

void Event::then(std::move_only_function<void()> then) {
  waiting_ = std::move(then);
  if (fired_) resume();
}

Task<bool> Event::wait_until(Time deadline) {
  if (fired_) co_return true;
  std::optional<Timers::Id> timer;
  if (deadline != Time::max()) timer = io_.add_timer(deadline, [this] { resume(); });
  auto suspend = [this](auto handler) {
    waiting_ = [held = std::move(handler)]() mutable { std::move(held)(); };
  };
  auto waiting = asio::async_initiate<const asio::use_awaitable_t<>, void()>(std::move(suspend),
                                                                             asio::use_awaitable);
  co_await std::move(waiting);
  if (timer) io_.cancel_timer(*timer);
  co_return fired_;
}

}  // namespace kanal::broker
