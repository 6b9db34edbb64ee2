#include "catalog_support.hpp"

#include <algorithm>

namespace kanal::coordinator {
namespace {

using enum ErrorCode;

CreateTopic assigned(const std::string& name, std::vector<PartitionAssignment> assignments) {
  CreateTopic command = topic_named(name, -1);
  command.assignments = std::move(assignments);
  return command;
}
PartitionAssignment on(std::int32_t partition, std::vector<NodeId> nodes) {
  return {PartitionIndex(partition), std::move(nodes)};
}

TEST(CatalogCreate, MakesATopicWithARecordAnActionAndItsFacts) {
  LiveCatalog live;
  CreateTopic command = topic_named("orders", 3);
  command.configs = {{"retention.ms", "1000"}};
  const auto reply = live.run(command);
  ASSERT_TRUE(reply) << reply.error().detail;
  EXPECT_EQ((*reply)->id, command.fresh_id);
  EXPECT_EQ((*reply)->partition_count, 3);
  EXPECT_EQ((*reply)->config.retention_ms, 1000);
  ASSERT_EQ(live.effects().records.size(), 1U);
  EXPECT_EQ(live.effects().records[0].key, "orders");
  const auto& open = std::get<OpenPartitions>(live.effects().actions.at(0));
  EXPECT_EQ(open.topic, "orders");
  EXPECT_EQ(open.id, command.fresh_id);
  EXPECT_EQ(open.first, PartitionIndex(0));
  EXPECT_EQ(open.end, PartitionIndex(3));
  EXPECT_EQ(live.topic("orders").overlay, (ConfigMap{{"retention.ms", "1000"}}));
  EXPECT_EQ(live.topic("orders").created, command.created);
}

TEST(CatalogCreate, TakesTheBrokersDefaultsForMinusOne) {
  LiveCatalog live(broker_config({{"num.partitions", "4"}, {"log.retention.ms", "77"}}));
  const auto reply = live.run(topic_named("orders", -1));
  ASSERT_TRUE(reply);
  EXPECT_EQ((*reply)->partition_count, 4);
  EXPECT_EQ((*reply)->config.retention_ms, 77);
  EXPECT_TRUE((*reply)->overlay.empty());
}

TEST(CatalogCreate, RefusesNamesAsKafkaDoes) {
  LiveCatalog live;
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string(250, 'a'),
        std::string("a b"), std::string("a/b"), std::string("a~1"), std::string("\xC3\xA4"),
        std::string("a\0b", 3)}) {
    const auto reply = live.run(topic_named(name));
    ASSERT_FALSE(reply) << name;
    EXPECT_EQ(reply.error().code, INVALID_TOPIC_EXCEPTION) << name;
    EXPECT_FALSE(reply.error().detail.empty());
  }
  EXPECT_EQ(live.code(topic_named(std::string(249, 'a'))), NONE);
  EXPECT_EQ(live.code(topic_named("_KAFKA_CONFIG_.orders.1")), NONE) << "a topic like any other";
  EXPECT_EQ(live.code(topic_named("__cluster_metadata")), INVALID_REQUEST);
}

TEST(CatalogCreate, RefusesNamesThatDifferOnlyInDotAndUnderscore) {
  LiveCatalog live;
  ASSERT_EQ(live.code(topic_named("a.b_c")), NONE);
  const auto reply = live.run(topic_named("a_b.c"));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, INVALID_TOPIC_EXCEPTION);
  EXPECT_NE(reply.error().detail.find("a.b_c"), std::string::npos) << reply.error().detail;
  EXPECT_EQ(live.code(topic_named("a-b-c")), NONE);
  EXPECT_EQ(live.code(topic_named("a.b_c")), TOPIC_ALREADY_EXISTS);
  ASSERT_EQ(live.code(DeleteTopic{"a.b_c", {}}), NONE);
  EXPECT_EQ(live.code(topic_named("a_b.c")), NONE);
  EXPECT_EQ(live.code(topic_named("a.b_c")), INVALID_TOPIC_EXCEPTION);
}

