// A broker that ends again and again while producers of every kind write to it, some of them behind
// a proxy that loses the last answers before each end: nothing acknowledged is missing, doubled or
// reordered, offsets are dense, and each start takes less than a second.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>

#include "broker_process.hpp"
#include "proxy.hpp"
#include "raw_client.hpp"
#include "reading.hpp"

namespace kanal::e2e {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr long kSlower = 5;
#else
constexpr long kSlower = 1;
#endif
constexpr long kMaxStartMs = 1'000 * kSlower, kMaxStopMs = 5'000 * kSlower;

enum class End { kKill, kTerminate };

/// CRASH_ROUNDS=10 runs ten times as many rounds as a test does by itself.
int rounds(int usual) {
  const char* factor = variable("CRASH_ROUNDS");
  return usual * (factor == nullptr ? 1 : std::max(1, std::atoi(factor)));
}

/// Makes and deletes topics, and knows which must and which must not be there.
class TopicChurn {
 public:
  explicit TopicChurn(const std::string& address) : thread_([this, address] { run(address); }) {}
  ~TopicChurn() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void finish(Admin& admin) {
    stopping_ = true;
    thread_.join();
    const auto topics = admin.metadata().topics;
    for (const std::string& name : made_) EXPECT_TRUE(topics.contains(name)) << name << " was made";
    for (const std::string& name : deleted_)
      EXPECT_FALSE(topics.contains(name)) << name << " was deleted";
    EXPECT_GT(made_.size() + deleted_.size(), 0u);
  }
  [[nodiscard]] std::size_t changes() const { return made_.size() + 2 * deleted_.size(); }

