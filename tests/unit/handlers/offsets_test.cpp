#include "kanal/broker/groups.hpp"
#include "kanal/wire/messages/delete_groups.hpp"
#include "kanal/wire/messages/describe_groups.hpp"
#include "kanal/wire/messages/incremental_alter_configs.hpp"
#include "kanal/wire/messages/join_group.hpp"
#include "kanal/wire/messages/leave_group.hpp"
#include "kanal/wire/messages/list_groups.hpp"
#include "kanal/wire/messages/offset_commit.hpp"
#include "kanal/wire/messages/offset_delete.hpp"
#include "kanal/wire/messages/offset_fetch.hpp"
#include "kanal/wire/messages/sync_group.hpp"
#include "one_broker.hpp"

namespace kanal::handlers {

broker::Task<wire::OffsetCommitResponse> handle(broker::Context&, wire::OffsetCommitRequest);
broker::Task<wire::OffsetFetchResponse> handle(broker::Context&, wire::OffsetFetchRequest);
broker::Task<wire::LeaveGroupResponse> handle(broker::Context&, wire::LeaveGroupRequest);
broker::Task<wire::SyncGroupResponse> handle(broker::Context&, wire::SyncGroupRequest);
broker::Task<wire::DescribeGroupsResponse> handle(broker::Context&, wire::DescribeGroupsRequest);
broker::Task<wire::ListGroupsResponse> handle(broker::Context&, wire::ListGroupsRequest);
broker::Task<wire::DeleteGroupsResponse> handle(broker::Context&, wire::DeleteGroupsRequest);
broker::Task<wire::OffsetDeleteResponse> handle(broker::Context&, wire::OffsetDeleteRequest);
broker::Task<wire::IncrementalAlterConfigsResponse> handle(broker::Context&,
                                                           wire::IncrementalAlterConfigsRequest);

namespace testing {
namespace {

class Offsets : public OneBroker {
 protected:
  template <class Request>
  auto ask(std::int16_t version, Request request) {
    broker::Context asking = context(Request::kApiKey, version);
    return await(handle(asking, std::move(request)));
  }

