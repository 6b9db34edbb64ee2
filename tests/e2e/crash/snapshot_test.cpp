// Snapshots of a broker under load: each, started as a broker of its own, has every record that was
// acknowledged before it was asked for and no gap, offsets of groups within their logs, and is
// sound by --check-data; retention and topics that come and go meanwhile do no harm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>

#include <array>
#include <cstdio>

#include "broker_process.hpp"
#include "reading.hpp"

namespace kanal::e2e {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr int kPartitions = 3;

struct Ran {
  int code = -1;
  std::string text;  // both streams
};
Ran run(const std::string& arguments) {
  const char* other = variable("KANALD");
  const std::string command =
      std::string(other != nullptr ? other : KANALD) + " " + arguments + " 2>&1";
  Ran ran;
  FILE* out = ::popen(command.c_str(), "r");
  if (out == nullptr) return ran;
  std::array<char, 4096> part{};
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), out))
    ran.text.append(part.data(), got);
  const int status = ::pclose(out);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

/// A client that commits for a group it is no member of, and asks what is committed.
class Offsets {
 public:
  explicit Offsets(const std::string& address) {
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", address.c_str(), nullptr, 0);
    rd_kafka_conf_set(conf, "group.id", "readers", nullptr, 0);
    rd_kafka_conf_set(conf, "enable.auto.commit", "false", nullptr, 0);
    handle_ = rd_kafka_new(RD_KAFKA_CONSUMER, conf, nullptr, 0);
  }
  ~Offsets() { rd_kafka_destroy(handle_); }
  Offsets(const Offsets&) = delete;
  Offsets& operator=(const Offsets&) = delete;

