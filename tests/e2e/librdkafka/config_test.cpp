// Configs changed while the broker runs: they act at once and outlive kill -9.
#include <memory>

#include "shared_broker.hpp"

namespace kanal::e2e {
namespace {

using Values = std::map<std::string, std::string>;
struct EventDeleter {
  void operator()(rd_kafka_event_t* event) const { rd_kafka_event_destroy(event); }
};
struct QueueDeleter {
  void operator()(rd_kafka_queue_t* queue) const { rd_kafka_queue_destroy(queue); }
};
using Event = std::unique_ptr<rd_kafka_event_t, EventDeleter>;
using Queue = std::unique_ptr<rd_kafka_queue_t, QueueDeleter>;

/// One resource's answer; `use` reads it while the event lives.
template <class Ask, class Use>
void ask(const Admin& admin, rd_kafka_ResourceType_t type, const std::string& name, Ask&& send,
         Use&& use) {
  const Queue queue(rd_kafka_queue_new(admin.handle()));
  rd_kafka_ConfigResource_t* resource = rd_kafka_ConfigResource_new(type, name.c_str());
  send(resource, queue.get());
  rd_kafka_ConfigResource_destroy(resource);
  const Event event(rd_kafka_queue_poll(queue.get(), static_cast<int>(kPatience.count())));
  ASSERT_NE(event, nullptr) << "no answer";
  ASSERT_EQ(rd_kafka_event_error(event.get()), RD_KAFKA_RESP_ERR_NO_ERROR)
      << rd_kafka_event_error_string(event.get());
  use(event.get());
}

/// AlterConfigs: all that is set on the resource.
rd_kafka_resp_err_t alter(const Admin& admin, rd_kafka_ResourceType_t type, const std::string& name,
                          const Values& values) {
  rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR__FAIL;
  const auto send = [&](rd_kafka_ConfigResource_t* resource, rd_kafka_queue_t* queue) {
    for (const auto& [key, value] : values) {
      rd_kafka_ConfigResource_set_config(resource, key.c_str(), value.c_str());
    }
    rd_kafka_AlterConfigs(admin.handle(), &resource, 1, nullptr, queue);
  };
  ask(admin, type, name, send, [&](rd_kafka_event_t* event) {
    std::size_t count = 0;
    const auto* result = rd_kafka_event_AlterConfigs_result(event);
    error =
        rd_kafka_ConfigResource_error(rd_kafka_AlterConfigs_result_resources(result, &count)[0]);
  });
  return error;
}

struct Shown {
  std::string value;
  rd_kafka_ConfigSource_t source = RD_KAFKA_CONFIG_SOURCE_UNKNOWN_CONFIG;
  friend bool operator==(const Shown&, const Shown&) = default;
};

Shown show(const Admin& admin, rd_kafka_ResourceType_t type, const std::string& name,
           const std::string& config) {
  Shown shown;
  const auto send = [&](rd_kafka_ConfigResource_t* resource, rd_kafka_queue_t* queue) {
    rd_kafka_DescribeConfigs(admin.handle(), &resource, 1, nullptr, queue);
  };
  ask(admin, type, name, send, [&](rd_kafka_event_t* event) {
    std::size_t count = 0;
    const auto* result = rd_kafka_event_DescribeConfigs_result(event);
    const auto* resource = rd_kafka_DescribeConfigs_result_resources(result, &count)[0];
    const rd_kafka_ConfigEntry_t** entries = rd_kafka_ConfigResource_configs(resource, &count);
    for (std::size_t i = 0; i < count; ++i) {
      if (rd_kafka_ConfigEntry_name(entries[i]) != config) continue;
      const char* value = rd_kafka_ConfigEntry_value(entries[i]);
      shown = {value == nullptr ? "null" : value, rd_kafka_ConfigEntry_source(entries[i])};
    }
  });
  return shown;
}

rd_kafka_resp_err_t produce(const BrokerProcess& broker, const std::string& topic,
                            std::size_t size) {
  Producer producer(broker.address(), {{"compression.type", "none"}});
  return producer.deliver({.topic = topic, .value = std::string(size, 'x')}).error;
}

constexpr auto kTopic = RD_KAFKA_RESOURCE_TOPIC;
constexpr auto kBroker = RD_KAFKA_RESOURCE_BROKER;
constexpr auto kFine = RD_KAFKA_RESP_ERR_NO_ERROR;
constexpr auto kTooLarge = RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE;

TEST(ChangedConfigs, OfATopicActAtOnceAndOutliveKill9) {
  BrokerProcess broker(KANALD);
  broker.start();
  ASSERT_TRUE(Admin(broker.address()).create({"t"}).ok());
  EXPECT_EQ(produce(broker, "t", 5'000), kFine);
  EXPECT_EQ(alter(Admin(broker.address()), kTopic, "t", {{"max.message.bytes", "1000"}}), kFine);
  EXPECT_EQ(produce(broker, "t", 5'000), kTooLarge);
  EXPECT_EQ(produce(broker, "t", 500), kFine);
  broker.kill9();
  broker.start();
  const Admin admin(broker.address());
  EXPECT_EQ(show(admin, kTopic, "t", "max.message.bytes"),
            (Shown{"1000", RD_KAFKA_CONFIG_SOURCE_DYNAMIC_TOPIC_CONFIG}));
  EXPECT_EQ(produce(broker, "t", 5'000), kTooLarge);
  EXPECT_EQ(alter(admin, kTopic, "t", {}), kFine);
  EXPECT_EQ(produce(broker, "t", 5'000), kFine);
  EXPECT_EQ(broker.terminate(), 0);
}

TEST(ChangedConfigs, OfTheBrokerReachTopicsAndOutliveKill9) {
  BrokerProcess broker(KANALD);
  broker.start();
  ASSERT_TRUE(Admin(broker.address()).create({"t"}).ok());
  EXPECT_EQ(alter(Admin(broker.address()), kBroker, "1", {{"message.max.bytes", "1000"}}), kFine);
  EXPECT_EQ(produce(broker, "t", 5'000), kTooLarge);
  broker.kill9();
  broker.start();
  const Admin admin(broker.address());
  const Shown changed{"1000", RD_KAFKA_CONFIG_SOURCE_DYNAMIC_BROKER_CONFIG};
  EXPECT_EQ(show(admin, kBroker, "1", "message.max.bytes"), changed);
  EXPECT_EQ(show(admin, kTopic, "t", "max.message.bytes"), changed);
  EXPECT_EQ(produce(broker, "t", 5'000), kTooLarge);
  EXPECT_EQ(alter(admin, kBroker, "1", {}), kFine);
  EXPECT_EQ(produce(broker, "t", 5'000), kFine);
  EXPECT_EQ(broker.terminate(), 0);
}

TEST(ChangedConfigs, AStartUpFileThatContradictsWhatIsStoredIsToldAndServed) {
  BrokerProcess broker(KANALD);
  broker.start();
  EXPECT_EQ(
      alter(Admin(broker.address()), kBroker, "1", {{"log.cleaner.max.compaction.lag.ms", "100"}}),
      kFine);
  EXPECT_EQ(broker.terminate(), 0);
  broker.set("log.cleaner.min.compaction.lag.ms=200");
  broker.start();
  EXPECT_EQ(broker.log_lines("A stored config is not in force").size(), 1U);
  EXPECT_EQ(show(Admin(broker.address()), kBroker, "1", "log.cleaner.min.compaction.lag.ms").value,
            "200");
  EXPECT_EQ(broker.terminate(), 0);
}

TEST(ChangedConfigs, WhatABrokerFixesAtTheStartIsRefused) {
  const Admin admin(shared_broker().address());
  EXPECT_EQ(alter(admin, kBroker, "1", {{"num.partitions", "3"}}),
            RD_KAFKA_RESP_ERR_INVALID_REQUEST);
  EXPECT_EQ(alter(admin, kTopic, "no-such-topic", {{"retention.ms", "1"}}),
            RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
  EXPECT_EQ(alter(admin, kTopic, "no-such-topic", {{"nonsense", "1"}}),
            RD_KAFKA_RESP_ERR_INVALID_CONFIG);
}

}  // namespace
}  // namespace kanal::e2e
