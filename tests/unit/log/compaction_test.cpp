// Whole passes over a log against a small model, and the log around the gaps they leave.
#include "keyed.hpp"

#include <map>
#include <random>
#include <set>

namespace kanal::log::test {
namespace {

constexpr std::int64_t kDay = 86'400'000;

std::vector<std::string> keys_of(const std::vector<KeyedBatch>& batches) {
  std::vector<std::string> keys;
  for (const KeyedRecord& record : records_in(batches)) {
    keys.push_back(std::to_string(record.offset) + record.key.value_or("?") + "=" +
                   record.value.value_or("-"));
  }
  return keys;
}
using Keys = std::vector<std::string>;

class CompactionTest : public ::testing::Test {
 protected:
  CompactionTest() {
    world.options.segment_bytes = 400;
    world.options.index_interval_bytes = 100;
  }
  /// A new active segment, so that all before is cleanable.
  void roll(Partition& partition) {
    const auto segments = partition.facts().segments.size();
    for (int i = 0; partition.facts().segments.size() == segments; ++i) {
      put(world, partition, "roll" + std::to_string(i), std::string(150, 'r'));
    }
  }
  World world;
};

TEST_F(CompactionTest, KeepsTheLastValueOfEachKeyAndItsOffset) {
  const auto partition = world.open();
  for (const char* value : {"1", "2", "3"}) {
    put(world, *partition, "a", value);
    put(world, *partition, "b", value);
  }
  put(world, *partition, "c", "1");
  roll(*partition);
  const auto stats = pass(world, *partition);
  ASSERT_TRUE(stats);
  Keys keys = keys_of(batches_from(world, *partition, 0));
  keys.resize(3);
  EXPECT_EQ(keys, (Keys{"4a=3", "5b=3", "6c=1"}));
  EXPECT_EQ(partition->watermarks().log_start, Offset(0));
  EXPECT_FALSE(pass(world, *partition));  // nothing is dirty any more
}

TEST_F(CompactionTest, ATombstoneStaysForTheRetentionAfterItsFirstCleaning) {
  const auto partition = world.open();
  put(world, *partition, "a", "1");
  put(world, *partition, "a", std::nullopt);
  roll(*partition);
  pass(world, *partition);
  auto batches = batches_from(world, *partition, 0);
  EXPECT_EQ(keys_of(batches).front(), "1a=-");
  EXPECT_EQ(batches.front().horizon, world.clock.wall().value() + kDay);
  EXPECT_EQ(batches.front().records.front().timestamp, 1000);
  world.clock.pass(std::chrono::milliseconds(kDay - 1));
  roll(*partition);
  pass(world, *partition);
  EXPECT_EQ(keys_of(batches_from(world, *partition, 0)).front(), "1a=-");
  world.clock.pass(std::chrono::milliseconds(1));
  roll(*partition);
  pass(world, *partition);
  EXPECT_NE(keys_of(batches_from(world, *partition, 0)).front(), "1a=-");
}

TEST_F(CompactionTest, RecordsWithoutAKeyFromBeforeAreDropped) {
  const auto partition = world.open();
  put(world, *partition, {{{std::nullopt, "x"}, {"a", "1"}, {std::nullopt, "y"}}});
  roll(*partition);
  const auto stats = pass(world, *partition);
  EXPECT_EQ(stats->keyless, 2u);
  EXPECT_EQ(keys_of(batches_from(world, *partition, 0)).front(), "1a=1");
}

TEST_F(CompactionTest, TheLastSequenceOfAProducerOutlivesItsRecordsAndARestart) {
  auto partition = world.open();
  put(world, *partition, {{{"a", "1"}}, records::Codec::kZstd, 9, 0});
  put(world, *partition, {{{"a", "2"}, {"b", "2"}}, records::Codec::kZstd, 9, 1});
  put(world, *partition, "a", "3");
  put(world, *partition, "b", "3");
  roll(*partition);
  pass(world, *partition);
  const auto first = batches_from(world, *partition, 0).front();
  EXPECT_TRUE(first.records.empty());
  EXPECT_EQ(first.base, 1);
  EXPECT_EQ(first.last, 2);
  partition.reset();
  world.disk.erase(world.path("checkpoint"));
  world.kill();
  partition = world.open();
  Buffer again = encode({{{"a", "2"}, {"b", "2"}}, records::Codec::kNone, 9, 1});
  const auto twice =
      partition->append(again, records::parse_header(again).value(), world.clock.wall());
  ASSERT_TRUE(twice) << twice.error().detail;
  EXPECT_TRUE(twice->duplicate);
  EXPECT_EQ(twice->base_offset, Offset(1));
  Buffer next = encode({{{"a", "4"}}, records::Codec::kNone, 9, 3});
  EXPECT_TRUE(partition->append(next, records::parse_header(next).value(), world.clock.wall()));
}

TEST_F(CompactionTest, MoreKeysThanTheMapTakesAreCleanedInSeveralPasses) {
  world.options.segment_bytes = 4000;
  const auto partition = world.open();
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 300; ++i) put(world, *partition, "k" + std::to_string(i), "v");
  }
  roll(*partition);
  PassOptions small;
  small.options.map_bytes = 24 * 50;
  int passes = 0;
  Sequence before{1};
  for (; passes < 100; ++passes) {
    const auto stats = pass(world, *partition, small);
    if (!stats) break;
    EXPECT_LE(stats->keys, 45u);
    EXPECT_GT(stats->first_dirty, before);
    before = stats->first_dirty;
  }
  EXPECT_GT(passes, 5);
  const auto records = records_in(batches_from(world, *partition, 0));
  std::set<std::string> cleaned;
  for (const KeyedRecord& record : records) {
    if (record.offset >= 600) continue;
    EXPECT_TRUE(cleaned.insert(*record.key).second) << *record.key;
  }
  EXPECT_EQ(cleaned.size(), 300u);
  for (int i = 0; i < 300; ++i) EXPECT_TRUE(cleaned.contains("k" + std::to_string(i)));
}

