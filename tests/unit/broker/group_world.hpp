// What the tests of groups share: a whole Broker over a store and a disk in memory, two I/O threads
// polled by hand, a clock set by hand, helpers that run when told. Store and disk outlive the
// broker, so it can be killed. One thread.
#pragma once

#include "kanal/broker/broker.hpp"
#include "kanal/broker/groups.hpp"
#include "kanal/reserved/memory_store.hpp"
#include "support/memory_file_system.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kanal::broker::test {

using namespace std::chrono_literals;

class ManualClock final : public Clock {
 public:
  [[nodiscard]] Time now() const noexcept override { return now_; }
  [[nodiscard]] Timestamp wall() const noexcept override {
    return Timestamp(1'700'000'000'000 + (now_ - kStart) / 1ms);
  }
  void advance_to(Time then) { now_ = std::max(now_, then); }

 private:
  // Far ahead of the machine's own clock, whose timers therefore never fire.
  static constexpr Time kStart{Duration(1'000'000h)};
  Time now_ = kStart;
};

class Helpers final : public Executor {
 public:
  void post(std::move_only_function<void()> work) override { queue_.push_back(std::move(work)); }
  bool run_one() {
    if (queue_.empty() || paused) return false;
    auto work = std::move(queue_.front());
    queue_.pop_front();
    work();
    return true;
  }
  void forget() { queue_.clear(); }
  bool paused = false;

 private:
  std::deque<std::move_only_function<void()>> queue_;
};

class Counting final : public Random {
 public:
  std::uint64_t next() override { return ++last_; }

 private:
  std::uint64_t last_ = 0x1234'5678;
};

/// A request that may be parked, with all it needs while it is.
struct Asked {
  Asked(Broker& broker, IoThread& io, Peer& peer)
      : context{.broker = broker, .io = io, .peer = peer, .client_id = "client", .slices = {}} {}
  Context context;
  std::string group, member, instance, protocol = "range", assignment;
  wire::JoinGroupRequest join_request;
  wire::SyncGroupRequest sync_request;
  std::optional<wire::JoinGroupResponse> joined;
  std::optional<wire::SyncGroupResponse> synced;
};

struct JoinOptions {
  std::string member = {}, instance = {};
  std::chrono::milliseconds session = 10s, rebalance = 60s;
  bool needs_member_id = false;
};

class GroupWorld : public ::testing::Test {
 protected:
  GroupWorld();
  ~GroupWorld() override;

  void start();
  void stop();
  /// A clean stop, and a start with these configs alone.
  void restart_with(const std::map<std::string, std::string>& configs,
                    coordinator::NodeOptions node = {});
  /// kill -9 and a new start: what was written is there.
  void kill();

  void run(Task<void> task, IoThread& io);
  /// The same, and nothing has run yet.
  static void begin(Task<void> task, IoThread& io);
  /// Runs all that is ready: I/O threads and helpers.
  void settle();
  /// Time passes, each timer at its time, the broker's tick every second.
  void pass(Duration time);
  void pass_first_rebalance();
  /// The process stands still and then goes on.
  void stand_still(Duration time);

  Uuid create(std::string_view topic, std::int32_t partitions = 1,
              std::vector<coordinator::ConfigSetting> configs = {});
  void remove(std::string_view topic);
  void configure(std::string_view topic, std::string_view name, std::string_view value);
  /// Expects it to be done.
  void change(coordinator::CatalogCommand command);
  [[nodiscard]] std::shared_ptr<Partition> partition(std::string_view topic,
                                                     std::int32_t index = 0) const;
  /// As the broker does it for a request (in `request`, where there is one); nothing has run since.
  Result<log::AppendResult> append(std::string_view topic, std::int32_t index, Buffer batch,
                                   Broker::Together* request = nullptr);

  Asked& join(std::string_view group, const JoinOptions& options = {});
  Asked& sync(const Asked& member, std::vector<const Asked*> all);
  ErrorCode heartbeat(const Asked& member);
  /// A group with these members in generation 1, all with their assignments.
  std::vector<Asked*> stable(std::string_view group, std::size_t members = 1);
  ErrorCode commit(std::string_view group, std::string_view topic, std::int64_t offset,
                   std::int32_t generation = -1, std::string_view member = {});
  ErrorCode commit_partition(std::string_view group, std::string_view topic, std::int32_t partition,
                             std::int64_t offset, std::string_view metadata = {});
  /// `records` to a partition.
  void produce(std::string_view topic, std::int32_t partition, int records);
  /// -1: none.
  std::int64_t committed(std::string_view group, std::string_view topic);
  [[nodiscard]] std::uint64_t stored(std::string_view group) const;
  [[nodiscard]] Groups& groups() const { return broker->groups(); }

  ManualClock clock;
  Helpers helpers;
  Counting random;
  kanal::test::MemoryFileSystem files;
  reserved::MemoryStore store;
  coordinator::BrokerConfig config;
  std::uint64_t reserve = 0;  // of the next start
  Listener listener{"PLAINTEXT", "broker.example", 9092};
  Peer peer;
  std::list<Asked> asked;
  std::vector<std::unique_ptr<IoThread>> threads;
  std::unique_ptr<Broker> broker;

 private:
  void tick_later();
};

}  // namespace kanal::broker::test
