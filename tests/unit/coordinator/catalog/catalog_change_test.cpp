// Deleting, growing and configuring topics.
#include "catalog_support.hpp"

namespace kanal::coordinator {
namespace {

using enum ErrorCode;

TEST(CatalogDelete, ByNameAndById) {
  LiveCatalog live;
  for (const bool by_id : {false, true}) {
    CreateTopic command = topic_named("orders", 2);
    ASSERT_TRUE(live.run(command));
    const auto reply =
        live.run(by_id ? DeleteTopic{"", command.fresh_id} : DeleteTopic{"orders", {}});
    ASSERT_TRUE(reply);
    EXPECT_EQ((*reply)->name, "orders");
    EXPECT_EQ((*reply)->id, command.fresh_id);
    ASSERT_EQ(live.effects().records.size(), 1U);
    EXPECT_TRUE(live.effects().records[0].ends_channel());
    const auto& remove = std::get<RemoveTopic>(live.effects().actions.at(0));
    EXPECT_EQ(remove.topic, "orders");
    EXPECT_EQ(remove.id, command.fresh_id);
    EXPECT_EQ(remove.partition_count, 2);
    EXPECT_EQ(live.catalog().current().topic_count(), 0U);
    EXPECT_FALSE(live.catalog().current().find(command.fresh_id));
  }
}

TEST(CatalogDelete, OfAMissingTopic) {
  LiveCatalog live;
  const auto by_name = live.run(DeleteTopic{"orders", {}});
  ASSERT_FALSE(by_name);
  EXPECT_EQ(by_name.error().code, UNKNOWN_TOPIC_OR_PARTITION);
  EXPECT_FALSE(by_name.error().detail.empty());
  const auto by_id = live.run(DeleteTopic{"", uuid(1)});
  ASSERT_FALSE(by_id);
  EXPECT_EQ(by_id.error().code, UNKNOWN_TOPIC_ID);
  EXPECT_FALSE(by_id.error().detail.empty());
}

TEST(CatalogDelete, ANewTopicOfTheNameHasANewIdAndNothingOfTheOldOne) {
  LiveCatalog live;
  CreateTopic first = topic_named("orders", 5);
  first.configs = {{"retention.ms", "1"}};
  ASSERT_TRUE(live.run(first));
  ASSERT_TRUE(live.run(DeleteTopic{"orders", {}}));
  const CreateTopic second = topic_named("orders", 1);
  ASSERT_TRUE(live.run(second));
  EXPECT_EQ(live.topic("orders").id, second.fresh_id);
  EXPECT_EQ(live.topic("orders").partition_count, 1);
  EXPECT_TRUE(live.topic("orders").overlay.empty());
  EXPECT_FALSE(live.catalog().current().find(first.fresh_id));
}

TEST(CatalogGrow, AddsPartitions) {
  LiveCatalog live;
  ASSERT_TRUE(live.run(topic_named("orders", 2)));
  const auto reply = live.run(CreatePartitions{"orders", 5, {}, false});
  ASSERT_TRUE(reply);
  EXPECT_EQ((*reply)->partition_count, 5);
  EXPECT_EQ(live.topic("orders").partition_count, 5);
  const auto& open = std::get<OpenPartitions>(live.effects().actions.at(0));
  EXPECT_EQ(open.first, PartitionIndex(2));
  EXPECT_EQ(open.end, PartitionIndex(5));
  EXPECT_EQ(live.catalog().current().partition_count(), 5);
}

TEST(CatalogGrow, ValidateOnlyAddsNothing) {
  LiveCatalog live;
  ASSERT_TRUE(live.run(topic_named("orders", 2)));
  ASSERT_TRUE(live.run(CreatePartitions{"orders", 5, {}, true}));
  EXPECT_TRUE(live.effects().records.empty());
  EXPECT_TRUE(live.effects().actions.empty());
  EXPECT_EQ(live.topic("orders").partition_count, 2);
}

TEST(CatalogGrow, RefusesWhatIsNotGrowth) {
  LiveCatalog live(broker_config({}, 10));
  ASSERT_TRUE(live.run(topic_named("orders", 3)));
  for (const std::int32_t count : {3, 2, 0, -1, INT32_MIN, 11, INT32_MAX}) {
    const auto reply = live.run(CreatePartitions{"orders", count, {}, false});
    ASSERT_FALSE(reply) << count;
    EXPECT_EQ(reply.error().code, INVALID_PARTITIONS) << count;
    EXPECT_FALSE(reply.error().detail.empty());
  }
  EXPECT_EQ(live.code(CreatePartitions{"orders", 10, {}, false}), NONE);
}

TEST(CatalogGrow, OfAMissingTopicHasNoText) {
  LiveCatalog live;
  const auto reply = live.run(CreatePartitions{"orders", 5, {}, false});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, UNKNOWN_TOPIC_OR_PARTITION);
  EXPECT_TRUE(reply.error().detail.empty()) << "Kafka sends null";
}

TEST(CatalogGrow, Assignments) {
  LiveCatalog live;
  ASSERT_TRUE(live.run(topic_named("orders", 1)));
  const auto code = [&](std::vector<std::vector<NodeId>> assignments) {
    const auto reply = live.run(CreatePartitions{"orders", 3, std::move(assignments), true});
    EXPECT_TRUE(reply || !reply.error().detail.empty());
    return reply ? NONE : reply.error().code;
  };
  EXPECT_EQ(code({{kNode}, {kNode}}), NONE);
  EXPECT_EQ(code({{kNode}}), INVALID_REPLICA_ASSIGNMENT);
  EXPECT_EQ(code({}), INVALID_REPLICA_ASSIGNMENT);
  EXPECT_EQ(code({{kNode}, {kNode}, {kNode}}), INVALID_REPLICA_ASSIGNMENT);
  EXPECT_EQ(code({{kNode}, {NodeId(1)}}), INVALID_REPLICA_ASSIGNMENT);
  EXPECT_EQ(code({{kNode}, {kNode, kNode}}), INVALID_REPLICA_ASSIGNMENT);
  EXPECT_EQ(code({{kNode}, {}}), INVALID_REPLICA_ASSIGNMENT);
}

TEST(CatalogConfigs, ReplaceTheWholeOverlay) {
  LiveCatalog live;
  CreateTopic command = topic_named("orders");
  command.configs = {{"retention.ms", "1"}, {"cleanup.policy", "compact"}};
  ASSERT_TRUE(live.run(command));
  const auto reply = live.run(SetTopicConfigs{"orders", {{"retention.ms", "2"}}, false});
  ASSERT_TRUE(reply);
  EXPECT_EQ(live.topic("orders").overlay, (ConfigMap{{"retention.ms", "2"}}));
  EXPECT_EQ(live.topic("orders").config.retention_ms, 2);
  EXPECT_FALSE(live.topic("orders").config.cleanup_compact);
  EXPECT_EQ(std::get<ConfigureTopic>(live.effects().actions.at(0)).id, command.fresh_id);
  ASSERT_TRUE(live.run(SetTopicConfigs{"orders", {{"retention.ms", "2"}}, false}));
  EXPECT_TRUE(live.effects().records.empty()) << "nothing changes, nothing is written";
}

TEST(CatalogConfigs, AreCheckedBeforeTheTopicIsLookedUp) {
  LiveCatalog live;
  EXPECT_EQ(live.code(SetTopicConfigs{"orders", {{"nonsense", "2"}}, false}), INVALID_CONFIG);
  EXPECT_EQ(live.code(SetTopicConfigs{"orders", {}, false}), UNKNOWN_TOPIC_OR_PARTITION);
  ASSERT_TRUE(live.run(topic_named("orders")));
  ASSERT_TRUE(live.run(SetTopicConfigs{"orders", {{"retention.ms", "2"}}, true}));
  EXPECT_TRUE(live.effects().records.empty());
  EXPECT_TRUE(live.topic("orders").overlay.empty());
}

TEST(CatalogConfigs, FollowTheBrokersConfigs) {
  LiveCatalog live;
  ASSERT_TRUE(live.run(topic_named("plain")));
  CreateTopic own = topic_named("own");
  own.configs = {{"retention.ms", "5"}};
  ASSERT_TRUE(live.run(own));
  const TopicPtr before = live.catalog().current().find("own");
  live.catalog().configure(broker_config({{"log.retention.ms", "9"}, {"num.partitions", "3"}}));
  EXPECT_EQ(live.topic("plain").config.retention_ms, 9);
  EXPECT_EQ(live.topic("own").config.retention_ms, 5);
  EXPECT_EQ(live.catalog().current().find("own"), before) << "what does not change is shared";
  EXPECT_EQ((*live.run(topic_named("more", -1)))->partition_count, 3);
}

TEST(CatalogConfigs, IncrementalChangesStartFromWhatIsSetThen) {
  LiveCatalog live;
  ASSERT_TRUE(live.run(topic_named("orders")));
  const auto change = [](ConfigOperation operation, std::string name, std::string value) {
    return AlterTopicConfigs{"orders", {{std::move(name), operation, std::move(value)}}, false};
  };
  ASSERT_TRUE(live.run(change(ConfigOperation::kSet, "retention.ms", "5")));
  ASSERT_TRUE(live.run(change(ConfigOperation::kAppend, "cleanup.policy", "compact")));
  EXPECT_EQ(live.topic("orders").overlay,
            (ConfigMap{{"cleanup.policy", "delete,compact"}, {"retention.ms", "5"}}));
  EXPECT_TRUE(live.topic("orders").config.cleanup_compact);
  ASSERT_TRUE(live.run(change(ConfigOperation::kSubtract, "cleanup.policy", "delete")));
  EXPECT_FALSE(live.topic("orders").config.cleanup_delete);
  ASSERT_TRUE(live.run(change(ConfigOperation::kDelete, "retention.ms", "")));
  EXPECT_EQ(live.topic("orders").overlay, (ConfigMap{{"cleanup.policy", "compact"}}));
  ASSERT_TRUE(live.run(change(ConfigOperation::kDelete, "nonsense", "")));
  EXPECT_TRUE(live.effects().records.empty());
  EXPECT_EQ(plain(live.replayed().current()), plain(live.catalog().current()));
}

TEST(CatalogConfigs, IncrementalChangesAreCheckedInKafkasOrder) {
  LiveCatalog live;
  const auto code = [&](std::string topic, ConfigOperation operation, std::string name) {
    return live.code(
        AlterTopicConfigs{std::move(topic), {{std::move(name), operation, "5"}}, false});
  };
  EXPECT_EQ(code("", ConfigOperation::kAppend, "retention.ms"), INVALID_CONFIG);
  EXPECT_EQ(code("", ConfigOperation::kSet, "nonsense"), INVALID_REQUEST);
  EXPECT_EQ(code("a b", ConfigOperation::kSet, "nonsense"), INVALID_TOPIC_EXCEPTION);
  EXPECT_EQ(code("none", ConfigOperation::kSet, "nonsense"), INVALID_CONFIG);
  EXPECT_EQ(code("none", ConfigOperation::kSet, "retention.ms"), UNKNOWN_TOPIC_OR_PARTITION);
}

}  // namespace
}  // namespace kanal::coordinator
