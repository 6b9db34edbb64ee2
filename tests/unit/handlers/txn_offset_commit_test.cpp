// TxnOffsetCommit: from the wire to the group and back, with the transaction it
// belongs to.
#include "kanal/wire/messages/txn_offset_commit.hpp"
#include "kanal/broker/groups.hpp"
#include "kanal/broker/transactions.hpp"
#include "kanal/wire/messages/offset_commit.hpp"
#include "kanal/wire/messages/offset_fetch.hpp"
#include "one_broker.hpp"

namespace kanal::handlers {

broker::Task<wire::OffsetCommitResponse> handle(broker::Context&, wire::OffsetCommitRequest);
broker::Task<wire::OffsetFetchResponse> handle(broker::Context&, wire::OffsetFetchRequest);
broker::Task<wire::TxnOffsetCommitResponse> handle(broker::Context&, wire::TxnOffsetCommitRequest);

namespace testing {
namespace {

using coordinator::TransactionVersion;

class TxnOffsetCommit : public OneBroker {
 protected:
  void begin() {  // InitProducerId
    const coordinator::InitProducerIdCommand command{.timeout = std::chrono::seconds{60}};
    broker::Context asking = context(22, 4);
    const auto reply = await(broker->transactions().init(asking, "tx", command));
    EXPECT_EQ(reply.error, ErrorCode::NONE);
    producer_id = reply.producer_id;
    epoch = reply.producer_epoch;
  }
  ErrorCode add_group(std::string_view group) {  // AddOffsetsToTxn
    coordinator::AddToTransactionCommand command{.producer_id = producer_id,
                                                 .producer_epoch = epoch,
                                                 .version = TransactionVersion::k1,
                                                 .partitions = {},
                                                 .group = group};
    return broker->transactions().add("tx", std::move(command));
  }
  void end(bool commit, TransactionVersion version = TransactionVersion::k2) {
    const coordinator::EndTransactionCommand command{
        .producer_id = producer_id, .producer_epoch = epoch, .commit = commit, .version = version};
    broker::Context asking = context(26, 5);
    const auto reply = await(broker->transactions().end(asking, "tx", command));
    EXPECT_EQ(reply.error, ErrorCode::NONE);
    if (version == TransactionVersion::k2) epoch = reply.producer_epoch;
  }

