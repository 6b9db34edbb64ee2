// The server's small parts: frames, request memory, buffers, connection limits, the log budget,
// helper threads.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "connection_limits.hpp"
#include "frame.hpp"
#include "frame_buffer.hpp"
#include "helper_pool.hpp"
#include "log_budget.hpp"
#include "request_memory.hpp"
#include "system_clock.hpp"
#include "system_random.hpp"

namespace kanal::server {
namespace {

std::string sized(std::int32_t size, std::size_t bytes) {
  std::string text(4 + bytes, 'x');
  store_be(reinterpret_cast<std::byte*>(text.data()), size);
  return text;
}

TEST(Frame, IsPartialUntilItsLastByte) {
  const std::string whole = sized(20, 20);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const FrameExtent found = find_frame(as_bytes(whole).first(length), 100);
    EXPECT_EQ(found.state, FrameState::kPartial);
    EXPECT_EQ(found.bytes, length < 4 ? 4U : 24U);
  }
  EXPECT_EQ(find_frame(as_bytes(whole), 100).state, FrameState::kComplete);
  EXPECT_EQ(find_frame(as_bytes(whole + "more"), 100).bytes, 24U);
}

TEST(Frame, RefusesSizesThatCannotBe) {
  for (const std::int32_t size : {-1, INT32_MIN, 0, 1, 9, 101, INT32_MAX}) {
    EXPECT_EQ(find_frame(as_bytes(sized(size, 0)), 100).state, FrameState::kInvalid) << size;
  }
  EXPECT_EQ(find_frame(as_bytes(sized(100, 0)), 100).state, FrameState::kPartial);
}

TEST(Frame, SaysWhatTheOtherSideSeemsToSpeak) {
  EXPECT_NE(describe_invalid_frame(as_bytes("GET / HTTP/1.1"), 100).find("HTTP"),
            std::string::npos);
  EXPECT_NE(describe_invalid_frame(as_bytes("\x16\x03\x01\x02"), 100).find("TLS"),
            std::string::npos);
  EXPECT_NE(
      describe_invalid_frame(as_bytes(sized(101, 0)), 100).find("socket.request.max.bytes 100"),
      std::string::npos);
}

TEST(RequestMemory, AdmitsWhileAnythingIsLeftAndWakesInTurn) {
  RequestMemory memory(100);
  Reservation first = memory.try_reserve(60);
  Reservation second = memory.try_reserve(1'000);
  EXPECT_EQ(second.bytes(), 1'000U);
  EXPECT_EQ(memory.try_reserve(1).bytes(), 0U);
  std::vector<int> woken;
  memory.wait([&] { woken.push_back(1); });
  memory.wait([&] { woken.push_back(2); });
  EXPECT_TRUE(memory.contended());
  first = Reservation();
  EXPECT_TRUE(woken.empty());  // still over the limit
  second = Reservation();
  EXPECT_EQ(woken, std::vector<int>{1});
  memory.wake_next();
  EXPECT_EQ(woken, (std::vector<int>{1, 2}));
  EXPECT_EQ(memory.used(), 0U);
}

TEST(RequestMemory, WakesAtOnceWhereThereIsRoom) {
  RequestMemory memory(100);
  bool woken = false;
  memory.wait([&] { woken = true; });
  EXPECT_TRUE(woken);
}

TEST(FrameBuffer, ComesInClassesAndIsUsedAgain) {
  EXPECT_EQ(BufferPool::class_of(1), BufferPool::kSmall);
  EXPECT_EQ(BufferPool::class_of(5'000), BufferPool::kSlab);
  EXPECT_EQ(BufferPool::class_of(65'537), 81'920U);
  for (std::size_t bytes = 65'537; bytes < (100U << 20); bytes = bytes * 9 / 8 + 1) {
    EXPECT_GE(BufferPool::class_of(bytes), bytes);
    EXPECT_LE(BufferPool::class_of(bytes), bytes + bytes / 4);
  }
  BufferPool pool;
  std::byte* memory = nullptr;
  {
    FrameRef one = pool.make(100'000, {});
    FrameRef other = one;
    memory = one->data();
    EXPECT_TRUE(one->shared());
    other.reset();
    EXPECT_FALSE(one->shared());
  }
  EXPECT_EQ(pool.live(), 0U);
  EXPECT_EQ(pool.make(100'000, {})->data(), memory);
}

TEST(ConnectionLimits, NewLimitsHoldForConnectionsToComeAndWakeWhoWaits) {
  ConnectionLimits limits({.total = 1, .per_address = 1, .overrides = {}});
  int resumed = 0;
  const auto first = limits.admit("10.0.0.1");
  ASSERT_TRUE(first);
  EXPECT_FALSE(limits.room_or_wait([&] { ++resumed; }));
  limits.configure({.total = 2, .per_address = 2, .overrides = {}, .per_second = 7});
  EXPECT_EQ(resumed, 1);
  EXPECT_EQ(limits.per_second(), 7U);
  const auto second = limits.admit("10.0.0.1");
  EXPECT_TRUE(second);
  limits.configure({.total = 1, .per_address = 1, .overrides = {}});
  EXPECT_EQ(limits.total(), 2U) << "nobody is thrown out";
  EXPECT_FALSE(limits.room_or_wait([&] { ++resumed; }));
}

TEST(ConnectionLimits, CountsByAddressAndInAll) {
  ConnectionLimits limits({.total = 3, .per_address = 2, .overrides = {{"10.0.0.1", 1}}});
  auto a = limits.admit("10.0.0.1");
  EXPECT_TRUE(a);
  EXPECT_FALSE(limits.admit("10.0.0.1"));
  auto b = limits.admit("10.0.0.2");
  auto c = limits.admit("10.0.0.2");
  EXPECT_FALSE(limits.admit("10.0.0.2"));
  int resumed = 0;
  EXPECT_FALSE(limits.room_or_wait([&] { ++resumed; }));
  b.reset();
  EXPECT_EQ(resumed, 1);
  c.reset();
  EXPECT_EQ(resumed, 1);
  EXPECT_TRUE(limits.room_or_wait([] {}));
  EXPECT_EQ(limits.total(), 1U);
}

TEST(LogBudget, LeavesOutAndSaysHowMany) {
  LogBudget budget(2);
  const Time start{std::chrono::hours(1)};
  EXPECT_EQ(budget.take(start), 0U);
  EXPECT_EQ(budget.take(start), 0U);
  EXPECT_FALSE(budget.take(start));
  EXPECT_FALSE(budget.take(start));
  EXPECT_EQ(budget.take(start + std::chrono::seconds(1)), 2U);
}

TEST(HelperPool, RunsAllThatWasPostedBeforeItStops) {
  std::atomic<int> done{0};
  HelperPool pool(2);
  for (int i = 0; i < 1'000; ++i) pool.post([&] { ++done; });
  pool.stop();
  EXPECT_EQ(done.load(), 1'000);
}

TEST(HelperPool, ThreadsAtEaseLeaveTheProcessorToOthers) {
  const auto niceness = [](HelperPool::Pace pace) {
    int found = -1;
    HelperPool pool(1, pace);
    pool.post([&] { found = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); });
    pool.stop();
    return found;
  };
  const int usual = niceness(HelperPool::Pace::kNormal);
  EXPECT_EQ(niceness(HelperPool::Pace::kAtEase), std::min(usual + 10, 19));
}

TEST(SystemSeams, TheClockCountsOnAndRandomNumbersDiffer) {
  const SystemClock clock;
  const Time before = clock.now();
  EXPECT_GE(clock.now(), before);
  EXPECT_GT(clock.wall().value(), 1'700'000'000'000);
  SystemRandom random;
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1'000; ++i) seen.insert(random.next());
  EXPECT_EQ(seen.size(), 1'000U);
}

}  // namespace
}  // namespace kanal::server