 private:
  void run(const std::string& address) {
    Admin admin(address);
    for (int i = 0; !stopping_; ++i) {
      const std::string name = "churn-" + std::to_string(i);
      if (admin.create({.name = name, .partitions = 2}, milliseconds(1'000)).ok())
        made_.insert(name);
      if (i % 2 == 1 && made_.contains(name)) {
        made_.erase(name);  // from here on it may be there or not, until the answer
        if (admin.remove(name, milliseconds(1'000)).ok()) deleted_.insert(name);
      }
      std::this_thread::sleep_for(milliseconds(50));
    }
  }

  std::set<std::string> made_, deleted_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

struct Figures {
  std::vector<double> took_ms, ready_ms, stop_ms;

  static void print(const char* what, std::vector<double> values) {
    if (values.empty()) return;
    std::ranges::sort(values);
    std::printf("  %-34s median %7.1f ms, worst %7.1f ms\n", what, values[values.size() / 2],
                values.back());
  }
  void print() const {
    print("start by the daemon's own count", took_ms);
    print("start, from exec to the ready file", ready_ms);
    print("end, from the signal", stop_ms);
  }
};

class UnderLoad : public testing::Test {
 protected:
  static constexpr int kPartitions = 3;

  UnderLoad()
      : proxy_port_(free_port()), broker_(KANALD, settings()), proxy_(proxy_port_, back_port_) {}

  void SetUp() override {
    broker_.start();
    Admin admin(broker_.address());
    ASSERT_TRUE(admin.create({"plain", kPartitions, {{"segment.bytes", "1048576"}}}).ok());
    ASSERT_TRUE(admin.create({"synced", kPartitions, {{"flush.messages", "1"}}}).ok());
    int id = 0;
    for (const std::string topic : {"plain", "synced"}) {
      add_load(broker_.address(), {++id, topic, kPartitions, Promise::kExactlyOnce});
      add_load(proxy_address(), {++id, topic, kPartitions, Promise::kExactlyOnce});
      add_load(broker_.address(), {++id, topic, kPartitions, Promise::kAtMostOnce});
      add_load(proxy_address(), {++id, topic, kPartitions, Promise::kAtLeastOnce});
      followers_.push_back(std::make_unique<Follower>(broker_.address(), topic, kPartitions));
    }
    churn_ = std::make_unique<TopicChurn>(broker_.address());
  }

  std::vector<std::string> settings() {
    const int front = free_port();
    back_port_ = free_port();
    const auto at = [](const char* name, int port) {
      return name + ("://127.0.0.1:" + std::to_string(port));
    };
    return {"listeners=" + at("DIRECT", front) + "," + at("PROXIED", back_port_),
            "advertised_listeners=" + at("DIRECT", front) + "," + at("PROXIED", proxy_port_)};
  }

  [[nodiscard]] std::string proxy_address() const {
    return "127.0.0.1:" + std::to_string(proxy_port_);
  }

  void add_load(const std::string& address, const LoadOptions& options) {
    loads_.push_back(std::make_unique<Load>(address, options));
  }

  void wait_until(const std::string& what, const std::function<bool()>& done) {
    const std::int64_t deadline = now_ms() + 2 * kPatience.count();
    while (!done()) {
      broker_.expect_running();
      if (now_ms() > deadline) throw std::runtime_error("still not: " + what);
      std::this_thread::sleep_for(milliseconds(1));
    }
  }

  /// Every load gets on; then answers get lost, then the broker ends and starts again.
  void round(End end, int jitter_ms) {
    std::vector<std::size_t> goals;
    goals.reserve(loads_.size());
    for (const auto& load : loads_) goals.push_back(load->acknowledged() + 40);
    for (std::size_t i = 0; i < loads_.size(); ++i) {
      wait_until("load " + std::to_string(loads_[i]->options().id) + " acknowledged",
                 [&] { return loads_[i]->acknowledged() >= goals[i]; });
    }
    std::this_thread::sleep_for(milliseconds(jitter_ms));
    const std::size_t before = proxy_.lost();
    proxy_.lose_answers(true);
    wait_until("an answer lost", [&] { return proxy_.lost() > before; });
    if (end == End::kKill) {
      broker_.kill9();
    } else {
      EXPECT_EQ(broker_.terminate(), 0);
      figures_.stop_ms.push_back(broker_.stop_ms());
      EXPECT_LE(broker_.stop_ms(), kMaxStopMs);
    }
    proxy_.lose_answers(false);
    broker_.start();
    look_at_start(end);
  }

  void look_at_start(End end) {
    const long took = broker_.start_figure("took_ms");
    figures_.took_ms.push_back(static_cast<double>(took));
    figures_.ready_ms.push_back(broker_.start_ms());
    EXPECT_GE(took, 0);
    EXPECT_LE(took, kMaxStartMs);
    EXPECT_EQ(broker_.start_figure("broken"), 0);
    if (end == End::kTerminate) {
      EXPECT_EQ(broker_.start_figure("recovered"), 0);
      EXPECT_EQ(broker_.start_figure("cut_bytes"), 0);
    }
    RawClient client(broker_.address());
    for (int i = 0; i < 3; ++i)
      EXPECT_TRUE(producer_ids_.insert(client.new_producer_id()).second) << "given out twice";
  }

  void finish() {
    for (const auto& load : loads_) load->finish();
    Admin admin(broker_.address());
    churn_->finish(admin);
    std::map<std::string, Content> contents;
    for (const std::string topic : {"plain", "synced"}) {
      contents[topic] = read_topic(broker_.address(), topic, kPartitions);
      followers_[contents.size() - 1]->finish(contents[topic]);
    }
    std::size_t acknowledged = 0, repeats = 0;
    for (const auto& load : loads_) {
      acknowledged += load->acknowledged();
      repeats += expect_promise(*load, contents[load->options().topic]);
    }
    EXPECT_EQ(broker_.terminate(), 0);
    std::printf(
        "  %zu records acknowledged, %zu repeats by producers that repeat, %zu topic changes, %zu "
        "answer bytes lost\n",
        acknowledged, repeats, churn_->changes(), proxy_.lost());
    figures_.print();
  }

 private:
  int proxy_port_, back_port_ = 0;
  BrokerProcess broker_;
  Proxy proxy_;
  std::vector<std::unique_ptr<Load>> loads_;
  std::vector<std::unique_ptr<Follower>> followers_;
  std::unique_ptr<TopicChurn> churn_;
  std::set<std::int64_t> producer_ids_;
  Figures figures_;
};

TEST_F(UnderLoad, KilledTwentyTimesLosesDoublesAndReordersNothing) {
  for (int i = 0; i < rounds(20); ++i) round(End::kKill, i * 13 % 40);
  finish();
}

// In between a kill: what a clean stop left is then old, and must not be taken for new.
TEST_F(UnderLoad, TerminatedTenTimesLosesDoublesAndReordersNothing) {
  for (int i = 0; i < rounds(10); ++i) {
    round(End::kTerminate, i * 13 % 40);
    if (i % 3 == 2) round(End::kKill, i);
  }
  finish();
}

}  // namespace
}  // namespace kanal::e2e
