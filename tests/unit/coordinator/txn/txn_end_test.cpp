// EndTxn of both versions in every state, markers and completion, timeouts, expiry.
#include "txn/records.hpp"
#include "txn_support.hpp"

namespace kanal::coordinator {
namespace {

using enum ErrorCode;
using State = TransactionState;
constexpr std::int64_t kId = LiveTransaction::kFirstId;

struct Begun {  // a transaction of this version that is open
  explicit Begun(TransactionVersion version = k1) {
    live.init();
    live.add({kId, 0}, kOrders0, version);
  }
  LiveTransaction live;
};

// Version 1

TEST(TxnEndV1, CommitAndAbortKeepTheEpoch) {
  for (const bool commit : {true, false}) {
    Begun begun;
    EXPECT_EQ(begun.live.end({kId, 0}, commit), refused(NONE)) << "no producer id below v5";
    EXPECT_EQ(begun.live.state(), commit ? State::kCompleteCommit : State::kCompleteAbort);
    EXPECT_EQ(begun.live.identity(), (Identity{kId, 0}));
    EXPECT_EQ(begun.live.written().at(0).commit, commit);
    EXPECT_EQ(begun.live.written().at(0).producer_epoch, ProducerEpoch(0));
    EXPECT_EQ(begun.live.written().at(0).version, k1);
  }
}

TEST(TxnEndV1, TheSameEndAgainIsAnsweredTheSameWithoutMarkers) {
  for (const bool commit : {true, false}) {
    Begun begun;
    begun.live.end({kId, 0}, commit);
    EXPECT_EQ(begun.live.end({kId, 0}, commit), refused(NONE));
    EXPECT_EQ(begun.live.records_of_last_step(), 0U);
    EXPECT_EQ(begun.live.written().size(), 1U);
    EXPECT_EQ(begun.live.end({kId, 0}, !commit), refused(INVALID_TXN_STATE));
    begun.live.restart();
    EXPECT_EQ(begun.live.end({kId, 0}, commit), refused(NONE));
    EXPECT_EQ(begun.live.end({kId, 0}, !commit), refused(INVALID_TXN_STATE));
  }
}

TEST(TxnEndV1, WithoutATransactionThereIsNothingToEnd) {
  LiveTransaction live;
  live.init();
  EXPECT_EQ(live.commit({kId, 0}), refused(INVALID_TXN_STATE));
  EXPECT_EQ(live.abort({kId, 0}), refused(INVALID_TXN_STATE));
}

TEST(TxnEndV1, TheProducerIsCheckedFirst) {
  Begun begun;
  EXPECT_EQ(begun.live.commit({kId + 1, 0}), refused(INVALID_PRODUCER_ID_MAPPING));
  for (const int epoch : {-1, 1}) {
    EXPECT_EQ(begun.live.commit({kId, epoch}), refused(PRODUCER_FENCED));
    EXPECT_EQ(begun.live.end({kId, epoch}, true, k1, false), refused(INVALID_PRODUCER_EPOCH))
        << "below v2";
  }
  EXPECT_EQ(begun.live.state(), State::kOngoing);
}

TEST(TxnEndV1, AnUnknownIdHasNoProducer) {
  LiveTransaction live;
  EXPECT_EQ(live.commit({kId, 0}), refused(INVALID_PRODUCER_ID_MAPPING));
  EXPECT_EQ(live.abort({kId, 0}, k2), refused(INVALID_PRODUCER_ID_MAPPING));
  EXPECT_TRUE(live.machine().vacant());
}

TEST(TxnEndV1, ARepeatWhileMarkersAreWrittenTriesAgain) {
  Begun begun;
  begun.live.hold_markers();
  begun.live.commit({kId, 0});
  EXPECT_FALSE(begun.live.answered());
  EXPECT_EQ(begun.live.commit({kId, 0}), refused(CONCURRENT_TRANSACTIONS));
  EXPECT_EQ(begun.live.abort({kId, 0}), refused(CONCURRENT_TRANSACTIONS));
  EXPECT_EQ(begun.live.commit({kId, 1}), refused(PRODUCER_FENCED)) << "before that";
  EXPECT_EQ(begun.live.commit({kId + 1, 0}), refused(INVALID_PRODUCER_ID_MAPPING));
  begun.live.write_markers();
  EXPECT_EQ(begun.live.commit({kId, 0}), refused(NONE));
}

TEST(TxnEndV1, OneTransactionAfterTheOther) {
  LiveTransaction live;
  live.init();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(live.add({kId, 0}), NONE);
    EXPECT_EQ(live.end({kId, 0}, i % 2 == 0), refused(NONE));
  }
  EXPECT_EQ(live.written().size(), 5U);
}

// Version 2 (KIP-890)

TEST(TxnEndV2, EveryEndRaisesTheEpochAndSaysSo) {
  LiveTransaction live;
  live.init();
  for (int epoch = 0; epoch < 6; ++epoch) {
    EXPECT_EQ(live.add({kId, epoch}, kOrders0, k2), NONE);
    EXPECT_EQ(live.end({kId, epoch}, epoch % 2 == 0, k2), granted({kId, epoch + 1}));
    EXPECT_EQ(live.written().back().producer_epoch, ProducerEpoch(static_cast<short>(epoch + 1)))
        << "the marker has the new one";
    EXPECT_EQ(live.written().back().version, k2);
  }
}

// The table of KIP-890 for states without a transaction: Retry has the epoch before.
TEST(TxnEndV2, TheSameEndAgainIsAnsweredTheSameWithoutMarkers) {
  for (const bool commit : {true, false}) {
    Begun begun(k2);
    begun.live.end({kId, 0}, commit, k2);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(begun.live.end({kId, 0}, commit, k2), granted({kId, 1}));
      EXPECT_EQ(begun.live.records_of_last_step(), 0U);
      EXPECT_EQ(begun.live.end({kId, 0}, !commit, k2), refused(INVALID_TXN_STATE));
      begun.live.restart();
    }
    EXPECT_EQ(begun.live.written().size(), 1U);
    EXPECT_EQ(begun.live.identity(), (Identity{kId, 1}));
  }
}

