// Compaction on a disk that fails, loses power or lies: at every step the log has all it had, or
// says what is wrong.
#include "keyed.hpp"

#include "compaction_record.hpp"

#include <map>
#include <random>

namespace kanal::log::test {
namespace {

using Disk = kanal::test::MemoryFileSystem;

using Last = std::map<std::string, std::pair<std::int64_t, std::optional<std::string>>>;

Last last_of(const std::vector<KeyedRecord>& records) {
  Last last;
  for (const KeyedRecord& record : records) last[*record.key] = {record.offset, record.value};
  return last;
}

/// A log with several segments, most of them cleaned once; all of it synced.
std::unique_ptr<Partition> prepare(World& world, bool cleaned) {
  world.options.segment_bytes = 500;
  world.options.index_interval_bytes = 200;
  auto partition = world.open();
  for (int i = 0; i < 36; ++i) {
    KeyedBatch batch;
    if (i % 3 == 0) batch.codec = records::Codec::kSnappy;
    const std::string value(static_cast<std::size_t>(20 + i), 'v');
    batch.records = {{"k" + std::to_string(i % 7), value}, {"u" + std::to_string(i % 20), value}};
    if (i % 9 == 0) batch.records[0].value.reset();
    if (i % 4 == 0) {
      batch.producer = 3;
      batch.sequence = i / 4 * 2;
    }
    put(world, *partition, batch);
    if (cleaned && i == 20) pass(world, *partition);
  }
  EXPECT_TRUE(partition->log().sync());
  world.helpers.run();
  return partition;
}

struct Expected {
  Last last;
  std::vector<KeyedRecord> records;
  std::int64_t end = 0;
};

Expected expected(World& world, Partition& partition) {
  const auto records = records_in(batches_from(world, partition, 0));
  return {last_of(records), records, partition.watermarks().high_watermark.value()};
}

void check(World& world, Partition& partition, const Expected& before, const std::string& where) {
  SCOPED_TRACE(where);
  EXPECT_EQ(partition.watermarks().high_watermark.value(), before.end);
  const auto records = records_in(batches_from(world, partition, 0));
  EXPECT_EQ(last_of(records), before.last);
  std::int64_t offset = -1;
  for (const KeyedRecord& record : records) {
    EXPECT_GT(record.offset, offset);
    offset = record.offset;
    EXPECT_NE(std::ranges::find(before.records, record), before.records.end());
  }
}

/// The log works as before: it is cleaned to the end, and nothing is left over on the disk.
void go_on(World& world, Partition& partition, const Expected& before, const std::string& where) {
  SCOPED_TRACE(where);
  put(world, partition, "new", std::string(400, 'n'));
  auto done = try_pass(world, partition);
  ASSERT_TRUE(done) << done.error().detail;
  const auto records = records_in(batches_from(world, partition, 0));
  Last last = before.last;
  last["new"] = {before.end, std::string(400, 'n')};
  EXPECT_EQ(last_of(records), last);
  std::size_t files = 0;
  for (const std::string& file : world.disk.files()) {
    if (file.find("/.removed/") != std::string::npos) continue;
    files += file.ends_with(".log") ? 1 : 0;
    EXPECT_FALSE(file.ends_with(".tmp")) << file;
  }
  EXPECT_EQ(files, partition.facts().segments.size());
}

enum class After { kKill, kPowerCut, kPowerCutAtRandom };

class FaultTest : public ::testing::TestWithParam<std::tuple<bool, bool, After>> {};
INSTANTIATE_TEST_SUITE_P(All, FaultTest,
                         ::testing::Combine(::testing::Bool(), ::testing::Bool(),
                                            ::testing::Values(After::kKill, After::kPowerCut,
                                                              After::kPowerCutAtRandom)));

void crash(World& world, After how, std::mt19937& dice) {
  world.disk.clear_faults();
  Disk::PowerCut cut;
  const auto some = [&dice](std::string_view, std::size_t unsynced) {
    return unsynced == 0 ? 0 : dice() % (unsynced + 1);
  };
  if (how == After::kPowerCutAtRandom) {
    cut = {some, [&dice](std::size_t bytes) { return dice() % (bytes + 1); }, some};
  }
  if (how != After::kKill) world.disk.power_cut(cut);
  world.kill();
}

TEST_P(FaultTest, EveryStepOfAPassMayBeTheLast) {
  const auto [cleaned, sticky, how] = GetParam();
  std::mt19937 dice(11);
  const std::uint64_t stride = cleaned || sticky ? 3 : 1;
  const std::uint64_t first = stride > 1 ? static_cast<std::uint64_t>(how) : 0;
  std::uint64_t steps = first + 1;
  for (std::uint64_t at = first; at < steps; at += stride) {
    const std::string where = "step " + std::to_string(at);
    World world;
    auto partition = prepare(world, cleaned);
    const Expected before = expected(world, *partition);
    (void)world.disk.take_count(Disk::kChanges);
    Disk::Fault fault;
    fault.at = at;
    fault.sticky = sticky;
    world.disk.fail(fault);
    const auto done = try_pass(world, *partition);
    const std::uint64_t counted = world.disk.take_count(Disk::kChanges);
    if (!world.disk.fault_fired()) {
      EXPECT_TRUE(done);
      break;
    }
    steps = std::max(steps, counted + stride + 1);
    partition->adopt_rewritten();
    // It goes on serving what it has, whatever the disk does.
    world.disk.clear_faults();
    check(world, *partition, before, where + ", before the crash");
    partition.reset();
    crash(world, how, dice);
    partition = world.open();
    ASSERT_NE(partition, nullptr) << where;
    check(world, *partition, before, where);
    go_on(world, *partition, before, where);
  }
  EXPECT_GT(steps, 20u);
}

TEST_P(FaultTest, AStartThatFailsAnywhereIsTriedAgain) {
  const auto [cleaned, sticky, how] = GetParam();
  std::mt19937 dice(13);
  for (std::uint64_t at = 0; at < 60; at += cleaned ? 2 : 1) {
    World world;
    auto partition = prepare(world, cleaned);
    const Expected before = expected(world, *partition);
    // Decided, and then the process ends: the old files are there still.
    ASSERT_TRUE(try_pass(world, *partition, {.adopt = false}));
    partition.reset();
    crash(world, how, dice);
    Disk::Fault fault;
    fault.at = at;
    fault.sticky = sticky;
    world.disk.fail(fault);
    auto opened = world.try_open();
    world.helpers.run();
    const bool fired = world.disk.fault_fired();
    if (opened) opened->reset();
    opened = fail(ErrorCode::NONE);
    crash(world, how, dice);
    partition = world.open();
    ASSERT_NE(partition, nullptr);
    check(world, *partition, before, "step " + std::to_string(at));
    go_on(world, *partition, before, "step " + std::to_string(at));
    if (!fired) break;
  }
}

TEST(CompactionFull, ADiskThatFillsUpLeavesTheLogAsItWasAndIsTriedAgain) {
  World world;
  auto partition = prepare(world, true);
  const Expected before = expected(world, *partition);
  for (std::uint64_t room = 0; room < 3'000; room += 97) {
    world.disk.set_capacity(world.disk.bytes() + room);
    const auto done = try_pass(world, *partition);
    if (done) {
      EXPECT_GT(room, 0u);
      break;
    }
    EXPECT_EQ(done.error().os_error, ENOSPC);
    check(world, *partition, before, std::to_string(room));
  }
  world.disk.set_capacity(std::nullopt);
  go_on(world, *partition, before, "room again");
}

class RecordFile : public ::testing::Test {
 protected:
  RecordFile() {
    partition = prepare(world, false);
    before = expected(world, *partition);
    pass(world, *partition);
    ASSERT_TRUE_(partition->log().sync());
    partition.reset();
    world.disk.erase(world.path("checkpoint"));
    sound = *world.disk.content(world.path("compaction"));
  }
  static void ASSERT_TRUE_(const Result<Sequence>& done) { EXPECT_TRUE(done); }
  World world;
  std::unique_ptr<Partition> partition;
  Expected before;
  Buffer sound;
};

TEST_F(RecordFile, AnyOneDamagedByteIsRepairedFromTheOtherCopy) {
  for (std::size_t at = 0; at < sound.size(); ++at) {
    Buffer bytes = sound;
    bytes[at] ^= std::byte{0x41};
    world.disk.set_content(world.path("compaction"), bytes);
    world.kill();
    partition = world.open();
    ASSERT_NE(partition, nullptr) << at;
    if (at % 16 == 0) check(world, *partition, before, std::to_string(at));
    partition.reset();
    EXPECT_EQ(world.disk.content(world.path("compaction")), sound) << at;
  }
}

TEST_F(RecordFile, WithBothCopiesDamagedTheLogDoesNotOpenAndNothingIsRemoved) {
  const std::size_t half = sound.size() / 2;
  for (std::size_t at = 0; at < half; ++at) {
    Buffer bytes = sound;
    bytes[at] ^= std::byte{0x41};
    bytes[half + at] ^= std::byte{0x41};
    world.disk.set_content(world.path("compaction"), bytes);
    const auto files = world.disk.files();
    world.kill();
    const auto opened = world.try_open();
    ASSERT_FALSE(opened) << at;
    EXPECT_NE(opened.error().detail.find("compaction"), std::string::npos);
    EXPECT_EQ(world.disk.files(), files);
  }
}

TEST_F(RecordFile, WithoutItTheLogDoesNotOpenAndNothingIsRemoved) {
  world.disk.erase(world.path("compaction"));
  const auto files = world.disk.files();
  world.kill();
  EXPECT_FALSE(world.try_open());
  EXPECT_EQ(world.disk.files(), files);
}

TEST_F(RecordFile, ALostOrChangedBatchOfACompactedSegmentIsFound) {
  const auto record = decode_compaction(sound).value();
  ASSERT_FALSE(record.segments.empty());
  for (const CompactedSegment& segment : record.segments) {
    const std::string path = world.path(segment_name(segment.id));
    const Buffer whole = *world.disk.content(path);
    ASSERT_EQ(whole.size(), segment.size);
    for (std::size_t at = 0; at < whole.size(); at += 3) {
      Buffer bytes = whole;
      bytes[at] ^= std::byte{0x20};
      world.disk.set_content(path, bytes);
      world.kill();
      const auto opened = world.try_open();
      ASSERT_FALSE(opened) << path << " " << at;
      EXPECT_NE(opened.error().detail.find(segment_name(segment.id)), std::string::npos);
    }
    const std::size_t first = records::parse_header(whole).value().size();
    world.disk.set_content(path, Bytes(whole).subspan(first));
    world.kill();
    EXPECT_FALSE(world.try_open());
    world.disk.set_content(path, Bytes(whole).first(whole.size() - 1));
    world.kill();
    EXPECT_FALSE(world.try_open());
    world.disk.erase(path);
    world.kill();
    EXPECT_FALSE(world.try_open());
    world.disk.set_content(path, whole);
  }
  world.kill();
  partition = world.open();
  check(world, *partition, before, "whole again");
}

TEST_F(RecordFile, ASegmentThatCannotBeReadSetsOnlyThePassBack) {
  world.max_open_files = 1;  // files are opened anew
  world.kill();
  partition = world.open();
  for (int i = 0; i < 2; ++i) put(world, *partition, "new", std::string(400, 'n'));
  const auto record = decode_compaction(sound).value();
  const std::string path = world.path(segment_name(record.segments.front().id));
  const Buffer whole = *world.disk.content(path);
  Buffer bytes = whole;
  bytes.back() ^= std::byte{1};
  world.disk.set_content(path, bytes);
  const auto done = try_pass(world, *partition);
  ASSERT_FALSE(done) << done->has_value() << (*done ? (*done)->bytes_read : 0);
  EXPECT_NE(done.error().detail.find(segment_name(record.segments.front().id)), std::string::npos);
  EXPECT_TRUE(put(world, *partition, "goes", "on") > 0);
  world.disk.set_content(path, whole);
  EXPECT_TRUE(pass(world, *partition));
}

}  // namespace
}  // namespace kanal::log::test
