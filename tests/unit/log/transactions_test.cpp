// What a partition lets in of transactions, and what it answers about them.
#include "transactional.hpp"

#include "blob.hpp"

#include <limits>

namespace kanal::log::test {
namespace {

class TransactionsTest : public ::testing::Test {
 protected:
  TransactionsTest() : partition(world.open()) {}
  ErrorCode write(const TxnBatch& batch, const AppendTerms& terms = {}) {
    return code_of(test::write(world, *partition, batch, terms));
  }
  ErrorCode finish(const End& end) { return code_of(test::finish(world, *partition, end)); }
  std::int64_t stable() { return partition->watermarks().last_stable.value(); }
  std::int64_t high() { return partition->watermarks().high_watermark.value(); }
  const ProducerState::Producer& known(std::int64_t producer = 1) {
    return partition->producers().producers().at(ProducerId(producer));
  }
  void restart(bool clean) {
    if (clean) world.stop({partition.get()});
    partition.reset();
    world.kill();
    partition = world.open();
  }
  std::vector<std::int64_t> committed_offsets() {
    std::vector<Slice> slices;
    const auto fetched = partition->read(Offset(0), {1 << 20, true, true}, slices);
    EXPECT_TRUE(fetched);
    return offsets_in(bytes_of(slices));
  }

