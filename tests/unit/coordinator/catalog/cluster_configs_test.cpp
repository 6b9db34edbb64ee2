// Configs in the cluster's channel: changes, replay, snapshot, damage.
#include "catalog/stored.hpp"
#include "catalog_support.hpp"
#include "kanal/coordinator/cluster_state.hpp"

namespace kanal::coordinator {
namespace {

constexpr auto kBroker = ConfigResourceType::kBroker;
constexpr auto kGroup = ConfigResourceType::kGroup;
constexpr auto kMetrics = ConfigResourceType::kClientMetrics;

class ClusterConfigs : public ::testing::Test {
 protected:
  ClusterConfigs() { keep(state.step(Time{}, StartNode{uuid(0), kNode})); }

  void keep(const ClusterState::Effects& effects) {
    for (const Record& record : effects.records) {
      channel.push_back(record.body);
      ASSERT_TRUE(state.apply(record));
    }
  }

  AlterConfigs command(ConfigResourceType type, std::string name) {
    AlterConfigs made;
    made.type = type;
    made.name = std::move(name);
    made.running =
        std::make_shared<const BrokerConfig>(in_force(*broker_config(), state.configs()).config);
    return made;
  }

  ErrorCode run(const AlterConfigs& alter) {
    const auto effects = state.step(Time{}, alter);
    EXPECT_EQ(effects.replies.size(), 1U);
    if (!effects.replies[0]) {
      EXPECT_TRUE(effects.records.empty()) << "what is refused changes nothing";
      return effects.replies[0].error().code;
    }
    keep(effects);
    return ErrorCode::NONE;
  }
  ErrorCode set(ConfigResourceType type, std::string name, ConfigMap settings) {
    AlterConfigs alter = command(type, std::move(name));
    for (const auto& [key, value] : settings) {
      alter.changes.push_back({key, ConfigOperation::kSet, value});
    }
    return run(alter);
  }
  ErrorCode unset(ConfigResourceType type, std::string name, std::string key) {
    AlterConfigs alter = command(type, std::move(name));
    alter.changes.push_back({std::move(key), ConfigOperation::kDelete, std::nullopt});
    return run(alter);
  }

