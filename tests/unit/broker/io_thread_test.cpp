#include "kanal/broker/io_thread.hpp"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

namespace kanal::broker {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;

// Far ahead of the machine's own clock, whose timer therefore never fires in between.
constexpr Duration kStart = 1'000'000h;

class ManualClock final : public Clock {
 public:
  Time now() const noexcept override { return now_; }
  Timestamp wall() const noexcept override { return Timestamp(0); }
  void set(Duration since_start) { now_ = Time(kStart + since_start); }

 private:
  Time now_{kStart};
};

struct IoThreadTest : testing::Test {
  ManualClock clock;
  IoThread io{clock, 0};
  int outcome = 0;  // 1 fired, 2 deadline

  void wait(Event& event, Duration deadline) {
    auto waiting = [](Event& on, Time until, int& result) -> Task<void> {
      const bool fired = co_await on.wait_until(until);
      result = fired ? 1 : 2;
    };
    asio::co_spawn(io.context(), waiting(event, Time(kStart + deadline), outcome), asio::detached);
    while (io.poll()) {
    }
  }
  void poll() {
    while (io.poll()) {
    }
  }
};

TEST_F(IoThreadTest, AnEventWakesItsWaiter) {
  Event event(io);
  wait(event, 10s);
  EXPECT_EQ(outcome, 0);
  event.fire();
  poll();
  EXPECT_EQ(outcome, 1);
  EXPECT_FALSE(io.next_timer()) << "the deadline's timer is gone";
}

TEST_F(IoThreadTest, ADeadlineWakesItToo) {
  Event event(io);
  wait(event, 10s);
  clock.set(9s);
  poll();
  EXPECT_EQ(outcome, 0);
  clock.set(10s);
  poll();
  EXPECT_EQ(outcome, 2);
}

TEST_F(IoThreadTest, AnEventFiredBeforeTheWaitIsNotLost) {
  Event event(io);
  event.fire();
  wait(event, 10s);
  EXPECT_EQ(outcome, 1);
}

TEST_F(IoThreadTest, TimersRunInTheOrderOfTheirDeadlines) {
  std::string order;
  io.add_timer(Time(kStart + 3s), [&] { order += 'c'; });
  io.add_timer(Time(kStart + 1s), [&] { order += 'a'; });
  const auto cancelled = io.add_timer(Time(kStart + 2s), [&] { order += 'x'; });
  io.add_timer(Time(kStart + 2s), [&] { order += 'b'; });
  io.cancel_timer(cancelled);
  clock.set(3s);
  poll();
  EXPECT_EQ(order, "abc");
}

}  // namespace
}  // namespace kanal::broker