TEST_F(CompactionTest, SegmentsThatShrankAreMergedAndTheirFilesGo) {
  const auto partition = world.open();
  for (int i = 0; i < 200; ++i) put(world, *partition, "k" + std::to_string(i % 3), "value");
  roll(*partition);
  EXPECT_GT(partition->facts().segments.size(), 30u);
  for (int i = 0; i < 8; ++i) {
    put(world, *partition, "x", "y");
    roll(*partition);
    pass(world, *partition);
  }
  EXPECT_LT(partition->facts().segments.size(), 8u);
  std::size_t files = 0;
  for (const std::string& file : world.disk.files()) files += file.ends_with(".log") ? 1 : 0;
  EXPECT_EQ(files, partition->facts().segments.size());
  const auto total = partition->bytes();
  std::uint64_t sum = 0;
  for (const SegmentFacts& segment : partition->facts().segments) sum += segment.bytes;
  EXPECT_EQ(total, sum);
}

TEST_F(CompactionTest, AGroupWithoutRecordsKeepsABatchSoThatItsEndIsFound) {
  const auto partition = world.open();
  for (int i = 0; i < 40; ++i) put(world, *partition, "a", "v");
  roll(*partition);
  pass(world, *partition);
  for (const SegmentFacts& segment : partition->facts().segments) EXPECT_GT(segment.bytes, 0u);
  for (std::int64_t from = 0; from < partition->watermarks().high_watermark.value(); ++from) {
    const auto batches = batches_from(world, *partition, from, 1);
    ASSERT_FALSE(batches.empty());
    EXPECT_EQ(batches.back().last + 1, partition->watermarks().high_watermark.value());
  }
}