  bool commit(const std::vector<std::int64_t>& offsets) {
    auto* list = rd_kafka_topic_partition_list_new(kPartitions);
    for (int p = 0; p < kPartitions; ++p)
      rd_kafka_topic_partition_list_add(list, "plain", p)->offset =
          offsets[static_cast<std::size_t>(p)];
    const auto error = rd_kafka_commit(handle_, list, 0);
    rd_kafka_topic_partition_list_destroy(list);
    return error == RD_KAFKA_RESP_ERR_NO_ERROR;
  }
  std::vector<std::int64_t> committed() {
    auto* list = rd_kafka_topic_partition_list_new(kPartitions);
    for (int p = 0; p < kPartitions; ++p) rd_kafka_topic_partition_list_add(list, "plain", p);
    EXPECT_EQ(rd_kafka_committed(handle_, list, 60'000), RD_KAFKA_RESP_ERR_NO_ERROR);
    std::vector<std::int64_t> offsets;
    for (int p = 0; p < kPartitions; ++p) offsets.push_back(list->elems[p].offset);
    rd_kafka_topic_partition_list_destroy(list);
    return offsets;
  }

 private:
  rd_kafka_t* handle_ = nullptr;
};

std::vector<std::int64_t> ends(const std::string& address, const std::string& topic) {
  Consumer consumer(address);
  std::vector<std::int64_t> all;
  for (int p = 0; p < kPartitions; ++p) all.push_back(consumer.bounds(topic, p).second);
  return all;
}

std::vector<std::int64_t> ends_of(const Content& content) {
  std::vector<std::int64_t> all;
  for (const auto& records : content) all.push_back(static_cast<std::int64_t>(records.size()));
  return all;
}

/// Commits, and makes and deletes topics, until it is destroyed.
class Churn {
 public:
  explicit Churn(const std::string& address) : thread_([this, address] { run(address); }) {}
  ~Churn() {
    stopping_ = true;
    thread_.join();
  }

 private:
  void run(const std::string& address) {
    Offsets offsets(address);
    Admin admin(address);
    for (int i = 0; !stopping_; ++i) {
      EXPECT_TRUE(offsets.commit(ends(address, "plain")));
      const std::string name = "churn-" + std::to_string(i);
      EXPECT_TRUE(admin.create({name, 2, {}}).ok());
      Producer producer(address);
      producer.deliver({.topic = name, .partition = 0, .value = "v"});
      if (i % 3 != 0) {
        EXPECT_TRUE(admin.remove(name).ok());
      }
    }
  }
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

struct Snapshot {
  fs::path path;
  std::vector<std::int64_t> plain, synced, committed;  // what it must have at least
};

class Snapshots : public testing::Test {
 protected:
  Snapshots() : broker_(KANALD, {"kafka.log.retention.check.interval.ms=500"}) {}

  void SetUp() override {
    broker_.start();
    Admin admin(broker_.address());
    ASSERT_TRUE(admin.create({"plain", kPartitions, {{"segment.bytes", "1048576"}}}).ok());
    ASSERT_TRUE(admin.create({"synced", kPartitions, {{"flush.messages", "1"}}}).ok());
    ASSERT_TRUE(admin
                    .create({"short",
                             kPartitions,
                             {{"segment.bytes", "1048576"},
                              {"retention.bytes", "1048576"},
                              {"file.delete.delay.ms", "0"}}})
                    .ok());
  }
  std::string data() const { return (broker_.scratch() / "data").string(); }
  Snapshot take(const std::string& name) {
    Snapshot snapshot{broker_.scratch() / name, ends(broker_.address(), "plain"),
                      ends(broker_.address(), "synced"), Offsets(broker_.address()).committed()};
    const Ran ran = run("--data-dir " + data() + " --snapshot " + snapshot.path.string());
    EXPECT_EQ(ran.code, 0) << ran.text;
    EXPECT_THAT(ran.text, HasSubstr("Snapshot made."));
    return snapshot;
  }
  /// The snapshot as a broker of its own, beside what the first one has in the end.
  void expect_sound(const Snapshot& snapshot, const Content& plain, const Content& synced);

  BrokerProcess broker_;
};

void expect_prefix(const Content& part, const Content& whole,
                   const std::vector<std::int64_t>& least) {
  ASSERT_EQ(part.size(), whole.size());
  for (std::size_t p = 0; p < part.size(); ++p) {
    EXPECT_GE(static_cast<std::int64_t>(part[p].size()), least[p]) << "partition " << p;
    ASSERT_LE(part[p].size(), whole[p].size()) << "partition " << p;
    EXPECT_TRUE(std::equal(part[p].begin(), part[p].end(), whole[p].begin())) << "partition " << p;
  }
}

void Snapshots::expect_sound(const Snapshot& snapshot, const Content& plain,
                             const Content& synced) {
  const Ran checked = run("--check-data " + snapshot.path.string());
  EXPECT_EQ(checked.code, 0) << checked.text;
  EXPECT_THAT(checked.text, HasSubstr("Result: sound.")) << checked.text;
  BrokerProcess restored(KANALD);
  fs::rename(snapshot.path, restored.scratch() / "data");
  restored.start();
  EXPECT_EQ(restored.start_figure("broken"), 0);
  EXPECT_EQ(restored.start_figure("recovered"), 0);  // as after a clean stop
  const Content copy = read_topic(restored.address(), "plain", kPartitions);
  expect_prefix(copy, plain, snapshot.plain);
  expect_prefix(read_topic(restored.address(), "synced", kPartitions), synced, snapshot.synced);
  const auto committed = Offsets(restored.address()).committed();
  for (std::size_t p = 0; p < kPartitions; ++p) {
    EXPECT_GE(committed[p], snapshot.committed[p]);
    EXPECT_LE(committed[p], static_cast<std::int64_t>(copy[p].size()));
  }
  Producer producer(restored.address(), {{"enable.idempotence", "true"}});
  for (const std::string topic : {"plain", "synced", "short"}) {
    for (int p = 0; p < kPartitions; ++p)
      EXPECT_EQ(producer.deliver({.topic = topic, .partition = p, .value = "more"}).error,
                RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  EXPECT_EQ(restored.terminate(), 0);
  const Ran after = run("--check-data " + (restored.scratch() / "data").string());
  EXPECT_EQ(after.code, 0) << after.text;
}

TEST_F(Snapshots, UnderLoadHaveWhatWasAcknowledgedAndAreSound) {
  std::vector<std::unique_ptr<Load>> loads;
  int id = 0;
  for (const std::string topic : {"plain", "synced", "short"}) {
    for (int i = 0; i < 2; ++i) {
      LoadOptions options{++id, topic, kPartitions, Promise::kExactlyOnce};
      loads.push_back(std::make_unique<Load>(broker_.address(), options));
    }
  }
  std::vector<Snapshot> snapshots;
  {
    const Churn churn(broker_.address());
    std::size_t seen = 0;
    for (int i = 0; i < 4; ++i) {
      // Some full segments before the first, something new before each.
      while (loads.front()->acknowledged() < seen + 1'500) {
        broker_.expect_running();
        std::this_thread::sleep_for(milliseconds(10));
      }
      seen = loads.front()->acknowledged();
      snapshots.push_back(take("snapshot-" + std::to_string(i)));
    }
  }
  for (const auto& load : loads) load->finish();
  const Content plain = read_topic(broker_.address(), "plain", kPartitions);
  const Content synced = read_topic(broker_.address(), "synced", kPartitions);
  for (const auto& load : loads) {
    if (load->options().topic == "plain") {
      EXPECT_EQ(expect_promise(*load, plain), 0u);
    }
  }
  for (const Snapshot& snapshot : snapshots) {
    SCOPED_TRACE(snapshot.path.filename().string());
    expect_sound(snapshot, plain, synced);
  }
  EXPECT_EQ(broker_.terminate(), 0);
  EXPECT_FALSE(fs::exists(broker_.scratch() / "data" / "control"));
  const Ran checked = run("--check-data " + data());
  EXPECT_EQ(checked.code, 0) << checked.text;
  // No daemon: made by the command itself.
  const Snapshot last{broker_.scratch() / "offline", ends_of(plain), ends_of(synced),
                      std::vector<std::int64_t>(kPartitions, 0)};
  const Ran ran = run("--data-dir " + data() + " --snapshot " + last.path.string());
  EXPECT_EQ(ran.code, 0) << ran.text;
  expect_sound(last, plain, synced);
}

TEST_F(Snapshots, AfterAKillAreRecoveredByTheirFirstStart) {
  {
    Load load(broker_.address(), {1, "plain", kPartitions, Promise::kExactlyOnce});
    while (load.acknowledged() < 3'000) std::this_thread::sleep_for(milliseconds(10));
    load.finish();
  }
  const Content plain = read_topic(broker_.address(), "plain", kPartitions);
  broker_.kill9();
  const Ran checked = run("--check-data " + data());
  EXPECT_EQ(checked.code, 0) << checked.text;
  const fs::path copy = broker_.scratch() / "copy";
  const Ran ran = run("--data-dir " + data() + " --snapshot " + copy.string());
  EXPECT_EQ(ran.code, 0) << ran.text;
  BrokerProcess restored(KANALD);
  fs::rename(copy, restored.scratch() / "data");
  restored.start();
  EXPECT_TRUE(read_topic(restored.address(), "plain", kPartitions) == plain);
  broker_.start();  // the data itself is as it was
  EXPECT_TRUE(read_topic(broker_.address(), "plain", kPartitions) == plain);
}

}  // namespace
}  // namespace kanal::e2e
