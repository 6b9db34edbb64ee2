// Kafka keeps group offsets, transactions and share groups in topics of its own; here their names
// are taken and nothing is served under them (docs/cluster_admin.md has the table).
#include "kanal/wire/messages/create_partitions.hpp"
#include "kanal/wire/messages/create_topics.hpp"
#include "kanal/wire/messages/delete_records.hpp"
#include "kanal/wire/messages/describe_configs.hpp"
#include "kanal/wire/messages/describe_topic_partitions.hpp"
#include "kanal/wire/messages/fetch.hpp"
#include "kanal/wire/messages/list_offsets.hpp"
#include "kanal/wire/messages/metadata.hpp"
#include "kanal/wire/messages/offset_commit.hpp"
#include "kanal/wire/messages/offset_fetch.hpp"
#include "kanal/wire/messages/offset_for_leader_epoch.hpp"
#include "kanal/wire/messages/produce.hpp"
#include "one_broker.hpp"

namespace kanal::handlers {

#define HANDLER(NAME) \
  broker::Task<wire::NAME##Response> handle(broker::Context& context, wire::NAME##Request request)
HANDLER(CreatePartitions);
HANDLER(CreateTopics);
HANDLER(DeleteRecords);
HANDLER(DescribeConfigs);
HANDLER(DescribeTopicPartitions);
HANDLER(Fetch);
HANDLER(ListOffsets);
HANDLER(Metadata);
HANDLER(OffsetCommit);
HANDLER(OffsetFetch);
HANDLER(OffsetForLeaderEpoch);
HANDLER(Produce);
#undef HANDLER

namespace testing {
namespace {

constexpr std::int8_t kTopicResource = 2;

class OwnTopics : public OneBroker, public ::testing::WithParamInterface<const char*> {
 protected:
  template <class Request>
  auto ask(Request request, std::int16_t version) {
    broker::Context asking = context(Request::kApiKey, version);
    return await(handle(asking, std::move(request)));
  }
};

TEST_P(OwnTopics, KafkasOwnTopicsAreNeitherMadeNorServed) {
  const std::string_view name = GetParam();
  wire::CreateTopicsRequest creation;
  creation.topics.emplace_back().name = name;
  creation.topics[0].num_partitions = creation.topics[0].replication_factor = 1;
  EXPECT_EQ(ask(creation, 7).topics.at(0).error_code, ErrorCode::TOPIC_ALREADY_EXISTS);
  wire::CreatePartitionsRequest growth;
  growth.topics.emplace_back().name = name;
  growth.topics[0].count = 9;
  growth.timeout = std::chrono::seconds(9);
  EXPECT_EQ(ask(growth, 3).results.at(0).error_code, ErrorCode::INVALID_PARTITIONS);

  ASSERT_TRUE(broker->config()->auto_create_topics);
  wire::MetadataRequest metadata;
  metadata.topics.emplace().emplace_back().name = name;
  metadata.allow_auto_topic_creation = true;
  const auto named = ask(metadata, 12).topics.at(0);
  EXPECT_EQ(named.error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
  EXPECT_TRUE(named.is_internal);
  wire::DescribeTopicPartitionsRequest description;
  description.topics.emplace_back().name = name;
  const auto described = ask(description, 0).topics.at(0);
  EXPECT_EQ(described.error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
  EXPECT_TRUE(described.is_internal);
  wire::DescribeConfigsRequest configs;
  configs.resources.push_back({.resource_type = kTopicResource, .resource_name = name});
  EXPECT_EQ(ask(configs, 4).results.at(0).error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);

  metadata.topics.reset();
  EXPECT_TRUE(ask(metadata, 12).topics.empty());
  EXPECT_EQ(broker->topics()->find(name), nullptr);
}

TEST_P(OwnTopics, TheirRecordsAreNeitherReadNorWrittenNorDeleted) {
  const std::string_view name = GetParam();
  wire::FetchRequest fetch;
  fetch.topics.emplace_back().topic = name;
  fetch.topics[0].partitions.emplace_back().partition_max_bytes = 1 << 20;
  EXPECT_EQ(ask(fetch, 11).responses.at(0).partitions.at(0).error_code,
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
  wire::ListOffsetsRequest ends;
  ends.topics.emplace_back().name = name;
  ends.topics[0].partitions.emplace_back().timestamp = Timestamp(-1);
  EXPECT_EQ(ask(ends, 7).topics.at(0).partitions.at(0).error_code,
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
  wire::OffsetForLeaderEpochRequest epochs;
  epochs.topics.emplace_back().topic = name;
  epochs.topics[0].partitions.emplace_back();
  EXPECT_EQ(ask(epochs, 4).topics.at(0).partitions.at(0).error_code,
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);

  Buffer batch = log::test::make_batch({.records = 1});
  wire::ProduceRequest produce;
  produce.acks = -1;
  produce.topic_data.emplace_back().name = name;
  produce.topic_data[0].partition_data.push_back({.index = PartitionIndex(0), .records = batch});
  EXPECT_EQ(ask(produce, 11).responses.at(0).partition_responses.at(0).error_code,
            ErrorCode::INVALID_TOPIC_EXCEPTION);
  wire::DeleteRecordsRequest deletion;
  deletion.timeout = std::chrono::seconds(9);
  deletion.topics.emplace_back().name = name;
  deletion.topics[0].partitions.emplace_back();
  EXPECT_EQ(ask(deletion, 2).topics.at(0).partitions.at(0).error_code,
            ErrorCode::INVALID_TOPIC_EXCEPTION);
}

TEST_P(OwnTopics, NoOffsetIsKeptForThem) {
  wire::OffsetCommitRequest commit;
  commit.group_id = "g";
  commit.topics.emplace_back().name = GetParam();
  commit.topics[0].partitions.emplace_back().committed_offset = Offset(3);
  EXPECT_EQ(ask(commit, 8).topics.at(0).partitions.at(0).error_code,
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
  wire::OffsetFetchRequest fetch;
  auto& asked = fetch.groups.emplace_back();
  asked.group_id = "g";
  asked.topics.emplace().emplace_back().name = GetParam();
  asked.topics->at(0).partition_indexes = {PartitionIndex(0)};
  const auto kept = ask(fetch, 8).groups.at(0).topics.at(0).partitions.at(0);
  EXPECT_EQ(kept.error_code, ErrorCode::NONE);
  EXPECT_EQ(kept.committed_offset, kNoOffset);
}

INSTANTIATE_TEST_SUITE_P(Kafka, OwnTopics,
                         ::testing::Values("__consumer_offsets", "__transaction_state",
                                           "__share_group_state"),
                         [](const auto& test) { return test.param + 2; });

}  // namespace
}  // namespace testing
}  // namespace kanal::handlers
