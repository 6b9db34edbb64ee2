// Changes of configs through a store that fails and loses power.
#include "config_driver.hpp"

#include "kanal/reserved/memory_store.hpp"
#include "unit/log/world.hpp"

#include <gtest/gtest.h>

namespace kanal::broker {
namespace {

using coordinator::AlterConfigs;
using coordinator::ConfigOperation;
using coordinator::ConfigResourceType;
using reserved::MemoryStore;

class ConfigDriverTest : public ::testing::Test {
 protected:
  void start() {
    session = std::move(*store.open());
    const auto base = std::make_shared<const coordinator::BrokerConfig>(
        coordinator::make_broker_config({}, {}).value());
    driver = std::make_unique<ConfigDriver>(*session, clock, base);
    Uuid id;
    id.bytes[0] = 1;
    const auto facts = driver->start({id, NodeId(1)});
    ASSERT_TRUE(facts) << facts.error().detail;
  }

  ErrorCode set(ConfigResourceType type, std::string name, std::string key, std::string value) {
    std::vector<AlterConfigs> commands(1);
    commands[0].type = type;
    commands[0].name = std::move(name);
    commands[0].changes.push_back({std::move(key), ConfigOperation::kSet, std::move(value)});
    const auto replies = driver->change(commands);
    return replies.at(0) ? ErrorCode::NONE : replies[0].error().code;
  }
  ErrorCode connections(std::string value) {
    return set(ConfigResourceType::kBroker, "", "max.connections", std::move(value));
  }

  log::test::HandClock clock;
  MemoryStore store;
  std::unique_ptr<reserved::Session> session;
  std::unique_ptr<ConfigDriver> driver;
};

TEST_F(ConfigDriverTest, WhatIsAnsweredSurvivesAPowerCut) {
  start();
  EXPECT_EQ(connections("50"), ErrorCode::NONE);
  EXPECT_EQ(set(ConfigResourceType::kGroup, "g", "consumer.session.timeout.ms", "50000"),
            ErrorCode::NONE);
  store.power_cut(0);
  start();
  EXPECT_EQ(driver->config()->max_connections, 50);
  EXPECT_EQ(driver->stored()->groups.at("g").at("consumer.session.timeout.ms"), "50000");
}

TEST_F(ConfigDriverTest, AFailedWriteIsNotInForceAndTheNextChangeStartsFromWhatIsStored) {
  for (const auto failure : {MemoryStore::Failure::kNothingWritten, MemoryStore::Failure::kDiskFull,
                             MemoryStore::Failure::kWrittenUnsynced}) {
    start();
    std::vector<std::int32_t> told;
    driver->listen([&](const ConfigDriver::Config& now) { told.push_back(now->max_connections); });
    ASSERT_EQ(connections("50"), ErrorCode::NONE);
    store.fail_write(1, failure);
    EXPECT_EQ(connections("60"), ErrorCode::KAFKA_STORAGE_ERROR);
    EXPECT_EQ(driver->config()->max_connections, 50);
    EXPECT_EQ(set(ConfigResourceType::kBroker, "1", "max.connections.per.ip", "7"),
              ErrorCode::NONE);
    const auto now = driver->config();
    EXPECT_EQ(now->max_connections_per_ip, 7);
    EXPECT_EQ(now->max_connections, 50);
    EXPECT_EQ(told.back(), 50);
    store.kill();
    start();
    EXPECT_EQ(driver->config()->max_connections_per_ip, 7);
    const bool came_to_life = failure == MemoryStore::Failure::kWrittenUnsynced;
    EXPECT_EQ(driver->config()->max_connections, came_to_life ? 60 : 50);
    ASSERT_EQ(connections("10"), ErrorCode::NONE);
    store.kill();
  }
}

TEST_F(ConfigDriverTest, TheChannelStaysShortHoweverOftenConfigsChange) {
  start();
  for (int i = 1; i <= 1'000; ++i) ASSERT_EQ(connections(std::to_string(i)), ErrorCode::NONE);
  EXPECT_LE(store.records_in({reserved::Kind::kCluster, ""}), 66U);
  store.power_cut(0);
  start();
  EXPECT_EQ(driver->config()->max_connections, 1'000);
}

}  // namespace
}  // namespace kanal::broker