  struct Asked {
    std::string_view topic;
    std::vector<std::int32_t> partitions;
  };
  wire::TxnOffsetCommitRequest request(const std::vector<Asked>& topics, std::int64_t offset = 9) {
    wire::TxnOffsetCommitRequest request;
    request.transactional_id = "tx";
    request.group_id = "g";
    request.producer_id = producer_id;
    request.producer_epoch = epoch;
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
    return request;
  }
  std::string ask(std::int16_t version, wire::TxnOffsetCommitRequest asked) {
    broker::Context asking = context(28, version);
    const auto response = await(handle(asking, std::move(asked)));
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
  /// What is committed for partition 0 of topic a; -1: nothing.
  std::int64_t committed() {
    wire::OffsetFetchRequest fetch;
    fetch.group_id = "g";
    fetch.topics.emplace().push_back({"a", {PartitionIndex(0)}});
    broker::Context asking = context(9, 7);
    return await(handle(asking, std::move(fetch)))
        .topics.at(0)
        .partitions.at(0)
        .committed_offset.value();
  }

  ProducerId producer_id = ProducerId(77);
  ProducerEpoch epoch = ProducerEpoch(0);
};

TEST_F(TxnOffsetCommit, IsSeenAfterTheCommitOfItsTransaction) {
  create("a");
  begin();
  EXPECT_EQ(ask(5, request({{"a", {0}}})), "a: 0=0; ");
  EXPECT_EQ(committed(), -1);
  end(true);
  EXPECT_EQ(committed(), 9);
  EXPECT_EQ(ask(5, request({{"a", {0}}}, 10)), "a: 0=0; ");
  end(false);
  EXPECT_EQ(committed(), 9);
}

TEST_F(TxnOffsetCommit, OfAnOldClientHasToBeAddedBefore) {
  create("a");
  begin();
  EXPECT_EQ(ask(3, request({{"a", {0}}})), "a: 0=48; ") << "INVALID_TXN_STATE";
  EXPECT_EQ(ask(4, request({{"a", {0}}})), "a: 0=120; ") << "TRANSACTION_ABORTABLE";
  EXPECT_EQ(broker->groups().size(), 0U) << "nothing of it was stored";
  ASSERT_EQ(add_group("g"), ErrorCode::NONE);
  for (std::int16_t version = 0; version <= 4; ++version)
    EXPECT_EQ(ask(version, request({{"a", {0}}})), "a: 0=0; ") << version;
  end(true, TransactionVersion::k1);
  EXPECT_EQ(committed(), 9);
  EXPECT_EQ(ask(4, request({{"a", {0}}})), "a: 0=120; ") << "the transaction has ended";
}

TEST_F(TxnOffsetCommit, OfAnotherProducerIsRefused) {
  create("a");
  EXPECT_EQ(ask(5, request({{"a", {0}}})), "a: 0=49; ") << "no such id";
  begin();
  auto stale = request({{"a", {0}}});
  stale.producer_epoch = ProducerEpoch(static_cast<std::int16_t>(epoch.value() + 1));
  EXPECT_EQ(ask(5, stale), "a: 0=47; ") << "never PRODUCER_FENCED";
  auto other = request({{"a", {0}}});
  other.producer_id = ProducerId(producer_id.value() + 1);
  EXPECT_EQ(ask(5, other), "a: 0=49; ");
  EXPECT_EQ(broker->groups().size(), 0U);
}

TEST_F(TxnOffsetCommit, WhatCannotBeCommittedFailsAloneAndStandsFirst) {
  create("a", 2);
  create("b");
  begin();
  EXPECT_EQ(ask(5, request({{"a", {0, 9, 1}}, {"none", {0, 1}}, {"b", {0}}})),
            "a: 9=3 0=0 1=0; none: 0=3 1=3; b: 0=0; ");
  EXPECT_EQ(ask(5, request({{"none", {0}}})), "none: 0=3; ");
  auto unknown = request({{"none", {0}}});
  unknown.transactional_id = "nobody";
  EXPECT_EQ(ask(5, unknown), "none: 0=3; ") << "nothing is left to ask the transaction for";
  EXPECT_EQ(ask(5, request({})), "");
}

TEST_F(TxnOffsetCommit, NamesTopicsByIdFromVersion6On) {
  create("a");
  begin();
  auto asked = request({{"", {0}}, {"", {0}}});
  asked.topics[0].topic_id = broker->topics()->find("a")->id();
  asked.topics[1].topic_id = Uuid{{9}};
  EXPECT_EQ(ask(6, asked), ": 0=100; : 0=0; ");
  end(true);
  EXPECT_EQ(committed(), 9);
}

TEST_F(TxnOffsetCommit, NeedsAGroup) {
  create("a");
  begin();
  auto nameless = request({{"a", {0}}});
  nameless.group_id = "";
  EXPECT_EQ(ask(5, nameless), "a: 0=24; ");
  auto member = request({{"a", {0}}});
  member.generation_id_or_member_epoch = 1;
  member.member_id = "m";
  EXPECT_EQ(ask(5, member), "a: 0=22; ");
  member.topics[0].topic_id = broker->topics()->find("a")->id();
  EXPECT_EQ(ask(6, member), "a: 0=69; ");
}

TEST_F(TxnOffsetCommit, IsUnavailableWhileGroupsAreStopped) {
  create("a");
  begin();
  ASSERT_EQ(add_group("g"), ErrorCode::NONE);
  broker->groups().stop();
  EXPECT_EQ(ask(1, request({{"a", {0}}})), "a: 0=15; ");
  EXPECT_EQ(ask(5, request({{"a", {0}}})), "a: 0=15; ");
}

// A group's members commit beside the transaction: the later one of the two
// counts.
TEST_F(TxnOffsetCommit, DoesNotTakeThePlaceOfALaterOrdinaryCommit) {
  create("a");
  begin();
  EXPECT_EQ(ask(5, request({{"a", {0}}})), "a: 0=0; ");
  wire::OffsetCommitRequest ordinary;
  ordinary.group_id = "g";
  ordinary.topics.emplace_back().name = "a";
  ordinary.topics[0].partitions.emplace_back().committed_offset = Offset(4);
  broker::Context asking = context(8, 8);
  EXPECT_EQ(await(handle(asking, std::move(ordinary))).topics[0].partitions[0].error_code,
            ErrorCode::NONE);
  end(true);
  EXPECT_EQ(committed(), 4);
}

TEST_F(TxnOffsetCommit, SurvivesARestartWithItsTransaction) {
  create("a");
  begin();
  EXPECT_EQ(ask(5, request({{"a", {0}}})), "a: 0=0; ");
  restart();
  EXPECT_EQ(committed(), -1);
  end(true);
  EXPECT_EQ(committed(), 9);
}

}  // namespace
}  // namespace testing
}  // namespace kanal::handlers
