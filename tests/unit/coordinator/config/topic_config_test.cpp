#include "kanal/coordinator/topic_config.hpp"

#include <gtest/gtest.h>

namespace kanal::coordinator {
namespace {

BrokerConfig broker_with(ConfigMap fixed) {
  ConfigLayers layers;
  layers.fixed = std::move(fixed);
  auto config = make_broker_config(std::move(layers), {});
  EXPECT_TRUE(config) << config.error().detail;
  return config ? *config : BrokerConfig{};
}

std::string refusal(std::string_view name, std::string_view value) {
  const auto checked = check_topic_config(name, value);
  if (checked) return "";
  EXPECT_EQ(checked.error().code, ErrorCode::INVALID_CONFIG);
  return checked.error().detail;
}

TEST(TopicConfig, DefaultsAreTheDefaultsOfItsFields) {
  EXPECT_EQ(make_topic_config(BrokerConfig{}, {}), TopicConfig{});
}

TEST(TopicConfig, UnknownNameIsRefused) {
  EXPECT_EQ(refusal("nonsense", "1"), "Unknown topic config name: nonsense");
  EXPECT_NE(refusal("partition_count", "3"), "");
  EXPECT_NE(refusal("", "3"), "");
}

TEST(TopicConfig, ValueOfAnotherTypeIsRefused) {
  EXPECT_EQ(refusal("retention.ms", "abc"),
            "Invalid value abc for configuration retention.ms: Not a number of type LONG");
  EXPECT_NE(refusal("retention.ms", ""), "");
  EXPECT_NE(refusal("max.message.bytes", "0x10"), "");
  EXPECT_NE(refusal("max.message.bytes", "1.5"), "");
  EXPECT_NE(refusal("segment.bytes", "99999999999"), "");
  EXPECT_NE(refusal("retention.ms", "9223372036854775808"), "");
  EXPECT_NE(refusal("retention.ms", "+-5"), "");
  EXPECT_NE(refusal("preallocate", "yes"), "");
  EXPECT_NE(refusal("min.cleanable.dirty.ratio", "half"), "");
}

TEST(TopicConfig, ValueOutOfRangeIsRefused) {
  EXPECT_EQ(refusal("segment.bytes", "-1"),
            "Invalid value -1 for configuration segment.bytes: Value must be at least 1048576");
  EXPECT_EQ(
      refusal("min.cleanable.dirty.ratio", "2"),
      "Invalid value 2 for configuration min.cleanable.dirty.ratio: Value must be no more than 1");
  EXPECT_NE(refusal("flush.messages", "0"), "");
  EXPECT_NE(refusal("retention.ms", "-2"), "");
  EXPECT_NE(refusal("max.decompressed.message.bytes", "2147483640"), "");
  EXPECT_EQ(refusal("retention.bytes", "-7"), "");
}

TEST(TopicConfig, GzipLevelMayBeMinusOneButNotZero) {
  EXPECT_EQ(refusal("compression.gzip.level", "-1"), "");
  EXPECT_EQ(refusal("compression.gzip.level", "9"), "");
  EXPECT_EQ(refusal("compression.gzip.level", "0"),
            "Invalid value 0 for configuration compression.gzip.level: "
            "Value must be between 1 and 9 or equal to -1");
}

TEST(TopicConfig, WordsAreTakenAsSpelled) {
  EXPECT_EQ(refusal("compression.type", "zstd"), "");
  EXPECT_NE(refusal("compression.type", "none"), "");
  EXPECT_NE(refusal("message.timestamp.type", "createTime"), "");
  EXPECT_EQ(refusal("cleanup.policy", "compact, delete"), "");
  EXPECT_EQ(refusal("cleanup.policy", "delete,delete"), "");
  EXPECT_EQ(refusal("cleanup.policy", ""), "");
  EXPECT_NE(refusal("cleanup.policy", "Delete"), "");
  EXPECT_NE(refusal("cleanup.policy", "delete,,compact"), "");
}

TEST(TopicConfig, ThrottledReplicasArePairsOrAStar) {
  const std::string_view name = "leader.replication.throttled.replicas";
  EXPECT_EQ(refusal(name, "*"), "");
  EXPECT_EQ(refusal(name, ""), "");
  EXPECT_EQ(refusal(name, "0:1, 1:2"), "");
  EXPECT_NE(refusal(name, "x"), "");
  EXPECT_NE(refusal(name, "1:"), "");
  EXPECT_NE(refusal(name, "*,1:1"), "");
}

TEST(TopicConfig, SpacesCaseOfBooleansAndJavasNumbersAreAccepted) {
  EXPECT_EQ(refusal("retention.ms", " 5000 "), "");
  EXPECT_EQ(refusal("preallocate", "TRUE"), "");
  EXPECT_EQ(refusal("segment.bytes", "+2000000"), "");
  EXPECT_EQ(refusal("min.cleanable.dirty.ratio", "1e-1d"), "");
}

TEST(TopicConfig, RemoteStorageIsRefusedOnlyWhereItIsAskedFor) {
  EXPECT_EQ(refusal("remote.storage.enable", "false"), "");
  EXPECT_NE(refusal("remote.storage.enable", " True "), "");
  EXPECT_EQ(refusal("remote.log.delete.on.disable", "true"), "");
  EXPECT_EQ(refusal("local.retention.ms", "99999999999"), "");
}

TEST(TopicConfig, LongValuesAreRefusedAndNotEchoedWhole) {
  const std::string text = refusal("retention.ms", std::string(40'000, '1'));
  EXPECT_NE(text, "");
  EXPECT_LT(text.size(), 400u);
  EXPECT_LT(refusal("compression.type", std::string(30'000, 'x')).size(), 400u);
  EXPECT_LT(refusal(std::string(30'000, 'n'), "1").size(), 400u);
}

TEST(TopicConfig, CompactionLagsMustAgreeWithEachOtherAndWithTheBrokers) {
  const BrokerConfig plain;
  EXPECT_TRUE(
      check_topic_configs(plain, {{"min.compaction.lag.ms", "5"}, {"max.compaction.lag.ms", "5"}}));
  EXPECT_FALSE(check_topic_configs(
      plain, {{"min.compaction.lag.ms", "10"}, {"max.compaction.lag.ms", "5"}}));
  const BrokerConfig strict = broker_with({{"log.cleaner.max.compaction.lag.ms", "5"}});
  EXPECT_FALSE(check_topic_configs(strict, {{"min.compaction.lag.ms", "10"}}));
}

TEST(TopicConfig, OverlayWinsOverTheBrokerAndTheBrokerOverDefaults) {
  const BrokerConfig broker =
      broker_with({{"message.max.bytes", "5000"}, {"log.segment.bytes", "2000000"}});
  const TopicConfig config = make_topic_config(broker, {{"max.message.bytes", " 700 "}});
  EXPECT_EQ(config.max_message_bytes, 700);
  EXPECT_EQ(config.segment_bytes, 2'000'000);
  EXPECT_EQ(config.index_interval_bytes, 4'096);
}

TEST(TopicConfig, CoarserTimesOfTheBrokerAreConverted) {
  const auto retention = [](ConfigMap fixed) {
    return make_topic_config(broker_with(std::move(fixed)), {}).retention_ms;
  };
  EXPECT_EQ(retention({{"log.retention.hours", "2"}}), 7'200'000);
  EXPECT_EQ(retention({{"log.retention.hours", "2"}, {"log.retention.minutes", "3"}}), 180'000);
  EXPECT_EQ(retention({{"log.retention.minutes", "3"}, {"log.retention.ms", "4"}}), 4);
  EXPECT_EQ(retention({{"log.retention.hours", "-1"}}), -1);
  const TopicConfig rolled =
      make_topic_config(broker_with({{"log.roll.hours", "1"},
                                     {"log.roll.jitter.hours", "2"},
                                     {"log.flush.scheduler.interval.ms", "9"}}),
                        {});
  EXPECT_EQ(rolled.segment_ms, 3'600'000);
  EXPECT_EQ(rolled.segment_jitter_ms, 7'200'000);
  EXPECT_EQ(rolled.flush_ms, 9);
}

TEST(TopicConfig, DynamicLayersWinOverTheFile) {
  ConfigLayers layers;
  layers.fixed = {{"message.max.bytes", "1"}};
  layers.cluster_default = {{"message.max.bytes", "2"}};
  const auto shared = make_broker_config(layers, {});
  ASSERT_TRUE(shared);
  EXPECT_EQ(make_topic_config(*shared, {}).max_message_bytes, 2);
  layers.broker = {{"message.max.bytes", "3"}};
  const auto own = make_broker_config(layers, {});
  ASSERT_TRUE(own);
  EXPECT_EQ(make_topic_config(*own, {}).max_message_bytes, 3);
}

TEST(TopicConfig, CompactedTopicRollsWithinItsLargestLag) {
  const TopicConfig config = make_topic_config(
      BrokerConfig{}, {{"cleanup.policy", "compact"}, {"max.compaction.lag.ms", "1000"}});
  EXPECT_TRUE(config.cleanup_compact);
  EXPECT_FALSE(config.cleanup_delete);
  EXPECT_EQ(config.segment_ms, 1'000);
}

TEST(TopicConfig, TypedValuesFollowTheOverlay) {
  const TopicConfig config =
      make_topic_config(BrokerConfig{}, {{"message.timestamp.type", "LogAppendTime"},
                                         {"compression.type", "lz4"},
                                         {"compression.lz4.level", "3"},
                                         {"flush.messages", "1"},
                                         {"internal.segment.bytes", "512"},
                                         {"cleanup.policy", ""}});
  EXPECT_EQ(config.timestamp_type, TimestampKind::kLogAppendTime);
  EXPECT_EQ(config.compression_type, TopicCompression::kLz4);
  EXPECT_EQ(config.lz4_level, 3);
  EXPECT_EQ(config.flush_messages, 1);
  EXPECT_EQ(config.segment_bytes, 512);
  EXPECT_FALSE(config.cleanup_delete || config.cleanup_compact);
}

TEST(TopicConfig, ValueThatNoLongerParsesFallsBackToTheDefault) {
  const TopicConfig config = make_topic_config(BrokerConfig{}, {{"max.message.bytes", "a lot"}});
  EXPECT_EQ(config.max_message_bytes, 1'048'588);
}

TEST(TopicConfig, CreatedTopicTellsValuesAsWrittenWithTheirLayer) {
  const BrokerConfig broker = broker_with({{"log.roll.hours", "1"}});
  const auto entries = created_topic_configs(broker, {{"retention.ms", " 5000 "}});
  EXPECT_EQ(entries.size(), topic_config_rows().size());
  for (const ConfigEntry& entry : entries) {
    EXPECT_TRUE(entry.synonyms.empty());
    if (entry.name == "retention.ms") {
      EXPECT_EQ(entry.value, " 5000 ");
      EXPECT_EQ(entry.source, ConfigSource::kTopic);
    } else if (entry.name == "segment.ms") {
      EXPECT_EQ(entry.value, "3600000");
      EXPECT_EQ(entry.source, ConfigSource::kStaticBroker);
    } else {
      EXPECT_EQ(entry.source, ConfigSource::kDefault) << entry.name;
    }
  }
}

TEST(TopicConfig, EveryDescribedValueIsTakenBack) {
  for (const ConfigEntry& entry : describe_topic_configs(BrokerConfig{}, {})) {
    ASSERT_TRUE(entry.value) << entry.name;
    EXPECT_TRUE(check_topic_config(entry.name, *entry.value)) << entry.name;
  }
}

}  // namespace
}  // namespace kanal::coordinator
