// Configs of groups and of client-metrics subscriptions.
#include "kanal/coordinator/resource_config.hpp"

#include "facts.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace kanal::coordinator {
namespace {

BrokerConfig broker(ConfigMap fixed = {}) {
  ConfigLayers layers;
  layers.fixed = std::move(fixed);
  return make_broker_config(std::move(layers), {}).value();
}

ErrorCode group(ConfigMap overlay) {
  const auto checked = check_group_configs(broker(), overlay);
  return checked ? ErrorCode::NONE : checked.error().code;
}
ErrorCode metrics(ConfigMap overlay) {
  const auto checked = check_client_metrics_configs(overlay);
  return checked ? ErrorCode::NONE : checked.error().code;
}

TEST(GroupConfig, TheTableIsKafkas) {
  const auto facts = read_facts("group-configs.tsv");
  EXPECT_EQ(facts.size(), group_config_rows().size());
  for (auto fact : facts) {
    const ConfigRow* row = find_group_config(fact["name"]);
    ASSERT_NE(row, nullptr) << fact["name"];
    EXPECT_EQ(name(row->type), fact["type"]) << fact["name"];
    EXPECT_EQ(row->valid, fact["valid"]) << fact["name"];
    const std::string shown = row->type == ConfigType::kList ? "[]" : fact["default"];
    EXPECT_EQ(row->type == ConfigType::kList ? "[]" : row->default_value.value_or(""), shown);
    const auto synonym = group_broker_name_of(fact["name"]);
    EXPECT_TRUE(synonym.empty() || find_broker_config(synonym) != nullptr) << fact["name"];
  }
  EXPECT_TRUE(std::ranges::is_sorted(group_config_rows(), {}, &ConfigRow::name));
}

TEST(GroupConfig, ValuesStayWithinTheBrokersBounds) {
  EXPECT_EQ(group({{"consumer.session.timeout.ms", "50000"}}), ErrorCode::NONE);
  for (const auto& [name, value] : {std::pair{"consumer.session.timeout.ms", "1"},
                                    {"consumer.session.timeout.ms", "60001"},
                                    {"consumer.session.timeout.ms", "soon"},
                                    {"streams.num.standby.replicas", "3"},
                                    {"share.delivery.count.limit", "11"},
                                    {"streams.assignor.name", "nope"},
                                    {"errors.deadletterqueue.topic.name", "__letters"},
                                    {"streams.rack.aware.assignment.tags", "a,b,a"},
                                    {"share.isolation.level", "serializable"},
                                    {"nonsense", "1"}}) {
    EXPECT_EQ(group({{name, value}}), ErrorCode::INVALID_CONFIG) << name << "=" << value;
  }
  EXPECT_EQ(group({{"streams.assignor.name", "sticky"}}), ErrorCode::NONE);
  EXPECT_TRUE(check_group_configs(broker({{"group.consumer.max.session.timeout.ms", "90000"}}),
                                  {{"consumer.session.timeout.ms", "80000"}}));
}

TEST(GroupConfig, ASessionOutlastsAHeartbeat) {
  const auto checked =
      check_group_configs(broker({{"group.consumer.min.session.timeout.ms", "1000"}}),
                          {{"consumer.session.timeout.ms", "5000"}});
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().detail,
            "consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms");
}

TEST(GroupConfig, AShareGroupBeginsAtAnEndOrSomeTimeAgo) {
  for (const char* value :
       {"latest", "earliest", "by_duration:PT1H", "by_duration:P1DT2H3M4.5S", "by_duration:P2D"}) {
    EXPECT_EQ(group({{"share.auto.offset.reset", value}}), ErrorCode::NONE) << value;
  }
  for (const char* value : {"never", "by_duration:", "by_duration:1h", "by_duration:PT", "P1D",
                            "by_duration:-PT1H", "by_duration:P", "by_duration:PT1X"}) {
    EXPECT_EQ(group({{"share.auto.offset.reset", value}}), ErrorCode::INVALID_CONFIG) << value;
  }
}

TEST(GroupConfig, TheDefaultsAreTheBrokers) {
  const auto entries =
      describe_group_configs(broker({{"group.consumer.heartbeat.interval.ms", "7000"}}),
                             {{"consumer.session.timeout.ms", "50000"}});
  EXPECT_EQ(entries.size(), group_config_rows().size());
  const auto entry = [&](std::string_view name) {
    return *std::ranges::find(entries, name, &ConfigEntry::name);
  };
  EXPECT_EQ(entry("consumer.heartbeat.interval.ms").value, "7000");
  EXPECT_EQ(entry("consumer.heartbeat.interval.ms").source, ConfigSource::kStaticBroker);
  EXPECT_EQ(entry("consumer.session.timeout.ms").source, ConfigSource::kGroup);
  EXPECT_EQ(entry("consumer.session.timeout.ms").synonyms.size(), 2U);
  EXPECT_EQ(entry("streams.assignor.name").value, "sticky");
  EXPECT_EQ(entry("share.auto.offset.reset").synonyms.at(0).name, "share.auto.offset.reset");
}

TEST(ClientMetrics, AreCheckedAsKafkaDoes) {
  EXPECT_EQ(metrics({{"interval.ms", "100"},
                     {"metrics", "org.apache.kafka.producer.,*"},
                     {"match", "client_software_name=Java, client_software_version=11\\.1.*"}}),
            ErrorCode::NONE);
  EXPECT_EQ(metrics({{"interval.ms", "99"}}), ErrorCode::INVALID_REQUEST);
  EXPECT_EQ(metrics({{"interval.ms", "3600001"}}), ErrorCode::INVALID_REQUEST);
  EXPECT_EQ(metrics({{"interval.ms", "x"}}), ErrorCode::INVALID_CONFIG);
  EXPECT_EQ(metrics({{"nonsense", "1"}}), ErrorCode::INVALID_REQUEST);
  EXPECT_EQ(metrics({{"metrics", "a,,b"}}), ErrorCode::INVALID_CONFIG);
  for (const char* match : {"client_id", "client_id=", "foo=x", "client_id=a=b", "client_id=(",
                            "client_id=[a", "client_id=*", "client_id=a)", "client_id=a\\"}) {
    EXPECT_EQ(metrics({{"match", match}}), ErrorCode::INVALID_CONFIG) << match;
  }
}

TEST(ClientMetrics, AnyNameHasItsDefaults) {
  const auto entries = describe_client_metrics_configs({{"interval.ms", " 1000 "}});
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].value, "1000");
  EXPECT_EQ(entries[0].source, ConfigSource::kClientMetrics);
  EXPECT_EQ(entries[1].value, "");
  EXPECT_EQ(entries[1].source, ConfigSource::kDefault);
  EXPECT_TRUE(entries[1].synonyms.empty());
}

}  // namespace
}  // namespace kanal::coordinator
