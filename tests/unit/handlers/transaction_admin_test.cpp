// Transactions as operators see and end them: markers written past a transaction, descriptions,
// lists, the feature, the coordinator.
#include <gmock/gmock.h>

#include <algorithm>

#include "transaction_apis.hpp"

namespace kanal::handlers::testing {
namespace {

using enum ErrorCode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// WriteTxnMarkers

using TransactionAdmin = TransactionApis;

TEST_F(TransactionAdmin, AMarkerEndsWhatIsOpenInAPartition) {
  create("t", 2);
  const ProducerIdentity own{ProducerId(9), ProducerEpoch(3)};
  append_open("t", own);
  EXPECT_EQ(watermarks("t").last_stable, Offset(0));
  EXPECT_EQ(producers("t").at(0).current_txn_start_offset, Offset(0));
  EXPECT_EQ(producers("t").at(0).coordinator_epoch, -1);
  EXPECT_EQ(producers("t").at(0).last_timestamp, Timestamp(5'000));
  EXPECT_THAT(write({{own, {{"t", {0}}}, false, 4}}),
              ElementsAre(Pair(own.id, ElementsAre(Pair("t-0", NONE)))));
  EXPECT_EQ(watermarks("t").last_stable, Offset(2));
  const Active ended = producers("t").at(0);
  EXPECT_EQ(ended.current_txn_start_offset, kNoOffset);
  EXPECT_EQ(ended.coordinator_epoch, 4);
  EXPECT_EQ(ended.producer_epoch, 3);
  EXPECT_EQ(ended.last_sequence, 0);
  EXPECT_EQ(ended.last_timestamp, clock.wall());
  restart();
  EXPECT_EQ(watermarks("t").last_stable, Offset(2));
  EXPECT_EQ(producers("t").at(0).coordinator_epoch, 4);
}

TEST_F(TransactionAdmin, EachPartitionOfAMarkerFailsAlone) {
  create("t", 2);
  const ProducerIdentity own{ProducerId(9), ProducerEpoch(3)};
  append_open("t", own);
  EXPECT_THAT(write({{own, {{"t", {0}}}, true, 4}}),
              ElementsAre(Pair(own.id, ElementsAre(Pair("t-0", NONE)))));
  const ProducerIdentity old{own.id, ProducerEpoch(2)};
  EXPECT_THAT(
      write({{old, {{"t", {0, 1, 7}}, {"none", {0}}, {"__consumer_offsets", {0}}}, true, 4}}),
      ElementsAre(Pair(own.id, ElementsAre(Pair("__consumer_offsets-0", UNKNOWN_TOPIC_OR_PARTITION),
                                           Pair("none-0", UNKNOWN_TOPIC_OR_PARTITION),
                                           Pair("t-0", INVALID_PRODUCER_EPOCH), Pair("t-1", NONE),
                                           Pair("t-7", UNKNOWN_TOPIC_OR_PARTITION)))));
  EXPECT_THAT(write({{own, {{"t", {0}}}, true, 3}}),
              ElementsAre(Pair(own.id, ElementsAre(Pair("t-0", TRANSACTION_COORDINATOR_FENCED)))));
  EXPECT_EQ(watermarks("t").high_watermark, Offset(2));
}

TEST_F(TransactionAdmin, AMarkerOfVersionTwoNeedsARaisedEpochAndVersionOneOfTheApiKnowsNone) {
  create("t");
  const ProducerIdentity own{ProducerId(9), ProducerEpoch(3)};
  append_open("t", own);
  EXPECT_THAT(write({{own, {{"t", {0}}}, true, 0, 2}}),
              ElementsAre(Pair(own.id, ElementsAre(Pair("t-0", INVALID_PRODUCER_EPOCH)))));
  EXPECT_THAT(write({{own, {{"t", {0}}}, true, 0, 0}}, 1),
              ElementsAre(Pair(own.id, ElementsAre(Pair("t-0", NONE)))));
  EXPECT_THAT(write({{next(own), {{"t", {0}}}, true, 0, 2}}),
              ElementsAre(Pair(own.id, ElementsAre(Pair("t-0", NONE)))));
}

TEST_F(TransactionAdmin, MarkersAreAnsweredByProducerAndAPartitionNamedTwiceIsWrittenOnce) {
  create("t");
  const ProducerIdentity one{ProducerId(9), ProducerEpoch(0)}, two{ProducerId(4), ProducerEpoch(0)};
  EXPECT_THAT(write({{one, {{"t", {0, 0}}, {"t", {0}}}},
                     {two, {}},
                     {two, {{"t", {0}}}},
                     {one, {{"none", {0}}}}}),
              ElementsAre(Pair(two.id, ElementsAre(Pair("t-0", NONE))),
                          Pair(one.id, ElementsAre(Pair("none-0", UNKNOWN_TOPIC_OR_PARTITION),
                                                   Pair("t-0", NONE)))));
  EXPECT_EQ(watermarks("t").high_watermark, Offset(2));
  EXPECT_THAT(write({{two, {}}}), IsEmpty());
  EXPECT_THAT(write({}), IsEmpty());
}

// DescribeTransactions, ListTransactions

TEST_F(TransactionAdmin, ATransactionIsDescribedAsItIs) {
  create("t");
  EXPECT_EQ(state("a").error_code, TRANSACTIONAL_ID_NOT_FOUND);
  EXPECT_EQ(state("").error_code, INVALID_REQUEST);
  const ProducerIdentity own = producer("a");
  const State empty = state("a");
  EXPECT_EQ(empty.error_code, NONE);
  EXPECT_EQ(empty.transaction_state, "Empty");
  EXPECT_EQ(empty.transaction_timeout, std::chrono::milliseconds(60'000));
  EXPECT_EQ(empty.transaction_start_time_ms, kNoTimestamp);
  EXPECT_EQ(empty.producer_id, own.id);
  EXPECT_EQ(empty.producer_epoch, own.epoch);
  EXPECT_THAT(add("a", own, {{"t", {0}}}), ElementsAre(Pair("t-0", NONE)));
  EXPECT_EQ(state("a").transaction_start_time_ms, clock.wall());
  EXPECT_EQ(end("a", own, false).error_code, NONE);
  EXPECT_EQ(state("a").transaction_state, "CompleteAbort");
  EXPECT_THAT(state("a").topics, IsEmpty());
}

TEST_F(TransactionAdmin, WhatIsNotFoundIsDescribedWithoutAProducer) {
  const State none = state("none");
  EXPECT_EQ(none.transaction_state, "");
  EXPECT_EQ(none.producer_id, ProducerId(0));  // as in Kafka
  EXPECT_EQ(none.producer_epoch, ProducerEpoch(0));
}

TEST_F(TransactionAdmin, TransactionsAreListedByStateProducerDurationAndPattern) {
  create("t");
  const ProducerIdentity a = producer("a"), b = producer("b");
  producer("other");
  EXPECT_THAT(add("b", b, {{"t", {0}}}), ElementsAre(Pair("t-0", NONE)));
  clock.set(clock.wall().value() + 1'000);
  EXPECT_THAT(listed({}), ElementsAre("a", "b", "other"));
  wire::ListTransactionsRequest request;
  request.state_filters = {"Ongoing"};
  EXPECT_THAT(listed(request), ElementsAre("b"));
  request = {};
  request.producer_id_filters = {a.id, ProducerId(123'456)};
  EXPECT_THAT(listed(request), ElementsAre("a"));
  request = {};
  request.state_filters = {"Ongoing"};
  request.duration_filter = 999;
  EXPECT_THAT(listed(request), ElementsAre("b"));
  request.duration_filter = 1'000;
  EXPECT_THAT(listed(request), IsEmpty());
  request = {};
  request.transactional_id_pattern = "o.*|a";
  EXPECT_THAT(listed(request), ElementsAre("a", "other"));
  request.transactional_id_pattern = "";
  EXPECT_THAT(listed(request), ElementsAre("a", "b", "other"));
  const auto response = list({});
  EXPECT_EQ(response.transaction_states.at(1).producer_id, b.id);
  EXPECT_EQ(response.transaction_states.at(1).transaction_state, "Ongoing");
}

TEST_F(TransactionAdmin, StatesThatDoNotExistAreToldAndMatchNothing) {
  producer("a");
  wire::ListTransactionsRequest request;
  request.state_filters = {"empty", "Nonsense", "empty", "Dead"};
  auto response = list(request);
  EXPECT_EQ(response.error_code, NONE);
  EXPECT_THAT(response.unknown_state_filters, ElementsAre("Nonsense", "empty"));
  EXPECT_THAT(response.transaction_states, IsEmpty());
  request.transactional_id_pattern = "(";
  response = list(request);
  EXPECT_EQ(response.error_code, INVALID_REGULAR_EXPRESSION);
  EXPECT_THAT(response.unknown_state_filters, IsEmpty());
}

TEST_F(TransactionAdmin, ManyTransactionsAreListedOnAHelper) {
  for (int i = 0; i < 1'100; ++i) producer("id" + std::to_string(i));
  EXPECT_EQ(listed({}).size(), 1'100U);
}

// What else knows of transactions

TEST_F(TransactionAdmin, TheCoordinatorOfATransactionIsThisBrokerInEveryVersion) {
  for (int version = 1; version <= 6; ++version) {
    wire::FindCoordinatorRequest request;
    request.key_type = 1;
    request.key = "a";
    request.coordinator_keys = {"a", ""};
    const auto response = ask(std::move(request), version);
    if (version < 4) {
      EXPECT_EQ(response.error_code, NONE);
      EXPECT_EQ(response.host, "broker.example");
      EXPECT_EQ(response.port, 9092);
      continue;
    }
    ASSERT_EQ(response.coordinators.size(), 2U);
    for (const auto& each : response.coordinators) {
      EXPECT_EQ(each.error_code, NONE);
      EXPECT_EQ(each.node_id, broker->node_id());
    }
  }
}

TEST_F(TransactionAdmin, VersionTwoIsSupportedAndSwitchedOnButOldClientsAreNotShownTheRange) {
  for (const int version : {3, 4, 5}) {
    wire::ApiVersionsRequest request;
    request.client_software_name = request.client_software_version = "1";
    const auto response = ask(std::move(request), version);
    const auto of = [](const auto& feature) { return feature.name == "transaction.version"; };
    const auto supported = std::ranges::find_if(response.supported_features, of);
    EXPECT_EQ(supported != response.supported_features.end(), version >= 4);
    if (supported != response.supported_features.end()) {
      EXPECT_EQ(supported->min_version, 0);
      EXPECT_EQ(supported->max_version, 2);
    }
    const auto finalized = std::ranges::find_if(response.finalized_features, of);
    ASSERT_NE(finalized, response.finalized_features.end());
    EXPECT_EQ(finalized->max_version_level, 2);
    EXPECT_EQ(finalized->min_version_level, 2);
  }
}

}  // namespace
}  // namespace kanal::handlers::testing