TEST_F(CompactionTest, ATimestampIsFoundBehindEmptiedBatches) {
  auto partition = world.open();
  put(world, *partition, {{{"a", "1", 5000}}, records::Codec::kNone, 9, 0});
  put(world, *partition, "b", "1", 3000);
  put(world, *partition, "a", "2", 2000);
  roll(*partition);
  pass(world, *partition);
  const auto hit = found(world, [&] { return partition->find(Timestamp(2500)); });
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->sequence, to_sequence(Offset(1)));
  const auto largest = found(world, [&] { return partition->find_max(); });
  ASSERT_TRUE(largest);
  EXPECT_EQ(largest->sequence, to_sequence(Offset(1)));
  EXPECT_EQ(largest->timestamp, Timestamp(3000));
  partition.reset();
  world.kill();
  partition = world.open();
  const auto again = found(world, [&] { return partition->find_max(); });
  EXPECT_EQ(again->sequence, to_sequence(Offset(1)));
}

TEST_F(CompactionTest, ATrimIntoAGapHolds) {
  auto partition = world.open();
  for (int i = 0; i < 60; ++i) put(world, *partition, "k" + std::to_string(i % 4), "value");
  roll(*partition);
  pass(world, *partition);
  ASSERT_TRUE(partition->trim(Offset(30)));
  world.helpers.run();
  EXPECT_EQ(records_in(batches_from(world, *partition, 30)).front().offset, 56);
  partition.reset();
  world.kill();
  partition = world.open();
  EXPECT_EQ(partition->watermarks().log_start, Offset(30));
  EXPECT_EQ(records_in(batches_from(world, *partition, 30)).front().offset, 56);
  put(world, *partition, "k0", "new");
  roll(*partition);
  EXPECT_TRUE(pass(world, *partition));
}

TEST_F(CompactionTest, ATrimDuringAPassGivesTheSwapUp) {
  const auto partition = world.open();
  for (int i = 0; i < 60; ++i) put(world, *partition, "k" + std::to_string(i % 4), "value");
  roll(*partition);
  const Cleanable range = partition->cleanable(Sequence(1), {}, world.clock.wall());
  const auto running = partition->compact(range, {});
  for (int i = 0; i < 65; ++i) ASSERT_TRUE(running->step(1));
  ASSERT_TRUE(partition->trim(Offset(20)));
  world.helpers.run();
  for (;;) {
    const auto step = running->step(1 << 20);
    ASSERT_TRUE(step) << step.error().detail;
    partition->adopt_rewritten();
    if (*step == Compaction::Step::kDone) break;
  }
  world.helpers.run();
  EXPECT_TRUE(running->stats().superseded);
  EXPECT_EQ(batches_from(world, *partition, 20).size(),
            static_cast<std::size_t>(partition->watermarks().high_watermark.value() - 20));
  EXPECT_TRUE(pass(world, *partition));
}

TEST_F(CompactionTest, ATrimBetweenDecisionAndAdoptionLosesNothing) {
  for (const std::int64_t start : {5, 20, 58}) {
    World other;
    other.options = world.options;
    auto partition = other.open();
    for (int i = 0; i < 60; ++i) put(other, *partition, "k" + std::to_string(i % 4), "value");
    for (int i = 0; i < 4; ++i) put(other, *partition, "end", std::string(150, 'r'));
    ASSERT_TRUE(pass(other, *partition, {.adopt = false}));
    ASSERT_TRUE(partition->trim(Offset(start)));
    other.helpers.run();
    partition->adopt_rewritten();
    other.helpers.run();
    const auto before = batches_from(other, *partition, start);
    EXPECT_EQ(records_in(before).front().offset, start < 56 ? 56 : start);
    partition.reset();
    other.kill();
    partition = other.open();
    EXPECT_EQ(batches_from(other, *partition, start), before);
  }
}