TEST(CatalogCreate, AnExistingTopicIsRefusedWithValidateOnlyToo) {
  LiveCatalog live;
  ASSERT_EQ(live.code(topic_named("orders")), NONE);
  CreateTopic again = topic_named("orders", -2);  // the name is checked first
  EXPECT_EQ(live.code(again), TOPIC_ALREADY_EXISTS);
  again.validate_only = true;
  const auto reply = live.run(again);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, TOPIC_ALREADY_EXISTS);
  EXPECT_FALSE(reply.error().detail.empty());
}

TEST(CatalogCreate, ValidateOnlyChecksEverythingAndMakesNothing) {
  LiveCatalog live;
  CreateTopic command = topic_named("orders", 3);
  command.validate_only = true;
  const auto reply = live.run(command);
  ASSERT_TRUE(reply);
  EXPECT_EQ((*reply)->partition_count, 3);
  EXPECT_FALSE((*reply)->id.is_zero());
  EXPECT_TRUE(live.effects().records.empty());
  EXPECT_TRUE(live.effects().actions.empty());
  EXPECT_EQ(live.catalog().current().topic_count(), 0U);
  command.replication_factor = 3;
  EXPECT_EQ(live.code(command), INVALID_REPLICATION_FACTOR);
}

TEST(CatalogCreate, PartitionCountsAndReplicationFactors) {
  LiveCatalog live(broker_config({}, 100));
  const auto code = [&](std::int32_t partitions, int replication_factor) {
    CreateTopic command = topic_named("orders", partitions);
    command.replication_factor = static_cast<std::int16_t>(replication_factor);
    command.validate_only = true;
    const auto reply = live.run(command);
    EXPECT_TRUE(reply || !reply.error().detail.empty()) << partitions << " " << replication_factor;
    return reply ? NONE : reply.error().code;
  };
  EXPECT_EQ(code(1, 1), NONE);
  EXPECT_EQ(code(-1, -1), NONE);
  EXPECT_EQ(code(100, 1), NONE);
  EXPECT_EQ(code(0, 1), INVALID_PARTITIONS);
  EXPECT_EQ(code(-2, 1), INVALID_PARTITIONS);
  EXPECT_EQ(code(INT32_MIN, 1), INVALID_PARTITIONS);
  EXPECT_EQ(code(101, 1), INVALID_PARTITIONS);
  EXPECT_EQ(code(INT32_MAX, 1), INVALID_PARTITIONS);
  for (const int replication_factor : {0, -2, 2, 3, 32'767, -32'768}) {
    EXPECT_EQ(code(1, replication_factor), INVALID_REPLICATION_FACTOR) << replication_factor;
  }
  EXPECT_EQ(code(0, 0), INVALID_REPLICATION_FACTOR)
      << "Kafka looks at the replication factor first";
  EXPECT_EQ(code(-2, 3), INVALID_PARTITIONS) << "and at what one broker cannot reach last";
}

TEST(CatalogCreate, ADefaultReplicationFactorOfThreeCannotBeReached) {
  BrokerConfig config = *broker_config();
  config.default_replication_factor = 3;
  LiveCatalog live(std::make_shared<const BrokerConfig>(config));
  EXPECT_EQ(live.code(topic_named("orders")), INVALID_REPLICATION_FACTOR);
}

