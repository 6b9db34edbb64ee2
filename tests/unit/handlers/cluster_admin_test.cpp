// The small administration APIs: what one node answers about directories, leaders, reassignments,
// its quorum, features and producers.
#include <gmock/gmock.h>

#include <algorithm>

#include "kanal/coordinator/features.hpp"
#include "kanal/wire/messages/alter_partition_reassignments.hpp"
#include "kanal/wire/messages/alter_replica_log_dirs.hpp"
#include "kanal/wire/messages/api_versions.hpp"
#include "kanal/wire/messages/delete_records.hpp"
#include "kanal/wire/messages/describe_log_dirs.hpp"
#include "kanal/wire/messages/describe_producers.hpp"
#include "kanal/wire/messages/describe_quorum.hpp"
#include "kanal/wire/messages/elect_leaders.hpp"
#include "kanal/wire/messages/list_partition_reassignments.hpp"
#include "kanal/wire/messages/unregister_broker.hpp"
#include "kanal/wire/messages/update_features.hpp"
#include "one_broker.hpp"

namespace kanal::handlers {

#define HANDLER(NAME) \
  broker::Task<wire::NAME##Response> handle(broker::Context& context, wire::NAME##Request request)
HANDLER(AlterPartitionReassignments);
HANDLER(AlterReplicaLogDirs);
HANDLER(ApiVersions);
HANDLER(DeleteRecords);
HANDLER(DescribeLogDirs);
HANDLER(DescribeProducers);
HANDLER(DescribeQuorum);
HANDLER(ElectLeaders);
HANDLER(ListPartitionReassignments);
HANDLER(UnregisterBroker);
HANDLER(UpdateFeatures);
#undef HANDLER

namespace testing {
namespace {

using log::test::BatchSpec;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr PartitionIndex kFirst{0}, kSecond{1}, kMissing{7};
constexpr NodeId kSelf{1}, kOther{2};

class ClusterAdmin : public OneBroker {
 protected:
  template <class Request>
  auto ask(Request request, std::int16_t version) {
    broker::Context asking = context(Request::kApiKey, version);
    return await(handle(asking, std::move(request)));
  }

  // AlterReplicaLogDirs for one partition
  ErrorCode move(std::string_view topic, PartitionIndex index, std::string_view path) {
    wire::AlterReplicaLogDirsRequest request;
    auto& dir = request.dirs.emplace_back();
    dir.path = path;
    auto& asked = dir.topics.emplace_back();
    asked.name = topic;
    asked.partitions = {index};
    const auto response = ask(std::move(request), 2);
    EXPECT_EQ(response.results.size(), 1U);
    return response.results.at(0).partitions.at(0).error_code;
  }

  wire::DescribeLogDirsResponse::Result log_dir(
      std::optional<std::vector<std::pair<std::string_view, std::vector<PartitionIndex>>>> asked) {
    wire::DescribeLogDirsRequest request;
    request.topics = std::nullopt;
    if (asked) {
      request.topics.emplace();
      for (auto& [name, partitions] : *asked) {
        auto& topic = request.topics->emplace_back();
        topic.topic = name;
        topic.partitions = partitions;
      }
    }
    const auto response = ask(std::move(request), 4);
    EXPECT_EQ(response.error_code, ErrorCode::NONE);
    EXPECT_EQ(response.results.size(), 1U);
    return response.results.at(0);
  }

  // ElectLeaders for one partition
  wire::ElectLeadersResponse elect(std::int8_t type, std::string_view topic, PartitionIndex index,
                                   int timeout_ms = 1000) {
    wire::ElectLeadersRequest request;
    request.election_type = type;
    request.timeout = std::chrono::milliseconds(timeout_ms);
    auto& asked = request.topic_partitions.emplace().emplace_back();
    asked.topic = topic;
    asked.partitions = {index};
    return ask(std::move(request), 2);
  }

