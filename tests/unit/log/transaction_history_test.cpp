// Random histories of transactions held against the naive model: after each step, after restarts,
// kills, trims, and what a reader is left with after compaction.
#include "transactional.hpp"

#include <random>

namespace kanal::log::test {
namespace {

constexpr int kProducers = 6;

struct Writer {
  std::int64_t id = 0;
  std::int16_t epoch = 0;
  std::int32_t sequence = 0;
  bool open = false;
  std::vector<std::string> pending = {};  // what its open transaction would make visible
};

class History {
 public:
  explicit History(unsigned seed) : random(seed) {
    world.options.segment_bytes = 600;
    world.options.index_interval_bytes = 100;
    world.options.ack_after_sync = seed % 3 == 0;
    for (int i = 0; i < kProducers; ++i) writers.push_back({.id = i + 1});
    partition = world.open();
  }

  int below(int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); }
  std::int64_t end() { return partition->watermarks().staged_end.value(); }

  void wrote(std::int64_t producer, const Result<AppendResult>& result,
             TxnModel::Written::Kind kind) {
    ASSERT_TRUE(result) << result.error().detail;
    model.written.push_back(
        {producer, result->base_offset.value(), to_offset(result->last).value(), kind});
  }

  void data(bool transactional) {
    Writer& writer = writers[static_cast<std::size_t>(below(kProducers))];
    TxnBatch batch{writer.id, writer.epoch, writer.sequence, 1 + below(3), transactional};
    batch.key = "k" + std::to_string(below(5));
    batch.value = std::to_string(++values);
    const auto result = write(world, *partition, batch);
    if (!transactional && writer.open) {
      EXPECT_EQ(code_of(result), ErrorCode::INVALID_TXN_STATE);
      return;
    }
    using Kind = TxnModel::Written::Kind;
    wrote(writer.id, result, transactional ? Kind::kTransactional : Kind::kPlain);
    writer.sequence += batch.records;
    std::vector<std::string>& target = transactional ? writer.pending : visible;
    for (std::int32_t i = 0; i < batch.records; ++i) {
      target.push_back(std::to_string(result->base_offset.value() + i) + " " + batch.key + "=" +
                       batch.value);
    }
    writer.open = writer.open || transactional;
  }

  void finish_one() {
    Writer& writer = writers[static_cast<std::size_t>(below(kProducers))];
    const bool raise = below(2) == 0;
    End end{writer.id, writer.epoch, below(2) == 0, 0, 1};
    if (raise) {
      end.version = 2;
      ++end.epoch;
    }
    using Kind = TxnModel::Written::Kind;
    wrote(writer.id, finish(world, *partition, end), end.commit ? Kind::kCommit : Kind::kAbort);
    if (raise) {
      ++writer.epoch;
      writer.sequence = 0;
    }
    if (end.commit) visible.insert(visible.end(), writer.pending.begin(), writer.pending.end());
    writer.pending.clear();
    writer.open = false;
    if (below(4) > 0) return;  // else the same once more, as after a crash of the coordinator
    wrote(writer.id, finish(world, *partition, end), end.commit ? Kind::kCommit : Kind::kAbort);
  }

  /// Those without an open transaction are forgotten; who had them begins anew, as others.
  void forget_idle() {
    (void)partition->expire_producers(world.clock.wall() + 1, 1);
    for (Writer& writer : writers)
      if (!writer.open) writer = {.id = ++last_id};
  }

  void restart(bool clean) {
    if (clean) world.stop({partition.get()});
    partition.reset();
    world.kill();
    partition = world.open();
  }

  void check(const std::string& when) {
    model.high = partition->watermarks().high_watermark.value();
    model.start = partition->watermarks().log_start.value();
    EXPECT_EQ(partition->watermarks().last_stable.value(), model.last_stable()) << when;
    EXPECT_EQ(aborted_in(*partition), model.aborted()) << when;
    const auto from = static_cast<std::int64_t>(below(static_cast<int>(end()) + 1));
    const auto upto = from + below(30);
    EXPECT_EQ(aborted_in(*partition, from, upto), model.aborted(from, upto))
        << when << " " << from << " " << upto;
  }

