#include "kanal/coordinator/broker_config.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace kanal::coordinator {
namespace {

Result<BrokerConfig> with(ConfigMap fixed) {
  ConfigLayers layers;
  layers.fixed = std::move(fixed);
  return make_broker_config(std::move(layers), {});
}

std::string conflict_of(ConfigMap fixed) {
  ConfigLayers layers;
  layers.fixed = std::move(fixed);
  const auto conflicts = broker_config_conflicts(layers);
  return conflicts.empty() ? "" : std::string(conflicts[0].name);
}

TEST(BrokerConfig, TypedFieldsStartAtKafkasDefaults) {
  const auto made = with({});
  ASSERT_TRUE(made);
  const BrokerConfig plain;
  EXPECT_EQ(made->num_partitions, plain.num_partitions);
  EXPECT_EQ(made->socket_request_max_bytes, plain.socket_request_max_bytes);
  EXPECT_EQ(made->connections_max_idle_ms, plain.connections_max_idle_ms);
  EXPECT_EQ(made->fetch_max_bytes, plain.fetch_max_bytes);
  EXPECT_EQ(made->producer_id_expiration_ms, plain.producer_id_expiration_ms);
  EXPECT_EQ(made->producer_id_expiration_check_interval_ms,
            plain.producer_id_expiration_check_interval_ms);
  EXPECT_EQ(made->queued_max_request_bytes, -1);
  EXPECT_TRUE(made->auto_create_topics);
}

TEST(BrokerConfig, TypedFieldsFollowTheLayers) {
  const auto made = with({{"num.partitions", " 4 "},
                          {"auto.create.topics.enable", "False"},
                          {"producer.id.expiration.check.interval.ms", "50"},
                          {"max.connections.per.ip.overrides", "10.0.0.7:3, ::1:4"}});
  ASSERT_TRUE(made) << made.error().detail;
  EXPECT_EQ(made->num_partitions, 4);
  EXPECT_FALSE(made->auto_create_topics);
  EXPECT_EQ(made->producer_id_expiration_check_interval_ms, 50);
  EXPECT_EQ(made->max_connections_per_ip_overrides.at("10.0.0.7"), 3);
  EXPECT_EQ(made->max_connections_per_ip_overrides.at("::1"), 4);
}

TEST(BrokerConfig, UnknownNamesAndBadValuesAreRefusedInEveryLayer) {
  EXPECT_FALSE(with({{"num.partitons", "4"}}));
  EXPECT_FALSE(with({{"num.partitions", "0"}}));
  ConfigLayers layers;
  layers.cluster_default = {{"message.max.bytes", "-1"}};
  EXPECT_FALSE(make_broker_config(layers, {}));
}

TEST(BrokerConfig, SecretsAreNeitherEchoedNorDescribed) {
  const ConfigRow* row = find_broker_config("ssl.key.password");
  ASSERT_NE(row, nullptr);
  const auto refused = check_value(*row, std::string(40'000, 's'));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail.find("sss"), std::string::npos);
  const auto made = with({{"ssl.key.password", "open sesame"}});
  ASSERT_TRUE(made);
  const auto entries = describe_broker_configs(*made);
  const auto entry = std::ranges::find(entries, "ssl.key.password", &ConfigEntry::name);
  EXPECT_TRUE(entry->sensitive);
  EXPECT_FALSE(entry->value);
  EXPECT_FALSE(entry->synonyms.at(0).value);
}

TEST(BrokerConfig, ValuesThatDoNotGoTogetherAreNamed) {
  EXPECT_EQ(conflict_of({}), "");
  EXPECT_EQ(conflict_of({{"log.retention.hours", "0"}}), "log.retention.ms");
  EXPECT_EQ(conflict_of({{"log.roll.ms", "0"}}), "log.roll.ms");
  EXPECT_EQ(conflict_of({{"log.roll.jitter.ms", "-5"}}), "log.roll.jitter.ms");
  EXPECT_EQ(conflict_of({{"default.replication.factor", "3"}}), "default.replication.factor");
  EXPECT_EQ(conflict_of({{"queued.max.request.bytes", "1000"}}), "queued.max.request.bytes");
  EXPECT_EQ(conflict_of({{"max.connections.per.ip", "0"}}), "max.connections.per.ip");
  EXPECT_EQ(conflict_of({{"max.connections.per.ip", "0"},
                         {"max.connections.per.ip.overrides", "127.0.0.1:5"}}),
            "");
  for (const char* bad : {"x", "127.0.0.1", "host.name:5", "127.0.0.1:-5", ":5"}) {
    EXPECT_EQ(conflict_of({{"max.connections.per.ip.overrides", bad}}),
              "max.connections.per.ip.overrides")
        << bad;
  }
  EXPECT_EQ(conflict_of({{"log.cleaner.min.compaction.lag.ms", "9"},
                         {"log.cleaner.max.compaction.lag.ms", "8"}}),
            "log.cleaner.max.compaction.lag.ms");
}

TEST(BrokerConfig, DynamicAndPerBrokerAreKafkas) {
  EXPECT_TRUE(is_dynamic("message.max.bytes"));
  EXPECT_FALSE(is_per_broker("message.max.bytes"));
  EXPECT_TRUE(is_dynamic("ssl.keystore.location"));
  EXPECT_TRUE(is_per_broker("ssl.keystore.location"));
  EXPECT_FALSE(is_dynamic("num.partitions"));
  EXPECT_FALSE(is_dynamic("nonsense"));
}

TEST(BrokerConfig, NamesMapToVariablesAndBack) {
  for (const ConfigRow& row : broker_config_rows()) {
    EXPECT_EQ(row.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789."),
              std::string_view::npos)
        << row.name;
  }
}

TEST(NearestName, FindsWhatWasMeantAndNothingElse) {
  const std::string_view names[] = {"num.partitions", "message.max.bytes", "log.retention.ms"};
  EXPECT_EQ(nearest_name("num.partitons", names), "num.partitions");
  EXPECT_EQ(nearest_name("num_partitions", names), "num.partitions");
  EXPECT_EQ(nearest_name("numPartitions", names), "num.partitions");
  EXPECT_EQ(nearest_name("mesage.max.byte", names), "message.max.bytes");
  EXPECT_EQ(nearest_name("something.else", names), "");
  EXPECT_EQ(nearest_name("", names), "");
  EXPECT_EQ(nearest_name(std::string(100'000, 'n'), names), "");
}

TEST(ShownValue, DoublesLookAsJavaWritesThem) {
  const ConfigRow row{"x", ConfigType::kDouble, std::nullopt, "", Treatment::kActs, "", ""};
  EXPECT_EQ(shown_value(row, "0.50"), "0.5");
  EXPECT_EQ(shown_value(row, "1"), "1.0");
  EXPECT_EQ(shown_value(row, "0.00001"), "1.0E-5");
  EXPECT_EQ(shown_value(row, "123456789"), "1.23456789E8");
  EXPECT_EQ(shown_value(row, "1.7976931348623157E308"), "1.7976931348623157E308");
  EXPECT_EQ(shown_value(row, "-0.25"), "-0.25");
}

}  // namespace
}  // namespace kanal::coordinator
