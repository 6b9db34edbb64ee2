// log.recovery=truncate meets damage in and around compacted segments: the log ends before it, what
// is taken out stays beside it, and the log goes on.
#include "keyed.hpp"

#include "compaction_record.hpp"

#include <map>

namespace kanal::log::test {
namespace {

class CompactionDamage : public ::testing::Test {
 protected:
  CompactionDamage() {
    world.options.segment_bytes = 400;
    auto partition = world.open();
    for (int i = 0; i < 80; ++i) {
      put(world, *partition, "k" + std::to_string(i % 3 == 0 ? i : i % 7), std::string(60, 'v'));
    }
    pass(world, *partition);
    put(world, *partition, "tail", "t");
    EXPECT_TRUE(partition->log().sync());
    before = batches_from(world, *partition, 0);
    partition.reset();
    world.disk.erase(world.path("checkpoint"));
    record = decode_compaction(*world.disk.content(world.path("compaction"))).value();
    EXPECT_GT(record.segments.size(), 2u);
  }
  /// Opens, looks, appends, and comes back the same after a kill and another pass.
  void expect_goes_on(std::size_t kept) {
    world.cut_damage = true;
    world.kill();
    auto partition = world.open();
    ASSERT_NE(partition, nullptr);
    EXPECT_TRUE(world.report.damage_cut);
    auto left = batches_from(world, *partition, 0);
    ASSERT_LE(left.size(), before.size());
    EXPECT_EQ(left.size(), kept);
    EXPECT_TRUE(std::equal(left.begin(), left.end(), before.begin()));
    for (int i = 0; i < 20; ++i) put(world, *partition, "n" + std::to_string(i % 2), "new");
    left = batches_from(world, *partition, 0);
    partition.reset();
    world.cut_damage = false;
    world.kill();
    partition = world.open();
    ASSERT_NE(partition, nullptr);
    EXPECT_EQ(batches_from(world, *partition, 0), left);
    ASSERT_TRUE(pass(world, *partition));
    partition.reset();
    world.disk.erase(world.path("checkpoint"));
    world.kill();
    EXPECT_NE(world.open(), nullptr);
  }
  std::size_t batches_before(Sequence end) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        before, [&](const KeyedBatch& batch) { return to_sequence(Offset(batch.last)) < end; }));
  }
  std::map<std::string, Buffer> content() {
    EXPECT_TRUE(world.disk.sync_directory("/data/channels/" + directory_name(world.id())));
    std::map<std::string, Buffer> files;
    for (const std::string& file : world.disk.files()) files[file] = *world.disk.content(file);
    return files;
  }
  /// Over `files`: a start whose disk fails from its step `at` on, a power cut, and the next start.
  std::unique_ptr<Partition> cut_failing_at(std::uint64_t at,
                                            const std::map<std::string, Buffer>& files,
                                            bool& fired) {
    for (const std::string& file : world.disk.files()) world.disk.erase(file);
    for (const auto& [file, bytes] : files) world.disk.set_content(file, bytes);
    world.cut_damage = true;
    world.kill();
    world.disk.fail({.at = at, .sticky = true});
    (void)world.try_open();
    fired = world.disk.fault_fired();
    world.disk.clear_faults();
    world.disk.power_cut();
    world.kill();
    return world.open();
  }
  World world;
  std::vector<KeyedBatch> before;
  CompactionRecord record;
};

TEST_F(CompactionDamage, AChangedByteCostsItsSegmentAndAllBehind) {
  const CompactedSegment& damaged = record.segments[1];
  const std::string path = world.path(segment_name(damaged.id));
  Buffer bytes = *world.disk.content(path);
  bytes.back() ^= std::byte{1};
  world.disk.set_content(path, bytes);
  expect_goes_on(batches_before(damaged.id.base));
}

TEST_F(CompactionDamage, WhatNoBatchsChecksumCoversCostsItsSegment) {
  const CompactedSegment& damaged = record.segments[1];
  const std::string path = world.path(segment_name(damaged.id));
  Buffer bytes = *world.disk.content(path);
  bytes[records::at::kLeaderEpoch + 2] ^= std::byte{1};
  world.disk.set_content(path, bytes);
  expect_goes_on(batches_before(damaged.id.base));
}

TEST_F(CompactionDamage, AMissingSegmentEndsTheLogBeforeIt) {
  world.disk.erase(world.path(segment_name(record.segments[1].id)));
  expect_goes_on(batches_before(record.segments[1].id.base));
}