  std::mt19937 random;
  World world;
  std::unique_ptr<Partition> partition;
  std::vector<Writer> writers;
  TxnModel model;
  std::vector<std::string> visible;  // to a read_committed consumer, in any order
  int values = 0;
  std::int64_t last_id = kProducers;
};

std::string step(History& history, int steps) {
  const int what = history.below(100);
  if (what < 45) return history.data(true), "transactional";
  if (what < 55) return history.data(false), "plain";
  if (what < 75) return history.finish_one(), "end";
  if (what < 90) {
    const Bounds bounds = history.partition->log().bounds();
    const auto high = history.partition->watermarks().high_watermark.value();
    const auto unseen = static_cast<int>(bounds.staged_end.value() - 1 - high);
    history.partition->commit(Sequence(high + 1 + history.below(unseen + 1)));
    return "committed";
  }
  if (what < 94) return checkpoint(*history.partition), "checkpoint";
  if (what < 96) return history.restart(true), "clean stop";
  if (what < 98) return history.restart(false), "kill";
  if (steps < 100) return "nothing";
  // What goes is in the checkpoint first, as the broker sees to (covered_start).
  checkpoint(*history.partition);
  const Watermarks marks = history.partition->watermarks();
  const auto room = static_cast<int>((marks.high_watermark.value() - marks.log_start.value()) / 4);
  EXPECT_TRUE(history.partition->trim(marks.log_start + history.below(room + 1)));
  return "trim";
}

TEST(TransactionHistories, GiveWhatLookingAtEveryBatchGives) {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    History history(seed);
    for (int steps = 0; steps < 250 && !::testing::Test::HasFailure(); ++steps) {
      const std::string did = step(history, steps);
      history.check(std::to_string(steps) + " " + did);
    }
  }
}

TEST(TransactionHistories, AreRebuiltFromTheLogAloneWhereNoCheckpointIsLeft) {
  for (unsigned seed = 21; seed <= 24; ++seed) {
    SCOPED_TRACE(seed);
    History history(seed);
    for (int steps = 0; steps < 200; ++steps)
      history.below(3) > 0 ? history.data(true) : history.finish_one();
    checkpoint(*history.partition);
    history.world.disk.erase(history.world.path("checkpoint"));
    history.restart(false);
    history.check("rebuilt");
  }
}

