// A broker of their own that goes away and comes back under running clients.
#include <thread>

#include "shared_broker.hpp"

namespace kanal::e2e {
namespace {

enum class End { kTerminate, kKill };
class Restart : public testing::TestWithParam<End> {};

TEST_P(Restart, UnderARunningProducerAndConsumer) {
  constexpr std::size_t kRounds = 3, kEach = 500;
  BrokerProcess broker(KANALD);
  broker.start();
  ASSERT_TRUE(Admin(broker.address()).create({"t"}).ok());
  Producer producer(broker.address(), {{"enable.idempotence", "true"}});
  Consumer consumer(broker.address());
  consumer.assign({{"t"}});
  std::size_t sent = 0;
  std::vector<Record> read;
  const auto send = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(producer.send({.topic = "t", .value = std::to_string(sent++)}),
                RD_KAFKA_RESP_ERR_NO_ERROR);
    }
  };
  const auto read_all = [&] {
    for (Record& record : consumer.read(sent - read.size())) read.push_back(std::move(record));
  };
  for (std::size_t round = 0; round < kRounds; ++round) {
    send(kEach);
    read_all();
    send(kEach);  // some of it is on its way when the broker goes
    producer.poll();
    if (GetParam() == End::kKill)
      broker.kill9();
    else
      EXPECT_EQ(broker.terminate(), 0);
    send(kEach);  // and some waits for the broker
    broker.start();
    read_all();
  }
  for (const Delivery& delivery : producer.flush())
    EXPECT_EQ(delivery.error, RD_KAFKA_RESP_ERR_NO_ERROR);
  expect_numbers(read, kRounds * kEach * 3);
  EXPECT_EQ(broker.terminate(), 0);
}
INSTANTIATE_TEST_SUITE_P(By, Restart, testing::Values(End::kTerminate, End::kKill),
                         [](const auto& end) {
                           return end.param == End::kKill ? "Kill9" : "Sigterm";
                         });

TEST(RestartOfTopics, KeepsWhatWasMadeAndForgetsWhatWasDeleted) {
  BrokerProcess broker(KANALD);
  broker.start();
  std::string cluster;
  {
    Admin admin(broker.address());
    cluster = admin.cluster_id();
    ASSERT_TRUE(admin.create({"kept", 3, {{"retention.ms", "12345678"}}}).ok());
    ASSERT_TRUE(admin.create({"deleted", 2}).ok());
    ASSERT_TRUE(admin.create({"again", 2}).ok());
    produce_numbers(broker.address(), "kept", 10);
    produce_numbers(broker.address(), "again", 10);
    ASSERT_TRUE(admin.remove("deleted").ok());
    ASSERT_TRUE(admin.remove("again").ok());
    ASSERT_TRUE(admin.create({"again", 1}).ok());
    ASSERT_TRUE(admin.grow("kept", 5).ok());
  }
  for (const End end : {End::kKill, End::kTerminate}) {
    if (end == End::kKill)
      broker.kill9();
    else
      EXPECT_EQ(broker.terminate(), 0);
    broker.start();
    Admin admin(broker.address());
    EXPECT_EQ(admin.cluster_id(), cluster);
    const auto topics = admin.metadata().topics;
    ASSERT_EQ(topics.size(), 2u);
    EXPECT_EQ(topics.at("kept").leaders.size(), 5u);
    EXPECT_EQ(topics.at("again").leaders.size(), 1u);
    EXPECT_EQ(admin.describe("kept").at("retention.ms"), "12345678");
    Consumer consumer(broker.address());
    EXPECT_EQ(consumer.bounds("kept", 0).second, 10);
    EXPECT_EQ(consumer.bounds("again", 0).second, 0);
  }
}

TEST(RestartOfDeletedRecords, TheyStayDeletedAlsoWhereTheCutIsInTheMiddleOfABatch) {
  BrokerProcess broker(KANALD);
  broker.start();
  {
    Admin admin(broker.address());
    ASSERT_TRUE(admin.create({"t"}).ok());
    // One batch: what is queued within the linger time goes together.
    produce_numbers(broker.address(), "t", 10, {{"linger.ms", "200"}});
    EXPECT_EQ(admin.delete_records("t", 0, 5), 5);
  }
  for (const End end : {End::kKill, End::kTerminate, End::kKill}) {
    Consumer consumer(broker.address(), {{"auto.offset.reset", "error"}});
    EXPECT_EQ(consumer.bounds("t", 0), (std::pair<std::int64_t, std::int64_t>(5, 10)));
    consumer.assign({{"t", 0, RD_KAFKA_OFFSET_BEGINNING}});
    const std::vector<Record> read = consumer.read_to_end();
    ASSERT_EQ(read.size(), 5u);
    EXPECT_EQ(read.front().offset, 5);
    EXPECT_EQ(read.front().value, "5");
    if (end == End::kKill)
      broker.kill9();
    else
      EXPECT_EQ(broker.terminate(), 0);
    broker.start();
  }
  EXPECT_EQ(Admin(broker.address()).delete_records("t", 0, -1), 10);
  broker.kill9();
  broker.start();
  EXPECT_EQ(Consumer(broker.address()).bounds("t", 0),
            (std::pair<std::int64_t, std::int64_t>(10, 10)));
}

TEST(RestartAfterACleanStop, RecoversNothingAndLosesNothing) {
  BrokerProcess broker(KANALD);
  broker.start();
  ASSERT_TRUE(Admin(broker.address()).create({"t", 3}).ok());
  produce_numbers(broker.address(), "t", 1'000);
  for (int round = 0; round < 2;
       ++round) {  // what the first start took over is there for the second
    EXPECT_EQ(broker.terminate(), 0);
    broker.start();
    EXPECT_EQ(broker.start_figure("recovered"), 0);
    EXPECT_EQ(broker.start_figure("broken"), 0);
    Consumer consumer(broker.address());
    consumer.assign({{"t"}});
    expect_numbers(consumer.read_to_end(), 1'000);
  }
  broker.kill9();
  broker.start();
  EXPECT_EQ(broker.start_figure("recovered"), 1);  // two were never written to
}

}  // namespace
}  // namespace kanal::e2e