TEST_F(CompactionDamage, AnOldFileOfASwapUnderwayIsNotTakenForTheNewEnd) {
  // The process ended before the old files were removed; then the swap's own is damaged.
  const CompactedSegment& damaged = record.segments[1];
  const std::string path = world.path(segment_name(damaged.id));
  Buffer bytes = *world.disk.content(path);
  world.disk.set_content(world.path(segment_name(damaged.id.base)), bytes);
  bytes.back() ^= std::byte{1};
  world.disk.set_content(path, bytes);
  expect_goes_on(batches_before(damaged.id.base));
}

TEST_F(CompactionDamage, WithoutTheFirstSegmentTheLogStartsBehindIt) {
  world.disk.erase(world.path(segment_name(record.segments[0].id)));
  world.kill();
  EXPECT_FALSE(world.try_open());
  world.cut_damage = true;
  world.kill();
  const auto partition = world.open();
  ASSERT_NE(partition, nullptr);
  EXPECT_EQ(partition->watermarks().log_start, to_offset(record.segments[0].end));
}

TEST_F(CompactionDamage, WithoutTheFileThatListsThemCompactedSegmentsAreKeptBesideTheLog) {
  world.disk.erase(world.path("compaction"));
  const auto files = content();
  for (std::uint64_t at = 0;; ++at) {
    bool fired = false;
    const auto partition = cut_failing_at(at, files, fired);
    ASSERT_NE(partition, nullptr) << at;
    EXPECT_EQ(partition->watermarks().log_start, to_offset(record.segments.back().end)) << at;
    for (const CompactedSegment& segment : record.segments) {
      const std::string path = world.path(segment_name(segment.id));
      EXPECT_EQ(world.disk.content(path + ".cut"), files.at(path)) << at << " " << path;
    }
    if (!fired) return;
  }
}

TEST_F(CompactionDamage, CompactedSegmentsThatNothingListsAreKeptWhereTheLogEndsBeforeThem) {
  // A segment of which nothing went is in front of them, and its index is lost as well.
  World other;
  other.options.segment_bytes = 400;
  auto partition = other.open();
  for (int i = 0; i < 20; ++i) {
    put(other, *partition, "k" + std::to_string(i < 5 ? i : 10 + i % 2), std::string(60, 'v'));
  }
  ASSERT_TRUE(pass(other, *partition));
  ASSERT_TRUE(partition->log().sync());
  partition.reset();
  std::map<std::string, Buffer> compacted;
  const auto listed = decode_compaction(*other.disk.content(other.path("compaction"))).value();
  for (const CompactedSegment& segment : listed.segments) {
    const std::string path = other.path(segment_name(segment.id));
    compacted[path] = *other.disk.content(path);
  }
  ASSERT_FALSE(compacted.empty());
  ASSERT_TRUE(other.disk.content(other.path(segment_name(Sequence(1)))));
  other.disk.erase(other.path("compaction"));
  other.disk.erase(other.path("checkpoint"));
  other.disk.erase(other.path(index_name(Sequence(1))));
  other.kill();
  (void)other.try_open();
  for (const auto& [path, bytes] : compacted) {
    const auto there = other.disk.content(path), aside = other.disk.content(path + ".cut");
    EXPECT_TRUE(there == bytes || aside == bytes) << path;
  }
}

TEST_F(CompactionDamage, AnOldFileOfASwapUnderwayIsKeptBesideTheLog) {
  const CompactedSegment& damaged = record.segments[1];
  const std::string path = world.path(segment_name(damaged.id));
  const std::string old = world.path(segment_name(damaged.id.base));
  Buffer bytes = *world.disk.content(path);
  world.disk.set_content(old, bytes);
  bytes.back() ^= std::byte{1};
  world.disk.set_content(path, bytes);
  const auto files = content();
  for (std::uint64_t at = 0;; ++at) {
    bool fired = false;
    const auto partition = cut_failing_at(at, files, fired);
    ASSERT_NE(partition, nullptr) << at;
    EXPECT_EQ(batches_from(world, *partition, 0).size(), batches_before(damaged.id.base)) << at;
    EXPECT_EQ(world.disk.content(old + ".cut"), files.at(old)) << at;
    if (!fired) return;
  }
}

}  // namespace
}  // namespace kanal::log::test