  ClusterState state;
  std::vector<Buffer> channel;
};

ClusterState replayed(const std::vector<Buffer>& records) {
  ClusterState fresh;
  for (const Buffer& body : records) EXPECT_TRUE(fresh.apply({"", body}));
  return fresh;
}

void expect_same(const ClusterState& a, const ClusterState& b) {
  EXPECT_EQ(a.facts(), b.facts());
  EXPECT_EQ(a.configs().broker, b.configs().broker);
  EXPECT_EQ(a.configs().cluster_default, b.configs().cluster_default);
  EXPECT_EQ(a.configs().groups, b.configs().groups);
  EXPECT_EQ(a.configs().client_metrics, b.configs().client_metrics);
}

TEST_F(ClusterConfigs, ReplayAndSnapshotGiveWhatWasSet) {
  EXPECT_EQ(set(kBroker, "7", {{"message.max.bytes", "5000"}}), ErrorCode::NONE);
  EXPECT_EQ(set(kBroker, "", {{"message.max.bytes", "6000"}, {"max.connections", "9"}}),
            ErrorCode::NONE);
  EXPECT_EQ(set(kGroup, "g/1", {{"consumer.session.timeout.ms", "50000"}}), ErrorCode::NONE);
  EXPECT_EQ(set(kGroup, "g2", {{"consumer.session.timeout.ms", "50000"}}), ErrorCode::NONE);
  EXPECT_EQ(set(kMetrics, "m", {{"interval.ms", "1000"}, {"metrics", "a"}}), ErrorCode::NONE);
  EXPECT_EQ(unset(kGroup, "g2", "consumer.session.timeout.ms"), ErrorCode::NONE);
  EXPECT_EQ(unset(kBroker, "", "max.connections"), ErrorCode::NONE);

  EXPECT_EQ(state.configs().broker, (ConfigMap{{"message.max.bytes", "5000"}}));
  EXPECT_EQ(state.configs().cluster_default, (ConfigMap{{"message.max.bytes", "6000"}}));
  EXPECT_FALSE(state.configs().groups.contains("g2")) << "a group without a setting is not kept";
  EXPECT_EQ(state.configs().of(kMetrics, "m").size(), 2U);
  expect_same(replayed(channel), state);
  expect_same(replayed(state.snapshot("")), state);
  EXPECT_EQ(state.live_records(), state.snapshot("").size());
}

TEST_F(ClusterConfigs, AResourceChangesAsAWholeOrNotAtAll) {
  EXPECT_EQ(
      set(kGroup, "g",
          {{"consumer.session.timeout.ms", "50000"}, {"consumer.heartbeat.interval.ms", "soon"}}),
      ErrorCode::INVALID_CONFIG);
  EXPECT_TRUE(state.configs().groups.empty());
}

TEST_F(ClusterConfigs, ValidateOnlyAndNoChangeStoreNothing) {
  AlterConfigs alter = command(kBroker, "7");
  alter.changes = {{"message.max.bytes", ConfigOperation::kSet, "5000"}};
  alter.validate_only = true;
  EXPECT_TRUE(state.step(Time{}, alter).records.empty());
  alter.validate_only = false;
  EXPECT_EQ(run(alter), ErrorCode::NONE);
  EXPECT_TRUE(state.step(Time{}, alter).records.empty()) << "it is set already";
}

TEST_F(ClusterConfigs, ReplacingDropsWhatIsNotNamed) {
  EXPECT_EQ(set(kBroker, "7", {{"message.max.bytes", "5000"}}), ErrorCode::NONE);
  AlterConfigs alter = command(kBroker, "7");
  alter.replace = true;
  alter.changes = {{"max.connections", ConfigOperation::kSet, "30"}};
  EXPECT_EQ(run(alter), ErrorCode::NONE);
  EXPECT_EQ(state.configs().broker, (ConfigMap{{"max.connections", "30"}}));
}

TEST_F(ClusterConfigs, NamesAreNeededButForBrokers) {
  EXPECT_EQ(set(kGroup, "", {{"consumer.session.timeout.ms", "50000"}}),
            ErrorCode::INVALID_REQUEST);
  EXPECT_EQ(set(kMetrics, "", {{"interval.ms", "1000"}}), ErrorCode::INVALID_REQUEST);
  EXPECT_EQ(set(kBroker, "", {{"max.connections", "30"}}), ErrorCode::NONE);
}

TEST_F(ClusterConfigs, GroupsAndClientMetricsHaveNoLists) {
  AlterConfigs alter = command(kGroup, "g");
  alter.changes = {{"streams.rack.aware.assignment.tags", ConfigOperation::kAppend, "zone"}};
  EXPECT_EQ(run(alter), ErrorCode::INVALID_CONFIG);
  alter = command(kMetrics, "m");
  alter.changes = {{"metrics", ConfigOperation::kAppend, "a"}};
  EXPECT_EQ(run(alter), ErrorCode::INVALID_CONFIG);
}

TEST_F(ClusterConfigs, WhatCannotBeInForceDoesNotBlockOtherChanges) {
  ASSERT_TRUE(state.apply({"", encode_configs({kBroker, "7", {{"num.partitions", "9"}}})}));
  EXPECT_EQ(set(kBroker, "7", {{"max.connections", "30"}}), ErrorCode::NONE);
  EXPECT_EQ(set(kBroker, "7", {{"num.partitions", "8"}}), ErrorCode::INVALID_REQUEST);
  EXPECT_EQ(unset(kBroker, "7", "num.partitions"), ErrorCode::NONE);
  EXPECT_EQ(state.configs().broker, (ConfigMap{{"max.connections", "30"}}));
}

TEST_F(ClusterConfigs, CorruptAndNewerRecordsAreRefusedByChannel) {
  for (const StoredConfigs& configs :
       {StoredConfigs{kBroker, "", {{"max.connections", "1"}}},
        StoredConfigs{kGroup, "g", {{"consumer.session.timeout.ms", "1"}}},
        StoredConfigs{kMetrics, "m", {{"interval.ms", "1"}}}}) {
    const Buffer whole = encode_configs(configs);
    for (std::size_t size = 1; size < whole.size(); ++size) {
      const auto applied =
          state.apply({"", Buffer(whole.begin(), whole.begin() + static_cast<long>(size))});
      ASSERT_FALSE(applied);
      EXPECT_EQ(applied.error().code, ErrorCode::KAFKA_STORAGE_ERROR);
      EXPECT_TRUE(applied.error().detail.starts_with("_KAFKA_CLUSTER_"));
    }
    Buffer newer = whole;
    newer[3] = std::byte{1};
    EXPECT_FALSE(state.apply({"", newer}));
  }
  EXPECT_FALSE(state.apply({"", encode_configs({kGroup, "", {{"a", "b"}}})}));
  EXPECT_FALSE(state.apply({"", encode_next_producer_id(ProducerId(1))}));
  ClusterState empty;
  EXPECT_FALSE(empty.apply({"", encode_configs({kGroup, "g", {{"a", "b"}}})}));
  EXPECT_TRUE(state.configs().groups.empty());
}

}  // namespace
}  // namespace kanal::coordinator
