// DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources on one broker.
#include <gmock/gmock.h>

#include <algorithm>

#include "kanal/base/logging.hpp"
#include "kanal/wire/messages/alter_configs.hpp"
#include "kanal/wire/messages/describe_configs.hpp"
#include "kanal/wire/messages/incremental_alter_configs.hpp"
#include "kanal/wire/messages/list_config_resources.hpp"
#include "one_broker.hpp"

namespace kanal::handlers {

#define HANDLER(NAME) \
  broker::Task<wire::NAME##Response> handle(broker::Context& context, wire::NAME##Request request)
HANDLER(AlterConfigs);
HANDLER(DescribeConfigs);
HANDLER(IncrementalAlterConfigs);
HANDLER(ListConfigResources);
#undef HANDLER

namespace testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int8_t kTopic = 2, kBroker = 4, kLogger = 8, kMetrics = 16, kGroup = 32;
constexpr std::int8_t kSet = 0, kDelete = 1, kAppend = 2, kSubtract = 3;

struct Change {
  std::int8_t operation = kSet;
  std::string_view name;
  std::optional<std::string_view> value;
};
struct Resource {
  std::int8_t type = 0;
  std::string_view name;
  std::vector<Change> changes;
};

class Configs : public OneBroker {
 protected:
  /// Codes in the request's order.
  std::vector<ErrorCode> alter(const std::vector<Resource>& resources, bool validate_only = false) {
    wire::IncrementalAlterConfigsRequest request;
    request.validate_only = validate_only;
    for (const Resource& resource : resources) {
      auto& wanted = request.resources.emplace_back();
      wanted.resource_type = resource.type;
      wanted.resource_name = resource.name;
      for (const Change& change : resource.changes) {
        wanted.configs.push_back({change.name, change.operation, change.value});
      }
    }
    broker::Context asking = context(44, 1);
    const auto response = await(handle(asking, std::move(request)));
    std::vector<ErrorCode> codes;
    for (const auto& entry : response.responses) codes.push_back(entry.error_code);
    return codes;
  }
  ErrorCode alter(std::int8_t type, std::string_view name, const Change& change) {
    return alter({Resource{type, name, {change}}}).at(0);
  }
  std::vector<ErrorCode> replace(const std::vector<Resource>& resources) {
    wire::AlterConfigsRequest request;
    for (const Resource& resource : resources) {
      auto& wanted = request.resources.emplace_back();
      wanted.resource_type = resource.type;
      wanted.resource_name = resource.name;
      for (const Change& change : resource.changes) {
        wanted.configs.push_back({change.name, change.value});
      }
    }
    broker::Context asking = context(33, 2);
    const auto response = await(handle(asking, std::move(request)));
    std::vector<ErrorCode> codes;
    for (const auto& entry : response.responses) codes.push_back(entry.error_code);
    return codes;
  }
  wire::DescribeConfigsResponse::Result describe(std::int8_t type, std::string_view name) {
    wire::DescribeConfigsRequest request;
    request.include_synonyms = true;
    auto& resource = request.resources.emplace_back();
    resource.resource_type = type;
    resource.resource_name = name;
    broker::Context asking = context(32, 4);
    return await(handle(asking, std::move(request))).results.at(0);
  }
  std::string shown(std::int8_t type, std::string_view name, std::string_view wanted) {
    const auto result = describe(type, name);
    const auto found =
        std::ranges::find(result.configs, wanted, [](const auto& one) { return one.name; });
    if (found == result.configs.end()) return "(none)";
    return std::to_string(found->config_source) + "=" + found->value.value_or("null");
  }
};

TEST_F(Configs, AChangeOfATopicActsAtOnceAndOutlivesARestart) {
  create("orders");
  EXPECT_EQ(alter(kTopic, "orders", {kSet, "max.message.bytes", "700"}), ErrorCode::NONE);
  EXPECT_EQ(broker->topics()->find("orders")->config().max_message_bytes, 700);
  EXPECT_EQ(alter(kTopic, "orders", {kAppend, "cleanup.policy", "compact"}), ErrorCode::NONE);
  restart();
  EXPECT_EQ(shown(kTopic, "orders", "max.message.bytes"), "1=700");
  EXPECT_EQ(shown(kTopic, "orders", "cleanup.policy"), "1=delete,compact");
  EXPECT_EQ(alter(kTopic, "orders", {kSubtract, "cleanup.policy", "compact"}), ErrorCode::NONE);
  EXPECT_EQ(alter(kTopic, "orders", {kDelete, "max.message.bytes", std::nullopt}), ErrorCode::NONE);
  EXPECT_EQ(broker->topics()->find("orders")->config().max_message_bytes, 1'048'588);
}

TEST_F(Configs, ABrokersChangeReachesTheTopicsThatFollowIt) {
  create("plain");
  create("own", 1, {{"max.message.bytes", "900"}});
  EXPECT_EQ(alter(kBroker, "", {kSet, "message.max.bytes", "600"}), ErrorCode::NONE);
  EXPECT_EQ(broker->config()->layers.cluster_default.at("message.max.bytes"), "600");
  EXPECT_EQ(broker->topics()->find("plain")->config().max_message_bytes, 600);
  EXPECT_EQ(broker->topics()->find("own")->config().max_message_bytes, 900);
  EXPECT_EQ(alter(kBroker, "1", {kSet, "message.max.bytes", "500"}), ErrorCode::NONE);
  EXPECT_EQ(broker->topics()->find("plain")->config().max_message_bytes, 500);
  create("later");
  restart();
  for (const char* topic : {"plain", "later"}) {
    EXPECT_EQ(broker->topics()->find(topic)->config().max_message_bytes, 500) << topic;
  }
  EXPECT_EQ(shown(kBroker, "1", "message.max.bytes"), "2=500");
  EXPECT_EQ(shown(kBroker, "", "message.max.bytes"), "3=600");
  EXPECT_EQ(shown(kTopic, "plain", "max.message.bytes"), "2=500");
  EXPECT_EQ(alter(kBroker, "1", {kDelete, "message.max.bytes", std::nullopt}), ErrorCode::NONE);
  EXPECT_EQ(shown(kTopic, "plain", "max.message.bytes"), "3=600");
}

TEST_F(Configs, ListenersAreToldOfEveryChangeOfTheBroker) {
  std::vector<std::int32_t> told;
  broker->on_config_change(
      [&](const coordinator::BrokerConfig& now) { told.push_back(now.max_connections); });
  EXPECT_EQ(alter(kBroker, "", {kSet, "max.connections", "50"}), ErrorCode::NONE);
  EXPECT_EQ(alter(kGroup, "g", {kSet, "consumer.session.timeout.ms", "50000"}), ErrorCode::NONE);
  EXPECT_THAT(told, ElementsAre(2'147'483'647, 50));
}

TEST_F(Configs, ValidateOnlyChangesNothing) {
  create("orders");
  EXPECT_THAT(alter({{kTopic, "orders", {{kSet, "retention.ms", "5"}}},
                     {kBroker, "1", {{kSet, "max.connections", "5"}}},
                     {kGroup, "g", {{kSet, "consumer.session.timeout.ms", "50000"}}},
                     {kLogger, "1", {{kSet, "log", "TRACE"}}}},
                    true),
              ElementsAre(ErrorCode::NONE, ErrorCode::NONE, ErrorCode::NONE, ErrorCode::NONE));
  EXPECT_EQ(shown(kTopic, "orders", "retention.ms"), "5=604800000");
  EXPECT_EQ(shown(kBroker, "1", "max.connections"), "5=2147483647");
  EXPECT_EQ(shown(kGroup, "g", "consumer.session.timeout.ms"), "5=45000");
  EXPECT_NE(logger_levels().at("log"), "TRACE");
}

TEST_F(Configs, AResourceNamedTwiceIsRefusedBothTimesAndOthersChange) {
  create("orders");
  create("bills");
  EXPECT_THAT(alter({{kTopic, "orders", {{kSet, "retention.ms", "5"}}},
                     {kTopic, "bills", {{kSet, "retention.ms", "6"}}},
                     {kTopic, "orders", {{kSet, "retention.ms", "7"}}}}),
              ElementsAre(ErrorCode::INVALID_REQUEST, ErrorCode::NONE, ErrorCode::INVALID_REQUEST));
  EXPECT_EQ(shown(kTopic, "orders", "retention.ms"), "5=604800000");
  EXPECT_EQ(shown(kTopic, "bills", "retention.ms"), "1=6");
}

TEST_F(Configs, MistakesHaveKafkasCodes) {
  create("orders");
  EXPECT_THAT(
      alter({{kTopic, "orders", {{kSet, "retention.ms", "5"}, {kSet, "retention.ms", "6"}}}}),
      ElementsAre(ErrorCode::INVALID_REQUEST));
  EXPECT_EQ(alter(kTopic, "orders", {kSet, "retention.ms", std::nullopt}),
            ErrorCode::INVALID_REQUEST);
  EXPECT_EQ(alter(kTopic, "orders", {9, "retention.ms", "5"}), ErrorCode::UNKNOWN_SERVER_ERROR);
  EXPECT_EQ(alter(kBroker, "1", {9, "max.connections", "5"}), ErrorCode::INVALID_REQUEST);
  EXPECT_EQ(alter(kBroker, "2", {kSet, "max.connections", "5"}), ErrorCode::INVALID_REQUEST);
  EXPECT_EQ(alter(kBroker, "one", {kSet, "max.connections", "5"}), ErrorCode::INVALID_REQUEST);
  EXPECT_EQ(alter(kBroker, "1", {kSet, "num.partitions", "5"}), ErrorCode::INVALID_REQUEST);
  EXPECT_EQ(alter(kBroker, "1", {kAppend, "max.connections", "5"}), ErrorCode::INVALID_CONFIG);
  EXPECT_EQ(alter(99, "x", {kSet, "a", "5"}), ErrorCode::INVALID_REQUEST);
  EXPECT_EQ(alter(kTopic, "none", {kSet, "retention.ms", "5"}),
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
  EXPECT_EQ(describe(kTopic, "none").error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
  EXPECT_EQ(describe(99, "x").error_code, ErrorCode::INVALID_REQUEST);
  EXPECT_EQ(describe(kGroup, "").error_code, ErrorCode::INVALID_REQUEST);
  EXPECT_EQ(describe(kLogger, "").error_code, ErrorCode::INVALID_REQUEST);
  EXPECT_EQ(describe(kBroker, "2").error_code, ErrorCode::INVALID_REQUEST);
}

TEST_F(Configs, AlterConfigsDropsWhatItDoesNotName) {
  create("orders", 1, {{"retention.ms", "5"}, {"segment.ms", "6"}});
  EXPECT_THAT(replace({{kTopic, "orders", {{kSet, "retention.bytes", "7"}}},
                       {kBroker, "1", {{kSet, "max.connections", "9"}}},
                       {kLogger, "1", {{kSet, "log", "TRACE"}}}}),
              ElementsAre(ErrorCode::NONE, ErrorCode::NONE, ErrorCode::INVALID_REQUEST));
  EXPECT_EQ(broker->topics()->find("orders")->entry->overlay,
            (coordinator::ConfigMap{{"retention.bytes", "7"}}));
  EXPECT_THAT(replace({{kBroker, "1", {}}}), ElementsAre(ErrorCode::NONE));
  EXPECT_EQ(shown(kBroker, "1", "max.connections"), "5=2147483647");
}

TEST_F(Configs, GroupsAndClientMetricsAreStoredAndListed) {
  EXPECT_EQ(alter(kGroup, "g", {kSet, "consumer.session.timeout.ms", "50000"}), ErrorCode::NONE);
  EXPECT_EQ(alter(kMetrics, "m", {kSet, "interval.ms", "1000"}), ErrorCode::NONE);
  create("orders");
  restart();
  EXPECT_EQ(shown(kGroup, "g", "consumer.session.timeout.ms"), "8=50000");
  EXPECT_EQ(shown(kGroup, "other", "consumer.session.timeout.ms"), "5=45000");
  EXPECT_EQ(shown(kMetrics, "m", "interval.ms"), "7=1000");
  const auto list = [&](std::int16_t version, std::vector<std::int8_t> types) {
    wire::ListConfigResourcesRequest request;
    request.resource_types = std::move(types);
    broker::Context asking = context(74, version);
    const auto response = await(handle(asking, std::move(request)));
    std::vector<std::string> names;
    if (response.error_code != ErrorCode::NONE) names.emplace_back("refused");
    for (const auto& entry : response.config_resources) names.push_back(entry.resource_name);
    return names;
  };
  EXPECT_THAT(list(0, {}), ElementsAre("m"));
  EXPECT_THAT(list(1, {}), ElementsAre("g", "m", "1", "1", "orders"));
  EXPECT_THAT(list(1, {kGroup}), ElementsAre("g"));
  EXPECT_THAT(list(1, {kGroup, 99}), ElementsAre("refused"));
  EXPECT_THAT(replace({{kGroup, "g", {}}}), ElementsAre(ErrorCode::NONE));
  EXPECT_THAT(list(1, {kGroup}), IsEmpty());
}

TEST_F(Configs, WhatIsDescribedCanBeSetAgain) {
  create("orders", 1, {{"retention.ms", "5"}});
  for (const auto& [type, name] : {std::pair<std::int8_t, std::string_view>{kTopic, "orders"},
                                   {kBroker, "1"},
                                   {kGroup, "g"},
                                   {kMetrics, "m"}}) {
    const auto described = describe(type, name);
    Resource all{type, name, {}};
    for (const auto& entry : described.configs) {
      // Kafka takes certificate stores for single listeners alone.
      const bool store = entry.name.starts_with("ssl.") && entry.name.contains("store.");
      if (entry.read_only || !entry.value || store) continue;
      const Change change{kSet, entry.name, *entry.value};
      EXPECT_THAT(alter({Resource{type, name, {change}}}, true), ElementsAre(ErrorCode::NONE))
          << entry.name;
      all.changes.push_back(change);
    }
    EXPECT_THAT(replace({all}), ElementsAre(ErrorCode::NONE)) << name;
  }
}

TEST_F(Configs, LoggersTakeLevelsOneByOneAndFollowTheRoot) {
  const std::string before = logger_levels().at("root");
  EXPECT_EQ(alter(kLogger, "1", {kSet, "log", "ERROR"}), ErrorCode::NONE);
  EXPECT_EQ(alter(kLogger, "1", {kSet, "root", "WARN"}), ErrorCode::NONE);
  EXPECT_EQ(shown(kLogger, "1", "log"), "6=ERROR");
  EXPECT_EQ(shown(kLogger, "1", "broker"), "6=WARN");
  EXPECT_EQ(alter(kLogger, "1", {kDelete, "log", std::nullopt}), ErrorCode::NONE);
  EXPECT_EQ(shown(kLogger, "1", "log"), "6=WARN");
  EXPECT_EQ(alter(kLogger, "1", {kDelete, "root", std::nullopt}), ErrorCode::INVALID_REQUEST);
  EXPECT_EQ(alter(kLogger, "1", {kSet, "root", "warn"}), ErrorCode::INVALID_CONFIG);
  EXPECT_EQ(alter(kLogger, "1", {kSet, "nonsense", "WARN"}), ErrorCode::INVALID_CONFIG);
  EXPECT_EQ(alter(kLogger, "1", {kAppend, "root", "WARN"}), ErrorCode::INVALID_REQUEST);
  EXPECT_EQ(alter(kLogger, "2", {kSet, "root", "WARN"}), ErrorCode::INVALID_REQUEST);
  EXPECT_EQ(alter(kLogger, "1", {kSet, "root", before}), ErrorCode::NONE);
}

}  // namespace
}  // namespace testing
}  // namespace kanal::handlers
