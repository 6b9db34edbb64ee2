#include "kanal/log/compaction.hpp"

#include "key_map.hpp"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>

namespace kanal::log {
namespace {

constexpr Timestamp kNow{1'000'000};

SegmentFacts segment(std::int64_t base, std::int64_t end, std::uint64_t bytes,
                     std::int64_t newest = 0, std::int64_t first = 0) {
  return {Sequence(base), Sequence(end), bytes, Timestamp(newest), Timestamp(first)};
}

CompactionFacts facts() {
  CompactionFacts facts;
  facts.segments = {
      segment(1, 101, 1000, 500'000, 400'000), segment(101, 201, 2000, 700'000, 510'000),
      segment(201, 301, 4000, 900'000, 710'000), segment(301, 401, 8000, 990'000, 910'000)};
  facts.stable_end = Sequence(401);
  return facts;
}

TEST(Cleanable, EndsAtTheActiveSegment) {
  const Cleanable range = cleanable(facts(), {}, kNow);
  EXPECT_EQ(range.first_dirty, Sequence(1));
  EXPECT_EQ(range.end, Sequence(301));
  EXPECT_EQ(range.clean_bytes, 0u);
  EXPECT_EQ(range.dirty_bytes, 7000u);
  EXPECT_TRUE(range.wanted({}));
}

TEST(Cleanable, EndsBeforeTheSegmentThatHoldsTheLastStableOffset) {
  CompactionFacts of = facts();
  of.stable_end = Sequence(150);
  EXPECT_EQ(cleanable(of, {}, kNow).end, Sequence(101));
  of.stable_end = Sequence(101);
  EXPECT_EQ(cleanable(of, {}, kNow).end, Sequence(101));
  of.stable_end = Sequence(40);
  EXPECT_EQ(cleanable(of, {}, kNow).end, Sequence(1));
  EXPECT_FALSE(cleanable(of, {}, kNow).wanted({0, 1, 0}));
}

TEST(Cleanable, CountsWhatIsCleanAndTheRatioDecides) {
  CompactionFacts of = facts();
  of.first_dirty = Sequence(201);
  Cleanable range = cleanable(of, {}, kNow);
  EXPECT_EQ(range.clean_bytes, 3000u);
  EXPECT_EQ(range.dirty_bytes, 4000u);
  EXPECT_TRUE(range.wanted({0, INT64_MAX, 0.57}));
  EXPECT_FALSE(range.wanted({0, INT64_MAX, 0.58}));
  // Partly dirty: both, as in Kafka.
  of.first_dirty = Sequence(250);
  range = cleanable(of, {}, kNow);
  EXPECT_EQ(range.clean_bytes, 7000u);
  EXPECT_EQ(range.dirty_bytes, 4000u);
  of.first_dirty = Sequence(301);
  range = cleanable(of, {}, kNow);
  EXPECT_EQ(range.dirty_bytes, 0u);
  EXPECT_FALSE(range.wanted({0, INT64_MAX, 0}));
}

TEST(Cleanable, AFirstDirtyOffsetOutsideTheLogMeansAllOfIt) {
  CompactionFacts of = facts();
  of.first_dirty = Sequence(500);
  EXPECT_EQ(cleanable(of, {}, kNow).first_dirty, Sequence(1));
  of.start = Sequence(120);
  of.segments.erase(of.segments.begin());
  of.first_dirty = Sequence(7);
  EXPECT_EQ(cleanable(of, {}, kNow).first_dirty, Sequence(120));
}

TEST(Cleanable, MinLagKeepsWhatIsYoung) {
  EXPECT_EQ(cleanable(facts(), {300'000, INT64_MAX, 0.5}, kNow).end, Sequence(201));
  EXPECT_EQ(cleanable(facts(), {300'001, INT64_MAX, 0.5}, kNow).end, Sequence(101));
  EXPECT_EQ(cleanable(facts(), {600'000, INT64_MAX, 0.5}, kNow).end, Sequence(1));
}

TEST(Cleanable, MaxLagMakesItDueWhateverTheRatio) {
  EXPECT_FALSE(cleanable(facts(), {0, 600'000, 1}, kNow).overdue);
  EXPECT_TRUE(cleanable(facts(), {0, 599'999, 1}, kNow).overdue);
  EXPECT_TRUE(cleanable(facts(), {0, 599'999, 1}, kNow).wanted({0, 599'999, 1}));
  CompactionFacts of = facts();
  of.first_dirty = Sequence(101);
  EXPECT_FALSE(cleanable(of, {0, 599'999, 1}, kNow).overdue);
}

TEST(Cleanable, AnEmptyLogOrOneSegmentIsNotCleaned) {
  EXPECT_FALSE(cleanable({}, {0, 1, 0}, kNow).wanted({0, 1, 0}));
  CompactionFacts one;
  one.segments = {segment(1, 51, 100)};
  one.stable_end = Sequence(51);
  EXPECT_FALSE(cleanable(one, {0, 1, 0}, kNow).wanted({0, 1, 0}));
}

TEST(GroupSegments, FillsASegmentAndNoMore) {
  const auto of = facts().segments;
  EXPECT_EQ(group_segments(of, 7000), (std::vector<std::size_t>{3, 1}));
  EXPECT_EQ(group_segments(of, 6999), (std::vector<std::size_t>{2, 1, 1}));
  EXPECT_EQ(group_segments(of, 1), (std::vector<std::size_t>{1, 1, 1, 1}));
  EXPECT_EQ(group_segments(of, 1 << 30), (std::vector<std::size_t>{4}));
  EXPECT_TRUE(group_segments({}, 1).empty());
}

TEST(GroupSegments, StaysWithinTheSpanOfAnIndex) {
  const std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const std::vector<SegmentFacts> wide{segment(1, 100, 10), segment(100, 2 + most, 10),
                                       segment(2 + most, 3 + most, 10)};
  EXPECT_EQ(group_segments(wide, 1000), (std::vector<std::size_t>{2, 1}));
}

records::BatchHeader data(std::int64_t producer, std::int64_t base, bool transactional = true) {
  records::BatchHeader header;
  header.producer_id = ProducerId(producer);
  header.producer_epoch = ProducerEpoch(0);
  header.base_offset = Offset(base);
  header.record_count = 1;
  if (transactional) header.attributes = records::kTransactionalBit;
  return header;
}
records::BatchHeader control(std::int64_t producer, std::int64_t base) {
  records::BatchHeader header = data(producer, base);
  header.attributes = records::kTransactionalBit | records::kControlBit;
  return header;
}
constexpr records::Marker kCommit{records::ControlType::kCommit, 0};
constexpr records::Marker kAbort{records::ControlType::kAbort, 0};

TEST(CleanedTransactions, AbortedDataGoesAndItsMarkerStaysWhileThereWasAny) {
  CleanedTransactions seen({{ProducerId(1), Offset(10)}, {ProducerId(1), Offset(30)}});
  EXPECT_FALSE(seen.on_batch(data(1, 5)));  // of a transaction before, committed
  EXPECT_FALSE(seen.on_control(control(1, 6), kCommit));
  EXPECT_TRUE(seen.on_batch(data(1, 10)));
  EXPECT_FALSE(seen.on_batch(data(2, 11)));
  EXPECT_FALSE(seen.on_batch(data(1, 12, false)));
  EXPECT_FALSE(seen.on_control(control(1, 13), kAbort));
  // The second one's data is gone already: so may be its marker.
  EXPECT_TRUE(seen.on_control(control(1, 33), kAbort));
  EXPECT_FALSE(seen.on_control(control(2, 34), kCommit));
  EXPECT_TRUE(seen.on_control(control(2, 35), kCommit));
  ASSERT_EQ(seen.kept().size(), 1u);
  EXPECT_EQ(seen.kept()[0].first, Offset(10));
}

TEST(CleanedTransactions, OneThatWasOverBeforeWhatPassesByIsNotItsProducersNext) {
  CleanedTransactions seen({{ProducerId(1), Offset(10), Offset(15)},
                            {ProducerId(1), Offset(20), Offset(29)},
                            {ProducerId(1), Offset(40), Offset(45)}});
  EXPECT_FALSE(seen.on_batch(data(1, 30)));  // committed
  EXPECT_FALSE(seen.on_control(control(1, 31), kCommit));
  EXPECT_TRUE(seen.on_batch(data(1, 40)));
  EXPECT_FALSE(seen.on_control(control(1, 45), kAbort));
  ASSERT_EQ(seen.kept().size(), 1u);
  EXPECT_EQ(seen.kept()[0].last, Offset(45));
}

TEST(CleanedTransactions, TellWhetherAMarkersTransactionIsInTheList) {
  CleanedTransactions seen({{ProducerId(1), Offset(10), Offset(15)}});
  bool listed = false;
  EXPECT_TRUE(seen.on_control(control(1, 15), kAbort, &listed));
  EXPECT_TRUE(listed);
  EXPECT_TRUE(seen.on_control(control(1, 16), kAbort, &listed));
  EXPECT_FALSE(listed);
}

TEST(CleanedTransactions, AnEmptiedMarkerMayGoAndAnUnknownOneStays) {
  CleanedTransactions seen;
  records::BatchHeader empty = control(1, 5);
  empty.record_count = 0;
  EXPECT_TRUE(seen.on_control(empty, std::nullopt));
  EXPECT_FALSE(seen.on_control(control(1, 6), std::nullopt));
}

TEST(Judge, AMarkerThatHasToStayDoesWhateverItsHorizon) {
  BatchSituation idle;
  idle.discardable = idle.marker_stays = true;
  records::BatchHeader header = control(1, 5);
  header.attributes = static_cast<std::int16_t>(header.attributes | records::kDeleteHorizonBit);
  header.base_timestamp = Timestamp(100);
  const BatchVerdict verdict = judge(header, idle, Timestamp(1000));
  EXPECT_FALSE(verdict.discard);
  EXPECT_TRUE(verdict.idle_marker);
}

TEST(Judge, AMarkerGoesOnceItsHorizonHasPassed) {
  BatchSituation idle;
  idle.discardable = true;
  records::BatchHeader marker = control(1, 5);
  BatchVerdict verdict = judge(marker, idle, kNow);
  EXPECT_FALSE(verdict.discard);
  EXPECT_TRUE(verdict.idle_marker);  // gets its horizon now
  marker.attributes |= records::kDeleteHorizonBit;
  marker.base_timestamp = kNow + 1;
  EXPECT_FALSE(judge(marker, idle, kNow).discard);
  marker.base_timestamp = kNow;
  EXPECT_TRUE(judge(marker, idle, kNow).discard);
  EXPECT_FALSE(judge(marker, {}, kNow).discard);
}

TEST(Judge, KeepsTheLastBatchOfAProducerAndOfTheLog) {
  BatchSituation situation;
  EXPECT_EQ(judge(data(1, 5), situation, kNow).empty, BatchVerdict::Empty::kDelete);
  situation.last_of_producer = true;
  EXPECT_EQ(judge(data(1, 5), situation, kNow).empty, BatchVerdict::Empty::kKeep);
  EXPECT_EQ(judge(data(-1, 5), situation, kNow).empty, BatchVerdict::Empty::kDelete);
  situation = {};
  situation.last_before_high_watermark = true;
  EXPECT_EQ(judge(data(-1, 5), situation, kNow).empty, BatchVerdict::Empty::kKeep);
  // Aborted: its records go, its sequence stays.
  situation = {true, true, false};
  EXPECT_TRUE(judge(data(1, 5), situation, kNow).discard);
  EXPECT_EQ(judge(data(1, 5), situation, kNow).empty, BatchVerdict::Empty::kKeep);
}

TEST(Judge, TheLastOfAProducerIsItsLastDataOrElseItsMarker) {
  const std::unordered_map<ProducerId, LastOfProducer> producers{
      {ProducerId(1), {Offset(5), ProducerEpoch(0)}},
      {ProducerId(2), {kNoOffset, ProducerEpoch(0)}}};
  EXPECT_TRUE(is_last_of_producer(data(1, 5), producers));
  EXPECT_FALSE(is_last_of_producer(data(1, 4), producers));
  EXPECT_FALSE(is_last_of_producer(data(3, 5), producers));
  EXPECT_TRUE(is_last_of_producer(control(2, 9), producers));
  EXPECT_FALSE(is_last_of_producer(data(2, 9), producers));
}

TEST(KeyMap, AnswersAsAMapUntilItIsFull) {
  const records::DigestSecret secret{1, 2};
  KeyMap map({24 * 1000, 0.9});
  EXPECT_EQ(map.room(), 900u);
  std::unordered_map<int, std::int64_t> model;
  std::mt19937 dice(7);
  for (std::int64_t offset = 0; offset < 20'000; ++offset) {
    const int key = static_cast<int>(dice() % 1'200);
    const std::string text = std::to_string(key);
    const bool known = model.contains(key);
    const bool put = map.put(records::digest(as_bytes(text), secret), Offset(offset));
    EXPECT_EQ(put, known || model.size() < 900);
    if (put) model[key] = offset;
  }
  EXPECT_EQ(map.size(), 900u);
  for (int key = 0; key < 1'200; ++key) {
    const auto at = map.find(records::digest(as_bytes(std::to_string(key)), secret));
    const auto expected = model.find(key);
    ASSERT_EQ(at.has_value(), expected != model.end());
    if (at) {
      EXPECT_EQ(at->value(), expected->second);
    }
  }
}

TEST(KeyMap, TakesOneKeyHoweverSmall) {
  KeyMap map({0, 0.9});
  EXPECT_GE(map.room(), 1u);
  EXPECT_TRUE(map.put({1, 1}, Offset(0)));
  EXPECT_TRUE(map.put({1, 1}, Offset(4)));
  EXPECT_FALSE(map.put({2, 1}, Offset(5)));
  EXPECT_EQ(map.find({1, 1}), Offset(4));
  EXPECT_EQ(map.find({0, 0}), std::nullopt);
}

}  // namespace
}  // namespace kanal::log