TEST_F(CompactionTest, ACleanStopAndStartKeepsTheFirstDirtyOffset) {
  auto partition = world.open();
  for (int i = 0; i < 60; ++i) put(world, *partition, "k" + std::to_string(i % 4), "value");
  roll(*partition);
  pass(world, *partition);
  const auto before = batches_from(world, *partition, 0);
  const Sequence dirty = partition->log().first_dirty().value();
  EXPECT_GT(dirty, Sequence(1));
  world.stop({partition.get()});
  partition.reset();
  world.start();
  partition = world.open();
  EXPECT_FALSE(world.report.scanned);
  EXPECT_EQ(partition->log().first_dirty().value(), dirty);
  EXPECT_EQ(batches_from(world, *partition, 0), before);
  put(world, *partition, "k0", "new");
  roll(*partition);
  EXPECT_TRUE(pass(world, *partition));
}

/// Kafka's rules once more, written down naively over whole batches in memory.
class Model {
 public:
  std::vector<KeyedBatch> batches;

  /// `mapped`: how far the pass came; batches of segments that begin below it are cleaned, up to
  /// `cleaned`.
  void clean(std::int64_t dirty, std::int64_t mapped, std::int64_t cleaned, std::int64_t now) {
    std::map<std::string, std::int64_t> last;
    for (const KeyedRecord& record : records_in(batches)) {
      if (record.offset >= dirty && record.offset < mapped && record.key) {
        last[*record.key] = record.offset;
      }
    }
    std::map<std::int64_t, std::int64_t> producers;
    for (const KeyedBatch& batch : batches) producers[batch.producer] = batch.last;
    std::vector<KeyedBatch> kept;
    for (KeyedBatch batch : batches) {
      if (batch.base >= cleaned) {
        kept.push_back(batch);
        continue;
      }
      const auto keep = [&](const KeyedRecord& record) {
        if (record.offset >= mapped) return true;
        if (!record.key) return false;
        const auto found = last.find(*record.key);
        if (found != last.end() && record.offset < found->second) return false;
        return record.value.has_value() || !batch.horizon || now < *batch.horizon;
      };
      std::erase_if(batch.records, [&](const KeyedRecord& record) { return !keep(record); });
      if (batch.records.empty()) {
        if (batch.producer < 0 || producers[batch.producer] != batch.last) continue;
        batch.horizon.reset();
        batch.codec = records::Codec::kNone;
      }
      const bool tombstone = std::ranges::any_of(
          batch.records, [](const KeyedRecord& record) { return !record.value; });
      if (tombstone && !batch.horizon) batch.horizon = now + kRetention;
      kept.push_back(batch);
    }
    batches = std::move(kept);
  }
  static constexpr std::int64_t kRetention = 5'000;
};

/// Batches that only end a gap are not Kafka's.
std::vector<KeyedBatch> without_markers(std::vector<KeyedBatch> batches) {
  std::erase_if(
      batches, [](const KeyedBatch& batch) { return batch.records.empty() && batch.producer < 0; });
  return batches;
}

class ModelTest : public CompactionTest, public ::testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Seeds, ModelTest, ::testing::Range(1, 13));