  ErrorCode reassign(std::string_view topic, PartitionIndex index,
                     std::optional<std::vector<NodeId>> replicas) {
    wire::AlterPartitionReassignmentsRequest request;
    auto& asked = request.topics.emplace_back();
    asked.name = topic;
    auto& partition = asked.partitions.emplace_back();
    partition.partition_index = index;
    partition.replicas = std::move(replicas);
    const auto response = ask(std::move(request), 1);
    EXPECT_EQ(response.error_code, ErrorCode::NONE);
    EXPECT_EQ(response.error_message, std::nullopt);
    const auto& answer = response.responses.at(0).partitions.at(0);
    const bool says_why = answer.error_code != ErrorCode::NONE &&
                          answer.error_code != ErrorCode::NO_REASSIGNMENT_IN_PROGRESS;
    EXPECT_EQ(answer.error_message.has_value(), says_why);
    return answer.error_code;
  }

  wire::DescribeQuorumResponse quorum(std::string_view topic, PartitionIndex index) {
    wire::DescribeQuorumRequest request;
    auto& asked = request.topics.emplace_back();
    asked.topic_name = topic;
    asked.partitions.emplace_back().partition_index = index;
    return ask(std::move(request), 2);
  }

  wire::UpdateFeaturesResponse update(std::string_view feature, int level, std::int8_t kind = 1,
                                      std::int16_t version = 1) {
    wire::UpdateFeaturesRequest request;
    auto& asked = request.feature_updates.emplace_back();
    asked.feature = feature;
    asked.max_version_level = static_cast<std::int16_t>(level);
    asked.upgrade_type = kind;
    return ask(std::move(request), version);
  }

  wire::DescribeProducersResponse producers(std::string_view topic,
                                            std::vector<PartitionIndex> indexes) {
    wire::DescribeProducersRequest request;
    auto& asked = request.topics.emplace_back();
    asked.name = topic;
    asked.partition_indexes = std::move(indexes);
    return ask(std::move(request), 0);
  }