  World world;
  std::unique_ptr<Partition> partition;
};
using Offsets = std::vector<std::int64_t>;
using Aborted = std::vector<AbortedTransaction>;

AbortedTransaction entry(std::int64_t producer, std::int64_t first, std::int64_t last,
                         std::int64_t stable) {
  return {ProducerId(producer), Offset(first), Offset(last), Offset(stable)};
}

TEST_F(TransactionsTest, AnOpenTransactionHoldsTheLastStableOffsetUntilItsMarker) {
  ASSERT_EQ(write({.producer = 9, .records = 2, .transactional = false}), ErrorCode::NONE);
  ASSERT_EQ(write({.records = 3}), ErrorCode::NONE);
  ASSERT_EQ(write({.producer = 9, .sequence = 2, .transactional = false}), ErrorCode::NONE);
  EXPECT_EQ(stable(), 2);
  EXPECT_EQ(high(), 6);
  EXPECT_EQ(committed_offsets(), (Offsets{0}));
  EXPECT_EQ(read(world, *partition, 0).offsets, (Offsets{0, 2, 5}));
  ASSERT_EQ(finish({.commit = true}), ErrorCode::NONE);
  EXPECT_EQ(stable(), 7);
  EXPECT_EQ(committed_offsets(), (Offsets{0, 2, 5, 6}));
  EXPECT_TRUE(aborted_in(*partition).empty());
}

TEST_F(TransactionsTest, AReadBehindTheLastStableOffsetIsEmptyAndNoError) {
  ASSERT_EQ(write({.records = 3}), ErrorCode::NONE);
  std::vector<Slice> slices;
  const auto fetched = partition->read(Offset(2), {1 << 20, true, true}, slices);
  ASSERT_TRUE(fetched);
  EXPECT_EQ(fetched->next, Offset(2));
  EXPECT_TRUE(slices.empty());
}

TEST_F(TransactionsTest, AbortedOnesAreFoundByAnyOffsetFromTheirFirstRecordToTheirMarker) {
  ASSERT_EQ(write({.producer = 1}), ErrorCode::NONE);                 // 0
  ASSERT_EQ(write({.producer = 2}), ErrorCode::NONE);                 // 1
  ASSERT_EQ(write({.producer = 1, .sequence = 1}), ErrorCode::NONE);  // 2
  ASSERT_EQ(finish({.producer = 2}), ErrorCode::NONE);                // 3
  EXPECT_EQ(stable(), 0);
  ASSERT_EQ(finish({.producer = 1}), ErrorCode::NONE);  // 4
  ASSERT_EQ(write({.producer = 2, .sequence = 1}), ErrorCode::NONE);
  ASSERT_EQ(finish({.producer = 2}), ErrorCode::NONE);  // 6
  const Aborted all{entry(2, 1, 3, 0), entry(1, 0, 4, 5), entry(2, 5, 6, 7)};
  EXPECT_EQ(aborted_in(*partition), all);
  EXPECT_EQ(aborted_in(*partition, 0, 1), (Aborted{all[1]}));
  EXPECT_EQ(aborted_in(*partition, 2, 3), (Aborted{all[0], all[1]}));
  EXPECT_EQ(aborted_in(*partition, 4, 5), (Aborted{all[1]}));
  EXPECT_EQ(aborted_in(*partition, 4, 6), (Aborted{all[1], all[2]}));
  EXPECT_TRUE(aborted_in(*partition, 7, 100).empty());
}

TEST_F(TransactionsTest, AMarkerThatIsNotCommittedLeavesTheOffsetWhereItWas) {
  world.options.ack_after_sync = true;
  partition->configure(world.options);
  ASSERT_EQ(write({}), ErrorCode::NONE);
  partition->commit(Sequence(2));
  EXPECT_EQ(stable(), 0);
  ASSERT_EQ(finish({}), ErrorCode::NONE);
  EXPECT_EQ(stable(), 0);
  EXPECT_EQ(high(), 1);
  partition->commit(Sequence(3));
  EXPECT_EQ(stable(), 2);
}

TEST_F(TransactionsTest, AMarkerIsSeenOnceTheHighWatermarkHasPassedItNotWhenItIsThere) {
  world.options.ack_after_sync = true;
  partition->configure(world.options);
  ASSERT_EQ(write({}), ErrorCode::NONE);
  ASSERT_EQ(finish({}), ErrorCode::NONE);
  partition->commit(Sequence(2));
  EXPECT_EQ(high(), 1);
  EXPECT_EQ(stable(), 0);
  partition->commit(Sequence(3));
  EXPECT_EQ(stable(), 2);
}

TEST_F(TransactionsTest, ABatchOutsideOfItsProducersOpenTransactionIsRefused) {
  ASSERT_EQ(write({}), ErrorCode::NONE);
  EXPECT_EQ(write({.sequence = 1, .transactional = false}), ErrorCode::INVALID_TXN_STATE);
  EXPECT_EQ(high(), 1);
  EXPECT_EQ(write({.sequence = 1}), ErrorCode::NONE);
  ASSERT_EQ(finish({.commit = true}), ErrorCode::NONE);
  EXPECT_EQ(write({.sequence = 2, .transactional = false}), ErrorCode::NONE);
}

TEST_F(TransactionsTest, AMarkersEpochFencesOlderBatches) {
  ASSERT_EQ(write({.epoch = 3}), ErrorCode::NONE);
  ASSERT_EQ(finish({.epoch = 4, .version = 2}), ErrorCode::NONE);
  EXPECT_EQ(write({.epoch = 3, .sequence = 1}), ErrorCode::INVALID_PRODUCER_EPOCH);
  EXPECT_EQ(write({.epoch = 4, .sequence = 1}), ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
  EXPECT_EQ(write({.epoch = 4}), ErrorCode::NONE);
}

TEST_F(TransactionsTest, AMarkerOfVersionOneKeepsTheSequence) {
  ASSERT_EQ(write({}), ErrorCode::NONE);
  ASSERT_EQ(finish({.commit = true}), ErrorCode::NONE);
  EXPECT_EQ(write({.sequence = 0}), ErrorCode::NONE);  // known: the same batch again
  EXPECT_EQ(high(), 2);
  EXPECT_EQ(stable(), 2);
  EXPECT_EQ(write({.sequence = 1}), ErrorCode::NONE);
  EXPECT_EQ(stable(), 2);
}

TEST_F(TransactionsTest, AMarkerOfAnOlderEpochIsRefused) {
  ASSERT_EQ(write({.epoch = 3}), ErrorCode::NONE);
  for (std::int16_t version = 0; version <= 2; ++version) {
    EXPECT_EQ(finish({.epoch = 2, .version = version}), ErrorCode::INVALID_PRODUCER_EPOCH);
  }
  EXPECT_TRUE(known().in_transaction());
  EXPECT_EQ(high(), 1);
}

TEST_F(TransactionsTest, AMarkerOfVersionTwoWithTheEpochOfTheRecordsIsRefused) {
  ASSERT_EQ(write({.epoch = 3}), ErrorCode::NONE);
  EXPECT_EQ(finish({.epoch = 3, .version = 2}), ErrorCode::INVALID_PRODUCER_EPOCH);
  EXPECT_TRUE(known().in_transaction());
  EXPECT_EQ(finish({.epoch = 4, .version = 2}), ErrorCode::NONE);
  // Of the last epoch an id has it is not: nothing is above.
  const std::int16_t last = std::numeric_limits<std::int16_t>::max();
  ASSERT_EQ(write({.producer = 2, .epoch = last}), ErrorCode::NONE);
  EXPECT_EQ(finish({.producer = 2, .epoch = last, .version = 2}), ErrorCode::NONE);
  EXPECT_FALSE(known(2).in_transaction());
}

TEST_F(TransactionsTest, ARepeatedMarkerIsWrittenAndChangesNothing) {
  ASSERT_EQ(write({.epoch = 3}), ErrorCode::NONE);
  ASSERT_EQ(finish({.epoch = 4, .coordinator = 2, .version = 2}), ErrorCode::NONE);
  const Aborted before = aborted_in(*partition);
  ASSERT_EQ(before.size(), 1U);
  EXPECT_EQ(finish({.epoch = 4, .coordinator = 2, .version = 2}), ErrorCode::NONE);
  EXPECT_EQ(high(), 3);
  EXPECT_EQ(stable(), 3);
  EXPECT_EQ(aborted_in(*partition), before);
  // A transaction has begun with the raised epoch: now the repeat would end that one.
  ASSERT_EQ(write({.epoch = 4}), ErrorCode::NONE);
  EXPECT_EQ(finish({.epoch = 4, .coordinator = 2, .version = 2}),
            ErrorCode::INVALID_PRODUCER_EPOCH);
  EXPECT_TRUE(known().in_transaction());
}

TEST_F(TransactionsTest, AnOlderCoordinatorIsFenced) {
  ASSERT_EQ(write({}), ErrorCode::NONE);
  ASSERT_EQ(finish({.commit = true, .coordinator = 5}), ErrorCode::NONE);
  ASSERT_EQ(write({.sequence = 1}), ErrorCode::NONE);
  EXPECT_EQ(finish({.coordinator = 4}), ErrorCode::TRANSACTION_COORDINATOR_FENCED);
  EXPECT_TRUE(known().in_transaction());
  EXPECT_EQ(known().coordinator_epoch, 5);
  EXPECT_EQ(finish({.coordinator = 5}), ErrorCode::NONE);
  for (const bool clean : {true, false}) {
    restart(clean);
    EXPECT_EQ(finish({.coordinator = 4}), ErrorCode::TRANSACTION_COORDINATOR_FENCED) << clean;
  }
}

TEST_F(TransactionsTest, AMarkerOfAnUnknownProducerIsWrittenAndFences) {
  EXPECT_EQ(finish({.producer = 8, .epoch = 6, .version = 2}), ErrorCode::NONE);
  EXPECT_TRUE(aborted_in(*partition).empty());
  EXPECT_EQ(write({.producer = 8, .epoch = 5}), ErrorCode::INVALID_PRODUCER_EPOCH);
  EXPECT_EQ(finish({.producer = -1}), ErrorCode::INVALID_REQUEST);
  EXPECT_EQ(finish({.epoch = -1}), ErrorCode::INVALID_REQUEST);
}

TEST_F(TransactionsTest, AnUnknownProducersMarkerOfACoordinatorBeforeAllIsFenced) {
  EXPECT_EQ(finish({.producer = 8, .coordinator = -2}), ErrorCode::TRANSACTION_COORDINATOR_FENCED);
  EXPECT_EQ(high(), 0);
  EXPECT_EQ(finish({.producer = 8, .coordinator = -1}), ErrorCode::NONE);
}

TEST_F(TransactionsTest, AMarkerIsKafkasControlBatch) {
  world.epoch = 3;
  partition = world.open("other");
  ASSERT_EQ(write({.producer = 77, .epoch = 2}), ErrorCode::NONE);
  ASSERT_EQ(finish({.producer = 77, .epoch = 3, .commit = true, .coordinator = 9, .version = 2}),
            ErrorCode::NONE);
  const Buffer bytes = fetch(world, *partition, 1, 1000).first;
  records::MarkerOptions options;
  options.producer_id = ProducerId(77);
  options.producer_epoch = ProducerEpoch(3);
  options.timestamp = world.clock.wall();
  options.base_offset = Offset(1);
  options.leader_epoch = LeaderEpoch(3);
  EXPECT_EQ(bytes, records::build_marker({records::ControlType::kCommit, 9}, options));
}

TEST_F(TransactionsTest, AnUnknownProducerOfVersionTwoBeginsWithSequenceZero) {
  EXPECT_EQ(write({.sequence = 4}, {.from_zero = true}), ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
  EXPECT_EQ(high(), 0);
  EXPECT_EQ(write({.sequence = 0}, {.from_zero = true}), ErrorCode::NONE);
  EXPECT_EQ(write({.sequence = 1}, {.from_zero = true}), ErrorCode::NONE);
  EXPECT_EQ(write({.producer = 2, .sequence = 4}), ErrorCode::NONE);
}

TEST_F(TransactionsTest, ANewEpochGoesOnInTheTransactionThatIsOpen) {
  ASSERT_EQ(write({.epoch = 0}), ErrorCode::NONE);
  EXPECT_TRUE(partition->in_transaction(ProducerId(1), ProducerEpoch(0)));
  EXPECT_FALSE(partition->in_transaction(ProducerId(1), ProducerEpoch(1)));
  ASSERT_EQ(write({.epoch = 1}), ErrorCode::NONE);
  EXPECT_TRUE(partition->in_transaction(ProducerId(1), ProducerEpoch(1)));
  EXPECT_EQ(known().transaction, Offset(0));
  ASSERT_EQ(finish({.epoch = 1}), ErrorCode::NONE);
  EXPECT_FALSE(partition->in_transaction(ProducerId(1), ProducerEpoch(1)));
  EXPECT_EQ(aborted_in(*partition), (Aborted{entry(1, 0, 2, 3)}));
}

TEST_F(TransactionsTest, AProducerWithAnOpenTransactionDoesNotExpire) {
  ASSERT_EQ(write({.producer = 1}), ErrorCode::NONE);
  ASSERT_EQ(write({.producer = 2, .transactional = false}), ErrorCode::NONE);
  EXPECT_EQ(partition->expire_producers(world.clock.wall() + 5000, 1000), 1U);
  EXPECT_TRUE(known().in_transaction());
  ASSERT_EQ(finish({}), ErrorCode::NONE);
  EXPECT_EQ(partition->expire_producers(world.clock.wall() + 5000, 1000), 1U);
  EXPECT_EQ(aborted_in(*partition).size(), 1U);
}

TEST_F(TransactionsTest, ATrimBeyondAnOpenTransactionMovesTheLastStableOffsetToTheStart) {
  for (std::int32_t i = 0; i < 4; ++i) ASSERT_EQ(write({.sequence = i}), ErrorCode::NONE);
  ASSERT_TRUE(partition->trim(Offset(2)));
  EXPECT_EQ(stable(), 2);
  EXPECT_TRUE(known().in_transaction());
  ASSERT_EQ(finish({}), ErrorCode::NONE);
  EXPECT_EQ(stable(), 5);
  EXPECT_EQ(aborted_in(*partition), (Aborted{entry(1, 0, 4, 5)}));
  ASSERT_TRUE(partition->trim(Offset(5)));
  EXPECT_TRUE(aborted_in(*partition).empty());
}

TEST_F(TransactionsTest, RetentionKeepsWhatAnOpenTransactionHolds) {
  ASSERT_EQ(write({.producer = 9, .transactional = false}), ErrorCode::NONE);
  ASSERT_EQ(write({}), ErrorCode::NONE);
  const RetentionRules rules{.ms = 1};
  const auto gone = [&] { return partition->expired(rules, world.clock.wall()).count; };
  EXPECT_EQ(gone(), 0U);
  EXPECT_EQ(partition->facts().kept_from, Sequence(2));
  ASSERT_EQ(finish({.commit = true}), ErrorCode::NONE);
  EXPECT_EQ(gone(), 1U);
}

TEST_F(TransactionsTest, AllComesBackAfterACleanStopAndAfterAKill) {
  for (const bool clean : {true, false}) {
    world.incarnation += 1;
    partition = world.open(clean ? "clean" : "killed");
    ASSERT_EQ(write({.producer = 1}), ErrorCode::NONE);
    ASSERT_EQ(write({.producer = 2, .epoch = 7}), ErrorCode::NONE);
    ASSERT_EQ(finish({.producer = 1, .coordinator = 3}), ErrorCode::NONE);
    ASSERT_EQ(write({.producer = 3}), ErrorCode::NONE);
    if (clean) world.stop({partition.get()});
    partition.reset();
    world.kill();
    partition = world.open(clean ? "clean" : "killed");
    EXPECT_EQ(stable(), 1);
    EXPECT_EQ(high(), 4);
    EXPECT_EQ(aborted_in(*partition), (Aborted{entry(1, 0, 2, 1)}));
    EXPECT_EQ(known(2).transaction, Offset(1));
    EXPECT_EQ(known(1).coordinator_epoch, 3);
    EXPECT_EQ(finish({.producer = 2, .epoch = 8, .commit = true, .version = 2}), ErrorCode::NONE);
    EXPECT_EQ(stable(), 3);
  }
}

TEST_F(TransactionsTest, AStateOfALogThatBeganLaterIsRebuilt) {
  ASSERT_EQ(write({}), ErrorCode::NONE);
  ASSERT_EQ(finish({}), ErrorCode::NONE);
  ASSERT_EQ(write({.sequence = 1}), ErrorCode::NONE);
  Checkpoint moment = partition->checkpoint();
  World other;
  const auto trimmed = other.open();
  ASSERT_TRUE(test::write(other, *trimmed, {}));
  ASSERT_TRUE(test::finish(other, *trimmed, {}));
  ASSERT_TRUE(test::write(other, *trimmed, {.sequence = 1}));
  ASSERT_TRUE(trimmed->trim(Offset(2)));
  ASSERT_TRUE(aborted_in(*trimmed).empty());
  moment.state = trimmed->checkpoint().state;
  ASSERT_TRUE(partition->log().checkpoint(moment));
  restart(false);
  EXPECT_EQ(aborted_in(*partition), (Aborted{entry(1, 0, 1, 2)}));
  EXPECT_EQ(stable(), 2);
}

TEST_F(TransactionsTest, AProducerRebuiltFromItsMarkerHasTheMarkersTime) {
  ASSERT_EQ(write({}), ErrorCode::NONE);
  world.clock.pass(std::chrono::seconds(5));
  const Timestamp ended = world.clock.wall();
  ASSERT_EQ(finish({.commit = true}), ErrorCode::NONE);
  EXPECT_EQ(known().last_timestamp, ended);
  world.clock.pass(std::chrono::seconds(5));
  restart(false);
  EXPECT_EQ(known().last_timestamp, ended);
}

TEST_F(TransactionsTest, AStateFromBeforeThereWereTransactionsIsRead) {
  ASSERT_EQ(write({.producer = 5, .sequence = 6, .transactional = false}), ErrorCode::NONE);
  Checkpoint moment = partition->checkpoint();
  BlobWriter old;
  old.number(std::uint16_t{1});  // state
  old.number(std::uint32_t{0});  // epochs
  old.number(std::uint16_t{1});  // producers
  old.number(std::uint32_t{1});
  old.number(std::int64_t{5});
  old.number(std::int16_t{0});
  old.number(std::int64_t{1000});
  old.number(std::uint16_t{1});
  old.number(std::int32_t{16});  // not what the log has: what is used tells
  old.number(std::int32_t{16});
  for (const std::int64_t value : {0, 0, 1000}) old.number(value);
  moment.state = old.take();
  ASSERT_TRUE(Partition::check_state(moment.state, moment.upto));
  ASSERT_TRUE(partition->log().checkpoint(moment));
  restart(false);
  EXPECT_FALSE(known(5).in_transaction());
  EXPECT_EQ(known(5).coordinator_epoch, -1);
  EXPECT_EQ(write({.producer = 5, .sequence = 17}), ErrorCode::NONE);
  EXPECT_EQ(stable(), 1);
}

TEST_F(TransactionsTest, AStateThatCannotBeIsRefusedAndRebuiltFromTheLog) {
  ASSERT_EQ(write({.producer = 1}), ErrorCode::NONE);
  ASSERT_EQ(finish({.producer = 1}), ErrorCode::NONE);
  ASSERT_EQ(write({.producer = 2}), ErrorCode::NONE);
  const Checkpoint sound = partition->checkpoint();
  ASSERT_TRUE(Partition::check_state(sound.state, sound.upto));
  EXPECT_FALSE(Partition::check_state(sound.state, Sequence(3)));  // the open one begins at its end
  EXPECT_FALSE(Partition::check_state(sound.state, Sequence(2)));  // the marker is beyond it
  for (std::size_t size = 0; size < sound.state.size(); ++size) {
    EXPECT_FALSE(Partition::check_state(Bytes(sound.state).first(size), sound.upto)) << size;
  }
  for (std::size_t at = 0; at < sound.state.size(); ++at) {
    for (const unsigned bits : {0x01U, 0x80U, 0xFFU}) {
      Buffer changed = sound.state;
      changed[at] ^= static_cast<std::byte>(bits);
      (void)Partition::check_state(changed, sound.upto);  // whatever it says: no crash
    }
  }
  Checkpoint bad = sound;
  bad.state.back() ^= std::byte{0xFF};  // the producer of the aborted one
  ASSERT_FALSE(Partition::check_state(bad.state, bad.upto));
  ASSERT_TRUE(partition->log().checkpoint(bad));
  restart(false);
  EXPECT_EQ(stable(), 2);
  EXPECT_EQ(aborted_in(*partition), (Aborted{entry(1, 0, 1, 2)}));
}

}  // namespace
}  // namespace kanal::log::test
