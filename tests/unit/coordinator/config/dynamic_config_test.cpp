// Configs set while the broker runs (KIP-226): what may be changed, and what is in force.
#include "kanal/coordinator/dynamic_config.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "facts.hpp"
#include "kanal/coordinator/broker_config.hpp"

namespace kanal::coordinator {
namespace {

BrokerConfig running(ConfigMap fixed = {}) {
  ConfigLayers layers;
  layers.fixed = std::move(fixed);
  return make_broker_config(std::move(layers), {}).value();
}

std::string refusal(const ConfigMap& wanted, bool per_broker = true) {
  const auto checked = check_broker_change(running(), wanted, per_broker);
  if (checked) return "";
  EXPECT_EQ(checked.error().code, ErrorCode::INVALID_REQUEST) << checked.error().detail;
  return checked.error().detail;
}

TEST(DynamicConfig, WhatKafkaFixesAtTheStartIsRefusedByName) {
  EXPECT_EQ(refusal({{"num.partitions", "3"}, {"message.max.bytes", "5000"}}),
            "Cannot update these configs dynamically: [num.partitions]");
  EXPECT_EQ(refusal({{"ssl.keystore.location", "/x"}}),
            "These security configs can be dynamically updated only per-listener using the "
            "listener prefix: [ssl.keystore.location]");
  EXPECT_EQ(refusal({{"cordoned.log.dirs", ""}}, false),
            "Cannot update these configs at default cluster level, broker id must be specified: "
            "[cordoned.log.dirs]");
}

TEST(DynamicConfig, ValuesAreCheckedAsInTheStartUpFile) {
  EXPECT_EQ(refusal({{"message.max.bytes", "x"}}),
            "Invalid value x for configuration message.max.bytes: Not a number of type INT");
  EXPECT_NE(refusal({{"log.retention.ms", "0"}}), "");
  EXPECT_NE(refusal({{"max.connections.per.ip", "0"}}), "");
  EXPECT_EQ(refusal({{"max.connections.per.ip.overrides", "127.0.0.1:5"}}), "");
  EXPECT_EQ(refusal({{"log.segment.bytes", "2000000"}}, false), "");
}

TEST(DynamicConfig, PoolsGrowToTwiceAndShrinkToHalfAtATime) {
  EXPECT_EQ(refusal({{"num.io.threads", "16"}}), "");
  EXPECT_EQ(refusal({{"num.io.threads", "4"}}), "");
  EXPECT_NE(refusal({{"num.io.threads", "17"}}).find("double the current value 8"),
            std::string::npos);
  EXPECT_NE(refusal({{"num.network.threads", "100"}}), "");
  EXPECT_NE(refusal({{"log.cleaner.threads", "3"}}), "");
  EXPECT_NE(refusal({{"max.connections", "0"}}), "");
}

TEST(DynamicConfig, WhatIsMissingHereIsRefusedAndItsNumbersAreKept) {
  EXPECT_NE(refusal({{"metric.reporters", "com.example.Reporter"}}), "");
  EXPECT_EQ(refusal({{"metric.reporters", ""}}), "");
  EXPECT_NE(refusal({{"listeners", "PLAINTEXT://:1"}}).find("start-up file"), std::string::npos);
  EXPECT_NE(refusal({{"sasl.jaas.config", "secret"}}).find("SASL is not served"),
            std::string::npos);
  EXPECT_EQ(refusal({{"sasl.jaas.config", "secret"}}).find("secret"), std::string::npos);
  EXPECT_NE(refusal({{"listener.name.plaintext.max.connections", "5"}}), "");
  EXPECT_EQ(refusal({{"remote.log.reader.threads", "12"}}), "");
  EXPECT_EQ(refusal({{"leader.replication.throttled.rate", "1000"}}), "");
}

/// Something that Kafka would take for this config, other than its default.
std::string other_value(const ConfigRow& row) {
  const std::string now = shown_value(row, row.default_value.value_or(""));
  for (const char* value : {"com.example.Other", "required", "PLAINTEXT://:1", "A:PLAINTEXT"}) {
    if (check_value(row, value) && shown_value(row, value) != now) return value;
  }
  ADD_FAILURE() << row.name << ": no value to try";
  return {};
}

/// As docs/dynamic_configs.md lists what asks for something that is missing here.
bool is_documented_as_missing(std::string_view name) {
  constexpr std::string_view kNames[] = {"listeners", "listener.security.protocol.map",
                                         "metric.reporters", "config.providers",
                                         "principal.builder.class", "cordoned.log.dirs"};
  return std::ranges::find(kNames, name) != std::end(kNames) || name.starts_with("ssl.") ||
         name.starts_with("sasl.");
}

TEST(DynamicConfig, WhatIsMissingHereIsRefusedUnderEachOfKafkasNames) {
  int words = 0, numbers = 0;
  for (auto& fact : read_facts("broker-configs.tsv")) {
    const std::string& name = fact["name"];
    const ConfigRow* row = find_broker_config(name);
    ASSERT_NE(row, nullptr) << name;
    if (!is_dynamic(name)) {
      const std::string same(row->default_value.value_or("x"));
      EXPECT_EQ(refusal({{name, same}}), "Cannot update these configs dynamically: [" + name + "]");
      continue;
    }
    if (row->treatment != Treatment::kOwnKey && row->treatment != Treatment::kRefused) continue;
    if (row->type != ConfigType::kString && row->type != ConfigType::kList &&
        row->type != ConfigType::kClass && row->type != ConfigType::kPassword) {
      EXPECT_EQ(refusal({{name, std::string(row->default_value.value())}}), "") << name;
      ++numbers;
      continue;
    }
    EXPECT_TRUE(is_documented_as_missing(name)) << name;
    const std::string value = other_value(*row);
    const std::string text = refusal({{name, value}});
    EXPECT_NE(text.find(name), std::string::npos) << name << ": " << text;
    EXPECT_EQ(text.find(value), std::string::npos) << name << " repeats its value";
    EXPECT_NE(refusal({{"listener.name.plaintext." + name, value}}), "") << name;
    ++words;
  }
  EXPECT_GT(words, 25);
  EXPECT_GT(numbers, 5);
}

TEST(DynamicConfig, NamesKafkaDoesNotKnowAreKeptAndShownAsSecrets) {
  EXPECT_EQ(refusal({{"my.plugin.password", "open sesame"}}), "");
  DynamicConfigs stored;
  stored.broker = {{"my.plugin.password", "open sesame"}};
  const InForce now = in_force(running(), stored);
  EXPECT_TRUE(now.ignored.empty());
  const auto entries = describe_broker_configs(now.config);
  const auto entry = std::ranges::find(entries, "my.plugin.password", &ConfigEntry::name);
  ASSERT_NE(entry, entries.end());
  EXPECT_TRUE(entry->sensitive);
  EXPECT_TRUE(entry->read_only);
  EXPECT_FALSE(entry->value);
  EXPECT_FALSE(entry->synonyms.at(0).value);
}

TEST(DynamicConfig, AppendingAtABrokerHasKafkasTexts) {
  const auto text = [](std::string name) {
    const std::vector changes{ConfigAlteration{std::move(name), ConfigOperation::kAppend, "x"}};
    const auto changed = altered_broker({}, changes);
    return changed ? changed->begin()->second : changed.error().detail;
  };
  EXPECT_EQ(text("log.cleanup.policy"), "delete,x");
  EXPECT_EQ(text("log.segment.bytes"),
            "Config value append is not allowed for config key: log.segment.bytes");
  EXPECT_EQ(text("nonsense"), "Unknown config name: nonsense");
}

TEST(InForce, ThisBrokersValueWinsOverTheClustersAndTheFiles) {
  const BrokerConfig base = running({{"max.connections", "10"}, {"num.partitions", "4"}});
  DynamicConfigs stored;
  EXPECT_EQ(in_force(base, stored).config.max_connections, 10);
  stored.cluster_default = {{"max.connections", "20"}};
  EXPECT_EQ(in_force(base, stored).config.max_connections, 20);
  stored.broker = {{"max.connections", "30"}};
  const InForce now = in_force(base, stored);
  EXPECT_EQ(now.config.max_connections, 30);
  EXPECT_EQ(now.config.num_partitions, 4);
  EXPECT_TRUE(now.ignored.empty());
}

TEST(InForce, WhatTheStartUpFileContradictsIsLeftOutAndNamed) {
  const BrokerConfig base = running({{"log.cleaner.max.compaction.lag.ms", "50"}});
  DynamicConfigs stored;
  stored.broker = {{"log.cleaner.min.compaction.lag.ms", "100"}, {"max.connections", "30"}};
  const InForce now = in_force(base, stored);
  ASSERT_EQ(now.ignored.size(), 1U);
  EXPECT_EQ(now.ignored[0].name, "log.cleaner.min.compaction.lag.ms");
  EXPECT_FALSE(now.config.layers.broker.contains("log.cleaner.min.compaction.lag.ms"));
  EXPECT_EQ(now.config.max_connections, 30) << "what fits is in force";
}

TEST(InForce, ValuesThatOnlyGoTogetherAreInForceTogether) {
  const BrokerConfig base = running(
      {{"log.cleaner.min.compaction.lag.ms", "60"}, {"log.cleaner.max.compaction.lag.ms", "70"}});
  DynamicConfigs stored;
  stored.broker = {{"log.cleaner.max.compaction.lag.ms", "10"},
                   {"log.cleaner.min.compaction.lag.ms", "5"}};
  EXPECT_TRUE(in_force(base, stored).ignored.empty());
}

TEST(InForce, WhatAnotherVersionStoredDoesNotStopTheStart) {
  DynamicConfigs stored;
  stored.broker = {{"message.max.bytes", "lots"}, {"num.partitions", "3"}};
  stored.cluster_default = {{"listeners", "PLAINTEXT://:1"}};
  const InForce now = in_force(running(), stored);
  EXPECT_EQ(now.ignored.size(), 3U);
  EXPECT_TRUE(now.config.layers.broker.empty());
  EXPECT_TRUE(now.config.layers.cluster_default.empty());
}

}  // namespace
}  // namespace kanal::coordinator
