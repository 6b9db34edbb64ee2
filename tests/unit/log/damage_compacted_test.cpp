// Damage in what compaction wrote: told by the check, and cut off whole where that is asked for.
#include "keyed.hpp"

#include "compaction_record.hpp"

#include "kanal/log/check.hpp"

#include <algorithm>

namespace kanal::log::test {
namespace {

using Weight = Finding::Weight;

class CompactedDamage : public testing::Test {
 protected:
  void SetUp() override {
    world.options.segment_bytes = 500;
    world.options.index_interval_bytes = 200;
    auto partition = world.open();
    for (int i = 0; i < 40; ++i) {
      put(world, *partition, "k" + std::to_string(i % 7), std::string(40, 'v'));
      world.helpers.run();
      if (i == 25) pass(world, *partition);
    }
    end = partition->watermarks().high_watermark.value();
    records = records_in(batches_from(world, *partition, 0));
    world.stop({partition.get()});
    partition.reset();
    for (const std::string& file : world.disk.files()) {
      const std::string name = file.substr(file.rfind('/') + 1);
      if (name.size() > 24 && name.ends_with(".log")) compacted.push_back(file);
    }
    ASSERT_FALSE(compacted.empty());
  }
  std::vector<Finding> check() {
    std::vector<Finding> found;
    ChannelCheck options;
    options.directory = "/data/channels";
    options.channels = {world.id()};
    options.newest = LeaderEpoch(world.epoch);
    options.found = [&](Finding finding) { found.push_back(std::move(finding)); };
    EXPECT_TRUE(check_channels(world.files(), options));
    return found;
  }
  static Weight worst(const std::vector<Finding>& found) {
    Weight worst = Weight::kNote;
    for (const Finding& finding : found) worst = std::max(worst, finding.weight);
    return worst;
  }
  static std::string text(const std::vector<Finding>& found) {
    std::string all;
    for (const Finding& finding : found) all += finding.file + ": " + finding.text + "\n";
    return all;
  }
  void flip(const std::string& file, std::size_t at) {
    Buffer bytes = world.disk.content(file).value();
    bytes.at(at) ^= std::byte{0x04};
    world.disk.set_content(file, bytes);
  }
  void start(bool cut) {
    ++world.epoch;
    world.cut_damage = cut;
    world.kill();
  }

  Buffer damage(const std::string& file, std::size_t at) {
    world.disk.erase("/data/channels/clean-shutdown");
    world.disk.erase(world.path("checkpoint"));
    flip(file, at);
    return world.disk.content(file).value();
  }
  void expect_ends_at(std::int64_t base);

  World world;
  std::int64_t end = 0;
  std::vector<KeyedRecord> records;
  std::vector<std::string> compacted;
};

TEST_F(CompactedDamage, ACompactedLogIsSoundAfterAStopAndAfterAKill) {
  EXPECT_TRUE(check().empty()) << text(check());
  start(false);
  EXPECT_TRUE(check().empty()) << text(check());
}

TEST_F(CompactedDamage, WhatWasTrimmedOfACompactedLogIsNotMissed) {
  start(false);
  auto partition = world.open();
  const auto record = decode_compaction(*world.disk.content(world.path("compaction"))).value();
  ASSERT_GT(record.segments.size(), 1u);
  ASSERT_TRUE(partition->trim(to_offset(record.segments.front().end)));
  ASSERT_TRUE(partition->log().sync());
  world.helpers.run();
  EXPECT_FALSE(world.disk.content(compacted.front()));
  EXPECT_EQ(worst(check()), Weight::kNote) << text(check());
  world.stop({partition.get()});
  partition.reset();
  EXPECT_TRUE(check().empty()) << text(check());
  // What was not trimmed is.
  world.disk.erase(compacted.back());
  EXPECT_EQ(worst(check()), Weight::kDamage);
}

TEST_F(CompactedDamage, EveryFlippedByteOfWhatCompactionWroteIsFound) {
  std::vector<std::string> files = compacted;
  files.push_back(world.path("compaction"));
  for (const std::string& file : files) {
    const Buffer sound = world.disk.content(file).value();
    for (std::size_t at = 0; at < sound.size(); at += 5) {
      flip(file, at);
      EXPECT_GE(worst(check()), Weight::kRepairable) << file << ":" << at;
      world.disk.set_content(file, sound);
    }
    world.disk.erase(file);
    EXPECT_EQ(worst(check()), Weight::kDamage) << file;
    world.disk.set_content(file, sound);
  }
}

TEST_F(CompactedDamage, IsCutOffAndKept) {
  const std::string file = compacted.back();
  const std::int64_t base = std::stoll(file.substr(file.rfind('/') + 1, 20));
  const Buffer damaged = damage(file, 70);
  expect_ends_at(base);
  EXPECT_EQ(world.disk.content(file + ".cut").value(), damaged);
}

TEST_F(CompactedDamage, TheSoundBatchesBeforeItStay) {
  const auto several = std::ranges::find_if(compacted, [&](const std::string& file) {
    const Buffer bytes = world.disk.content(file).value();
    return bytes.size() > records::parse_header(bytes)->size();
  });
  ASSERT_NE(several, compacted.end());
  const auto first = records::parse_header(world.disk.content(*several).value()).value();
  const Buffer damaged = damage(*several, first.size() + 70);
  expect_ends_at(first.next_offset().value());
  EXPECT_EQ(world.disk.content(*several).value().size(), first.size());
  EXPECT_EQ(world.disk.content(*several + ".cut").value().size(), damaged.size() - first.size());
}

/// The next start, which looks at every byte, ends the log there and goes on.
void CompactedDamage::expect_ends_at(std::int64_t base) {
  start(false);
  EXPECT_FALSE(world.try_open());
  start(true);
  auto partition = world.open();
  ASSERT_NE(partition, nullptr);
  EXPECT_TRUE(world.report.damage_cut);
  EXPECT_EQ(partition->watermarks().high_watermark, Offset(base));
  auto left = records;
  std::erase_if(left, [&](const KeyedRecord& record) { return record.offset >= base; });
  EXPECT_EQ(records_in(batches_from(world, *partition, 0)), left);
  EXPECT_EQ(put(world, *partition, "new", "value"), base);
  partition.reset();
  start(false);
  partition = world.open();
  ASSERT_NE(partition, nullptr);
  EXPECT_EQ(partition->watermarks().high_watermark, Offset(base + 1));
  EXPECT_LE(worst(check()), Weight::kRecoverable) << text(check());
  partition.reset();
}

}  // namespace
}  // namespace kanal::log::test