TEST(TxnEndV2, AnAbortOfNothingRaisesTheEpochWithoutMarkers) {
  LiveTransaction live;
  live.init();
  EXPECT_EQ(live.abort({kId, 0}, k2), granted({kId, 1})) << "Empty";
  EXPECT_EQ(live.state(), State::kCompleteAbort);
  EXPECT_EQ(live.abort({kId, 1}, k2), granted({kId, 2})) << "CompleteAbort";
  EXPECT_EQ(live.abort({kId, 1}, k2), granted({kId, 2})) << "its repeat";
  live.add({kId, 2}, kOrders0, k2);
  live.commit({kId, 2}, k2);
  EXPECT_EQ(live.abort({kId, 3}, k2), granted({kId, 4})) << "CompleteCommit";
  EXPECT_EQ(live.machine().facts().started, live.wall());
  EXPECT_EQ(live.written().size(), 1U);
}

TEST(TxnEndV2, ACommitOfNothingIsRefused) {
  LiveTransaction live;
  live.init();
  EXPECT_EQ(live.commit({kId, 0}, k2), refused(INVALID_TXN_STATE)) << "Empty";
  live.abort({kId, 0}, k2);
  EXPECT_EQ(live.commit({kId, 1}, k2), refused(INVALID_TXN_STATE)) << "CompleteAbort";
  EXPECT_EQ(live.commit({kId, 0}, k2), refused(INVALID_TXN_STATE)) << "CompleteAbort, repeat";
  live.add({kId, 1}, kOrders0, k2);
  live.commit({kId, 1}, k2);
  EXPECT_EQ(live.commit({kId, 2}, k2), refused(INVALID_TXN_STATE)) << "CompleteCommit";
  EXPECT_EQ(live.abort({kId, 1}, k2), refused(INVALID_TXN_STATE)) << "CompleteCommit, repeat";
  EXPECT_EQ(live.identity(), (Identity{kId, 2}));
}

TEST(TxnEndV2, OfAnEmptyIdTheEpochBeforeIsFenced) {
  LiveTransaction live;
  live.init();
  live.init({kId, 0});
  EXPECT_EQ(live.abort({kId, 0}, k2), refused(PRODUCER_FENCED));
  EXPECT_EQ(live.commit({kId, 0}, k2), refused(PRODUCER_FENCED));
}

