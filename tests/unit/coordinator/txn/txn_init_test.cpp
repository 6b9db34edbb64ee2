// InitProducerId: new and known ids, KIP-360, fencing, exhausted epochs, what is refused.
#include "txn/records.hpp"
#include "txn_support.hpp"

namespace kanal::coordinator {
namespace {

using enum ErrorCode;
using State = TransactionState;
constexpr std::int64_t kId = LiveTransaction::kFirstId;

/// An id that stands at this epoch, without an open transaction.
TransactionFacts at_epoch(int epoch, State state = State::kCompleteCommit, int last = -1) {
  TransactionFacts facts;
  facts.producer_id = ProducerId(7);
  facts.producer_epoch = ProducerEpoch(static_cast<std::int16_t>(epoch));
  facts.last_producer_epoch = ProducerEpoch(static_cast<std::int16_t>(last));
  facts.state = state;
  facts.timeout = seconds{60};
  facts.started = state == State::kEmpty ? kNoTimestamp : Timestamp(1);
  facts.updated = Timestamp(2);
  return facts;
}

TEST(TxnInit, ANewTransactionalIdGetsAFreshProducerIdAndEpochZero) {
  LiveTransaction live;
  EXPECT_TRUE(live.machine().vacant());
  EXPECT_EQ(live.init(), granted({kId, 0}));
  EXPECT_EQ(live.state(), State::kEmpty);
  EXPECT_EQ(live.machine().facts().timeout, seconds{60});
  EXPECT_FALSE(live.machine().vacant());
}

TEST(TxnInit, AKnownIdKeepsItsProducerIdAndRaisesTheEpoch) {
  LiveTransaction live;
  live.init();
  EXPECT_EQ(live.init(), granted({kId, 1}));
  EXPECT_EQ(live.init(), granted({kId, 2}));
  EXPECT_EQ(live.ids_taken(), 1);
}

TEST(TxnInit, TheNewestTimeoutCounts) {
  LiveTransaction live;
  live.init();
  EXPECT_EQ(live.init_with(milliseconds{1}), granted({kId, 1}));
  EXPECT_EQ(live.machine().facts().timeout, milliseconds{1});
}

TEST(TxnInit, TheTimeoutIsPositiveAndNotAboveTheLimit) {
  LiveTransaction live;
  EXPECT_EQ(live.init_with(milliseconds{900'001}), refused(INVALID_TRANSACTION_TIMEOUT));
  EXPECT_EQ(live.init_with(milliseconds{0}), refused(INVALID_TRANSACTION_TIMEOUT));
  EXPECT_EQ(live.init_with(milliseconds{-1}), refused(INVALID_TRANSACTION_TIMEOUT));
  EXPECT_TRUE(live.machine().vacant());
  EXPECT_EQ(live.ids_taken(), 0) << "what is refused costs no producer id";
  EXPECT_EQ(live.init_with(milliseconds{900'000}).error, NONE);
}

TEST(TxnInit, AnEmptyTransactionalIdIsInvalid) {
  LiveTransaction live("");
  EXPECT_EQ(live.init(), refused(INVALID_REQUEST));
  EXPECT_EQ(live.add({kId, 0}), INVALID_REQUEST);
  EXPECT_EQ(live.commit({kId, 0}), refused(INVALID_REQUEST));
  EXPECT_EQ(live.verify({kId, 0}), INVALID_REQUEST);
}

TEST(TxnInit, AProducerIdWithoutEpochOrTheOtherWayRoundIsInvalid) {
  LiveTransaction live;
  EXPECT_EQ(live.init({.id = 5, .epoch = -1}), refused(INVALID_REQUEST));
  EXPECT_EQ(live.init({.id = -1, .epoch = 5}), refused(INVALID_REQUEST));
}

TEST(TxnInit, TwoPhaseCommitIsSwitchedOff) {
  LiveTransaction live;
  InitProducerIdCommand command;
  command.timeout = seconds{60};
  command.keep_prepared = true;
  EXPECT_EQ(live.init_raw(command), refused(UNSUPPORTED_VERSION));
  command.enable_2pc = true;
  EXPECT_EQ(live.init_raw(command), refused(TRANSACTIONAL_ID_AUTHORIZATION_FAILED));
  command.timeout = milliseconds{-1};
  EXPECT_EQ(live.init_raw(command), refused(TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
      << "the timeout is checked last";
}

// KIP-360

TEST(TxnInit, TheOwnerGetsTheNextEpoch) {
  LiveTransaction live;
  live.init();
  EXPECT_EQ(live.init({kId, 0}), granted({kId, 1}));
}

TEST(TxnInit, TheOwnerWhoRepeatsGetsTheSameEpoch) {
  LiveTransaction live;
  live.init();
  live.init({kId, 0});
  EXPECT_EQ(live.init({kId, 0}), granted({kId, 1}));
  EXPECT_EQ(live.init({kId, 0}), granted({kId, 1}));
  live.restart();
  EXPECT_EQ(live.init({kId, 0}), granted({kId, 1})) << "a restart in between changes nothing";
}

TEST(TxnInit, AnOlderEpochIsFencedByTheCodeThatTheVersionKnows) {
  LiveTransaction live;
  live.init();
  live.init();  // by another producer
  EXPECT_EQ(live.init({kId, 0}), refused(PRODUCER_FENCED));
  EXPECT_EQ(live.init({kId, 0}, false), refused(INVALID_PRODUCER_EPOCH)) << "below v4";
  EXPECT_EQ(live.init({kId, 5}), refused(PRODUCER_FENCED)) << "and so is one from the future";
}

TEST(TxnInit, AnotherProducerIdIsFenced) {
  LiveTransaction live;
  live.init();
  EXPECT_EQ(live.init({kId + 1, 0}), refused(PRODUCER_FENCED));
  EXPECT_EQ(live.init({kId + 1, 0}, false), refused(INVALID_PRODUCER_EPOCH));
}

TEST(TxnInit, AProducerWhoseTransactionalIdExpiredGoesOnWithANewOne) {
  LiveTransaction live;
  EXPECT_EQ(live.init({55, 3}), granted({kId, 0}));
}

TEST(TxnInit, AVersionTwoEndThatWasNotHeardOfIsMadeUpForByInit) {
  LiveTransaction live;
  live.init();
  live.add({kId, 0}, kOrders0, k2);
  live.commit({kId, 0}, k2);
  EXPECT_EQ(live.init({kId, 0}), granted({kId, 1})) << "the epoch that the end has made";
}

// An open transaction

TEST(TxnInit, AnOpenTransactionIsAbortedAndTheProducerAsksAgain) {
  LiveTransaction live;
  live.hold_markers();
  live.init();
  live.add({kId, 0});
  live.init();
  EXPECT_FALSE(live.answered()) << "the answer waits until a repeat can succeed";
  EXPECT_EQ(live.state(), State::kPrepareAbort);
  const WriteMarkers markers = live.write_markers();
  EXPECT_EQ(live.last(), refused(CONCURRENT_TRANSACTIONS));
  EXPECT_FALSE(markers.commit);
  EXPECT_EQ(markers.producer_epoch, ProducerEpoch(1)) << "fences the old producer in the logs";
  EXPECT_EQ(live.state(), State::kCompleteAbort);
  EXPECT_EQ(live.init(), granted({kId, 2}));
  EXPECT_EQ(live.add({kId, 0}), PRODUCER_FENCED);
  EXPECT_EQ(live.commit({kId, 0}), refused(PRODUCER_FENCED));
}

TEST(TxnInit, WhileATransactionEndsInitIsToldToTryAgain) {
  LiveTransaction live;
  live.hold_markers();
  live.init();
  live.add({kId, 0});
  live.commit({kId, 0});
  EXPECT_EQ(live.init(), refused(CONCURRENT_TRANSACTIONS));
  EXPECT_EQ(live.init({kId + 5, 9}), refused(CONCURRENT_TRANSACTIONS)) << "whoever asks";
  live.write_markers();
  EXPECT_EQ(live.init(), granted({kId, 1}));
}

TEST(TxnInit, TheOwnerOfAnOpenTransactionGoesOnBehindTheEpochThatFencedIt) {
  LiveTransaction live;
  live.init();
  live.add({kId, 0});
  EXPECT_EQ(live.init({kId, 0}), refused(CONCURRENT_TRANSACTIONS));
  EXPECT_EQ(live.init({kId, 0}), granted({kId, 1}));
}

TEST(TxnInit, AForeignProducerDoesNotAbortAnOpenTransaction) {
  LiveTransaction live;
  live.init();
  live.add({kId, 0});
  EXPECT_EQ(live.init({kId + 1, 0}), refused(PRODUCER_FENCED));
  EXPECT_EQ(live.state(), State::kOngoing);
}

// As Apache Kafka 4.4 does (eight times in tests/golden/transactions/random.tsv).
TEST(TxnInit, AnOlderEpochAbortsAnOpenTransactionAndIsFencedTheNextTime) {
  LiveTransaction live;
  live.init();
  live.init();
  live.init();
  live.add({kId, 2});
  EXPECT_EQ(live.init({kId, 0}), refused(CONCURRENT_TRANSACTIONS));
  EXPECT_EQ(live.state(), State::kCompleteAbort);
  EXPECT_EQ(live.identity(), (Identity{kId, 3}));
  EXPECT_EQ(live.init({kId, 0}), refused(PRODUCER_FENCED));
  EXPECT_EQ(live.init({kId, 2}), granted({kId, 3}));  // the owner goes on
}

TEST(TxnInit, ForceTerminateAbortsAndFences) {  // kafka-transactions forceTerminateTransaction
  LiveTransaction live;
  live.init();
  live.add({kId, 0}, kOrders0, k2);
  EXPECT_EQ(live.init_with(milliseconds{1}), refused(CONCURRENT_TRANSACTIONS));
  EXPECT_EQ(live.init_with(milliseconds{1}), granted({kId, 2}));
  EXPECT_EQ(live.written().size(), 1U);
  EXPECT_EQ(live.commit({kId, 0}, k2), refused(PRODUCER_FENCED));
}

// Exhausted epochs

TEST(TxnInit, TheLastEpochIsHandedOut) {
  LiveTransaction live;
  live.start_with(encode_transaction(at_epoch(32'765)));
  EXPECT_EQ(live.init(), granted({7, 32'766}));
  EXPECT_EQ(live.ids_taken(), 0);
}

TEST(TxnInit, AnExhaustedEpochTakesANewProducerId) {
  LiveTransaction live;
  live.start_with(encode_transaction(at_epoch(32'766)));
  EXPECT_EQ(live.init(), granted({kId, 0}));
  EXPECT_EQ(live.init({7, 32'766}), refused(PRODUCER_FENCED)) << "another producer asked";
}

TEST(TxnInit, TheOwnerOfAnExhaustedEpochMayRepeat) {
  LiveTransaction live;
  live.start_with(encode_transaction(at_epoch(32'766)));
  EXPECT_EQ(live.init({7, 32'766}), granted({kId, 0}));
  EXPECT_EQ(live.init({7, 32'766}), granted({kId, 0}));
  live.restart();
  EXPECT_EQ(live.init({7, 32'766}), granted({kId, 0}));
  EXPECT_EQ(live.ids_taken(), 1);
  EXPECT_EQ(live.add({kId, 0}), NONE);
  EXPECT_EQ(live.machine().facts().previous_producer_id, kNoProducerId);
  EXPECT_EQ(live.init({7, 32'766}), refused(PRODUCER_FENCED)) << "the new id is in use";
}

TEST(TxnInit, AnOlderEpochOfAnExhaustedIdIsFenced) {
  LiveTransaction live;
  live.start_with(encode_transaction(at_epoch(32'766)));
  EXPECT_EQ(live.init({7, 5}), refused(PRODUCER_FENCED));
  EXPECT_EQ(live.init({7, 32'765}), refused(PRODUCER_FENCED));
  EXPECT_EQ(live.ids_taken(), 0);
}

TEST(TxnInit, TheRequestThatMadeTheLastEpochMayBeRepeated) {
  LiveTransaction live;
  live.start_with(encode_transaction(at_epoch(32'766, State::kEmpty, 32'765)));
  EXPECT_EQ(live.init({7, 32'765}), granted({7, 32'766}));
}

TEST(TxnInit, AnOpenTransactionOfTheLastEpochIsAbortedAndTheIdReplaced) {
  LiveTransaction live;
  live.start_with(encode_transaction(at_epoch(32'766)));
  live.hold_markers();
  EXPECT_EQ(live.add({7, 32'766}), NONE);
  live.init();
  const WriteMarkers markers = live.write_markers();
  EXPECT_EQ(markers.producer_id, ProducerId(7));
  EXPECT_EQ(markers.producer_epoch, ProducerEpoch(32'767)) << "kept back for fencing";
  EXPECT_EQ(live.identity(), (Identity{kId, 0}));
  EXPECT_EQ(live.init(), granted({kId, 1}));
}

}  // namespace
}  // namespace kanal::coordinator