TEST(CatalogCreate, Assignments) {
  LiveCatalog live(broker_config({}, 3));
  const auto code = [&](CreateTopic command) {
    command.validate_only = true;
    const auto reply = live.run(command);
    EXPECT_TRUE(reply || !reply.error().detail.empty());
    return reply ? NONE : reply.error().code;
  };
  const NodeId other(1);
  EXPECT_EQ(code(assigned("t", {on(0, {kNode})})), NONE);
  EXPECT_EQ(code(assigned("t", {on(1, {kNode}), on(0, {kNode})})), NONE) << "any order";
  EXPECT_EQ(code(assigned("t", {on(0, {other})})), INVALID_REPLICA_ASSIGNMENT);
  EXPECT_EQ(code(assigned("t", {on(0, {})})), INVALID_REPLICA_ASSIGNMENT);
  EXPECT_EQ(code(assigned("t", {on(0, {kNode, kNode})})), INVALID_REPLICA_ASSIGNMENT);
  EXPECT_EQ(code(assigned("t", {on(0, {kNode, other})})), INVALID_REPLICA_ASSIGNMENT);
  EXPECT_EQ(code(assigned("t", {on(1, {kNode})})), INVALID_REPLICA_ASSIGNMENT);
  EXPECT_EQ(code(assigned("t", {on(0, {kNode}), on(2, {kNode})})), INVALID_REPLICA_ASSIGNMENT);
  EXPECT_EQ(code(assigned("t", {on(0, {kNode}), on(0, {kNode})})), INVALID_REPLICA_ASSIGNMENT);
  EXPECT_EQ(code(assigned("t", {on(-1, {kNode}), on(0, {kNode})})), INVALID_REPLICA_ASSIGNMENT);
  EXPECT_EQ(code(assigned("t", {on(0, {kNode}), on(1, {kNode}), on(2, {kNode}), on(3, {kNode})})),
            INVALID_PARTITIONS);
  CreateTopic both = assigned("t", {on(0, {kNode})});
  both.partitions = 1;
  EXPECT_EQ(code(both), INVALID_REQUEST);
  both.partitions = -1;
  both.replication_factor = 1;
  EXPECT_EQ(code(both), INVALID_REQUEST);
  const auto made = live.run(assigned("t", {on(1, {kNode}), on(0, {kNode})}));
  ASSERT_TRUE(made);
  EXPECT_EQ((*made)->partition_count, 2);
}

TEST(CatalogCreate, Configs) {
  LiveCatalog live;
  const auto error = [&](std::vector<ConfigSetting> configs) {
    CreateTopic command = topic_named("orders", -2);  // configs are checked before partitions
    command.configs = std::move(configs);
    return live.run(command).error();
  };
  EXPECT_EQ(error({}).code, INVALID_PARTITIONS);
  for (const auto& configs : std::vector<std::vector<ConfigSetting>>{
           {{"nonsense", "1"}},
           {{"retention.ms", "abc"}},
           {{"segment.bytes", "-1"}},
           {{"retention.ms", std::nullopt}},
           {{"retention.ms", "1"}, {"cleanup.policy", std::nullopt}},
           {{"leader.replication.throttled.replicas", std::string(40'000, 'x')}}}) {
    const Error refused = error(configs);
    EXPECT_EQ(refused.code, INVALID_CONFIG);
    EXPECT_NE(refused.detail.find(configs.back().name), std::string::npos) << refused.detail;
  }
  CreateTopic twice = topic_named("twice");
  twice.configs = {{"retention.ms", "1"}, {"retention.ms", "2"}};
  ASSERT_TRUE(live.run(twice));
  EXPECT_EQ(live.topic("twice").config.retention_ms, 2) << "the last one counts";
}

TEST(CatalogCreate, OneRequestMayAskForTenThousandPartitions) {
  const auto config = broker_config({{"num.partitions", "5000"}});
  std::vector<CreateTopic> topics{topic_named("a", 5'000), topic_named("b", -1)};
  EXPECT_TRUE(check_partitions_of_request(topics, *config));
  topics.push_back(topic_named("bad", -2));
  EXPECT_TRUE(check_partitions_of_request(topics, *config));
  topics.push_back(assigned("c", {on(0, {kNode})}));
  const auto refused = check_partitions_of_request(topics, *config);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, POLICY_VIOLATION);
  EXPECT_FALSE(check_partitions_of_request(
      std::vector{topic_named("x", INT32_MAX), topic_named("y", INT32_MAX)}, *config));
}

}  // namespace
}  // namespace kanal::coordinator