TEST(TxnEndV2, OtherEpochsAreFencedAndOtherIdsUnknown) {
  Begun begun(k2);
  EXPECT_EQ(begun.live.commit({kId, 1}, k2), refused(PRODUCER_FENCED));
  EXPECT_EQ(begun.live.commit({kId, -1}, k2), refused(PRODUCER_FENCED));
  EXPECT_EQ(begun.live.commit({kId + 1, 0}, k2), refused(INVALID_PRODUCER_ID_MAPPING));
  begun.live.commit({kId, 0}, k2);
  EXPECT_EQ(begun.live.commit({kId, 2}, k2), refused(PRODUCER_FENCED));
  EXPECT_EQ(begun.live.commit({kId + 1, 1}, k2), refused(INVALID_PRODUCER_ID_MAPPING));
}

TEST(TxnEndV2, TheRepeatDoesNotReachIntoTheNextTransaction) {
  Begun begun(k2);
  begun.live.commit({kId, 0}, k2);
  begun.live.add({kId, 1}, kOrders0, k2);
  EXPECT_EQ(begun.live.commit({kId, 0}, k2), refused(PRODUCER_FENCED));
  EXPECT_EQ(begun.live.abort({kId, 0}, k2), refused(PRODUCER_FENCED));
  EXPECT_EQ(begun.live.state(), State::kOngoing);
}

TEST(TxnEndV2, WhileMarkersAreWrittenEverybodyTriesAgain) {
  Begun begun(k2);
  begun.live.hold_markers();
  begun.live.commit({kId, 0}, k2);
  EXPECT_FALSE(begun.live.answered());
  for (const int epoch : {0, 1, 5}) {
    EXPECT_EQ(begun.live.commit({kId, epoch}, k2), refused(CONCURRENT_TRANSACTIONS));
    EXPECT_EQ(begun.live.abort({kId, epoch}, k2), refused(CONCURRENT_TRANSACTIONS));
  }
  EXPECT_EQ(begun.live.commit({kId + 1, 0}, k2), refused(CONCURRENT_TRANSACTIONS));
  begun.live.write_markers();
  EXPECT_EQ(begun.live.last(), granted({kId, 1}));
}

