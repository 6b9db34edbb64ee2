// Every table and every answer against facts of Apache Kafka 4.4.
#include "facts.hpp"
#include "kanal/coordinator/topic_config.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace kanal::coordinator {
namespace {

/// "[a, b]" and "class x" of the reference are shown as "a,b" and "x".
std::string shown_default(std::string text) {
  if (text == "(required)") return "";
  if (text.starts_with("class ")) return text.substr(6);
  if (!text.starts_with('[')) return text;
  std::string out;
  for (const std::string_view item :
       list_items(std::string_view(text).substr(1, text.size() - 2))) {
    out.append(out.empty() ? "" : ",").append(item);
  }
  return out;
}

void expect_facts(std::span<const ConfigRow> table, const std::string& file) {
  const auto facts = read_facts(file);
  EXPECT_EQ(facts.size(), table.size());
  for (auto fact : facts) {
    const ConfigRow* row = find_row(table, fact["name"]);
    ASSERT_NE(row, nullptr) << fact["name"];
    EXPECT_EQ(name(row->type), fact["type"]) << fact["name"];
    EXPECT_EQ(row->default_value.value_or(""), shown_default(fact["default"])) << fact["name"];
    EXPECT_EQ(row->valid, fact["valid"]) << fact["name"];
  }
  EXPECT_TRUE(std::ranges::is_sorted(table, {}, &ConfigRow::name));
}

std::string text_of(const std::optional<std::string>& value) {
  return value.value_or("null");
}

std::string text_of(const std::vector<ConfigSynonym>& synonyms) {
  std::string out;
  for (const ConfigSynonym& synonym : synonyms) {
    out += (out.empty() ? "" : ";") + synonym.name + "=" +
           std::to_string(static_cast<int>(synonym.source)) + "=" + text_of(synonym.value);
  }
  return out;
}

void expect_answer(const std::vector<ConfigEntry>& entries, const std::string& file) {
  const auto facts = read_facts(file);
  EXPECT_EQ(facts.size(), entries.size());
  for (auto fact : facts) {
    const auto entry = std::ranges::find(entries, fact["name"], &ConfigEntry::name);
    ASSERT_NE(entry, entries.end()) << fact["name"];
    EXPECT_EQ(text_of(entry->value), fact["value"]) << fact["name"];
    EXPECT_EQ(std::to_string(static_cast<int>(entry->source)), fact["source"]) << fact["name"];
    EXPECT_EQ(entry->read_only ? "1" : "0", fact["read_only"]) << fact["name"];
    EXPECT_EQ(entry->sensitive ? "1" : "0", fact["sensitive"]) << fact["name"];
    EXPECT_EQ(std::to_string(static_cast<int>(entry->type)), fact["type"]) << fact["name"];
    EXPECT_EQ(text_of(entry->synonyms), fact["synonyms (name=source=value;...)"]) << fact["name"];
    EXPECT_FALSE(entry->documentation.empty()) << fact["name"];
  }
}

/// The layers of the recorded Kafka, told by its own answer: what it says comes from them.
ConfigLayers recorded_layers() {
  ConfigLayers layers;
  for (auto fact : read_facts("describe-broker.tsv")) {
    std::stringstream synonyms(fact["synonyms (name=source=value;...)"]);
    for (std::string synonym; std::getline(synonyms, synonym, ';');) {
      const auto source = synonym.find('=');
      const std::string key = synonym.substr(0, source);
      const std::string value = synonym.substr(source + 3);
      if (key != fact["name"]) continue;
      if (synonym[source + 1] == '3') layers.cluster_default[key] = value;
      if (synonym[source + 1] == '4') layers.fixed[key] = value;
    }
  }
  return layers;
}

BrokerConfig recorded_broker() {
  auto config = make_broker_config(recorded_layers(), {});
  EXPECT_TRUE(config) << config.error().detail;
  return config ? *config : BrokerConfig{};
}

TEST(ConfigFacts, TopicTableHoldsKafkasNamesTypesDefaultsAndRanges) {
  expect_facts(topic_config_rows(), "topic-configs.tsv");
}

TEST(ConfigFacts, BrokerTableHoldsKafkasNamesTypesDefaultsAndRanges) {
  expect_facts(broker_config_rows(), "broker-configs.tsv");
}

TEST(ConfigFacts, BrokerSynonymsOfTopicConfigsAreKafkas) {
  for (auto fact : read_facts("topic-configs.tsv")) {
    EXPECT_EQ(broker_name_of(fact["name"]), fact["broker_synonym"]) << fact["name"];
  }
}

TEST(ConfigFacts, EveryRowSaysWhatItMeansAndWhyItIsRefused) {
  for (const auto table : {topic_config_rows(), broker_config_rows()}) {
    for (const ConfigRow& row : table) {
      EXPECT_TRUE(row.documentation.ends_with('.')) << row.name;
      const bool plain =
          row.treatment == Treatment::kActs || row.treatment == Treatment::kFulfilled;
      EXPECT_EQ(row.note.empty(), plain) << row.name;
      // Kafka's own default of the quorum's addresses is the empty list it refuses.
      if (row.default_value && row.valid != "non-empty list") {
        EXPECT_TRUE(check_value(row, *row.default_value)) << row.name;
      }
    }
  }
}

TEST(ConfigFacts, BrokerIsDescribedAsKafkaDescribesItself) {
  expect_answer(describe_broker_configs(recorded_broker()), "describe-broker.tsv");
}

TEST(ConfigFacts, TopicIsDescribedAsKafkaDescribesIt) {
  const ConfigMap overlay = {{"retention.ms", " 5000 "},
                             {"preallocate", "TRUE"},
                             {"min.cleanable.dirty.ratio", "0.50"},
                             {"cleanup.policy", "compact , delete,compact"},
                             {"segment.bytes", "+2000000"},
                             {"internal.segment.bytes", "100"}};
  ASSERT_TRUE(check_topic_configs(recorded_broker(), overlay));
  expect_answer(describe_topic_configs(recorded_broker(), overlay), "describe-topic.tsv");
}

TEST(ConfigFacts, ClusterDefaultShowsOnlyWhatWasSetForAllBrokers) {
  const auto entries = describe_cluster_default_configs(recorded_broker());
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].name, "min.insync.replicas");
  EXPECT_EQ(entries[0].source, ConfigSource::kDynamicDefaultBroker);
  EXPECT_EQ(text_of(entries[0].synonyms), "min.insync.replicas=3=1");
  EXPECT_TRUE(describe_cluster_default_configs(BrokerConfig{}).empty());
}

}  // namespace
}  // namespace kanal::coordinator
