// Topics by librdkafka's administration client, and what running clients see of their changes.
#include <set>

#include "shared_broker.hpp"

namespace kanal::e2e {
namespace {

using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Key;
using testing::Not;
using testing::SizeIs;

constexpr auto kNone = RD_KAFKA_RESP_ERR_NO_ERROR;

using Topics = Librdkafka;

TEST_F(Topics, AreListedWithTheirLeaders) {
  const std::string topic = make_topic(7);
  for (const std::string& asked : {std::string(), topic}) {
    const ClusterInfo cluster = admin_.metadata(asked);
    ASSERT_THAT(cluster.brokers, SizeIs(1));
    EXPECT_EQ(cluster.brokers[0].second, address_);
    ASSERT_THAT(cluster.topics, Contains(Key(topic)));
    EXPECT_THAT(cluster.topics.at(topic).leaders, SizeIs(7));
    EXPECT_THAT(cluster.topics.at(topic).leaders, Each(cluster.brokers[0].first));
  }
  EXPECT_THAT(admin_.cluster_id(), SizeIs(22));
}

TEST_F(Topics, OfUnknownNameAreAnErrorOfTheirOwn) {
  const ClusterInfo cluster = admin_.metadata(name_);
  EXPECT_EQ(cluster.topics.at(name_).error, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
  EXPECT_THAT(admin_.metadata().topics, Not(Contains(Key(name_))));
}

TEST_F(Topics, WithMistakesAreRefusedEachWithItsCode) {
  const std::string topic = make_topic();
  EXPECT_EQ(admin_.create({topic}).code, RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS);
  EXPECT_EQ(admin_.create({"no spaces"}).code, RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION);
  EXPECT_EQ(admin_.create({std::string(250, 'x')}).code, RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION);
  EXPECT_EQ(admin_.create({.name = topic + "-3", .replication = 3}).code,
            RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR);
  EXPECT_EQ(admin_.create({topic + "-many", 101}).code, RD_KAFKA_RESP_ERR_INVALID_PARTITIONS);
  const Outcome unknown = admin_.create({topic + "-config", 1, {{"no.such.config", "1"}}});
  EXPECT_EQ(unknown.code, RD_KAFKA_RESP_ERR_INVALID_CONFIG);
  EXPECT_THAT(unknown.text, HasSubstr("no.such.config"));
  EXPECT_EQ(admin_.create({topic + "-value", 1, {{"retention.ms", "soon"}}}).code,
            RD_KAFKA_RESP_ERR_INVALID_CONFIG);
  EXPECT_EQ(admin_.remove(topic + "-none").code, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
}

TEST_F(Topics, OnlyValidatedAreNotMade) {
  EXPECT_TRUE(admin_.create({.name = name_, .validate_only = true}).ok());
  EXPECT_THAT(admin_.metadata().topics, Not(Contains(Key(name_))));
}

TEST_F(Topics, ShowTheirConfigs) {
  const std::string topic =
      make_topic(1, {{"retention.ms", "86400000"}, {"cleanup.policy", "compact"}});
  const Settings configs = admin_.describe(topic);
  EXPECT_EQ(configs.at("retention.ms"), "86400000");
  EXPECT_EQ(configs.at("cleanup.policy"), "compact");
  EXPECT_EQ(configs.at("compression.type"), "producer");
  EXPECT_EQ(configs.at("max.message.bytes"), "1048588");
}

TEST_F(Topics, DeletedAreGoneForProducers) {
  const std::string topic = make_topic();
  Producer producer(
      address_, {{"topic.metadata.refresh.interval.ms", "100"}, {"message.timeout.ms", "5000"}});
  EXPECT_EQ(producer.deliver({.topic = topic, .value = "v"}).error, kNone);
  EXPECT_TRUE(admin_.remove(topic).ok());
  EXPECT_THAT(admin_.metadata().topics, Not(Contains(Key(topic))));
  const auto error = producer.deliver({.topic = topic, .value = "v"}).error;
  EXPECT_TRUE(
      error == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC || error == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION ||
      error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART || error == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT)
      << rd_kafka_err2name(error);
}

TEST_F(Topics, MadeAgainStartEmptyUnderTheSameName) {
  for (int round = 0; round < 5; ++round) {
    const std::string topic = make_topic(2);
    const std::size_t count = 100 - static_cast<std::size_t>(round);
    produce_numbers(address_, topic, count);
    {  // gone before the topic: closing a consumer of a deleted topic hangs in librdkafka 2.0
      Consumer consumer(address_);
      EXPECT_EQ(consumer.bounds(topic, 1), std::pair(std::int64_t{0}, std::int64_t{0}));
      consumer.assign({{topic, 0}, {topic, 1}});
      expect_numbers(consumer.read_to_end(), count);
    }
    EXPECT_TRUE(admin_.remove(topic).ok());
  }
}

TEST_F(Topics, MadeAgainAreWrittenToByARunningProducer) {
  const std::string topic = make_topic();
  Producer producer(address_,
                    {{"topic.metadata.refresh.interval.ms", "200"}, {"retry.backoff.ms", "50"}});
  EXPECT_EQ(producer.deliver({.topic = topic, .value = "old"}).offset, 0);
  ASSERT_TRUE(admin_.remove(topic).ok());
  ASSERT_TRUE(admin_.create({topic}).ok());
  EXPECT_EQ(producer.deliver({.topic = topic, .value = "new"}).offset, 0);
  Consumer consumer(address_);
  consumer.assign({{topic}});
  const auto records = consumer.read_to_end();
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_EQ(records[0].value, "new");
}

TEST_F(Topics, GrowUnderRunningClients) {
  const std::string topic = make_topic(1);
  Producer producer(address_, {{"topic.metadata.refresh.interval.ms", "100"}});
  Consumer consumer(address_, {{"topic.metadata.refresh.interval.ms", "100"}});
  ASSERT_EQ(producer.deliver({.topic = topic, .value = "0"}).error, kNone);
  consumer.assign({{topic, 0}});
  EXPECT_THAT(consumer.read_to_end(), SizeIs(1));

  EXPECT_EQ(admin_.grow(topic, 1).code, RD_KAFKA_RESP_ERR_INVALID_PARTITIONS);
  ASSERT_TRUE(admin_.grow(topic, 4).ok());
  EXPECT_EQ(admin_.grow(topic, 3).code, RD_KAFKA_RESP_ERR_INVALID_PARTITIONS);
  EXPECT_THAT(admin_.metadata(topic).topics.at(topic).leaders, SizeIs(4));

  // The producer has to learn of the new partitions first: until then it refuses them by itself.
  for (int p = 1; p < 4; ++p) {
    Delivery delivery{RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION};
    for (int tries = 0; tries < 200 && delivery.error == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;
         ++tries) {
      delivery = producer.deliver({.topic = topic, .partition = p, .value = std::to_string(p)});
      producer.poll(milliseconds(20));
    }
    EXPECT_EQ(delivery.error, kNone);
    EXPECT_EQ(delivery.offset, 0);
  }
  consumer.assign({{topic, 0, 1}, {topic, 1}, {topic, 2}, {topic, 3}});
  std::set<std::int32_t> seen;
  for (const Record& record : consumer.read(3)) seen.insert(record.partition);
  EXPECT_EQ(seen, (std::set<std::int32_t>{1, 2, 3}));
}

}  // namespace
}  // namespace kanal::e2e