TEST(TxnEndV2, AtTheLastEpochTheEndBringsANewProducerId) {
  LiveTransaction live;
  TransactionFacts facts;
  facts.producer_id = ProducerId(7);
  facts.producer_epoch = ProducerEpoch(32'766);
  facts.state = State::kEmpty;
  facts.timeout = seconds{60};
  facts.updated = Timestamp(2);
  for (const bool commit : {true, false}) {
    SCOPED_TRACE(commit);
    LiveTransaction each;
    each.start_with(encode_transaction(facts));
    each.add({7, 32'766}, kOrders0, k2);
    EXPECT_EQ(each.end({7, 32'766}, commit, k2), granted({kId, 0}));
    EXPECT_EQ(each.written().at(0).producer_id, ProducerId(7));
    EXPECT_EQ(each.written().at(0).producer_epoch, ProducerEpoch(32'767));
    EXPECT_EQ(each.end({7, 32'766}, commit, k2), granted({kId, 0})) << "the repeat";
    each.restart();
    EXPECT_EQ(each.end({7, 32'766}, commit, k2), granted({kId, 0}));
    EXPECT_EQ(each.end({7, 32'766}, !commit, k2), refused(INVALID_TXN_STATE));
    EXPECT_EQ(each.end({7, 32'765}, commit, k2), refused(INVALID_PRODUCER_ID_MAPPING));
    EXPECT_EQ(each.ids_taken(), 1);
    EXPECT_EQ(each.add({kId, 0}, kOrders0, k2), NONE);
    EXPECT_EQ(each.end({7, 32'766}, commit, k2), refused(INVALID_PRODUCER_ID_MAPPING));
  }
  live.start_with(encode_transaction(facts));
  EXPECT_EQ(live.abort({7, 32'766}, k2), granted({kId, 0})) << "an abort of nothing too";
  EXPECT_EQ(live.abort({7, 32'766}, k2), granted({kId, 0}));
}

TEST(TxnEndV2, TheRepeatAtTheLastEpochCostsNoProducerId) {
  TransactionFacts facts;
  facts.producer_id = ProducerId(7);
  facts.producer_epoch = ProducerEpoch(32'765);
  facts.state = State::kEmpty;
  facts.timeout = seconds{60};
  facts.updated = Timestamp(2);
  LiveTransaction live;
  live.start_with(encode_transaction(facts));
  live.add({7, 32'765}, kOrders0, k2);
  EXPECT_EQ(live.commit({7, 32'765}, k2), granted({7, 32'766}));
  EXPECT_EQ(live.commit({7, 32'765}, k2), granted({7, 32'766}));
  EXPECT_EQ(live.ids_taken(), 0);
}

// Both side by side

TEST(TxnEnd, AClientThatSwitchesVersions) {
  LiveTransaction live;
  live.init();
  live.add({kId, 0}, kOrders0, k1);
  EXPECT_EQ(live.commit({kId, 0}, k2), granted({kId, 1}));
  live.add({kId, 1}, kOrders0, k2);
  EXPECT_EQ(live.commit({kId, 1}, k1), refused(NONE));
  EXPECT_EQ(live.identity(), (Identity{kId, 1}));
  live.add({kId, 1}, kOrders0, k2);
  EXPECT_EQ(live.commit({kId, 1}, k2), granted({kId, 2}));
}

TEST(TxnEnd, TheEpochThatAnotherProducerFencedRepeatsNothing) {
  LiveTransaction live;
  live.init();
  live.init();  // fences epoch 0
  live.add({kId, 1});
  live.commit({kId, 1});
  EXPECT_EQ(live.commit({kId, 0}, k2), refused(PRODUCER_FENCED))
      << "a zombie is not handed the epoch of the one that fenced it";
  EXPECT_EQ(live.abort({kId, 0}, k2), refused(PRODUCER_FENCED));
}

TEST(TxnEnd, ALateRepeatOfItsOwnIsAnsweredWithThePresentEpoch) {
  Begun begun(k2);
  begun.live.commit({kId, 0}, k2);
  begun.live.add({kId, 1});
  begun.live.commit({kId, 1});
  EXPECT_EQ(begun.live.commit({kId, 0}, k2), granted({kId, 1}));
  EXPECT_EQ(begun.live.abort({kId, 0}, k2), refused(INVALID_TXN_STATE));
}

// Markers and completion

TEST(TxnMarkers, NameWhatWasAddedAndAreAskedForOnceStored) {
  LiveTransaction live;
  live.settings.coordinator_epoch = LeaderEpoch(9);
  live.hold_markers();
  live.init();
  live.add({kId, 0}, partitions("orders", {1, 0}));
  live.add_group({kId, 0}, "g");
  live.commit({kId, 0});
  EXPECT_EQ(live.state(), State::kPrepareCommit) << "stored before a marker is written";
  const WriteMarkers markers = live.write_markers();
  const TransactionTopics expected{{"orders", {PartitionIndex(0), PartitionIndex(1)}}};
  EXPECT_TRUE(markers.commit);
  EXPECT_EQ(markers.topics, expected);
  EXPECT_EQ(markers.groups, TransactionGroups{"g"});
  EXPECT_EQ(markers.producer_id, ProducerId(kId));
  EXPECT_EQ(markers.coordinator_epoch, LeaderEpoch(9));
  EXPECT_EQ(live.state(), State::kCompleteCommit);
  EXPECT_TRUE(live.machine().facts().topics.empty());
  EXPECT_TRUE(live.machine().facts().groups.empty());
}

TEST(TxnMarkers, ThatCannotBeWrittenForNowDoNotKeepTheAnswer) {
  for (const TransactionVersion version : {k1, k2}) {
    Begun begun(version);
    begun.live.hold_markers();
    begun.live.commit({kId, 0}, version);
    begun.live.tell_delayed();
    EXPECT_EQ(begun.live.last(), version == k2 ? granted({kId, 1}) : refused(NONE))
        << "as Kafka answers: the outcome is decided";
    EXPECT_EQ(begun.live.state(), State::kPrepareCommit);
    EXPECT_EQ(begun.live.add({kId, version == k2 ? 1 : 0}), CONCURRENT_TRANSACTIONS);
    begun.live.tell_delayed();
    EXPECT_FALSE(begun.live.answered()) << "once";
    begun.live.write_markers();
    EXPECT_FALSE(begun.live.answered());
    EXPECT_EQ(begun.live.state(), State::kCompleteCommit);
  }
}

TEST(TxnMarkers, AReportOfAnotherEndChangesNothing) {
  Begun begun;
  begun.live.hold_markers();
  begun.live.commit({kId, 0});
  begun.live.tell_written(1);
  EXPECT_EQ(begun.live.state(), State::kPrepareCommit);
  const WaiterId first = begun.live.write_markers().end;
  begun.live.tell_written(first);
  EXPECT_EQ(begun.live.records_of_last_step(), 0U) << "told twice";
  begun.live.add({kId, 0});
  begun.live.commit({kId, 0});
  begun.live.tell_written(first);
  EXPECT_EQ(begun.live.state(), State::kPrepareCommit) << "the markers of this end are not there";
  begun.live.tell_delayed(first);
  EXPECT_FALSE(begun.live.answered());
  begun.live.tell_delayed();
  EXPECT_TRUE(begun.live.answered());
}

TEST(TxnMarkers, AfterACrashThePreparedEndIsFinished) {
  for (const TransactionVersion version : {k1, k2}) {
    for (const bool commit : {true, false}) {
      Begun begun(version);
      LiveTransaction& live = begun.live;
      live.hold_markers();
      live.add_group({kId, 0}, "g", version);
      live.end({kId, 0}, commit, version);
      live.restart();
      ASSERT_TRUE(live.has_markers()) << "without anybody asking";
      EXPECT_EQ(live.end({kId, 0}, commit, version), refused(CONCURRENT_TRANSACTIONS));
      const WriteMarkers markers = live.write_markers();
      EXPECT_EQ(markers.commit, commit);
      EXPECT_EQ(markers.producer_epoch, ProducerEpoch(version == k2 ? 1 : 0));
      EXPECT_EQ(markers.topics.size(), 1U);
      EXPECT_EQ(markers.groups.size(), 1U);
      EXPECT_EQ(markers.version, version);
      EXPECT_EQ(live.state(), commit ? State::kCompleteCommit : State::kCompleteAbort);
      EXPECT_EQ(live.end({kId, 0}, commit, version),
                version == k2 ? granted({kId, 1}) : refused(NONE));
    }
  }
}

// Timeouts

TEST(TxnTimeout, AbortsRaisesTheEpochAndFences) {
  Begun begun;
  LiveTransaction& live = begun.live;
  live.pass(milliseconds{59'999});
  EXPECT_EQ(live.state(), State::kOngoing);
  live.pass(milliseconds{1});
  EXPECT_EQ(live.state(), State::kCompleteAbort);
  EXPECT_FALSE(live.written().at(0).commit);
  EXPECT_EQ(live.written().at(0).producer_epoch, ProducerEpoch(1));
  EXPECT_EQ(live.written().at(0).version, k2) << "the broker's own ends are of version 2";
  EXPECT_EQ(live.add({kId, 0}), PRODUCER_FENCED);
  EXPECT_EQ(live.commit({kId, 0}), refused(PRODUCER_FENCED));
  EXPECT_EQ(live.end({kId, 0}, true, k1, false), refused(INVALID_PRODUCER_EPOCH));
}

TEST(TxnTimeout, AVersionTwoProducerLearnsItFromItsOwnEnd) {
  Begun begun(k2);
  begun.live.pass(seconds{60});
  EXPECT_EQ(begun.live.commit({kId, 0}, k2), refused(INVALID_TXN_STATE)) << "never a false commit";
  EXPECT_EQ(begun.live.abort({kId, 0}, k2), granted({kId, 1})) << "and goes on";
}

TEST(TxnTimeout, CountsFromTheBeginningNotFromTheLastPartition) {
  Begun begun;
  begun.live.pass(seconds{59});
  begun.live.add({kId, 0}, partitions("orders", {7}));
  begun.live.pass(seconds{1});
  EXPECT_EQ(begun.live.state(), State::kCompleteAbort);
}

TEST(TxnTimeout, EndsWithTheTransaction) {
  Begun begun;
  EXPECT_TRUE(begun.live.machine().next_deadline());
  begun.live.commit({kId, 0});
  EXPECT_FALSE(begun.live.machine().next_deadline());
  begun.live.pass(seconds{100});
  begun.live.pass_time();
  EXPECT_EQ(begun.live.state(), State::kCompleteCommit);
  begun.live.add({kId, 0});
  begun.live.pass(seconds{59});
  EXPECT_EQ(begun.live.state(), State::kOngoing) << "the next has all of it";
  begun.live.pass_time();
  EXPECT_EQ(begun.live.state(), State::kOngoing) << "a driver that is early is harmless";
}

TEST(TxnTimeout, TheWallClockDoesNotDecide) {
  Begun begun;
  begun.live.set_wall(begun.live.wall() + 86'400'000);
  begun.live.pass(seconds{59});
  EXPECT_EQ(begun.live.state(), State::kOngoing);
  begun.live.set_wall(Timestamp(1));
  begun.live.pass(seconds{1});
  EXPECT_EQ(begun.live.state(), State::kCompleteAbort);
}

TEST(TxnTimeout, AfterARestartItHasWhatIsLeftButTenSecondsAtLeast) {
  Begun begun;
  begun.live.pass(seconds{20});
  begun.live.restart();
  EXPECT_EQ(*begun.live.machine().next_deadline() - begun.live.now(), seconds{40});
  begun.live.pass(seconds{35});
  begun.live.restart();
  EXPECT_EQ(*begun.live.machine().next_deadline() - begun.live.now(), seconds{10});
  begun.live.set_wall(Timestamp(1));
  begun.live.restart();
  EXPECT_EQ(*begun.live.machine().next_deadline() - begun.live.now(), seconds{60})
      << "a wall clock that went back makes it no longer than it may be";
}

TEST(TxnTimeout, TheLongestStandsForNone) {
  LiveTransaction live;
  live.settings.max_timeout = milliseconds{2'147'483'647};
  live.init_with(milliseconds{2'147'483'647});
  live.add({kId, 0});
  EXPECT_FALSE(live.machine().next_deadline());
  live.pass(std::chrono::hours{24 * 30});
  live.pass_time();
  EXPECT_EQ(live.state(), State::kOngoing);
}

TEST(TxnTimeout, AtTheLastEpochTakesANewProducerId) {
  LiveTransaction live;
  TransactionFacts facts;
  facts.producer_id = ProducerId(7);
  facts.producer_epoch = ProducerEpoch(32'766);
  facts.state = State::kEmpty;
  facts.timeout = seconds{60};
  facts.updated = Timestamp(2);
  live.start_with(encode_transaction(facts));
  live.add({7, 32'766});
  live.pass(seconds{60});
  EXPECT_EQ(live.identity(), (Identity{kId, 0}));
  EXPECT_EQ(live.init(), granted({kId, 1}));
}

// transactional.id.expiration.ms

TEST(TxnExpiry, AnIdThatIsNotUsedGoes) {
  LiveTransaction live;
  live.init();
  live.set_wall(live.wall() + 604'799'999);
  live.expire();
  EXPECT_FALSE(live.machine().vacant());
  live.set_wall(live.wall() + 1);
  live.expire();
  EXPECT_TRUE(live.machine().vacant());
  EXPECT_TRUE(live.stored().empty());
  EXPECT_EQ(live.add({kId, 0}), INVALID_PRODUCER_ID_MAPPING);
  EXPECT_EQ(live.init(), granted({kId + 1, 0}));
}

TEST(TxnExpiry, AnEndedTransactionDoesNotKeepIt) {
  for (const bool commit : {true, false}) {
    Begun begun;
    begun.live.end({kId, 0}, commit);
    begun.live.set_wall(begun.live.wall() + 604'800'000);
    begun.live.expire();
    EXPECT_TRUE(begun.live.machine().vacant());
  }
}

TEST(TxnExpiry, AnOpenOrEndingTransactionDoes) {
  Begun begun;
  begun.live.hold_markers();
  begun.live.set_wall(begun.live.wall() + 604'800'000);
  begun.live.expire();
  EXPECT_EQ(begun.live.state(), State::kOngoing);
  begun.live.commit({kId, 0});
  begun.live.set_wall(begun.live.wall() + 604'800'000);
  begun.live.expire();
  EXPECT_EQ(begun.live.state(), State::kPrepareCommit);
  begun.live.write_markers();
  begun.live.expire();
  EXPECT_EQ(begun.live.state(), State::kCompleteCommit) << "just used";
}

}  // namespace
}  // namespace kanal::coordinator
