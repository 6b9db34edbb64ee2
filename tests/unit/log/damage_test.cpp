// Damage in the middle of a log: refused, or with SegmentStoreOptions::cut_damage cut off and kept
// beside it; what a stop must not forget about it; and damage that only a reader meets.
#include "world.hpp"

#include <algorithm>
#include <numeric>

namespace kanal::log::test {
namespace {

using Offsets = std::vector<std::int64_t>;
using testing::Test;

const std::string kFirst = "00000000000000000000.log";

Offsets range(std::int64_t from, std::int64_t below) {
  Offsets all(static_cast<std::size_t>(below - from));
  std::iota(all.begin(), all.end(), from);
  return all;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

class Damage : public Test {
 protected:
  /// Offsets [0, n), three batches of one record a segment.
  void fill(int n) {
    auto partition = world.open();
    for (int i = 0; i < n; ++i) {
      BatchSpec spec{.producer = 7, .epoch = 0, .sequence = i};
      spec.value = "value " + std::to_string(10 + i);
      if (i == 0) {
        size = make_batch(spec).size();
        world.options.segment_bytes = static_cast<std::int64_t>(3 * size);
        partition->configure(world.options);
      }
      ASSERT_TRUE(world.append(*partition, spec));
      world.helpers.run();
    }
  }
  void checkpoint() {
    auto partition = world.open();
    ASSERT_TRUE(partition->log().checkpoint(partition->checkpoint()));
  }
  static std::string segment(int offset) {
    std::string digits = std::to_string(offset);
    return std::string(20 - digits.size(), '0') + digits + ".log";
  }
  Buffer content(const std::string& name) { return world.disk.content(world.path(name)).value(); }
  void flip(const std::string& name, std::size_t at) {
    Buffer bytes = content(name);
    bytes.at(at) ^= std::byte{0x10};
    world.disk.set_content(world.path(name), bytes);
  }
  /// The next start, after kill -9, under a higher epoch.
  void start(bool cut) {
    ++world.epoch;
    world.cut_damage = cut;
    world.kill();
  }
  std::string refusal() {
    auto opened = world.try_open();
    EXPECT_FALSE(opened);
    if (opened) return "";
    EXPECT_EQ(opened.error().code, ErrorCode::KAFKA_STORAGE_ERROR);
    return opened.error().detail;
  }
  void expect_goes_on(Partition& partition, std::int64_t from, std::int64_t end) {
    EXPECT_EQ(partition.watermarks().log_start, Offset(from));
    EXPECT_EQ(partition.watermarks().high_watermark, Offset(end));
    EXPECT_EQ(read_all(world, partition, from), range(from, end));
    EXPECT_EQ(world.append(partition)->base_offset, Offset(end));
    EXPECT_EQ(partition.epoch_at(Offset(end)), LeaderEpoch(world.epoch));
    EXPECT_EQ(read_all(world, partition, from), range(from, end + 1));
  }

  void cut_off(bool vouched);

  World world;
  std::size_t size = 0;  // of a batch
};

TEST_F(Damage, IsRefusedWithFilePositionAndWhatToDo) {
  fill(10);
  flip(segment(3), size + 70);
  start(false);
  const std::string why = refusal();
  EXPECT_TRUE(contains(why, segment(3))) << why;
  EXPECT_TRUE(contains(why, "position " + std::to_string(size))) << why;
  EXPECT_TRUE(contains(why, "log.recovery=truncate")) << why;
}

void Damage::cut_off(bool vouched) {
  fill(10);
  if (vouched) {
    checkpoint();  // which hides the damage: another one makes the start look
    world.disk.erase(world.path(segment(6)));
  }
  flip(segment(3), size + 70);
  const Buffer damaged = content(segment(3)), last = content(segment(9));
  start(true);
  auto partition = world.open();
  ASSERT_NE(partition, nullptr);
  EXPECT_TRUE(world.report.damage_cut);
  EXPECT_TRUE(contains(world.report.detail, segment(3))) << world.report.detail;
  const auto cut = damaged.begin() + static_cast<std::ptrdiff_t>(size);
  EXPECT_EQ(content(segment(3)), Buffer(damaged.begin(), cut));
  EXPECT_EQ(content(segment(3) + ".cut"), Buffer(cut, damaged.end()));
  EXPECT_EQ(content(segment(9) + ".cut"), last);
  // The producer goes on from what is left.
  EXPECT_EQ(partition->producers().producers().at(ProducerId(7)).batches[3].last_offset, Offset(3));
  expect_goes_on(*partition, 0, 4);
  partition.reset();
  // No checkpoint of before the cut counts, whatever the log has grown to since.
  start(false);
  partition = world.open();
  ASSERT_NE(partition, nullptr);
  expect_goes_on(*partition, 0, 5);
}

TEST_F(Damage, IsCutOffWhereAskedAndEverythingBehindItKept) {
  cut_off(false);
}

TEST_F(Damage, IsCutOffBelowACheckpointToo) {
  cut_off(true);
}

TEST_F(Damage, ASecondCutKeepsWhatTheFirstOneKept) {
  fill(6);
  flip(segment(0), size + 70);
  start(true);
  {
    auto partition = world.open();
    ASSERT_NE(partition, nullptr);
    expect_goes_on(*partition, 0, 1);
    ASSERT_TRUE(world.append(*partition));
  }
  const Buffer first = content(segment(0) + ".cut");
  flip(segment(0), size + 70);
  start(true);
  auto partition = world.open();
  ASSERT_NE(partition, nullptr);
  expect_goes_on(*partition, 0, 1);
  EXPECT_EQ(content(segment(0) + ".cut"), first);
  EXPECT_TRUE(world.disk.content(world.path(segment(0) + ".cut-2")).has_value());
}

TEST_F(Damage, OfTheFirstBatchLeavesAnEmptyLog) {
  fill(6);
  flip(segment(0), 20);
  start(true);
  auto partition = world.open();
  ASSERT_NE(partition, nullptr);
  expect_goes_on(*partition, 0, 0);
}

TEST_F(Damage, AMissingSegmentEndsTheLogBeforeItOrStartsItBehindIt) {
  fill(10);
  const Buffer first = content(segment(0)), second = content(segment(3));
  world.disk.erase(world.path(segment(3)));
  start(false);
  EXPECT_TRUE(contains(refusal(), segment(0)));
  world.disk.set_content(world.path(segment(3)), second);
  world.disk.erase(world.path(segment(0)));
  start(false);
  EXPECT_TRUE(contains(refusal(), segment(3)));
  start(true);
  {
    auto partition = world.open();
    ASSERT_NE(partition, nullptr);
    expect_goes_on(*partition, 3, 10);
  }
  world.disk.erase(world.path(segment(6)));
  start(true);
  auto partition = world.open();
  ASSERT_NE(partition, nullptr);
  expect_goes_on(*partition, 3, 6);
}

TEST_F(Damage, BytesThatACheckpointVouchesForAreMissedAndTheLogGoesOnWithoutThem) {
  fill(10);
  checkpoint();
  Buffer last = content(segment(9));
  last.resize(last.size() - 3);
  world.disk.set_content(world.path(segment(9)), last);
  start(false);
  EXPECT_TRUE(contains(refusal(), segment(9)));
  start(true);
  auto partition = world.open();
  ASSERT_NE(partition, nullptr);
  EXPECT_EQ(content(segment(9) + ".cut").size(), size - 3);
  expect_goes_on(*partition, 0, 9);
  partition.reset();
  start(false);
  EXPECT_NE(world.open(), nullptr);
}

TEST_F(Damage, AllSegmentsGoneTheOffsetsGoOn) {
  fill(6);
  checkpoint();
  world.disk.erase(world.path(segment(0)));
  world.disk.erase(world.path(segment(3)));
  start(false);
  EXPECT_TRUE(contains(refusal(), "missing"));
  start(true);
  auto partition = world.open();
  ASSERT_NE(partition, nullptr);
  expect_goes_on(*partition, 6, 6);
}

TEST_F(Damage, AFileThatWasPutBackBehindTheLogsBackIsNotWrittenOver) {
  fill(2);
  const Buffer kept = content(kFirst);
  world.disk.erase(world.path(kFirst));
  auto partition = world.open();
  world.disk.set_content(world.path(kFirst), kept);
  const auto refused = world.append(*partition, {});
  ASSERT_FALSE(refused);
  EXPECT_TRUE(contains(refused.error().detail, "is in the way")) << refused.error().detail;
  EXPECT_EQ(content(kFirst), kept);
  partition.reset();
  partition = world.open();
  EXPECT_TRUE(world.append(*partition, {}));
  EXPECT_EQ(partition->watermarks().high_watermark, Offset(3));
}

TEST_F(Damage, AMissingDirectoryIsNotForgottenByACleanStop) {
  fill(6);
  {
    auto partition = world.open();
    world.stop({partition.get()});
  }
  for (const std::string& file : world.disk.files()) {
    if (file.starts_with(world.path(""))) world.disk.erase(file);
  }
  ASSERT_TRUE(world.disk.remove_all(world.path("")));
  ++world.epoch;
  world.kill();
  {
    auto partition = world.open();  // trusted, not looked at
    EXPECT_EQ(read(world, *partition, 0).error, ErrorCode::KAFKA_STORAGE_ERROR);
    world.store().prepare_stop();
    (void)partition->log().checkpoint(partition->checkpoint());
    ASSERT_TRUE(world.store().stop({}));
  }
  for (int i = 0; i < 2; ++i) {
    ++world.epoch;
    world.kill();
    EXPECT_TRUE(contains(refusal(), "missing"));
    world.store().prepare_stop();
    ASSERT_TRUE(world.store().stop({}));
  }
  start(true);
  auto partition = world.open();
  ASSERT_NE(partition, nullptr);
  expect_goes_on(*partition, 6, 6);
}

TEST_F(Damage, AStopDoesNotForgetWhatAChannelThatWasRefusedHadToHave) {
  fill(6);
  checkpoint();
  {
    auto partition = world.open();
    world.stop({partition.get()});
  }
  world.kill();  // the mark is taken; from here on only a recovery point
  world.kill();
  const Buffer sound = content(segment(3));
  world.disk.set_content(world.path(segment(3)), Bytes(sound).first(2 * size));
  world.disk.erase(world.path("checkpoint"));
  EXPECT_TRUE(contains(refusal(), segment(3)));
  world.store().prepare_stop();
  ASSERT_TRUE(world.store().stop({}));
  world.kill();
  EXPECT_TRUE(contains(refusal(), segment(3)));
  world.disk.set_content(world.path(segment(3)), sound);
  world.kill();
  auto partition = world.open();
  ASSERT_NE(partition, nullptr);
  EXPECT_EQ(read_all(world, *partition), range(0, 6));
}

TEST_F(Damage, AStopDoesNotForgetItWhateverStepOfOpeningFailed) {
  using Disk = kanal::test::MemoryFileSystem;
  world.options.ack_after_sync = true;
  fill(6);
  checkpoint();
  {
    auto partition = world.open();
    ASSERT_TRUE(partition->log().sync());
    world.stop({partition.get()});
  }
  world.kill();  // the mark is taken; from here on only a recovery point
  world.disk.erase(world.path("checkpoint"));
  // Whose directory it is; that what is there is durable.
  for (const std::uint32_t kinds : {Disk::kRead | 0U, Disk::kSync | Disk::kSyncDirectory}) {
    world.kill();
    world.disk.fail({.kinds = kinds});
    EXPECT_FALSE(world.try_open());
    ASSERT_TRUE(world.disk.fault_fired());
    world.disk.clear_faults();
    world.store().prepare_stop();
    ASSERT_TRUE(world.store().stop({}));
  }
  const Buffer sound = content(segment(3));
  world.disk.set_content(world.path(segment(3)), Bytes(sound).first(2 * size));
  world.kill();
  EXPECT_TRUE(contains(refusal(), segment(3)));
}

TEST_F(Damage, AStopDoesNotForgetWhatALogHadThatThePartitionCouldNotUse) {
  fill(6);
  {
    auto partition = world.open();
    world.stop({partition.get()});
  }
  world.kill();
  --world.epoch;  // the newest batch is of a later one
  EXPECT_TRUE(contains(refusal(), "leader epoch"));
  world.store().prepare_stop();
  ASSERT_TRUE(world.store().stop({}));
  const Buffer sound = content(segment(3));
  world.disk.set_content(world.path(segment(3)), Bytes(sound).first(2 * size));
  start(false);
  EXPECT_TRUE(contains(refusal(), segment(3)));
}

TEST_F(Damage, AStopWhoseSyncFailsDoesNotForgetWhatWasSyncedBefore) {
  using Disk = kanal::test::MemoryFileSystem;
  fill(6);
  {
    auto partition = world.open();
    world.stop({partition.get()});
  }
  world.kill();
  {
    auto partition = world.open();
    ASSERT_TRUE(world.append(*partition));
    world.disk.fail({.kinds = Disk::kSync});
    world.store().prepare_stop();
    ASSERT_TRUE(partition->log().checkpoint(partition->checkpoint()));
    (void)world.store().stop({});
    ASSERT_TRUE(world.disk.fault_fired());
    world.disk.clear_faults();
  }
  const Buffer sound = content(segment(3));
  world.disk.set_content(world.path(segment(3)), Bytes(sound).first(2 * size));
  start(false);
  EXPECT_TRUE(contains(refusal(), segment(3)));
}

TEST_F(Damage, AStopBeforeTheChannelWasOpenedDoesNotForgetItEither) {
  fill(6);
  {
    auto partition = world.open();
    world.stop({partition.get()});
  }
  world.kill();
  world.store().prepare_stop();
  ASSERT_TRUE(world.store().stop({}));
  world.kill();
  world.kill();
  world.disk.erase(world.path(segment(3)));
  world.disk.erase(world.path("checkpoint"));
  EXPECT_TRUE(contains(refusal(), "missing"));
}

TEST_F(Damage, ThatAReaderMeetsStopsTheLogAndTheNextStartFindsIt) {
  fill(10);
  {
    auto partition = world.open();
    world.stop({partition.get()});
  }
  flip(segment(3), size + 16);  // magic
  ++world.epoch;
  world.kill();
  {
    auto partition = world.open();
    ASSERT_NE(partition, nullptr);
    EXPECT_EQ(read(world, *partition, 0, static_cast<std::uint32_t>(3 * size)).offsets,
              range(0, 3));
    const Read met = read(world, *partition, 4, static_cast<std::uint32_t>(size));
    EXPECT_EQ(met.error, ErrorCode::KAFKA_STORAGE_ERROR);
    EXPECT_TRUE(contains(met.detail, segment(3))) << met.detail;
    EXPECT_TRUE(contains(met.detail, "position " + std::to_string(size))) << met.detail;
    EXPECT_FALSE(world.append(*partition));
    EXPECT_EQ(read(world, *partition, 7, static_cast<std::uint32_t>(size)).offsets, range(7, 8));
    world.helpers.run();
  }
  start(false);
  EXPECT_TRUE(contains(refusal(), segment(3)));
  start(true);
  auto partition = world.open();
  ASSERT_NE(partition, nullptr);
  expect_goes_on(*partition, 0, 4);
}

TEST_F(Damage, ACutThatIsCutShortIsFinishedByTheNextStart) {
  fill(10);
  checkpoint();
  flip(segment(3), size + 16);
  world.disk.erase(world.path(segment(6)));
  std::uint64_t steps = 0;
  kanal::test::MemoryFileSystem& disk = world.disk;
  std::vector<std::pair<std::string, Buffer>> before;
  for (const std::string& file : disk.files()) before.emplace_back(file, *disk.content(file));
  for (std::uint64_t at = 0;; ++at) {
    for (const std::string& file : disk.files()) disk.erase(file);
    for (const auto& [path, bytes] : before) disk.set_content(path, bytes);
    start(true);
    disk.fail({.at = at, .sticky = true});
    (void)world.try_open();
    const bool done = !disk.fault_fired();
    disk.clear_faults();
    if (done) break;
    disk.power_cut({});
    ++steps;
    start(true);
    auto partition = world.open();
    ASSERT_NE(partition, nullptr) << at;
    EXPECT_EQ(read_all(world, *partition), range(0, 4)) << at;
    const auto files = disk.files();
    const auto kept = std::ranges::count_if(
        files, [&](const std::string& file) { return contains(file, segment(9) + ".cut"); });
    EXPECT_EQ(kept, 1) << at;
  }
  EXPECT_GT(steps, 10u);
}

}  // namespace
}  // namespace kanal::log::test
