// Old records go while clients are running; what they ask for afterwards agrees. A broker of its
// own that looks every second.
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "shared_broker.hpp"

namespace kanal::e2e {
namespace {

using std::chrono::steady_clock;

class Retention : public testing::Test {
 protected:
  Retention() : broker_(KANALD, {"log.retention.check.interval.ms=1"}) { broker_.start(); }
  ~Retention() override {
    if (!broker_.running()) return;
    EXPECT_EQ(broker_.terminate(), 0);
    EXPECT_THAT(broker_.log_lines(" error "), testing::IsEmpty());
  }

  void make(const Settings& configs) {
    ASSERT_TRUE(Admin(broker_.address()).create({"t", 1, configs}).ok());
  }
  std::pair<std::int64_t, std::int64_t> bounds() {
    return Consumer(broker_.address()).bounds("t", 0);
  }
  /// Waits until the log begins there.
  void expect_start(std::int64_t start) {
    Consumer consumer(broker_.address());
    const auto end = steady_clock::now() + kPatience;
    while (consumer.bounds("t", 0).first < start && steady_clock::now() < end) {
      std::this_thread::sleep_for(milliseconds(50));
    }
    ASSERT_EQ(consumer.bounds("t", 0).first, start);
  }
  std::size_t segments() {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(broker_.channel("t", 0))) {
      count += entry.path().extension() == ".log" ? 1 : 0;
    }
    return count;
  }

  BrokerProcess broker_;
};

TEST_F(Retention, TakesTheActiveSegmentTooAndNothingComesBackAfterAKill) {
  make({{"retention.ms", "1"}, {"file.delete.delay.ms", "0"}});
  Producer producer(broker_.address(), {{"enable.idempotence", "true"}});
  for (int i = 0; i < 20; ++i) ASSERT_EQ(producer.deliver({.topic = "t", .value = "v"}).error, 0);
  expect_start(20);
  EXPECT_EQ(bounds().second, 20);
  broker_.kill9();
  broker_.start();
  EXPECT_EQ(bounds(), (std::pair<std::int64_t, std::int64_t>(20, 20)));
  // The producer's sequence goes on.
  EXPECT_EQ(producer.deliver({.topic = "t", .value = "v"}).offset, 20);
}

TEST_F(Retention, EarliestIsAlwaysReadableWhileOldSegmentsGo) {
  make({{"internal.segment.bytes", "4000"}, {"retention.bytes", "12000"}});
  Producer producer(broker_.address());
  for (int round = 0; round < 60; ++round) {
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(producer.send({.topic = "t", .value = std::string(100, 'v')}),
                RD_KAFKA_RESP_ERR_NO_ERROR);
    }
    producer.flush();
    // What was the earliest may be gone when it is fetched: then the reader starts over.
    Consumer consumer(broker_.address(), {{"auto.offset.reset", "earliest"}});
    consumer.assign({{"t", 0, RD_KAFKA_OFFSET_BEGINNING}});
    const std::vector<Record> read = consumer.read_to_end();
    ASSERT_FALSE(read.empty());
    EXPECT_EQ(read.back().offset, 20 * (round + 1) - 1);
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_GT(bounds().first, 0);
}

TEST_F(Retention, AReaderBelowTheStartIsToldSo) {
  make({{"retention.ms", "1"}});
  Producer producer(broker_.address());
  for (int i = 0; i < 5; ++i) producer.deliver({.topic = "t", .value = "v"});
  expect_start(5);
  Consumer consumer(broker_.address(), {{"auto.offset.reset", "error"}});
  consumer.assign({{"t", 0, 2}});
  rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
  const auto end = steady_clock::now() + kPatience;
  while (error == RD_KAFKA_RESP_ERR_NO_ERROR && steady_clock::now() < end) {
    EXPECT_FALSE(consumer.poll(milliseconds(200), error));
  }
  EXPECT_EQ(error, RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET);
}

TEST_F(Retention, GoesByTheAppendTimeWhereTheTopicSaysSo) {
  // The producer's clock is a year ahead: that neither keeps the records nor is seen.
  const auto now =
      std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  make({{"message.timestamp.type", "LogAppendTime"}, {"retention.ms", "1"}});
  Producer producer(broker_.address());
  for (int i = 0; i < 3; ++i) {
    const Delivery sent =
        producer.deliver({.topic = "t", .value = "v", .timestamp = now + 365LL * 24 * 3600 * 1000});
    ASSERT_EQ(sent.error, RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  expect_start(3);
}

TEST_F(Retention, FutureRecordsStayByTimeAndGoBySize) {
  make({{"message.timestamp.after.max.ms", "9223372036854775807"},
        {"internal.segment.bytes", "200"},
        {"retention.ms", "1"}});
  Producer producer(broker_.address());
  const std::int64_t micros = 1'700'000'000'000'000;  // the wrong unit
  ASSERT_EQ(producer.deliver({.topic = "t", .value = std::string(100, 'v')}).offset, 0);
  ASSERT_EQ(
      producer.deliver({.topic = "t", .value = std::string(100, 'v'), .timestamp = micros}).offset,
      1);
  ASSERT_EQ(producer.deliver({.topic = "t", .value = std::string(100, 'v')}).offset, 2);
  expect_start(1);
  const auto end = steady_clock::now() + kPatience;
  while (broker_.log_lines("timestamp in the future").empty() && steady_clock::now() < end) {
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_EQ(broker_.log_lines("timestamp in the future").size(), 1U);
  EXPECT_EQ(bounds(), (std::pair<std::int64_t, std::int64_t>(1, 3)));
  EXPECT_EQ(segments(), 2U);
}

}  // namespace
}  // namespace kanal::e2e
