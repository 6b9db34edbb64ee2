#include "shared_broker.hpp"

#include <memory>

namespace kanal::e2e {
namespace {

std::unique_ptr<BrokerProcess> running;

class Broker : public testing::Environment {
 public:
  void SetUp() override {
    running = std::make_unique<BrokerProcess>(
        KANALD, std::vector<std::string>{"limits.max_partitions_per_topic=100"});
    running->start();
  }
  void TearDown() override {
    EXPECT_EQ(running->terminate(), 0) << "a leak or an error at the end";
    EXPECT_THAT(running->log_lines(" error "), testing::IsEmpty());
    running.reset();
  }
};

[[maybe_unused]] const auto* const kEnvironment = testing::AddGlobalTestEnvironment(new Broker);

std::string name_of_test() {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  std::string name = test->name();
  for (char& c : name) {
    if (c == '/') c = '-';
  }
  return name;
}

}  // namespace

BrokerProcess& shared_broker() {
  return *running;
}

Librdkafka::Librdkafka()
    : address_(shared_broker().address()), name_(name_of_test()), admin_(address_) {}

std::string Librdkafka::make_topic(int partitions, const Settings& configs,
                                   const std::string& suffix) {
  std::string topic = name_ + suffix;
  const Outcome made = admin_.create({topic, partitions, configs});
  EXPECT_TRUE(made.ok()) << made.text;
  return topic;
}

void produce_numbers(const std::string& address, const std::string& topic, std::size_t count,
                     const Settings& settings) {
  Producer producer(address, settings);
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(producer.send({.topic = topic, .value = std::to_string(i)}),
              RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  const auto& deliveries = producer.flush();
  ASSERT_EQ(deliveries.size(), count);
  for (const Delivery& delivery : deliveries) ASSERT_EQ(delivery.error, RD_KAFKA_RESP_ERR_NO_ERROR);
}

void expect_numbers(const std::vector<Record>& records, std::size_t count, std::int64_t first) {
  ASSERT_EQ(records.size(), count);
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(records[i].value, std::to_string(i));
    ASSERT_EQ(records[i].offset, first + static_cast<std::int64_t>(i));
  }
}

}  // namespace kanal::e2e