TEST_P(ModelTest, APassDoesWhatKafkasRulesSay) {
  std::mt19937 dice(static_cast<unsigned>(GetParam()));
  const auto roll_dice = [&](int sides) {
    return static_cast<int>(dice() % static_cast<unsigned>(sides));
  };
  world.options.segment_bytes = 1'500;
  world.options.file_delete_delay_ms = roll_dice(2) * 1'000;
  auto partition = world.open();
  Model model;
  std::map<std::int64_t, std::int32_t> sequences;
  for (int round = 0; round < 12; ++round) {
    for (int i = 0; i < 25; ++i) {
      KeyedBatch batch;
      batch.codec = static_cast<records::Codec>(roll_dice(5));
      const int count = 1 + roll_dice(4);
      for (int j = 0; j < count; ++j) {
        KeyedRecord record;
        if (roll_dice(20) != 0) record.key = "key" + std::to_string(roll_dice(30));
        if (roll_dice(5) != 0)
          record.value = std::string(static_cast<std::size_t>(roll_dice(60)), 'v');
        record.timestamp = 1'000 + roll_dice(1'000);
        batch.records.push_back(record);
      }
      if (roll_dice(3) == 0) {
        batch.producer = roll_dice(4);
        batch.sequence = sequences[batch.producer];
        sequences[batch.producer] += count;
      }
      if (roll_dice(6) == 0) {
        batch.append_time = 5'000;
        for (KeyedRecord& record : batch.records) record.timestamp = 5'000;
      }
      batch.base = put(world, *partition, batch);
      batch.last = batch.base + count - 1;
      for (int j = 0; j < count; ++j)
        batch.records[static_cast<std::size_t>(j)].offset = batch.base + j;
      model.batches.push_back(batch);
    }
    world.clock.pass(std::chrono::milliseconds(roll_dice(4'000)));
    PassOptions with;
    with.options.delete_retention_ms = Model::kRetention;
    with.options.map_bytes = static_cast<std::uint64_t>(24 * (5 + roll_dice(60)));
    with.slice = static_cast<std::uint64_t>(1 + roll_dice(2'000));
    const std::int64_t dirty =
        std::max(to_offset(partition->log().first_dirty().value()).value(), std::int64_t{0});
    const auto segments = partition->facts().segments;
    const auto stats = pass(world, *partition, with);
    ASSERT_TRUE(stats);
    const std::int64_t mapped = to_offset(stats->first_dirty).value();
    std::int64_t cleaned = 0;
    for (const SegmentFacts& segment : segments) {
      if (to_offset(segment.base).value() < mapped) cleaned = to_offset(segment.end).value();
    }
    model.clean(dirty, mapped, cleaned, world.clock.wall().value());
    ASSERT_EQ(without_markers(batches_from(world, *partition, 0)), model.batches)
        << "round " << round;
    if (roll_dice(3) == 0) {
      partition.reset();
      if (roll_dice(2) == 0) world.disk.erase(world.path("checkpoint"));
      world.kill();
      partition = world.open();
      ASSERT_EQ(without_markers(batches_from(world, *partition, 0)), model.batches);
    }
  }
  // Whoever asks for any offset, or any time, gets what comes next.
  const std::int64_t end = partition->watermarks().high_watermark.value();
  for (std::int64_t from = 0; from < end; ++from) {
    const auto [bytes, next] = fetch(world, *partition, from, 1);
    const KeyedBatch first =
        decode(Bytes(bytes).first(records::parse_header(bytes).value().size()));
    EXPECT_GE(first.last, from);
    EXPECT_GT(next, first.last);
    const auto following = std::ranges::find_if(
        model.batches, [&](const KeyedBatch& batch) { return batch.base > first.last; });
    if (following != model.batches.end()) {
      EXPECT_LE(next, following->base);
    }
    const auto behind = std::ranges::find_if(
        model.batches, [&](const KeyedBatch& batch) { return batch.last >= from; });
    if (first.records.empty() && first.producer < 0) continue;
    EXPECT_EQ(first, *behind);
  }
  for (std::int64_t time = 1'000; time < 2'001; time += 50) {
    const auto hit = found(world, [&] { return partition->find(Timestamp(time)); });
    const auto expected = std::ranges::find_if(model.batches, [&](const KeyedBatch& batch) {
      return std::ranges::any_of(
          batch.records, [&](const KeyedRecord& record) { return record.timestamp >= time; });
    });
    ASSERT_EQ(hit.has_value(), expected != model.batches.end());
    if (!hit) continue;
    EXPECT_EQ(to_offset(hit->sequence).value(), expected->base);
  }
}

}  // namespace
}  // namespace kanal::log::test