TEST(TransactionHistories, AReadCommittedConsumerSeesWhatWasCommittedWhateverItsFetchesTake) {
  for (unsigned seed = 31; seed <= 36; ++seed) {
    SCOPED_TRACE(seed);
    History history(seed);
    for (int steps = 0; steps < 200; ++steps) {
      const int what = history.below(6);
      what < 4 ? history.data(what < 3) : history.finish_one();
    }
    history.partition->commit(history.partition->log().bounds().staged_end);
    for (const Writer& writer : history.writers) {  // nothing stays open
      ASSERT_TRUE(finish(history.world, *history.partition,
                         {.producer = writer.id, .epoch = writer.epoch}));
    }
    history.partition->commit(history.partition->log().bounds().staged_end);
    std::ranges::sort(history.visible);
    for (const std::uint32_t bytes : {1U, 200U, 100'000U}) {
      std::vector<std::string> seen = committed_in(history.world, *history.partition, bytes);
      std::ranges::sort(seen);
      EXPECT_EQ(seen, history.visible) << bytes;
    }
  }
}

/// The last value of each key.
std::map<std::string, std::string> latest(const std::vector<std::string>& records) {
  std::map<std::string, std::pair<std::int64_t, std::string>> found;
  for (const std::string& record : records) {
    const std::int64_t offset = std::stoll(record);
    const std::string key = record.substr(record.find(' ') + 1, 2);
    auto& [last, value] = found[key];
    if (offset >= last) found[key] = {offset, record};
  }
  std::map<std::string, std::string> values;
  for (const auto& [key, value] : found) values[key] = value.second;
  return values;
}

void compacting_step(History& history, int what, const PassOptions& with) {
  if (what < 24) {
    history.data(what < 20);
  } else if (what < 34) {
    history.finish_one();
  } else if (what < 37) {
    pass(history.world, *history.partition, with);
  } else if (what == 37) {
    history.world.clock.pass(std::chrono::milliseconds(700));
  } else if (what == 38) {
    history.below(3) == 0 ? checkpoint(*history.partition) : history.forget_idle();
  } else {
    history.restart(history.below(4) == 0);
  }
}

TEST(TransactionHistories, CompactionCrashesAndTimeLeaveAReaderTheLastCommittedValues) {
  for (unsigned seed = 41; seed <= 48; ++seed) {
    SCOPED_TRACE(seed);
    History history(seed);
    history.world.options.ack_after_sync = false;
    history.partition->configure(history.world.options);
    PassOptions with;
    with.options.delete_retention_ms = seed % 2 == 0 ? 1000 : 0;
    for (int steps = 0; steps < 400 && !::testing::Test::HasFailure(); ++steps) {
      const int what = history.below(40);
      compacting_step(history, what, with);
      history.model.high = history.partition->watermarks().high_watermark.value();
      EXPECT_EQ(history.partition->watermarks().last_stable.value(), history.model.last_stable())
          << steps << " " << what;
      const auto bytes = static_cast<std::uint32_t>(1 + history.below(1000));
      const std::vector<std::string> seen = committed_in(history.world, *history.partition, bytes);
      const std::int64_t stable = history.partition->watermarks().last_stable.value();
      std::vector<std::string> expected;
      for (const std::string& record : history.visible)
        if (std::stoll(record) < stable) expected.push_back(record);
      EXPECT_EQ(latest(seen), latest(expected)) << steps << " " << what;
      for (const std::string& record : seen)
        EXPECT_NE(std::ranges::find(expected, record), expected.end()) << steps << " " << record;
    }
  }
}

class AbortedMarker : public ::testing::Test {
 protected:
  AbortedMarker() {
    world.options.segment_bytes = 400;
    world.options.index_interval_bytes = 100;
    with.options.delete_retention_ms = 1000;
    partition = world.open();
    EXPECT_TRUE(write(world, *partition, {.sequence = 0, .key = "a", .value = "aborted"}));
    EXPECT_TRUE(finish(world, *partition, {}));
    EXPECT_TRUE(write(world, *partition, {.sequence = 1, .key = "b", .value = "committed"}));
    EXPECT_TRUE(finish(world, *partition, {.commit = true}));
    checkpoint(*partition);
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
    return std::ranges::any_of(batches, [](const KeyedBatch& batch) { return batch.base == 1; });
  }
  bool reader_sees_what_was_committed_after_it() {
    const auto seen = committed_in(world, *partition, 1 << 20);
    return std::ranges::find(seen, "2 b=committed") != seen.end();
  }

  World world;
  PassOptions with;
  std::unique_ptr<Partition> partition;
};

TEST_F(AbortedMarker, GoesOnceTheListWithoutItsTransactionIsStored) {
  clean();  // the records go
  EXPECT_EQ(aborted_in(*partition).size(), 1U);
  clean();  // nothing is left of it: it leaves the list, the marker has its time
  EXPECT_TRUE(aborted_in(*partition).empty());
  EXPECT_TRUE(has_marker());
  put(world, *partition, "more", "1");
  checkpoint(*partition);
  clean();
  EXPECT_FALSE(has_marker());
  kill();
  EXPECT_TRUE(aborted_in(*partition).empty());
  EXPECT_TRUE(reader_sees_what_was_committed_after_it());
}

TEST_F(AbortedMarker, StaysWhileTheStoredListStillHasItsTransaction) {
  for (int i = 0; i < 4; ++i) clean();
  EXPECT_TRUE(aborted_in(*partition).empty());
  EXPECT_TRUE(has_marker());
  kill();
  EXPECT_EQ(aborted_in(*partition).size(), 1U);  // the checkpoint's
  EXPECT_TRUE(reader_sees_what_was_committed_after_it());
}

TEST_F(AbortedMarker, StaysForThePassThatFirstFindsItsTransactionWithoutRecordsAgain) {
  clean();
  clean();
  kill();
  EXPECT_EQ(aborted_in(*partition).size(), 1U);
  clean();
  EXPECT_TRUE(aborted_in(*partition).empty());
  kill();
  EXPECT_EQ(aborted_in(*partition).size(), 1U);
  EXPECT_TRUE(has_marker());
  EXPECT_TRUE(reader_sees_what_was_committed_after_it());
}

}  // namespace
}  // namespace kanal::log::test
