#include "transaction_world.hpp"

namespace kanal::broker::test {
namespace {

using Disk = kanal::test::MemoryFileSystem;
using reserved::MemoryStore;

struct TransactionsTest : TransactionWorld {};

constexpr auto kNone = ErrorCode::NONE;
bool never() {
  return false;
}

// Both versions

TEST_F(TransactionsTest, ACommitMakesItsRecordsStableAndIsAnsweredAfterItsMarkers) {
  create("t", 2);
  for (const auto version : {TransactionVersion::k1, TransactionVersion::k2}) {
    Producer producer = init("id" + std::to_string(static_cast<int>(version)), version);
    for (std::int32_t i = 0; i < 2; ++i) {
      if (version == TransactionVersion::k1) {
        EXPECT_EQ(add(producer, "t", i), kNone);
      }
      EXPECT_EQ(write(producer, "t", i), kNone);
      EXPECT_FALSE(stable("t", i));
    }
    EXPECT_EQ(end(producer, true), kNone);
    EXPECT_TRUE(stable("t", 0) && stable("t", 1));
    EXPECT_EQ(state(producer.id), TransactionState::kCompleteCommit);
  }
  EXPECT_EQ(aborted("t"), 0U);
}

TEST_F(TransactionsTest, AnAbortNamesItselfInEachLog) {
  create("t", 2);
  Producer producer = init("id");
  EXPECT_EQ(write(producer, "t", 0), kNone);
  EXPECT_EQ(write(producer, "t", 1), kNone);
  EXPECT_EQ(end(producer, false), kNone);
  EXPECT_TRUE(stable("t", 0) && stable("t", 1));
  EXPECT_EQ(aborted("t", 0) + aborted("t", 1), 2U);
  EXPECT_EQ(state("id"), TransactionState::kCompleteAbort);
}

TEST_F(TransactionsTest, WhoHasNotAddedThePartitionIsRefusedAndNothingIsWritten) {
  create("t");
  Producer old = init("old", TransactionVersion::k1);
  EXPECT_EQ(write(old, "t"), ErrorCode::TRANSACTION_ABORTABLE);
  EXPECT_EQ(marks("t").staged_end, Offset(0));
  Producer stranger = old;
  stranger.id = "nobody";
  EXPECT_EQ(write(stranger, "t"), ErrorCode::INVALID_PRODUCER_ID_MAPPING);
  stranger.id = "";
  EXPECT_EQ(write(stranger, "t"), ErrorCode::INVALID_REQUEST);
  EXPECT_EQ(transactions().size(), 1U) << "asking makes nothing";
}

TEST_F(TransactionsTest, ALateWriteOfAnEarlierEpochNeverEntersALaterTransaction) {
  create("t");
  Producer producer = init("id");
  EXPECT_EQ(write(producer, "t"), kNone);
  Producer late = producer;
  EXPECT_EQ(end(producer, true), kNone);
  EXPECT_EQ(write(late, "t"), ErrorCode::PRODUCER_FENCED);
  EXPECT_EQ(write(producer, "t"), kNone);
  EXPECT_EQ(write(late, "t"), ErrorCode::PRODUCER_FENCED);
  EXPECT_EQ(end(producer, true), kNone);
}

TEST_F(TransactionsTest, AnotherProducerOfTheIdFencesTheFirstAndAbortsWhatItLeft) {
  create("t");
  Producer first = init("id");
  EXPECT_EQ(write(first, "t"), kNone);
  const Reply refused = begin_init("id", coordinator::InitProducerIdCommand{.timeout = 60s});
  settle();
  ASSERT_TRUE(*refused);
  EXPECT_EQ((*refused)->error, ErrorCode::CONCURRENT_TRANSACTIONS);
  EXPECT_TRUE(stable("t")) << "it is told so when a repeat can succeed";
  EXPECT_EQ(aborted("t"), 1U);
  Producer second = init("id");
  EXPECT_EQ(end(first, true), ErrorCode::PRODUCER_FENCED);
  EXPECT_EQ(write(first, "t"), ErrorCode::PRODUCER_FENCED);
  EXPECT_EQ(write(second, "t"), kNone);
  EXPECT_EQ(end(second, true), kNone);
}

// Slices

TEST_F(TransactionsTest, ALargeOneIsEndedInSlicesAndNobodyElseWaitsForIt) {
  constexpr std::int32_t kMany = 1'000;
  create("many", kMany);
  create("t");
  Producer large = init("large");
  for (std::int32_t i = 0; i < kMany; ++i) ASSERT_EQ(write(large, "many", i), kNone);
  Producer small = init("small");
  EXPECT_EQ(write(small, "t"), kNone);
  const Reply ending = begin_end(large, true);
  while (!stable("many", 0)) run_one();
  EXPECT_FALSE(*ending);
  EXPECT_FALSE(stable("many", kMany - 1)) << "the loop runs in between";
  Reply meanwhile = begin_end(large, true);
  EXPECT_EQ(end(small, true), kNone);
  ASSERT_TRUE(*ending);
  EXPECT_EQ((*ending)->error, kNone);
  for (std::int32_t i = 0; i < kMany; ++i) EXPECT_TRUE(stable("many", i));
  EXPECT_TRUE(*meanwhile);
}

TEST_F(TransactionsTest, AnEndWhoseAskerHasGoneIsEnded) {
  create("many", 200);
  Producer producer = init("id");
  for (std::int32_t i = 0; i < 200; ++i) ASSERT_EQ(write(producer, "many", i), kNone);
  const Reply ending = begin_end(producer, true);
  while (state("id") == TransactionState::kOngoing) run_one();
  for (const auto& io : threads) {
    for (Context* context : io->parked()) {
      context->cancelled = true;
      context->parked->fire();
    }
  }
  settle();
  ASSERT_TRUE(*ending);
  EXPECT_EQ(state("id"), TransactionState::kCompleteCommit);
  EXPECT_TRUE(stable("many", 199));
}

// Crashes

TEST_F(TransactionsTest, WhatWasPreparedWhenTheBrokerDiedIsEndedBeforeTheNextOneServes) {
  create("many", 200);
  for (const bool commit : {true, false}) {
    Producer producer = init(commit ? "c" : "a");
    for (std::int32_t i = 0; i < 200; ++i) ASSERT_EQ(write(producer, "many", i), kNone);
    (void)begin_end(producer, commit);
    while (state(producer.id) == TransactionState::kOngoing) run_one();
    ASSERT_FALSE(stable("many", 199));
    kill();
    EXPECT_EQ(state(producer.id),
              commit ? TransactionState::kCompleteCommit : TransactionState::kCompleteAbort);
    for (std::int32_t i = 0; i < 200; ++i) {
      EXPECT_TRUE(stable("many", i));
      EXPECT_EQ(aborted("many", i), commit ? 0U : 1U);
    }
  }
}

TEST_F(TransactionsTest, AnOpenOneGoesOnAfterAKill) {
  create("t");
  Producer producer = init("id");
  EXPECT_EQ(write(producer, "t"), kNone);
  kill();
  EXPECT_FALSE(stable("t"));
  EXPECT_EQ(write(producer, "t"), kNone);
  EXPECT_EQ(end(producer, true), kNone);
  EXPECT_TRUE(stable("t"));
  EXPECT_EQ(aborted("t"), 0U);
}

TEST_F(TransactionsTest, RecordsOfATransactionThatNothingElseIsKnownOfAreAbortedAtTheStart) {
  create("t", 2);
  Producer producer = init("id");
  EXPECT_EQ(write(producer, "t", 0), kNone);
  EXPECT_TRUE(append("t", 1, log::test::encode(log::test::TxnBatch{.producer = 4711})));
  ASSERT_FALSE(stable("t", 1));
  kill();
  EXPECT_TRUE(stable("t", 1));
  EXPECT_EQ(aborted("t", 1), 1U);
  EXPECT_FALSE(stable("t", 0)) << "this one is known";
  EXPECT_EQ(end(producer, true), kNone);
  EXPECT_EQ(aborted("t", 0), 0U);
}

TEST_F(TransactionsTest, AClientThatGoesOnAfterAPowerCutCommitsNothingThatLacksItsFirstHalf) {
  create("t", 2);
  for (const auto version : {TransactionVersion::k1, TransactionVersion::k2}) {
    Producer producer = init("id" + std::to_string(static_cast<int>(version)), version);
    keep();
    if (version == TransactionVersion::k1) {
      EXPECT_EQ(add(producer, "t"), kNone);
    }
    EXPECT_EQ(write(producer, "t"), kNone);
    lose_what_was_not_kept();
    EXPECT_TRUE(stable("t")) << "nothing hangs";
    EXPECT_NE(write(producer, "t"), kNone);
    EXPECT_NE(end(producer, true), kNone);
    Producer again = init(producer.id, version);
    EXPECT_NE(again.producer_id, producer.producer_id);
    if (version == TransactionVersion::k1) {
      EXPECT_EQ(add(again, "t"), kNone);
    }
    EXPECT_EQ(write(again, "t"), kNone);
    EXPECT_EQ(end(again, true), kNone);
    EXPECT_TRUE(stable("t"));
  }
  EXPECT_EQ(aborted("t"), 2U);
}

TEST_F(TransactionsTest, EpochsThatALogHasSeenDoNotComeBackAfterAPowerCut) {
  create("t", 2);
  Producer producer = init("id");
  keep();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(write(producer, "t"), kNone);
    EXPECT_EQ(end(producer, true), kNone);
  }
  EXPECT_EQ(write(producer, "t", 1), kNone);
  const Offset before = marks("t").high_watermark;
  lose_what_was_not_kept();
  EXPECT_TRUE(stable("t", 0) && stable("t", 1));
  Producer next = init("id");
  EXPECT_EQ(write(next, "t"), kNone);
  EXPECT_EQ(end(next, true), kNone);
  EXPECT_EQ(marks("t").high_watermark, before + 2) << "taken, and not for a duplicate";
  kill();
  EXPECT_EQ(write(next, "t"), kNone) << "all is well from then on";
}

// Acks after sync

TEST_F(TransactionsTest, WithAcksAfterSyncTheDecisionIsSyncedThenTheMarkersThenItIsAnswered) {
  create("t", 1, {{"flush.messages", "1"}});
  Producer producer = init("id");
  EXPECT_EQ(write(producer, "t"), kNone);
  settle();
  const Offset before = marks("t").staged_end;
  helpers.paused = true;
  const Reply ending = begin_end(producer, true);
  settle();
  EXPECT_EQ(state("id"), TransactionState::kPrepareCommit);
  EXPECT_EQ(marks("t").staged_end, before) << "no marker before the decision is on the disk";
  helpers.paused = false;
  EXPECT_TRUE(helpers.run_one());
  helpers.paused = true;
  settle();
  EXPECT_EQ(store.unsynced_writes(), 0U);
  EXPECT_EQ(marks("t").staged_end, before + 1);
  EXPECT_FALSE(*ending);
  EXPECT_FALSE(stable("t"));
  helpers.paused = false;
  settle();
  EXPECT_EQ(take(producer, ending), kNone);
  EXPECT_TRUE(stable("t"));
  EXPECT_EQ(state("id"), TransactionState::kCompleteCommit);
}

TEST_F(TransactionsTest, ADecisionThatCouldNotBeSyncedIsReadAnewAndCarriedOut) {
  create("t", 1, {{"flush.messages", "1"}});
  Producer producer = init("id");
  EXPECT_EQ(write(producer, "t"), kNone);
  settle();
  store.fail_write(2, MemoryStore::Failure::kNothingWritten);  // the sync behind the decision
  const Reply ending = begin_end(producer, true);
  settle();
  ASSERT_TRUE(*ending);
  EXPECT_EQ((*ending)->error, ErrorCode::COORDINATOR_NOT_AVAILABLE);
  pass(2s);
  EXPECT_EQ(state("id"), TransactionState::kCompleteCommit);
  EXPECT_TRUE(stable("t"));
  EXPECT_EQ(end(producer, true), kNone) << "a repeat";
}

// Disks and stores that fail

TEST_F(TransactionsTest, AMarkerThatCannotBeWrittenIsTriedOnAndTheAskerIsTold) {
  create("t", 2);
  Producer producer = init("id");
  EXPECT_EQ(write(producer, "t", 0), kNone);
  EXPECT_EQ(write(producer, "t", 1), kNone);
  files.fail({.at = 1, .kinds = Disk::kWrite, .sticky = true});
  EXPECT_EQ(end(producer, true), kNone) << "it is decided";
  EXPECT_EQ(state("id"), TransactionState::kPrepareCommit);
  EXPECT_EQ(write(producer, "t", 0), ErrorCode::CONCURRENT_TRANSACTIONS);
  pass(3s);
  EXPECT_EQ(state("id"), TransactionState::kPrepareCommit);
  files.clear_faults();
  pass(2s);
  if (state("id") == TransactionState::kPrepareCommit) kill();  // the log had closed for good
  EXPECT_EQ(state("id"), TransactionState::kCompleteCommit);
  EXPECT_TRUE(stable("t", 0) && stable("t", 1));
}

TEST_F(TransactionsTest, AnIdThatCannotBeStoredIsReadAnew) {
  create("t");
  Producer producer = init("id");
  store.fail_write(1, MemoryStore::Failure::kNothingWritten);
  EXPECT_EQ(write(producer, "t"), ErrorCode::COORDINATOR_NOT_AVAILABLE);
  EXPECT_EQ(marks("t").staged_end, Offset(0));
  EXPECT_EQ(write(producer, "t"), ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
  settle();
  EXPECT_EQ(write(producer, "t"), kNone);
  store.fail_write(1, MemoryStore::Failure::kWrittenUnsynced);  // the decision, and it is there
  const Reply ending = begin_end(producer, true);
  while (!*ending) run_one();
  EXPECT_EQ((*ending)->error, ErrorCode::COORDINATOR_NOT_AVAILABLE);
  kill();
  EXPECT_EQ(state("id"), TransactionState::kCompleteCommit) << "it is carried out all the same";
  EXPECT_TRUE(stable("t"));
}

TEST_F(TransactionsTest, WhatIsDeletedNeedsNoMarker) {
  create("gone");
  create("t");
  Producer producer = init("id");
  EXPECT_EQ(write(producer, "gone"), kNone);
  EXPECT_EQ(write(producer, "t"), kNone);
  remove("gone");
  EXPECT_EQ(end(producer, true), kNone);
  EXPECT_TRUE(stable("t"));
  EXPECT_EQ(state("id"), TransactionState::kCompleteCommit);
}

// Time

TEST_F(TransactionsTest, OneThatTakesLongerThanItsTimeoutIsAborted) {
  create("t");
  Producer producer = init("id", TransactionVersion::k2, 10s);
  EXPECT_EQ(write(producer, "t"), kNone);
  pass(9s);
  EXPECT_EQ(state("id"), TransactionState::kOngoing);
  EXPECT_EQ(end(producer, true), kNone);
  EXPECT_EQ(write(producer, "t"), kNone);
  pass(9s);
  EXPECT_EQ(state("id"), TransactionState::kOngoing) << "each has its own time";
  pass(2s);
  EXPECT_EQ(state("id"), TransactionState::kCompleteAbort);
  EXPECT_TRUE(stable("t"));
  EXPECT_EQ(end(producer, true), ErrorCode::INVALID_TXN_STATE) << "it is aborted";
  EXPECT_EQ(write(producer, "t"), ErrorCode::PRODUCER_FENCED);
}

TEST_F(TransactionsTest, ABrokerThatStoodStillAbortsNobody) {
  create("t");
  Producer producer = init("id", TransactionVersion::k2, 10s);
  EXPECT_EQ(write(producer, "t"), kNone);
  pass(2s);
  stand_still(60s);
  pass(5s);
  EXPECT_EQ(state("id"), TransactionState::kOngoing);
  EXPECT_EQ(end(producer, true), kNone);
}

TEST_F(TransactionsTest, AnIdThatIsNotUsedIsForgotten) {
  restart_with({{"transactional.id.expiration.ms", "60000"},
                {"transaction.remove.expired.transaction.cleanup.interval.ms", "10000"}});
  create("t");
  (void)init("unused");
  Producer open = init("open", TransactionVersion::k2, 600s);
  EXPECT_EQ(write(open, "t"), kNone);
  pass(80s);
  EXPECT_EQ(transactions().size(), 1U);
  EXPECT_EQ(state("unused"), TransactionState::kDead);
  EXPECT_EQ(store.records_in({reserved::Kind::kTxn, "unused"}), 0U);
  kill();
  EXPECT_EQ(transactions().size(), 1U);
  EXPECT_EQ(end(open, true), kNone);
}

// A copy of everything

TEST_F(TransactionsTest, WhileEndsArePausedNoneIsDecidedAndThenAllAre) {
  create("t");
  Producer committing = init("a");
  Producer late = init("b", TransactionVersion::k2, 10s);
  EXPECT_EQ(write(committing, "t"), kNone);
  EXPECT_EQ(write(late, "t"), kNone);
  Reply ending;
  {
    const auto pause = transactions().pause(never);
    ASSERT_TRUE(pause);
    ending = begin_end(committing, true);
    pass(20s);
    EXPECT_EQ(state("a"), TransactionState::kOngoing);
    EXPECT_EQ(state("b"), TransactionState::kOngoing);
    EXPECT_EQ(write(committing, "t"), kNone) << "all else goes on";
  }
  settle();
  EXPECT_EQ(take(committing, ending), kNone);
  EXPECT_EQ(state("a"), TransactionState::kCompleteCommit);
  EXPECT_EQ(state("b"), TransactionState::kCompleteAbort);
  EXPECT_TRUE(transactions().pause(never)) << "and it can be done again";
}

TEST_F(TransactionsTest, APauseThatIsCancelledLeavesEndsAsTheyWere) {
  create("many", 200);
  Producer producer = init("a");
  for (std::int32_t i = 0; i < 200; ++i) ASSERT_EQ(write(producer, "many", i), kNone);
  const Reply ending = begin_end(producer, true);
  while (state("a") == TransactionState::kOngoing) run_one();
  EXPECT_FALSE(transactions().pause([] { return true; })) << "one is under way";
  settle();
  EXPECT_EQ(take(producer, ending), kNone);
  EXPECT_EQ(write(producer, "many"), kNone);
  EXPECT_EQ(end(producer, true), kNone) << "and none is held";
}

TEST_F(TransactionsTest, AStopAnswersWhoWaitsForAPausesEnd) {
  create("t");
  Producer producer = init("a");
  EXPECT_EQ(write(producer, "t"), kNone);
  const auto pause = transactions().pause(never);
  const Reply ending = begin_end(producer, true);
  settle();
  EXPECT_FALSE(*ending);
  broker->release_parked();
  settle();
  ASSERT_TRUE(*ending);
  EXPECT_EQ((*ending)->error, ErrorCode::COORDINATOR_NOT_AVAILABLE);
}

// Stopping

TEST_F(TransactionsTest, AStopAnswersWhoWaitsAndTheNextStartEndsIt) {
  create("many", 200);
  Producer producer = init("id");
  for (std::int32_t i = 0; i < 200; ++i) ASSERT_EQ(write(producer, "many", i), kNone);
  const Reply ending = begin_end(producer, true);
  while (state("id") == TransactionState::kOngoing) run_one();
  broker->release_parked();
  settle();
  ASSERT_TRUE(*ending);
  EXPECT_EQ((*ending)->error, ErrorCode::COORDINATOR_NOT_AVAILABLE);
  EXPECT_EQ(write(producer, "many", 0), ErrorCode::COORDINATOR_NOT_AVAILABLE);
  stop();
  start();
  EXPECT_EQ(state("id"), TransactionState::kCompleteCommit);
  for (std::int32_t i = 0; i < 200; ++i) EXPECT_TRUE(stable("many", i));
}

TEST_F(TransactionsTest, IdsAreAnyText) {
  create("t");
  const std::vector<std::string> names{
      "/", "..", "~", std::string(1024, 'x'), "\xC3\xA9\xF0\x9F\x90\x93", std::string("a\0b", 3)};
  std::vector<Producer> producers;
  for (const std::string& name : names) {
    producers.push_back(init(name));
    EXPECT_EQ(write(producers.back(), "t"), kNone);
  }
  kill();
  for (Producer& producer : producers) EXPECT_EQ(end(producer, true), kNone);
  EXPECT_TRUE(stable("t"));
  EXPECT_EQ(transactions().size(), names.size());
}

}  // namespace
}  // namespace kanal::broker::test
