// The requests of a transactional producer: what it is told in each version, and what its
// transaction is then. What a transactional id decides is tested with its machine, in coordinator.
#include <gmock/gmock.h>

#include "transaction_apis.hpp"

namespace kanal::handlers::testing {
namespace {

using enum ErrorCode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// InitProducerId

using Transactions = TransactionApis;

TEST_F(Transactions, AProducerIsMadeForItsIdAndTheNextOneHasTheNextEpoch) {
  const auto first = init("a");
  EXPECT_EQ(first.error_code, NONE);
  EXPECT_GE(first.producer_id.value(), 0);
  EXPECT_EQ(first.producer_epoch, ProducerEpoch(0));
  const auto second = init("a");
  EXPECT_EQ(second.producer_id, first.producer_id);
  EXPECT_EQ(second.producer_epoch, ProducerEpoch(1));
  EXPECT_NE(init("b").producer_id, first.producer_id);
}

TEST_F(Transactions, WithoutATransactionalIdEachGetsAnIdOfItsOwnWhateverItNames) {
  const auto first = init(std::nullopt);
  const auto second = init(std::nullopt, {first.producer_id, ProducerEpoch(3)});
  EXPECT_EQ(second.error_code, NONE);
  EXPECT_NE(second.producer_id, first.producer_id);
  EXPECT_EQ(second.producer_epoch, ProducerEpoch(0));
}

TEST_F(Transactions, AnInitializationThatIsRefusedAnswersNoProducer) {
  const ProducerIdentity own = producer("a");
  const auto refused = [&](const wire::InitProducerIdResponse& response) {
    EXPECT_EQ(response.producer_id, kNoProducerId);
    EXPECT_EQ(response.producer_epoch, kNoProducerEpoch);
    return response.error_code;
  };
  EXPECT_EQ(refused(init("")), INVALID_REQUEST);
  EXPECT_EQ(refused(init("a", {own.id, kNoProducerEpoch})), INVALID_REQUEST);
  EXPECT_EQ(refused(init(std::nullopt, {kNoProducerId, own.epoch})), INVALID_REQUEST);
  EXPECT_EQ(refused(init("a", {}, 5, 0)), INVALID_TRANSACTION_TIMEOUT);
  EXPECT_EQ(refused(init("a", {}, 5, 900'001)), INVALID_TRANSACTION_TIMEOUT);
  EXPECT_EQ(refused(init("a", {own.id, ProducerEpoch(7)}, 4)), PRODUCER_FENCED);
  EXPECT_EQ(refused(init("a", {own.id, ProducerEpoch(7)}, 3)), INVALID_PRODUCER_EPOCH);
}

TEST_F(Transactions, WhatTheProducerBeforeLeftOpenIsAborted) {
  create("t");
  const ProducerIdentity own = producer("a");
  EXPECT_THAT(add("a", own, {{"t", {0}}}), ElementsAre(Pair("t-0", NONE)));
  append_open("t", own);
  EXPECT_EQ(init("a").error_code, CONCURRENT_TRANSACTIONS);
  EXPECT_EQ(state("a").transaction_state, "CompleteAbort");
  EXPECT_EQ(watermarks("t").last_stable, Offset(2));
  const auto now = init("a");
  EXPECT_EQ(now.error_code, NONE);
  EXPECT_EQ(now.producer_epoch, ProducerEpoch(2));
}

// AddPartitionsToTxn

TEST_F(Transactions, PartitionsAreAddedTogetherAndAnsweredAsTheyWereNamed) {
  create("t", 2);
  create("u");
  const ProducerIdentity own = producer("a");
  EXPECT_THAT(add("a", own, {{"u", {0}}, {"t", {1, 0, 1}}, {"u", {0}}}),
              ElementsAre(Pair("u-0", NONE), Pair("t-1", NONE), Pair("t-0", NONE),
                          Pair("t-1", NONE), Pair("u-0", NONE)));
  const State open = state("a");
  EXPECT_EQ(open.transaction_state, "Ongoing");
  ASSERT_EQ(open.topics.size(), 2U);
  EXPECT_EQ(open.topics[0].topic, "t");
  EXPECT_THAT(open.topics[0].partitions, ElementsAre(PartitionIndex(0), PartitionIndex(1)));
  EXPECT_EQ(open.topics[1].topic, "u");
}

TEST_F(Transactions, WhatIsAddedOfATopicThatAcknowledgesAfterASyncIsSyncedBefore) {
  create("plain");
  create("synced", 1, {{"flush.messages", "1"}});
  const ProducerIdentity own = producer("id");
  const int before = helpers.posted;
  EXPECT_EQ(add("id", own, {{"plain", {0}}}), (Told{{"plain-0", ErrorCode::NONE}}));
  EXPECT_EQ(helpers.posted, before);
  EXPECT_EQ(add("id", own, {{"synced", {0}}}), (Told{{"synced-0", ErrorCode::NONE}}));
  EXPECT_EQ(helpers.posted, before + 1);
}

TEST_F(Transactions, IfAPartitionIsMissingNoneIsAdded) {
  create("t", 2);
  const ProducerIdentity own = producer("a");
  EXPECT_THAT(
      add("a", own, {{"t", {0, 7, 0}}, {"none", {0}}, {"t", {1, -1}}}),
      ElementsAre(Pair("none-0", UNKNOWN_TOPIC_OR_PARTITION),
                  Pair("t--1", UNKNOWN_TOPIC_OR_PARTITION), Pair("t-0", OPERATION_NOT_ATTEMPTED),
                  Pair("t-1", OPERATION_NOT_ATTEMPTED), Pair("t-7", UNKNOWN_TOPIC_OR_PARTITION)));
  EXPECT_EQ(state("a").transaction_state, "Empty");
}

TEST_F(Transactions, AMissingPartitionIsToldBeforeAnythingElseThatIsWrong) {
  EXPECT_THAT(add("", {}, {{"none", {0}}}),
              ElementsAre(Pair("none-0", UNKNOWN_TOPIC_OR_PARTITION)));
}

TEST_F(Transactions, ClientsMayNotAddKafkasOwnTopics) {
  create("t");
  const ProducerIdentity own = producer("a");
  EXPECT_THAT(add("a", own, {{"__consumer_offsets", {0}}, {"t", {0}}}),
              ElementsAre(Pair("__consumer_offsets-0", TOPIC_AUTHORIZATION_FAILED),
                          Pair("t-0", OPERATION_NOT_ATTEMPTED)));
  EXPECT_THAT(add_for_brokers({{"a", own, false, {{"__consumer_offsets", {0}}}}}),
              ElementsAre(Pair(
                  "a", ElementsAre(Pair("__consumer_offsets-0", UNKNOWN_TOPIC_OR_PARTITION)))));
}

TEST_F(Transactions, WhatIsWrongWithTheProducerIsToldForEachPartition) {
  create("t", 2);
  const ProducerIdentity own = producer("a");
  const auto both = [](ErrorCode error) {
    return ElementsAre(Pair("t-0", error), Pair("t-1", error));
  };
  const Named partitions = {{"t", {0, 1}}};
  EXPECT_THAT(add("", own, partitions), both(INVALID_REQUEST));
  EXPECT_THAT(add("none", own, partitions), both(INVALID_PRODUCER_ID_MAPPING));
  EXPECT_THAT(add("a", {own.id + std::int64_t{1}, own.epoch}, partitions),
              both(INVALID_PRODUCER_ID_MAPPING));
  EXPECT_THAT(add("a", next(own), partitions, 2), both(PRODUCER_FENCED));
  EXPECT_THAT(add("a", next(own), partitions, 1), both(INVALID_PRODUCER_EPOCH));
}

TEST_F(Transactions, AnAdditionOfNothingBeginsATransaction) {
  const ProducerIdentity own = producer("a");
  EXPECT_THAT(add("a", own, {}), IsEmpty());
  EXPECT_EQ(state("a").transaction_state, "Ongoing");
  EXPECT_EQ(end("a", own, true).error_code, NONE);
  EXPECT_EQ(state("a").transaction_state, "CompleteCommit");
}

TEST_F(Transactions, BrokersAddToAndVerifySeveralTransactionsInOneRequest) {
  create("t", 3);
  const ProducerIdentity a = producer("a"), b = producer("b");
  EXPECT_THAT(add("a", a, {{"t", {1}}}), ElementsAre(Pair("t-1", NONE)));
  const auto results = add_for_brokers({{"a", a, true, {{"t", {0, 1}}}},
                                        {"b", b, false, {{"t", {0, 2}}}},
                                        {"b", next(b), true, {{"t", {0}}}},
                                        {"none", b, true, {{"t", {0}}}},
                                        {"", b, true, {{"t", {0}}}},
                                        {"b", b, true, {{"t", {0, 9}}}}});
  EXPECT_THAT(
      results,
      ElementsAre(Pair("a", ElementsAre(Pair("t-0", TRANSACTION_ABORTABLE), Pair("t-1", NONE))),
                  Pair("b", ElementsAre(Pair("t-0", NONE), Pair("t-2", NONE))),
                  Pair("b", ElementsAre(Pair("t-0", PRODUCER_FENCED))),
                  Pair("none", ElementsAre(Pair("t-0", INVALID_PRODUCER_ID_MAPPING))),
                  Pair("", ElementsAre(Pair("t-0", INVALID_REQUEST))),
                  Pair("b", ElementsAre(Pair("t-0", OPERATION_NOT_ATTEMPTED),
                                        Pair("t-9", UNKNOWN_TOPIC_OR_PARTITION)))));
  EXPECT_THAT(add_for_brokers({}), IsEmpty());
}

// AddOffsetsToTxn, EndTxn

TEST_F(Transactions, AGroupIsAddedWhetherOrNotItExists) {
  const ProducerIdentity own = producer("a");
  EXPECT_EQ(add_group("a", own, "no such group"), NONE);
  EXPECT_EQ(state("a").transaction_state, "Ongoing");
  EXPECT_THAT(state("a").topics, IsEmpty());
  EXPECT_EQ(add_group("a", next(own), "g", 2), PRODUCER_FENCED);
  EXPECT_EQ(add_group("a", next(own), "g", 1), INVALID_PRODUCER_EPOCH);
  EXPECT_EQ(add_group("none", own, "g"), INVALID_PRODUCER_ID_MAPPING);
  EXPECT_EQ(add_group("", own, "g"), INVALID_REQUEST);
  EXPECT_EQ(end("a", own, true).error_code, NONE);
}

TEST_F(Transactions, AnEndIsAnsweredWhenItsMarkersAreWritten) {
  create("t", 2);
  const ProducerIdentity own = producer("a");
  for (const bool commit : {true, false}) {
    EXPECT_THAT(add("a", own, {{"t", {0, 1}}}), ElementsAre(Pair("t-0", NONE), Pair("t-1", NONE)));
    append_open("t", own, commit ? 0 : 1);
    EXPECT_LT(watermarks("t").last_stable, watermarks("t").high_watermark);
    const auto response = end("a", own, commit);
    EXPECT_EQ(response.error_code, NONE);
    EXPECT_EQ(response.producer_id, kNoProducerId);
    EXPECT_EQ(state("a").transaction_state, commit ? "CompleteCommit" : "CompleteAbort");
    EXPECT_EQ(watermarks("t").last_stable, watermarks("t").high_watermark);
    EXPECT_EQ(watermarks("t", 1).high_watermark, Offset(commit ? 1 : 2));
  }
}

TEST_F(Transactions, AnEndOfVersionTwoAnswersTheEpochToGoOnWith) {
  create("t");
  const ProducerIdentity own = producer("a");
  EXPECT_THAT(add("a", own, {{"t", {0}}}), ElementsAre(Pair("t-0", NONE)));
  append_open("t", own);
  const auto response = end("a", own, true, 5);
  EXPECT_EQ(response.error_code, NONE);
  EXPECT_EQ(response.producer_id, own.id);
  EXPECT_EQ(response.producer_epoch, ProducerEpoch(1));
  EXPECT_EQ(end("a", own, true, 5).producer_epoch, ProducerEpoch(1)) << "a repeat";
  const auto active = producers("t");
  ASSERT_EQ(active.size(), 1U);
  EXPECT_EQ(active[0].producer_epoch, 1) << "the marker has the raised epoch";
}

TEST_F(Transactions, AnEndThatIsRefusedIsToldWhy) {
  const ProducerIdentity own = producer("a");
  EXPECT_EQ(end("", own, true).error_code, INVALID_REQUEST);
  EXPECT_EQ(end("none", own, true).error_code, INVALID_PRODUCER_ID_MAPPING);
  EXPECT_EQ(end("a", own, true).error_code, INVALID_TXN_STATE);
  EXPECT_EQ(end("a", next(own), true, 2).error_code, PRODUCER_FENCED);
  const auto old = end("a", next(own), true, 1);
  EXPECT_EQ(old.error_code, INVALID_PRODUCER_EPOCH);
  EXPECT_EQ(old.producer_id, kNoProducerId);
  EXPECT_EQ(old.producer_epoch, kNoProducerEpoch);
}

}  // namespace
}  // namespace kanal::handlers::testing