  // DeleteRecords of one partition: error and low watermark
  std::pair<ErrorCode, std::int64_t> trim(std::string_view topic, std::int64_t offset) {
    wire::DeleteRecordsRequest request;
    auto& asked = request.topics.emplace_back();
    asked.name = topic;
    auto& partition = asked.partitions.emplace_back();
    partition.partition_index = kFirst;
    partition.offset = Offset(offset);
    const auto response = ask(std::move(request), 2);
    const auto& answer = response.topics.at(0).partitions.at(0);
    return {answer.error_code, answer.low_watermark.value()};
  }
};

using Answer = std::pair<ErrorCode, std::int64_t>;

TEST_F(ClusterAdmin, AMoveToTheOneDirectoryIsDoneAndAnyOtherDirectoryIsMissing) {
  create("t", 2);
  EXPECT_EQ(move("t", kFirst, directory), ErrorCode::NONE);
  EXPECT_EQ(move("t", kFirst, "/nowhere"), ErrorCode::LOG_DIR_NOT_FOUND);
  EXPECT_EQ(move("none", kFirst, "/nowhere"), ErrorCode::LOG_DIR_NOT_FOUND);
  EXPECT_EQ(move("none", kFirst, directory), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
  EXPECT_EQ(move("t", kMissing, directory), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
  const std::string longest(213, 'x');
  EXPECT_EQ(move(longest, kFirst, directory), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
  EXPECT_EQ(move(longest + "x", kFirst, "/nowhere"), ErrorCode::INVALID_TOPIC_EXCEPTION);
}

TEST_F(ClusterAdmin, APartitionMovedTwiceIsAnsweredForTheDirectoryNamedLast) {
  create("t");
  wire::AlterReplicaLogDirsRequest request;
  for (const std::string_view path : {std::string_view("/nowhere"), std::string_view(directory)}) {
    auto& dir = request.dirs.emplace_back();
    dir.path = path;
    auto& asked = dir.topics.emplace_back();
    asked.name = "t";
    asked.partitions = {kFirst};
  }
  const auto response = ask(std::move(request), 1);
  ASSERT_EQ(response.results.size(), 1U);
  ASSERT_EQ(response.results[0].partitions.size(), 1U);
  EXPECT_EQ(response.results[0].partitions[0].error_code, ErrorCode::NONE);
}

TEST_F(ClusterAdmin, TheDirectoryTellsTheTrueSizeOfEachPartitionAndTheRoomOnItsVolume) {
  create("b", 2);
  create("a", 1);
  append("b", {.records = 3}, 1);
  const auto all = log_dir(std::nullopt);
  EXPECT_EQ(all.error_code, ErrorCode::NONE);
  EXPECT_EQ(all.log_dir, directory);
  EXPECT_GT(all.total_bytes, 0);
  EXPECT_GT(all.usable_bytes, 0);
  EXPECT_LE(all.usable_bytes, all.total_bytes);
  ASSERT_EQ(all.topics.size(), 2U);
  EXPECT_EQ(all.topics[0].name, "a");
  const auto& partitions = all.topics[1].partitions;
  ASSERT_EQ(partitions.size(), 2U);
  EXPECT_EQ(partitions[0].partition_size, 0);
  const Buffer batch = log::test::make_batch({.records = 3});
  EXPECT_EQ(partitions[1].partition_size, static_cast<std::int64_t>(batch.size()));
  EXPECT_EQ(partitions[1].offset_lag, 0);
  EXPECT_FALSE(partitions[1].is_future_key);
}

TEST_F(ClusterAdmin, OnlyThePartitionsAskedForAreSizedAndUnknownOnesAreLeftOut) {
  create("a", 2);
  create("b", 1);
  const auto some = log_dir({{{"none", {kFirst}}, {"a", {kSecond, kMissing, kSecond}}, {"b", {}}}});
  ASSERT_EQ(some.topics.size(), 1U);
  EXPECT_EQ(some.topics[0].name, "a");
  ASSERT_EQ(some.topics[0].partitions.size(), 1U);
  EXPECT_EQ(some.topics[0].partitions[0].partition_index, kSecond);
  EXPECT_THAT(log_dir({{}}).topics, IsEmpty());
}

TEST_F(ClusterAdmin, NoElectionIsNeeded) {
  create("t", 2);
  const auto result = [](const wire::ElectLeadersResponse& response) {
    const auto& entry = response.replica_election_results.at(0).partition_result.at(0);
    EXPECT_EQ(entry.error_message.has_value(), response.error_code != ErrorCode::REQUEST_TIMED_OUT);
    return std::pair(response.error_code, entry.error_code);
  };
  const auto none = ErrorCode::NONE;
  const auto unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
  EXPECT_EQ(result(elect(0, "t", kFirst)), std::pair(none, ErrorCode::ELECTION_NOT_NEEDED));
  EXPECT_EQ(result(elect(1, "t", kSecond)), std::pair(none, ErrorCode::ELECTION_NOT_NEEDED));
  EXPECT_EQ(result(elect(0, "t", kMissing)), std::pair(none, unknown));
  EXPECT_EQ(result(elect(0, "none", kFirst)), std::pair(none, unknown));
  const auto invalid = ErrorCode::INVALID_REQUEST;
  EXPECT_EQ(result(elect(9, "t", kFirst)), std::pair(invalid, invalid));
  const auto late = ErrorCode::REQUEST_TIMED_OUT;
  EXPECT_EQ(result(elect(0, "t", kFirst, 0)), std::pair(late, late));
  EXPECT_EQ(result(elect(9, "t", kFirst, -1)), std::pair(late, late));
}

TEST_F(ClusterAdmin, AnElectionOfAllNamesEveryTopicWithNothingToDo) {
  create("b");
  create("a");
  wire::ElectLeadersRequest request;
  request.topic_partitions = std::nullopt;
  request.timeout = std::chrono::milliseconds(1000);
  const auto response = ask(std::move(request), 2);
  EXPECT_EQ(response.error_code, ErrorCode::NONE);
  ASSERT_EQ(response.replica_election_results.size(), 2U);
  EXPECT_EQ(response.replica_election_results[0].topic, "a");
  EXPECT_THAT(response.replica_election_results[0].partition_result, IsEmpty());
}

TEST_F(ClusterAdmin, AssignmentsCanOnlyStayAsTheyAre) {
  create("t", 2);
  EXPECT_EQ(reassign("t", kFirst, {{kSelf}}), ErrorCode::NONE);
  const auto invalid = ErrorCode::INVALID_REPLICA_ASSIGNMENT;
  EXPECT_EQ(reassign("t", kFirst, std::vector<NodeId>{}), invalid);
  EXPECT_EQ(reassign("t", kFirst, {{kOther}}), invalid);
  EXPECT_EQ(reassign("t", kFirst, {{kSelf, kOther}}), invalid);
  EXPECT_EQ(reassign("t", kFirst, {{kSelf, kSelf}}), invalid);
  EXPECT_EQ(reassign("t", kFirst, std::nullopt), ErrorCode::NO_REASSIGNMENT_IN_PROGRESS);
  EXPECT_EQ(reassign("t", kMissing, std::nullopt), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
  EXPECT_EQ(reassign("none", kFirst, {{kSelf}}), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);

  EXPECT_EQ(ask(wire::AlterPartitionReassignmentsRequest{}, 1).error_message, "");  // as in Kafka

  wire::ListPartitionReassignmentsRequest list;
  list.topics.emplace().emplace_back().name = "t";
  const auto listed = ask(std::move(list), 0);
  EXPECT_EQ(listed.error_code, ErrorCode::NONE);
  EXPECT_EQ(listed.error_message, std::nullopt);
  EXPECT_THAT(listed.topics, IsEmpty());
}

TEST_F(ClusterAdmin, TheQuorumIsThisNodeAlone) {
  const auto response = quorum("__cluster_metadata", kFirst);
  EXPECT_EQ(response.error_code, ErrorCode::NONE);
  EXPECT_EQ(response.error_message, "");
  const auto& partition = response.topics.at(0).partitions.at(0);
  EXPECT_EQ(partition.error_code, ErrorCode::NONE);
  EXPECT_EQ(partition.leader_id, kSelf);
  EXPECT_EQ(partition.leader_epoch, broker->leader_epoch());
  EXPECT_THAT(partition.observers, IsEmpty());
  ASSERT_EQ(partition.current_voters.size(), 1U);
  EXPECT_EQ(partition.current_voters[0].replica_id, kSelf);
  EXPECT_EQ(partition.current_voters[0].log_end_offset, partition.high_watermark);
  EXPECT_EQ(partition.current_voters[0].last_caught_up_timestamp, clock.wall());
  ASSERT_EQ(response.nodes.size(), 1U);
  const auto& at = response.nodes[0].listeners.at(0);
  EXPECT_EQ(at.name + "://" + at.host + ":" + std::to_string(at.port),
            "PLAINTEXT://broker.example:9092");
}

TEST_F(ClusterAdmin, TheQuorumsOffsetRisesWithEveryChangeAndOverRestarts) {
  const auto end = [&] {
    return quorum("__cluster_metadata", kFirst).topics.at(0).partitions.at(0).high_watermark;
  };
  const Offset before = end();
  create("t");
  const Offset after = end();
  EXPECT_GT(after, before);
  EXPECT_EQ(end(), after);
  restart();
  EXPECT_GT(end(), after);  // the new leader epoch
}

TEST_F(ClusterAdmin, OnlyTheMetadataTopicHasAQuorum) {
  for (const auto& [topic, index] : {std::pair("t", kFirst), {"__cluster_metadata", kSecond}}) {
    const auto response = quorum(topic, index);
    EXPECT_EQ(response.error_code, ErrorCode::NONE);
    EXPECT_THAT(response.nodes, IsEmpty());
    const auto& partition = response.topics.at(0).partitions.at(0);
    EXPECT_EQ(partition.error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    EXPECT_THAT(partition.current_voters, IsEmpty());
  }
  wire::DescribeQuorumRequest both;
  for (const char* name : {"__cluster_metadata", "t"}) {
    auto& asked = both.topics.emplace_back();
    asked.topic_name = name;
    asked.partitions.emplace_back().partition_index = kFirst;
  }
  const auto response = ask(std::move(both), 2);
  EXPECT_EQ(response.topics.at(0).partitions.at(0).error_code,
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
}

TEST_F(ClusterAdmin, ApiVersionsNamesTheFeaturesThatUpdateFeaturesKnows) {
  wire::ApiVersionsRequest request;
  request.client_software_name = request.client_software_version = "1";
  const auto response = ask(request, 4);
  ASSERT_FALSE(response.finalized_features.empty());
  for (const auto& feature : response.finalized_features) {
    const auto same = update(feature.name, feature.max_version_level);
    EXPECT_EQ(same.error_code, ErrorCode::NONE);
    EXPECT_EQ(same.error_message, std::nullopt);
    const auto supported = std::ranges::find(response.supported_features, feature.name,
                                             &wire::ApiVersionsResponse::SupportedFeature::name);
    ASSERT_NE(supported, response.supported_features.end());
    EXPECT_EQ(update(feature.name, supported->max_version + 1).error_code,
              ErrorCode::INVALID_UPDATE_VERSION);
  }
}

TEST_F(ClusterAdmin, AFeatureCannotLeaveTheLevelThatHolds) {
  const auto refused = [&](std::string_view feature, int level, std::int8_t kind) {
    const auto response = update(feature, level, kind);
    EXPECT_EQ(response.error_code, ErrorCode::INVALID_UPDATE_VERSION);
    EXPECT_THAT(response.results, IsEmpty());
    return response.error_message.value_or("");
  };
  EXPECT_THAT(refused("metadata.version", 8, 1), HasSubstr("ask for a downgrade"));
  EXPECT_THAT(refused("metadata.version", 8, 2), HasSubstr("might delete metadata"));
  EXPECT_THAT(refused("metadata.version", 8, 3), HasSubstr("not supported"));
  EXPECT_THAT(refused("metadata.version", 6, 3), HasSubstr("supports the levels 7 to"));
  EXPECT_THAT(refused("metadata.version", -1, 1), HasSubstr("not negative"));
  EXPECT_THAT(refused("metadata.version", 8, 9), HasSubstr("kind of upgrade"));
  EXPECT_THAT(refused("nonsense", 1, 1), HasSubstr("does not have the feature"));
  EXPECT_THAT(refused("nonsense", 0, 3), HasSubstr("no such feature"));
}

TEST_F(ClusterAdmin, OneBadFeatureUpdateRefusesAll) {
  wire::UpdateFeaturesRequest request;
  request.feature_updates.emplace_back().feature = "metadata.version";
  request.feature_updates.back().max_version_level =
      coordinator::find_feature("metadata.version")->finalized;
  request.feature_updates.emplace_back().feature = "nonsense";
  request.feature_updates.back().max_version_level = 1;
  const auto response = ask(std::move(request), 1);
  EXPECT_EQ(response.error_code, ErrorCode::INVALID_UPDATE_VERSION);
  EXPECT_THAT(response.error_message.value_or(""), HasSubstr("nonsense"));
}

TEST_F(ClusterAdmin, ProducersAreDescribedAsTheirLastBatchLeftThemAlsoAfterARestart) {
  create("t", 2);
  append("t", {.records = 2, .timestamp = 5000, .producer = 9, .epoch = 1, .sequence = 0});
  append("t", {.records = 1, .timestamp = 4000, .producer = 4, .epoch = 0, .sequence = 0});
  append("t", {.records = 3, .timestamp = 6000, .producer = 9, .epoch = 1, .sequence = 2});
  append("t", {.records = 1});
  for (int run = 0; run < 2; ++run) {
    const auto response = producers("t", {kFirst, kSecond});
    const auto& active = response.topics.at(0).partitions.at(0).active_producers;
    ASSERT_EQ(active.size(), 2U);
    EXPECT_EQ(active[0].producer_id, ProducerId(4));
    EXPECT_EQ(active[1].producer_id, ProducerId(9));
    EXPECT_EQ(active[1].producer_epoch, 1);
    EXPECT_EQ(active[1].last_sequence, 4);
    EXPECT_EQ(active[1].last_timestamp, Timestamp(6000));
    EXPECT_EQ(active[1].coordinator_epoch, -1);
    EXPECT_EQ(active[1].current_txn_start_offset, kNoOffset);
    EXPECT_THAT(response.topics[0].partitions.at(1).active_producers, IsEmpty());
    restart();
  }
}

TEST_F(ClusterAdmin, MissingTopicsAndPartitionsHaveNoProducers) {
  create("t");
  const auto one = [&](std::string_view topic, PartitionIndex index) {
    const auto response = producers(topic, {index});
    const auto& answer = response.topics.at(0).partitions.at(0);
    return std::pair(answer.error_code, answer.error_message.has_value());
  };
  EXPECT_EQ(one("t", kMissing), std::pair(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, false));
  EXPECT_EQ(one("none", kFirst), std::pair(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, true));
  EXPECT_EQ(one("a/b", kFirst), std::pair(ErrorCode::INVALID_TOPIC_EXCEPTION, true));
}

TEST_F(ClusterAdmin, NoBrokerCanBeUnregistered) {
  wire::UnregisterBrokerRequest request;
  for (const auto& [id, code] : {std::pair(kSelf, ErrorCode::INVALID_REQUEST),
                                 {kOther, ErrorCode::BROKER_ID_NOT_REGISTERED},
                                 {NodeId(-1), ErrorCode::BROKER_ID_NOT_REGISTERED}}) {
    request.broker_id = id;
    const auto response = ask(request, 0);
    EXPECT_EQ(response.error_code, code);
    EXPECT_TRUE(response.error_message);
  }
}

TEST_F(ClusterAdmin, RecordsAreDeletedUpToTheHighWatermarkAndStayDeleted) {
  create("t");
  append("t", {.records = 10});
  EXPECT_EQ(trim("t", 5), Answer(ErrorCode::NONE, 5));
  EXPECT_EQ(trim("t", 3), Answer(ErrorCode::NONE, 5));
  EXPECT_EQ(trim("t", 11), Answer(ErrorCode::OFFSET_OUT_OF_RANGE, -1));
  EXPECT_EQ(trim("t", -2), Answer(ErrorCode::OFFSET_OUT_OF_RANGE, -1));
  EXPECT_EQ(trim("none", 0), Answer(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, -1));
  restart();
  EXPECT_EQ(trim("t", 0), Answer(ErrorCode::NONE, 5));
  EXPECT_EQ(trim("t", -1), Answer(ErrorCode::NONE, 10));
}

TEST_F(ClusterAdmin, RecordsOfATopicThatIsOnlyCompactedAreNotDeleted) {
  create("compacted", 1, {{"cleanup.policy", "compact"}});
  create("both", 1, {{"cleanup.policy", "compact,delete"}});
  EXPECT_EQ(trim("compacted", 0), Answer(ErrorCode::POLICY_VIOLATION, -1));
  EXPECT_EQ(trim("both", 0), Answer(ErrorCode::NONE, 0));
}

}  // namespace
}  // namespace testing
}  // namespace kanal::handlers