  struct Asked {
    std::string_view topic;
    std::vector<std::int32_t> partitions;
  };
  wire::OffsetCommitResponse commit(std::string_view group, std::vector<Asked> topics,
                                    std::int64_t offset = 7) {
    wire::OffsetCommitRequest request;
    request.group_id = group;
    for (const Asked& asked : topics) {
      auto& topic = request.topics.emplace_back();
      topic.name = asked.topic;
      for (const std::int32_t index : asked.partitions) {
        auto& partition = topic.partitions.emplace_back();
        partition.partition_index = PartitionIndex(index);
        partition.committed_offset = Offset(offset);
        partition.committed_metadata = "note";
      }
    }
    return ask(8, std::move(request));
  }
  void limit_messages(std::string_view bytes) {
    wire::IncrementalAlterConfigsRequest request;
    auto& resource = request.resources.emplace_back();
    resource.resource_type = 4;
    resource.configs.push_back({"message.max.bytes", 0, bytes});
    EXPECT_EQ(ask(1, std::move(request)).responses.at(0).error_code, ErrorCode::NONE);
  }
  /// Of all topics.
  wire::OffsetFetchRequest fetch_of(std::string_view group) {
    wire::OffsetFetchRequest request;
    auto& asked = request.groups.emplace_back();
    asked.group_id = group;
    asked.topics.reset();
    return request;
  }
};

std::string shown(const wire::OffsetCommitResponse& response) {
  std::string text;
  for (const auto& topic : response.topics) {
    text += topic.name + ":";
    for (const auto& partition : topic.partitions) {
      text += " " + std::to_string(partition.partition_index.value()) + "=" +
              std::to_string(static_cast<int>(partition.error_code));
    }
    text += "; ";
  }
  return text;
}

TEST_F(Offsets, WhatCannotBeCommittedFailsAloneAndStandsFirst) {
  create("a", 2);
  create("b", 1);
  EXPECT_EQ(shown(commit("g", {{"a", {0, 1}}, {"b", {0}}})), "a: 0=0 1=0; b: 0=0; ");
  EXPECT_EQ(shown(commit("g", {{"a", {0, 9, 1}}, {"none", {0, 1}}, {"b", {0}}})),
            "a: 9=3 0=0 1=0; none: 0=3 1=3; b: 0=0; ");
  EXPECT_EQ(shown(commit("g", {{"none", {}}})), "none:; ");
  EXPECT_EQ(shown(commit("g", {})), "");
}

TEST_F(Offsets, WhatACommitMayStoreFollowsMessageMaxBytesWhileTheBrokerRuns) {
  create("a", 2);
  limit_messages("100");
  EXPECT_EQ(shown(commit("g", {{"a", {0, 1, 7}}})), "a: 7=3 0=-1 1=-1; ");
  EXPECT_EQ(broker->groups().size(), 0U);
  EXPECT_EQ(shown(commit("g", {{"a", {1}}})), "a: 1=0; ");
  limit_messages("1000");
  EXPECT_EQ(shown(commit("g", {{"a", {0, 1}}})), "a: 0=0 1=0; ");
}

TEST_F(Offsets, ATopicByAnIdThatIsNotThereIsUnknown) {
  create("a");
  wire::OffsetCommitRequest request;
  request.group_id = "g";
  for (const Uuid id : {Uuid{{9}}, broker->topics()->find("a")->id()}) {
    auto& topic = request.topics.emplace_back();
    topic.topic_id = id;
    topic.partitions.emplace_back().committed_offset = Offset(3);
  }
  const auto response = ask(10, std::move(request));
  ASSERT_EQ(response.topics.size(), 2U);
  EXPECT_EQ(response.topics[0].partitions[0].error_code, ErrorCode::UNKNOWN_TOPIC_ID);
  EXPECT_EQ(response.topics[1].partitions[0].error_code, ErrorCode::NONE);
}

TEST_F(Offsets, AGroupThatIsNotThereIsIllegalGenerationToOldMembers) {
  create("a");
  wire::OffsetCommitRequest request;
  request.group_id = "g";
  request.generation_id_or_member_epoch = 1;
  request.member_id = "m";
  request.topics.emplace_back().name = "a";
  request.topics[0].partitions.emplace_back();
  auto old = request;
  EXPECT_EQ(ask(8, std::move(old)).topics[0].partitions[0].error_code,
            ErrorCode::ILLEGAL_GENERATION);
  EXPECT_EQ(ask(9, std::move(request)).topics[0].partitions[0].error_code,
            ErrorCode::GROUP_ID_NOT_FOUND);
}

TEST_F(Offsets, WhatIsNotCommittedIsNoError) {
  create("a", 2);
  commit("g", {{"a", {0}}});
  auto request = fetch_of("g");
  auto& topics = request.groups[0].topics.emplace();
  topics.emplace_back().name = "a";
  topics[0].partition_indexes = {PartitionIndex(0), PartitionIndex(1), PartitionIndex(9)};
  topics.emplace_back().name = "none";
  topics[1].partition_indexes = {PartitionIndex(0)};
  for (const std::string_view group : {"g", "nobody"}) {
    auto asking = request;
    asking.groups[0].group_id = group;
    const auto answer = ask(9, std::move(asking)).groups.at(0);
    EXPECT_EQ(answer.error_code, ErrorCode::NONE);
    ASSERT_EQ(answer.topics.size(), 2U);
    const auto& first = answer.topics[0].partitions[0];
    EXPECT_EQ(first.committed_offset, Offset(group == "g" ? 7 : -1));
    EXPECT_EQ(first.metadata, group == "g" ? "note" : "");
    for (std::size_t i = 1; i < 3; ++i) {
      EXPECT_EQ(answer.topics[0].partitions[i].committed_offset, kNoOffset);
      EXPECT_EQ(answer.topics[0].partitions[i].error_code, ErrorCode::NONE);
    }
    EXPECT_EQ(answer.topics[1].partitions[0].committed_offset, kNoOffset);
    EXPECT_EQ(answer.topics[1].partitions[0].error_code, ErrorCode::NONE);
  }
}

TEST_F(Offsets, AllTopicsAreThoseThatAreStillThere) {
  create("a", 2);
  create("b");
  commit("g", {{"a", {0, 1}}, {"b", {0}}});
  const auto all = ask(8, fetch_of("g")).groups.at(0);
  ASSERT_EQ(all.topics.size(), 2U);
  EXPECT_EQ(all.topics[0].partitions.size(), 2U);
  EXPECT_TRUE(ask(8, fetch_of("nobody")).groups.at(0).topics.empty());
  wire::OffsetFetchRequest old;
  old.group_id = "g";
  old.topics.reset();
  EXPECT_EQ(ask(2, std::move(old)).topics.size(), 2U);
}

// KIP-447: whoever takes over a partition waits for the end of the transaction that was in it.
class StableOffsets : public Offsets {
 protected:
  void write_pending(std::string_view topic, std::int32_t partition, std::int64_t offset) {
    coordinator::TxnCommitCommand command;
    command.producer_id = ProducerId(1);
    command.producer_epoch = ProducerEpoch(0);
    command.offsets.push_back({.topic = topic,
                               .topic_id = broker->topics()->find(topic)->id(),
                               .partition = PartitionIndex(partition),
                               .offset = Offset(offset),
                               .metadata = ""});
    EXPECT_EQ(broker->groups().commit_pending("g", std::move(command)).partitions.at(0),
              ErrorCode::NONE);
  }
  void end(bool commit) {
    EXPECT_EQ(broker->groups().end_transaction("g", ProducerId(1), ProducerEpoch(0), commit),
              ErrorCode::NONE);
  }
  template <class Partition>
  static std::string shown(const Partition& partition) {
    return std::to_string(partition.partition_index.value()) + ": " +
           std::to_string(partition.committed_offset.value()) + " epoch " +
           std::to_string(partition.committed_leader_epoch.value()) + " '" +
           partition.metadata.value_or("null") + "' error " +
           std::to_string(static_cast<int>(partition.error_code)) + "; ";
  }
  template <class Topics>
  static std::string shown_all(const Topics& topics) {
    std::string text;
    for (const auto& topic : topics) {
      text += topic.name + " ";
      for (const auto& partition : topic.partitions) text += shown(partition);
    }
    return text;
  }
  std::string fetch(bool all, bool stable, std::int16_t version = 8) {
    auto request = fetch_of("g");
    if (!all) {
      auto& topic = request.groups[0].topics.emplace().emplace_back();
      topic.name = "a";
      for (const std::int32_t index : {0, 1, 2})
        topic.partition_indexes.push_back(PartitionIndex(index));
    }
    request.require_stable = stable;
    const auto answer = ask(version, std::move(request)).groups.at(0);
    EXPECT_EQ(answer.error_code, ErrorCode::NONE);
    return shown_all(answer.topics);
  }
};

TEST_F(StableOffsets, AreRefusedForEachPartitionThatATransactionHasOffsetsFor) {
  create("a", 3);
  commit("g", {{"a", {0, 1}}});
  write_pending("a", 1, 9);
  write_pending("a", 2, 9);
  EXPECT_EQ(fetch(false, true),
            "a 0: 7 epoch -1 'note' error 0; 1: -1 epoch -1 '' error 88; "
            "2: -1 epoch -1 '' error 88; ");
  EXPECT_EQ(fetch(false, false),
            "a 0: 7 epoch -1 'note' error 0; 1: 7 epoch -1 'note' error 0; "
            "2: -1 epoch -1 '' error 0; ");
  EXPECT_EQ(fetch(true, true), "a 0: 7 epoch -1 'note' error 0; 1: -1 epoch -1 '' error 88; ")
      << "all topics are those that something is committed for";
  EXPECT_EQ(fetch(true, false), "a 0: 7 epoch -1 'note' error 0; 1: 7 epoch -1 'note' error 0; ");
  end(true);
  EXPECT_EQ(fetch(true, true),
            "a 0: 7 epoch -1 'note' error 0; 1: 9 epoch -1 '' error 0; "
            "2: 9 epoch -1 '' error 0; ");
}

TEST_F(StableOffsets, ComeBackAfterAnAbort) {  // bug case 58
  create("a", 3);
  commit("g", {{"a", {0}}});
  write_pending("a", 0, 9);
  wire::OffsetFetchRequest old;
  old.group_id = "g";
  old.topics.emplace().push_back({"a", {PartitionIndex(0)}});
  old.require_stable = true;
  EXPECT_EQ(shown_all(ask(7, old).topics), "a 0: -1 epoch -1 '' error 88; ");
  EXPECT_EQ(ask(7, old).error_code, ErrorCode::NONE) << "the partition's alone";
  end(false);
  EXPECT_EQ(shown_all(ask(7, old).topics), "a 0: 7 epoch -1 'note' error 0; ");
}

TEST_F(Offsets, UnknownTopicIdsAreAnsweredLast) {
  create("a");
  commit("g", {{"a", {0}}});
  auto request = fetch_of("g");
  auto& topics = request.groups[0].topics.emplace();
  topics.emplace_back().topic_id = Uuid{{9}};
  topics.emplace_back().topic_id = broker->topics()->find("a")->id();
  for (auto& topic : topics) topic.partition_indexes = {PartitionIndex(0)};
  const auto answer = ask(10, std::move(request)).groups.at(0);
  ASSERT_EQ(answer.topics.size(), 2U);
  EXPECT_EQ(answer.topics[0].partitions[0].committed_offset, Offset(7));
  EXPECT_EQ(answer.topics[1].partitions[0].error_code, ErrorCode::UNKNOWN_TOPIC_ID);
  EXPECT_EQ(answer.topics[1].topic_id, Uuid{{9}});
}

TEST_F(Offsets, GroupsAreListedByStateAndTypeInAnyCase) {
  create("a");
  commit("g", {{"a", {0}}});
  const auto names = [&](std::vector<std::string_view> states,
                         std::vector<std::string_view> types) {
    wire::ListGroupsRequest request;
    request.states_filter = std::move(states);
    request.types_filter = std::move(types);
    return ask(5, std::move(request)).groups;
  };
  ASSERT_EQ(names({}, {}).size(), 1U);
  EXPECT_EQ(names({}, {})[0].group_id, "g");
  EXPECT_EQ(names({}, {})[0].group_state, "Empty");
  EXPECT_EQ(names({}, {})[0].group_type, "classic");
  EXPECT_EQ(names({}, {})[0].protocol_type, "");
  EXPECT_EQ(names({"Stable", " EMPTY "}, {"Classic"}).size(), 1U);
  EXPECT_EQ(names({"Stable"}, {}).size(), 0U);
  EXPECT_EQ(names({"nonsense"}, {}).size(), 0U);
  EXPECT_EQ(names({}, {"consumer", "nonsense"}).size(), 0U);
}

TEST_F(Offsets, AGroupThatIsNotThereIsDead) {
  create("a");
  commit("g", {{"a", {0}}});
  wire::DescribeGroupsRequest request;
  request.groups = {"g", "nobody"};
  request.include_authorized_operations = true;
  auto old = request;
  const auto before = ask(5, std::move(old)).groups;
  EXPECT_EQ(before[0].group_state, "Empty");
  EXPECT_EQ(before[1].group_state, "Dead");
  EXPECT_EQ(before[1].error_code, ErrorCode::NONE);
  const auto now = ask(6, std::move(request)).groups;
  EXPECT_EQ(now[0].error_code, ErrorCode::NONE);
  EXPECT_EQ(now[0].authorized_operations, 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11);
  EXPECT_EQ(now[1].error_code, ErrorCode::GROUP_ID_NOT_FOUND);
  EXPECT_EQ(now[1].error_message, "Group nobody not found.");
  EXPECT_EQ(now[1].group_state, "Dead");
}

TEST_F(Offsets, AGroupIsDeletedOnceHoweverOftenItIsNamed) {
  create("a");
  commit("g", {{"a", {0}}});
  wire::DeleteGroupsRequest request;
  request.groups_names = {"g", "nobody", "g"};
  const auto results = ask(2, std::move(request)).results;
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].error_code, ErrorCode::NONE);
  EXPECT_EQ(results[1].error_code, ErrorCode::GROUP_ID_NOT_FOUND);
  EXPECT_TRUE(ask(8, fetch_of("g")).groups.at(0).topics.empty());
}

TEST_F(Offsets, OffsetsAreDeletedOneByOne) {
  create("a", 2);
  commit("g", {{"a", {0, 1}}});
  wire::OffsetDeleteRequest request;
  request.group_id = "g";
  auto& topic = request.topics.emplace_back();
  topic.name = "a";
  for (const std::int32_t index : {0, 9})
    topic.partitions.emplace_back().partition_index = PartitionIndex(index);
  auto unknown = request;
  unknown.group_id = "nobody";
  const auto response = ask(0, std::move(request));
  EXPECT_EQ(response.error_code, ErrorCode::NONE);
  ASSERT_EQ(response.topics.size(), 1U);
  EXPECT_EQ(response.topics[0].partitions[0].error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
  EXPECT_EQ(response.topics[0].partitions[1].error_code, ErrorCode::NONE);
  EXPECT_EQ(ask(8, fetch_of("g")).groups.at(0).topics.at(0).partitions.size(), 1U);
  const auto refused = ask(0, std::move(unknown));
  EXPECT_EQ(refused.error_code, ErrorCode::GROUP_ID_NOT_FOUND);
  EXPECT_TRUE(refused.topics.empty());
}

TEST_F(Offsets, AnOldLeaveHasItsMembersErrorForItsOwn) {
  wire::LeaveGroupRequest request;
  request.group_id = "nobody";
  request.member_id = "m";
  EXPECT_EQ(ask(2, request).error_code, ErrorCode::UNKNOWN_MEMBER_ID);
  request.members.emplace_back().member_id = "m";
  const auto several = ask(3, request);
  EXPECT_EQ(several.error_code, ErrorCode::NONE);
  EXPECT_EQ(several.members.at(0).error_code, ErrorCode::UNKNOWN_MEMBER_ID);
}

TEST_F(Offsets, ANewSyncNamesItsProtocol) {
  wire::SyncGroupRequest request;
  request.group_id = "nobody";
  request.protocol_type = "consumer";
  EXPECT_EQ(ask(5, request).error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
  EXPECT_EQ(ask(4, request).error_code, ErrorCode::UNKNOWN_MEMBER_ID);
  request.group_id = "";
  EXPECT_EQ(ask(4, request).error_code, ErrorCode::INVALID_GROUP_ID);
}

}  // namespace
}  // namespace testing
}  // namespace kanal::handlers
