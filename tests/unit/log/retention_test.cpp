// Which segments retention takes, and what a log keeps of them: nothing but the offsets and what
// their producers did.
#include "world.hpp"

#include <cerrno>
#include <limits>

namespace kanal::log::test {
namespace {

using Disk = kanal::test::MemoryFileSystem;
using Offsets = std::vector<std::int64_t>;

constexpr std::int64_t kNow = 1'700'000'000'000;

/// Segments of 100 bytes with ten records each.
std::vector<SegmentFacts> segments(std::initializer_list<std::int64_t> newest) {
  std::vector<SegmentFacts> all;
  Sequence base(1);
  for (const std::int64_t timestamp : newest) {
    all.push_back({base, base + 10, 100, Timestamp(timestamp)});
    base = base + 10;
  }
  return all;
}

Expired ask(const std::vector<SegmentFacts>& all, const RetentionRules& rules,
            std::int64_t now = 1000, std::optional<Sequence> committed = {}) {
  const Sequence end = all.empty() ? Sequence(1) : all.back().end;
  return expired(all, rules, Timestamp(now), committed.value_or(end));
}

TEST(Retention, ByTimeTakesWhatIsOlderThanTheLimitAndNotWhatIsAsOld) {
  EXPECT_EQ(ask(segments({899, 900, 901}), {.ms = 100}).count, 1U);
  EXPECT_EQ(ask(segments({899, 900, 901}), {.ms = 100}).start, Sequence(11));
  EXPECT_EQ(ask(segments({899, 900, 901}), {.ms = 0}).count, 3U) << "the active one too";
  EXPECT_EQ(ask(segments({1000}), {.ms = 0}).count, 0U) << "of this very millisecond";
}

TEST(Retention, ByTimeStopsAtTheFirstThatStays) {
  EXPECT_EQ(ask(segments({100, 950, 100}), {.ms = 100}).count, 1U);
}

TEST(Retention, AFutureTimestampKeepsItsSegmentAndIsTold) {
  const auto all = segments({100, 2000, 100});
  const Expired found = ask(all, {.ms = 100});
  EXPECT_EQ(found.count, 1U);
  EXPECT_TRUE(found.from_future);
  EXPECT_EQ(ask(all, {.ms = 100}, 2101).count, 3U) << "until the clock is past it";
  EXPECT_EQ(ask(all, {.bytes = 100}).count, 2U) << "size does not care";
  EXPECT_FALSE(ask(all, {.bytes = 100}).from_future);
}

TEST(Retention, ExtremeTimestampsAndLimitsAreNoSpecialCase) {
  const auto max = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(ask(segments({max, 0}), {.ms = 0}).count, 0U);
  EXPECT_EQ(ask(segments({0}), {.ms = max, .bytes = max}, kNow).count, 0U);
  EXPECT_EQ(ask(segments({0}), {.ms = 0}, max).count, 1U);
  EXPECT_EQ(ask({}, {.ms = 0, .bytes = 0}).count, 0U);
}

TEST(Retention, AClockSetBackKeepsMoreAndOneSetForwardTakesMore) {
  const auto all = segments({500, 600});
  EXPECT_EQ(ask(all, {.ms = 100}, 400).count, 0U);
  EXPECT_EQ(ask(all, {.ms = 100}, 10'000).count, 2U);
}

TEST(Retention, BySizeKeepsAtLeastTheLimit) {
  const auto all = segments({1, 2, 3, 4, 5});
  EXPECT_EQ(ask(all, {.bytes = 500}).count, 0U);
  EXPECT_EQ(ask(all, {.bytes = 499}).count, 0U) << "400 would be less than the limit";
  EXPECT_EQ(ask(all, {.bytes = 400}).count, 1U);
  EXPECT_EQ(ask(all, {.bytes = 250}).count, 2U);
  EXPECT_EQ(ask(all, {.bytes = 1}).count, 4U);
  EXPECT_EQ(ask(all, {.bytes = 0}).count, 5U);
}

TEST(Retention, SizeFirstThenTime) {
  const Expired found = ask(segments({950, 100, 960}), {.ms = 100, .bytes = 200});
  EXPECT_EQ(found.by_size, 1U);
  EXPECT_EQ(found.count, 2U);
  EXPECT_EQ(found.bytes, 200U);
}

TEST(Retention, NegativeLimitsKeepForEver) {
  EXPECT_EQ(ask(segments({0, 0}), {.ms = -1, .bytes = -1}, kNow).count, 0U);
}

TEST(Retention, NothingThatIsNotCommittedGoes) {
  const auto all = segments({1, 2, 3});
  EXPECT_EQ(ask(all, {.ms = 0}, 1000, Sequence(30)).count, 2U);
  EXPECT_EQ(ask(all, {.bytes = 0}, 1000, Sequence(10)).count, 0U);
}

TEST(Retention, AnEmptyActiveSegmentStays) {
  auto all = segments({1, 2});
  all.push_back({all.back().end, all.back().end, 0, Timestamp(0)});
  EXPECT_EQ(ask(all, {.ms = 0}).count, 2U);
}

LogFacts log_of(std::size_t topic, std::initializer_list<std::int64_t> newest) {
  LogFacts log{topic, segments(newest), Sequence(1)};
  if (!log.segments.empty()) log.kept_from = log.segments.back().end;
  return log;
}

TEST(RetentionOfAll, TakesTheOldestOfTheFullestTopicUntilAllFit) {
  const std::vector<LogFacts> logs = {log_of(0, {1, 2, 3}), log_of(1, {10, 30, 50}),
                                      log_of(1, {20, 40, 60})};
  using Counts = std::vector<std::size_t>;
  EXPECT_EQ(over_limit(logs, 900), (Counts{0, 0, 0}));
  EXPECT_EQ(over_limit(logs, 899), (Counts{0, 1, 0}));
  EXPECT_EQ(over_limit(logs, 700), (Counts{0, 1, 1}));
  EXPECT_EQ(over_limit(logs, 600), (Counts{0, 2, 1}));
  // Now both topics have 300: whichever goes first, the other is next.
  EXPECT_EQ(over_limit(logs, 400), (Counts{1, 2, 2}));
}

TEST(RetentionOfAll, LeavesWhatIsWrittenToAndWhatIsNotCommitted) {
  std::vector<LogFacts> logs = {log_of(0, {1, 2, 3}), log_of(1, {1, 2, 3}), log_of(2, {1}),
                                log_of(3, {})};
  logs[1].kept_from = Sequence(15);
  EXPECT_EQ(over_limit(logs, 0), (std::vector<std::size_t>{2, 1, 0, 0}));
}

/// A partition whose segments hold one batch each.
struct Rolled {
  explicit Rolled(World& in, int count = 0) : world(in) {
    world.options.segment_bytes = static_cast<std::int64_t>(make_batch({}).size());
    partition = world.open();
    for (int i = 0; i < count; ++i) append(1000 + i);
    world.helpers.run();
  }
  void append(std::int64_t timestamp, std::int32_t sequence = -1) {
    BatchSpec spec{.timestamp = timestamp};
    if (sequence >= 0)
      spec = {.timestamp = timestamp, .producer = 7, .epoch = 0, .sequence = sequence};
    ASSERT_TRUE(world.append(*partition, spec));
  }
  /// As the broker does it.
  void retain(const RetentionRules& rules, std::int64_t now) {
    const Expired found = partition->expired(rules, Timestamp(now));
    if (found.count == 0) return;
    const Offset start = to_offset(found.start);
    if (partition->covered_start(start) < start) {
      const Checkpoint state = partition->checkpoint();
      ASSERT_TRUE(partition->log().checkpoint(state));
      partition->note_checkpoint(state.upto);
    }
    ASSERT_TRUE(partition->trim(start));
    world.helpers.run();
  }
  void restart(bool clean) {
    if (clean) world.stop({partition.get()});
    partition.reset();
    world.kill();
    partition = world.open();
  }
  std::vector<std::string> logs() {
    std::vector<std::string> found;
    for (const std::string& path : world.disk.files()) {
      if (path.ends_with(".log")) found.push_back(path);
    }
    return found;
  }
  World& world;
  std::unique_ptr<Partition> partition;
};

TEST(RetentionOfALog, GoesByTheLargestTimestampOfASegmentAlsoAfterARestart) {
  for (const int restart : {0, 1, 2}) {
    World world;
    Rolled log(world);
    world.options.segment_bytes = 2 * static_cast<std::int64_t>(make_batch({}).size());
    log.partition->configure(world.options);
    for (const std::int64_t timestamp : {500, 100, 200, 300, 400, 600}) log.append(timestamp);
    if (restart != 0) log.restart(restart == 1);
    log.retain({.ms = 100}, 550);
    EXPECT_EQ(log.partition->watermarks().log_start, Offset(0)) << "500 is not old enough";
    log.retain({.ms = 100}, 601);
    EXPECT_EQ(log.partition->watermarks().log_start, Offset(4));
    EXPECT_EQ(read_all(world, *log.partition, 4), (Offsets{4, 5}));
  }
}

TEST(RetentionOfALog, TheActiveSegmentExpiresAndOffsetsGoOn) {
  for (const bool clean : {true, false}) {
    World world;
    Rolled log(world, 5);
    log.retain({.ms = 100}, 5000);
    const Watermarks marks = log.partition->watermarks();
    EXPECT_EQ(marks.log_start, Offset(5));
    EXPECT_EQ(marks.high_watermark, Offset(5));
    EXPECT_EQ(log.partition->bytes(), 0U);
    EXPECT_TRUE(log.logs().empty());
    EXPECT_EQ(read(world, *log.partition, 4).error, ErrorCode::OFFSET_OUT_OF_RANGE);
    EXPECT_EQ(read(world, *log.partition, 5).error, ErrorCode::NONE);
    log.restart(clean);
    EXPECT_EQ(log.partition->watermarks().log_start, Offset(5));
    log.append(6000);
    EXPECT_EQ(read_all(world, *log.partition, 5), (Offsets{5}));
    log.restart(clean);
    EXPECT_EQ(log.partition->watermarks().log_start, Offset(5));
    EXPECT_EQ(read_all(world, *log.partition, 5), (Offsets{5}));
  }
}

TEST(RetentionOfALog, ProducersGoOnWithTheirSequenceAlsoAfterACrash) {
  for (const bool clean : {true, false}) {
    World world;
    Rolled log(world);
    log.append(1000, 0);
    const Checkpoint early = log.partition->checkpoint();
    ASSERT_TRUE(log.partition->log().checkpoint(early));
    log.partition->note_checkpoint(early.upto);
    for (int i = 1; i < 5; ++i) log.append(1000, i);
    log.retain({.ms = 100}, 5000);
    log.restart(clean);
    EXPECT_EQ(log.partition->watermarks().log_start, Offset(5));
    const auto duplicate =
        world.append(*log.partition, {.timestamp = 1000, .producer = 7, .epoch = 0, .sequence = 4});
    ASSERT_TRUE(duplicate) << duplicate.error().detail;
    EXPECT_TRUE(duplicate->duplicate);
    EXPECT_EQ(duplicate->base_offset, Offset(4));
    log.append(6000, 5);
    EXPECT_EQ(
        world.append(*log.partition, {.timestamp = 6000, .producer = 7, .epoch = 0, .sequence = 7})
            .error()
            .code,
        ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
  }
}

TEST(RetentionOfALog, WhatACheckpointCoversGoesWithoutAnother) {
  World world;
  Rolled log(world, 4);
  const Checkpoint state = log.partition->checkpoint();
  log.partition->note_checkpoint(state.upto);
  EXPECT_EQ(log.partition->covered_start(Offset(4)), Offset(4));
  log.append(2000);
  log.append(2000);
  EXPECT_EQ(log.partition->covered_start(Offset(3)), Offset(3));
  EXPECT_EQ(log.partition->covered_start(Offset(6)), Offset(4)) << "as far as it may go";
}

TEST(RetentionOfALog, RecordsWithoutATimeAgeFromTheirAppend) {
  World world;
  Rolled log(world);
  log.append(-1);
  world.clock.set(kNow + 1000);
  log.append(-1);
  log.retain({.ms = 100}, kNow + 101);
  EXPECT_EQ(log.partition->watermarks().log_start, Offset(1));
  log.retain({.ms = 100}, kNow + 1100);
  EXPECT_EQ(log.partition->watermarks().log_start, Offset(1));
  log.retain({.ms = 100}, kNow + 1101);
  EXPECT_EQ(log.partition->watermarks().log_start, Offset(2));
}

TEST(RetentionOfALog, UnsyncedRecordsOfASyncedTopicStay) {
  World world;
  world.options.ack_after_sync = true;
  Rolled log(world, 3);
  EXPECT_EQ(log.partition->expired({.ms = 0, .bytes = 0}, Timestamp(kNow)).count, 0U);
  log.partition->commit(*log.partition->log().sync());
  EXPECT_EQ(log.partition->expired({.ms = 0, .bytes = 0}, Timestamp(kNow)).count, 3U);
}

TEST(RetentionOfALog, AReaderKeepsTheFileItReads) {
  World world;
  Rolled log(world, 3);
  std::vector<Slice> slices;
  ASSERT_TRUE(log.partition->read(Offset(0), {1 << 20, true, false}, slices));
  log.retain({.ms = 100}, 5000);
  EXPECT_EQ(offsets_in(bytes_of(slices)), (Offsets{0, 1, 2}));
}

TEST(RetentionOfALog, RemovedFilesStayForTheDelayAndComeBackInNoCase) {
  World world;
  world.options.file_delete_delay_ms = 60'000;
  Rolled log(world, 3);
  log.retain({.ms = 100}, 5000);
  EXPECT_EQ(log.logs().size(), 3U);
  for (const std::string& path : log.logs()) EXPECT_NE(path.find("/.removed/"), std::string::npos);
  world.clock.pass(std::chrono::milliseconds(59'999));
  EXPECT_FALSE(world.store().tidy());
  EXPECT_EQ(log.logs().size(), 3U);
  world.clock.pass(std::chrono::milliseconds(1));
  EXPECT_FALSE(world.store().tidy());
  EXPECT_TRUE(log.logs().empty());

  for (int i = 0; i < 3; ++i) log.append(6000);
  log.retain({.ms = 100}, 9000);
  EXPECT_EQ(log.logs().size(), 3U);
  log.restart(false);
  EXPECT_TRUE(log.logs().empty()) << "a start sweeps them away";
  EXPECT_EQ(log.partition->watermarks().log_start, Offset(6));
}

TEST(RetentionOfALog, RemovedFilesGoAtOnceWhileTheDiskIsFull) {
  World world;
  world.options.file_delete_delay_ms = 60'000;
  Rolled log(world, 3);
  log.retain({.ms = 100}, 5000);
  EXPECT_FALSE(world.store().tidy(true));
  EXPECT_TRUE(log.logs().empty());
}

TEST(RetentionOfALog, ManyRemovedFilesAreUnlinkedAFewAtATime) {
  World world;
  world.options.file_delete_delay_ms = 1;
  Rolled log(world, 40);
  log.retain({.ms = 100}, 5000);
  world.clock.pass(std::chrono::milliseconds(1));
  EXPECT_TRUE(world.store().tidy());
  EXPECT_EQ(log.logs().size(), 24U);
  EXPECT_TRUE(world.store().tidy());
  EXPECT_FALSE(world.store().tidy());
  EXPECT_TRUE(log.logs().empty());
}

TEST(RetentionOfALog, AnEmptySegmentsFileIsNotRemovedFromUnderTheNextAppend) {
  World world;
  Rolled log(world, 2);
  // The next segment's file is made, its first write fails.
  world.disk.fail({.at = 0, .kinds = Disk::kWrite, .error = ENOSPC});
  EXPECT_FALSE(world.append(*log.partition, {.timestamp = 1000}));
  world.disk.clear_faults();
  ASSERT_TRUE(log.partition->trim(Offset(2)));
  log.append(5000);
  world.helpers.run();
  EXPECT_EQ(read_all(world, *log.partition, 2), (Offsets{2}));
  log.restart(false);
  EXPECT_EQ(read_all(world, *log.partition, 2), (Offsets{2}));
}

TEST(RetentionOfALog, APowerCutBringsBackNothingThatWasRemoved) {
  for (std::size_t names = 0; names < 8; ++names) {
    World world;
    Rolled log(world, 4);
    ASSERT_TRUE(log.partition->log().sync());
    log.retain({.ms = 100}, 1102);  // 1000 and 1001
    EXPECT_EQ(log.partition->watermarks().log_start, Offset(2));
    log.partition.reset();
    world.helpers.forget();
    Disk::PowerCut cut;
    cut.keep_names = [&](std::string_view, std::size_t) { return names; };
    world.disk.power_cut(cut);
    world.kill();
    log.partition = world.open();
    EXPECT_EQ(log.partition->watermarks().log_start, Offset(2));
    EXPECT_EQ(read_all(world, *log.partition, 2), (Offsets{2, 3}));
  }
}

}  // namespace
}  // namespace kanal::log::test
