// How long compaction keeps a transaction's marker: as long as some state that a crash would go
// back to needs it.
#include "transactional.hpp"

namespace kanal::log::test {
namespace {

class MarkerLife : public ::testing::Test {
 protected:
  MarkerLife() {
    world.options.segment_bytes = 400;
    world.options.index_interval_bytes = 100;
    with.options.delete_retention_ms = 1000;
    partition = world.open();
  }
  /// Its only record is overwritten, and the producer forgotten where it is not of version 2.
  void one_committed(std::int16_t version, bool checkpoint_while_open) {
    ASSERT_TRUE(write(world, *partition, {.sequence = 0, .key = "a", .value = "first"}));
    if (checkpoint_while_open) checkpoint(*partition);
    const auto epoch = static_cast<std::int16_t>(version == 2 ? 1 : 0);
    ASSERT_TRUE(finish(world, *partition, {.epoch = epoch, .commit = true, .version = version}));
    put(world, *partition, "a", "second");
    if (version < 2) {
      ASSERT_EQ(partition->expire_producers(world.clock.wall() + 10, 1), 1U);
    }
  }
  /// Cleans everything that is there now, a while later.
  void clean() {
    world.clock.pass(std::chrono::milliseconds(2000));
    const auto segments = partition->facts().segments.size();
    for (int i = 0; partition->facts().segments.size() == segments; ++i)
      put(world, *partition, "roll" + std::to_string(i), std::string(150, 'r'));
    ASSERT_TRUE(pass(world, *partition, with));
  }
  void kill() {
    partition.reset();
    world.kill();
    partition = world.open();
  }
  bool has_marker() {
    const auto batches = batches_from(world, *partition, 0);
    return std::ranges::any_of(
        batches, [](const KeyedBatch& batch) { return batch.base == 1 && !batch.records.empty(); });
  }
  std::int64_t stable() { return partition->watermarks().last_stable.value(); }
  std::int64_t high() { return partition->watermarks().high_watermark.value(); }

  World world;
  PassOptions with;
  std::unique_ptr<Partition> partition;
};

TEST_F(MarkerLife, OfACommitLastsWhileTheCheckpointHasItsTransactionOpen) {
  for (const std::int16_t version : {std::int16_t{1}, std::int16_t{2}}) {
    SCOPED_TRACE(version);
    world.incarnation += 1;
    partition = world.open(version == 1 ? "one" : "two");
    one_committed(version, true);
    for (int i = 0; i < 4; ++i) clean();
    EXPECT_TRUE(has_marker());
    partition.reset();
    world.kill();
    partition = world.open(version == 1 ? "one" : "two");
    EXPECT_EQ(stable(), high());
    EXPECT_FALSE(partition->in_transaction(ProducerId(1), ProducerEpoch(0)));
  }
}

TEST_F(MarkerLife, OfACommitEndsOnceACheckpointHasItsTransactionEnded) {
  one_committed(1, true);
  checkpoint(*partition);
  for (int i = 0; i < 4; ++i) clean();
  EXPECT_FALSE(has_marker());
  kill();
  EXPECT_EQ(stable(), high());
}

TEST_F(MarkerLife, EndsWhereThereIsNoCheckpointAtAll) {
  one_committed(1, false);
  for (int i = 0; i < 4; ++i) clean();
  EXPECT_FALSE(has_marker());
  kill();
  EXPECT_EQ(stable(), high());
}

TEST_F(MarkerLife, LastsWhileACheckpointThatWasNotUsedMayBeUsedOneDay) {
  one_committed(1, true);
  Checkpoint moment = partition->checkpoint();
  moment.state.push_back(std::byte{0});
  ASSERT_TRUE(partition->log().checkpoint(moment));
  kill();
  EXPECT_EQ(stable(), high());
  (void)partition->expire_producers(world.clock.wall(), 0);
  for (int i = 0; i < 4; ++i) clean();
  EXPECT_TRUE(has_marker());
  checkpoint(*partition);
  put(world, *partition, "more", "1");
  clean();
  EXPECT_FALSE(has_marker());
}

/// What older compactions may have left.
TEST_F(MarkerLife, AnEmptiedMarkerEndsAllThatItsProducerHadBefore) {
  ASSERT_TRUE(write(world, *partition, {.epoch = 3, .key = "a"}));
  checkpoint(*partition);
  records::MarkerOptions options;
  options.producer_id = ProducerId(1);
  options.producer_epoch = ProducerEpoch(4);
  const Buffer marker = records::build_marker({records::ControlType::kCommit, 0}, options);
  Buffer bytes = records::emptied(records::read_header(marker.data()));
  ASSERT_TRUE(partition->append(bytes, records::parse_header(bytes).value(), world.clock.wall()));
  kill();
  EXPECT_EQ(stable(), high());
  EXPECT_EQ(partition->producers().producers().at(ProducerId(1)).epoch, ProducerEpoch(4));
  EXPECT_TRUE(aborted_in(*partition).empty());
  checkpoint(*partition);
  kill();
  EXPECT_EQ(stable(), high());
}

}  // namespace
}  // namespace kanal::log::test
