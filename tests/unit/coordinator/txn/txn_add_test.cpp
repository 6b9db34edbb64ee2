// Adding partitions and groups, and verifying that they were added.
#include "txn_support.hpp"

namespace kanal::coordinator {
namespace {

using enum ErrorCode;
using State = TransactionState;
constexpr std::int64_t kId = LiveTransaction::kFirstId;

TEST(TxnAdd, TheFirstPartitionBeginsTheTransaction) {
  LiveTransaction live;
  live.init();
  EXPECT_EQ(live.add({kId, 0}, partitions("orders", {2, 0})), NONE);
  EXPECT_EQ(live.state(), State::kOngoing);
  EXPECT_EQ(live.machine().facts().started, live.wall());
  live.pass(seconds{5});
  EXPECT_EQ(live.add({kId, 0}, partitions("bills", {1})), NONE);
  const TransactionFacts& facts = live.machine().facts();
  EXPECT_EQ(facts.started + 5'000, live.wall()) << "the second does not begin it again";
  EXPECT_EQ(facts.updated, live.wall());
  const TransactionTopics expected{{"bills", {PartitionIndex(1)}},
                                   {"orders", {PartitionIndex(0), PartitionIndex(2)}}};
  EXPECT_EQ(facts.topics, expected);
}

TEST(TxnAdd, AGroupBeginsTheTransactionToo) {
  LiveTransaction live;
  live.init();
  EXPECT_EQ(live.add_group({kId, 0}, "g"), NONE);
  EXPECT_EQ(live.state(), State::kOngoing);
  EXPECT_EQ(live.machine().facts().groups, TransactionGroups{"g"});
}

TEST(TxnAdd, WhatIsThereAlreadyIsNotStoredAgain) {
  LiveTransaction live;
  live.init();
  live.add({kId, 0}, partitions("orders", {0, 1}));
  live.add_group({kId, 0}, "g");
  EXPECT_EQ(live.add({kId, 0}, partitions("orders", {1, 0, 1})), NONE);
  EXPECT_EQ(live.records_of_last_step(), 0U);
  EXPECT_EQ(live.add_group({kId, 0}, "g"), NONE);
  EXPECT_EQ(live.records_of_last_step(), 0U);
  EXPECT_EQ(live.add({kId, 0}, partitions("orders", {1, 7, 7})), NONE);
  EXPECT_EQ(live.records_of_last_step(), 1U);
}

TEST(TxnAdd, NoPartitionAtAllBeginsIt) {  // as in Kafka
  LiveTransaction live;
  live.init();
  EXPECT_EQ(live.add({kId, 0}, {}), NONE);
  EXPECT_EQ(live.state(), State::kOngoing);
  EXPECT_EQ(live.commit({kId, 0}), refused(NONE));
  EXPECT_EQ(live.state(), State::kCompleteCommit);
  EXPECT_TRUE(live.written().empty()) << "nothing is to be marked";
}

TEST(TxnAdd, AnUnknownTransactionalIdHasNoProducerId) {
  LiveTransaction live;
  EXPECT_EQ(live.add({kId, 0}), INVALID_PRODUCER_ID_MAPPING);
  EXPECT_EQ(live.add_group({kId, 0}, "g"), INVALID_PRODUCER_ID_MAPPING);
  EXPECT_TRUE(live.machine().vacant());
}

TEST(TxnAdd, AnotherProducerIdIsRefused) {
  LiveTransaction live;
  live.init();
  EXPECT_EQ(live.add({kId + 1, 0}), INVALID_PRODUCER_ID_MAPPING);
  EXPECT_EQ(live.add({kId + 1, 9}), INVALID_PRODUCER_ID_MAPPING) << "before the epoch";
  EXPECT_EQ(live.state(), State::kEmpty);
}

TEST(TxnAdd, AnotherEpochIsFencedByTheCodeThatTheVersionKnows) {
  LiveTransaction live;
  live.init();
  live.init();
  for (const int epoch : {0, 2}) {
    EXPECT_EQ(live.add({kId, epoch}), PRODUCER_FENCED);
    EXPECT_EQ(live.add({kId, epoch}, kOrders0, k1, false), INVALID_PRODUCER_EPOCH) << "below v2";
    EXPECT_EQ(live.add_group({kId, epoch}, "g"), PRODUCER_FENCED);
    EXPECT_EQ(live.add_group({kId, epoch}, "g", k1, false), INVALID_PRODUCER_EPOCH);
  }
  EXPECT_EQ(live.state(), State::kEmpty);
}

TEST(TxnAdd, WhileTheLastTransactionEndsTheProducerTriesAgain) {
  for (const bool commit : {true, false}) {
    LiveTransaction live;
    live.hold_markers();
    live.init();
    live.add({kId, 0});
    live.end({kId, 0}, commit);
    EXPECT_EQ(live.add({kId, 0}, partitions("orders", {1})), CONCURRENT_TRANSACTIONS);
    EXPECT_EQ(live.add_group({kId, 0}, "g"), CONCURRENT_TRANSACTIONS);
    EXPECT_EQ(live.add({kId + 1, 7}), CONCURRENT_TRANSACTIONS)
        << "before all else: the end may bring a new producer id";
    live.write_markers();
    EXPECT_EQ(live.add({kId, 0}, partitions("orders", {1})), NONE);
    EXPECT_EQ(live.machine().facts().topics.at("orders").size(), 1U) << "the old ones are gone";
  }
}

TEST(TxnAdd, VersionTwoAddsInTheSameWay) {
  LiveTransaction live;
  live.init();
  EXPECT_EQ(live.add({kId, 0}, kOrders0, k2), NONE);
  EXPECT_EQ(live.machine().facts().version, k2);
  EXPECT_EQ(live.add_group({kId, 0}, "g", k2), NONE);
  EXPECT_EQ(live.commit({kId, 0}, k2), granted({kId, 1}));
  EXPECT_EQ(live.add({kId, 0}, kOrders0, k2), PRODUCER_FENCED)
      << "a late write of the ended transaction does not begin the next";
  EXPECT_EQ(live.add({kId, 1}, kOrders0, k2), NONE);
}

TEST(TxnAdd, GroupsAreBounded) {
  LiveTransaction live;
  live.init();
  for (std::size_t i = 0; i < Transaction::kMaxGroups; ++i) {
    ASSERT_EQ(live.add_group({kId, 0}, std::to_string(i)), NONE);
  }
  EXPECT_EQ(live.add_group({kId, 0}, "one more"), POLICY_VIOLATION);
  EXPECT_EQ(live.add_group({kId, 0}, "7"), NONE) << "it is there";
}

TEST(TxnAdd, TenThousandPartitionsOneByOneStayFewBytes) {
  LiveTransaction live;
  live.init();
  for (std::int32_t i = 0; i < 10'000; ++i) {
    ASSERT_EQ(live.add({kId, 0}, partitions("orders", {i}), k2), NONE);
    if (wants_roll(live.stored().size(), live.machine().live_records())) live.roll();
  }
  EXPECT_EQ(live.stored().back().size() < 64, true) << "a record names what is added only";
  EXPECT_EQ(live.machine().facts().topics.at("orders").size(), 10'000U);
  EXPECT_EQ(live.commit({kId, 0}, k2), granted({kId, 1}));
  EXPECT_EQ(live.written().at(0).topics.at("orders").size(), 10'000U);
  EXPECT_TRUE(live.machine().facts().topics.empty());
}

// Verification (KIP-890, part 1)

TEST(TxnVerify, OnlyWhatWasAddedToTheOpenTransaction) {
  LiveTransaction live;
  EXPECT_EQ(live.verify({kId, 0}), INVALID_PRODUCER_ID_MAPPING);
  live.init();
  EXPECT_EQ(live.verify({kId, 0}), TRANSACTION_ABORTABLE);
  live.add({kId, 0});
  EXPECT_EQ(live.verify({kId, 0}), NONE);
  EXPECT_EQ(live.verify({kId, 0}, "orders", 1), TRANSACTION_ABORTABLE);
  EXPECT_EQ(live.verify({kId, 0}, "bills"), TRANSACTION_ABORTABLE);
  EXPECT_EQ(live.verify_group({kId, 0}, "g"), TRANSACTION_ABORTABLE);
  live.add_group({kId, 0}, "g");
  EXPECT_EQ(live.verify_group({kId, 0}, "g"), NONE);
  EXPECT_EQ(live.verify_group({kId, 0}, "h"), TRANSACTION_ABORTABLE);
}

TEST(TxnVerify,
     TheProducerFirst) {  // KAFKA-19690: a stale epoch is not told that nothing was added
  LiveTransaction live;
  live.init();
  live.init();
  EXPECT_EQ(live.verify({kId + 1, 1}), INVALID_PRODUCER_ID_MAPPING);
  EXPECT_EQ(live.verify({kId, 0}), PRODUCER_FENCED);
  EXPECT_EQ(live.verify({kId, 2}), PRODUCER_FENCED);
}

TEST(TxnVerify, AnEndingTransactionTakesNothingMore) {
  LiveTransaction live;
  live.hold_markers();
  live.init();
  live.add({kId, 0});
  live.commit({kId, 0});
  EXPECT_EQ(live.verify({kId, 0}), CONCURRENT_TRANSACTIONS) << "version 1 keeps its epoch";
  EXPECT_EQ(live.verify({kId + 1, 0}), INVALID_PRODUCER_ID_MAPPING);
  live.write_markers();
  EXPECT_EQ(live.verify({kId, 0}), TRANSACTION_ABORTABLE) << "late: it would hang";
  live.add({kId, 0}, kOrders0, k2);
  live.commit({kId, 0}, k2);
  EXPECT_EQ(live.verify({kId, 0}), PRODUCER_FENCED);
  EXPECT_EQ(live.verify({kId, 1}), CONCURRENT_TRANSACTIONS);
}

TEST(TxnVerify, AfterATimeoutTheOldEpochIsToldSo) {
  LiveTransaction live;
  live.init();
  live.add({kId, 0});
  live.pass(seconds{61});
  EXPECT_EQ(live.verify({kId, 0}), PRODUCER_FENCED);
  EXPECT_EQ(writer_error(live.verify({kId, 0}), true), INVALID_PRODUCER_EPOCH);
}

TEST(TxnVerify, WritersAreToldWhatTheirVersionKnows) {
  EXPECT_EQ(writer_error(TRANSACTION_ABORTABLE, true), TRANSACTION_ABORTABLE);
  EXPECT_EQ(writer_error(TRANSACTION_ABORTABLE, false), INVALID_TXN_STATE);
  for (const bool knows : {true, false}) {
    EXPECT_EQ(writer_error(PRODUCER_FENCED, knows), INVALID_PRODUCER_EPOCH);
    EXPECT_EQ(writer_error(INVALID_PRODUCER_ID_MAPPING, knows), INVALID_PRODUCER_ID_MAPPING);
    EXPECT_EQ(writer_error(CONCURRENT_TRANSACTIONS, knows), CONCURRENT_TRANSACTIONS);
    EXPECT_EQ(writer_error(NONE, knows), NONE);
  }
}

}  // namespace
}  // namespace kanal::coordinator
