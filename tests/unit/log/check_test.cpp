// check_channels over what the log writes: a sound directory has no findings, what a crash leaves
// is told apart from damage, and no flipped byte of any file goes unnoticed.
#include "world.hpp"

#include "kanal/log/check.hpp"

#include <algorithm>
#include <map>

namespace kanal::log::test {
namespace {

using Weight = Finding::Weight;

class Check : public testing::Test {
 protected:
  static constexpr int kRecords = 40;

  /// Four segments or so, under two leader epochs; `end` decides how the process ends.
  void fill() {
    for (int run = 0; run < 2; ++run) {
      auto partition = world.open();
      for (int i = 0; i < kRecords / 2; ++i) {
        BatchSpec spec{.timestamp = 1000 + i, .producer = 7, .epoch = 0};
        spec.sequence = run * kRecords / 2 + i;
        spec.value = std::string(100, static_cast<char>('a' + i % 20));
        ASSERT_TRUE(world.append(*partition, spec));
        world.helpers.run();
      }
      if (run == 0) {
        partition.reset();
        ++world.epoch;
        world.kill();
        continue;
      }
      ASSERT_TRUE(partition->log().checkpoint(partition->checkpoint()));
      ASSERT_TRUE(world.append(*partition));
      if (clean) world.stop({partition.get()});
    }
    world.helpers.run();
  }
  void SetUp() override {
    world.options.segment_bytes = 2000;
    world.options.index_interval_bytes = 300;
  }
  std::vector<Finding> check() {
    std::vector<Finding> found;
    ChannelCheck options;
    options.directory = "/data/channels";
    options.channels = {world.id()};
    options.newest = LeaderEpoch(world.epoch);
    options.found = [&](Finding finding) { found.push_back(std::move(finding)); };
    const auto figures = check_channels(world.files(), options);
    EXPECT_TRUE(figures) << figures.error().detail;
    if (figures) last = *figures;
    return found;
  }
  static std::string text(const std::vector<Finding>& found) {
    std::string all;
    for (const Finding& finding : found) all += finding.file + ": " + finding.text + "\n";
    return all;
  }
  static Weight worst(const std::vector<Finding>& found) {
    Weight worst = Weight::kNote;
    for (const Finding& finding : found) worst = std::max(worst, finding.weight);
    return worst;
  }
  std::map<std::string, Buffer> files() {
    std::map<std::string, Buffer> all;
    for (const std::string& file : world.disk.files()) all[file] = *world.disk.content(file);
    return all;
  }
  std::string last_segment() {
    std::string last_name;
    for (const std::string& file : world.disk.files()) {
      if (file.ends_with(".log")) last_name = std::max(last_name, file);
    }
    return last_name;
  }

  World world;
  bool clean = true;
  ChannelFigures last;
};

TEST_F(Check, ACleanStopIsSoundAndEverythingIsCounted) {
  fill();
  const auto found = check();
  EXPECT_TRUE(found.empty()) << text(found);
  EXPECT_EQ(last.channels, 1u);
  EXPECT_GE(last.segments, 3u);
  EXPECT_EQ(last.batches, kRecords + 1u);
  EXPECT_EQ(last.records, kRecords + 1u);
  std::uint64_t bytes = 0;
  for (const auto& [file, content] : files()) bytes += file.ends_with(".log") ? content.size() : 0;
  EXPECT_EQ(last.bytes, bytes);
}

TEST_F(Check, ATornTailAfterAKillIsRecoverableAndNoDamage) {
  clean = false;
  fill();
  EXPECT_TRUE(check().empty());
  Buffer bytes = *world.disk.content(last_segment());
  const std::size_t whole = bytes.size();
  for (const std::size_t more : {1u, 60u, 500u}) {
    bytes.resize(whole);
    bytes.resize(whole + more, std::byte{0x5a});
    world.disk.set_content(last_segment(), bytes);
    const auto found = check();
    ASSERT_EQ(found.size(), 1u) << text(found);
    EXPECT_EQ(found[0].weight, Weight::kRecoverable);
    EXPECT_EQ(found[0].file, last_segment());
    EXPECT_EQ(found[0].position, whole);
  }
  // The last batch is behind the checkpoint: a part of it is what a kill may leave.
  bytes.resize(whole - 3);
  world.disk.set_content(last_segment(), bytes);
  EXPECT_EQ(worst(check()), Weight::kRecoverable);
  // What the checkpoint vouches for is not.
  bytes.resize(whole - 300);
  world.disk.set_content(last_segment(), bytes);
  EXPECT_EQ(worst(check()), Weight::kDamage);
}

TEST_F(Check, NothingIsWritten) {
  clean = false;
  fill();
  Buffer bytes = *world.disk.content(last_segment());
  bytes.resize(bytes.size() + 5, std::byte{1});
  world.disk.set_content(last_segment(), bytes);
  const auto before = files();
  (void)world.disk.take_count(kanal::test::MemoryFileSystem::kAll);
  EXPECT_EQ(check().size(), 1u);
  using Disk = kanal::test::MemoryFileSystem;
  EXPECT_EQ(world.disk.take_count(Disk::kChanges & ~Disk::kOpen), 0u);
  EXPECT_EQ(files(), before);
}

TEST_F(Check, EveryFlippedByteOfEveryFileIsFound) {
  fill();
  constexpr std::size_t kSlot = 512, kUsed = 56;
  std::size_t flips = 0;
  for (const auto& [file, sound] : files()) {
    const bool is_channel = file.ends_with("/channel");
    const std::size_t step = file.ends_with(".log") ? 7 : 3;
    for (std::size_t at = 0; at < sound.size(); at += step) {
      if (is_channel && at % kSlot >= kUsed) continue;  // never read
      Buffer bytes = sound;
      bytes[at] ^= std::byte{0x01};
      world.disk.set_content(file, bytes);
      const auto found = check();
      EXPECT_GE(worst(found), Weight::kRepairable) << file << ":" << at << "\n" << text(found);
      EXPECT_NE(text(found).find(file.substr(file.rfind('/') + 1)), std::string::npos)
          << file << ":" << at << "\n"
          << text(found);
      ++flips;
    }
    world.disk.set_content(file, sound);
  }
  EXPECT_GT(flips, 500u);
  EXPECT_TRUE(check().empty());
}

TEST_F(Check, EveryFileThatIsGoneIsFoundButForAnIndex) {
  fill();
  for (const auto& [file, sound] : files()) {
    world.disk.erase(file);
    const auto found = check();
    const bool spare = file.ends_with(".kindex") || file.ends_with("/checkpoint") ||
                       file.ends_with("/clean-shutdown");
    EXPECT_EQ(worst(found) >= Weight::kRepairable, !spare) << file << "\n" << text(found);
    world.disk.set_content(file, sound);
  }
}

TEST_F(Check, DamageInTheMiddleIsToldWithItsPositionAndTheRestIsLookedAt) {
  fill();
  std::vector<std::string> segments;
  for (const auto& [file, bytes] : files()) {
    if (file.ends_with(".log")) segments.push_back(file);
  }
  for (const std::size_t i : {0u, 1u}) {
    Buffer bytes = *world.disk.content(segments[i]);
    bytes[records::parse_header(bytes)->size() + 70] ^= std::byte{4};
    world.disk.set_content(segments[i], bytes);
  }
  const auto found = check();
  for (const std::size_t i : {0u, 1u}) {
    const auto told = std::ranges::find_if(found, [&](const Finding& finding) {
      return finding.file == segments[i] && finding.weight == Weight::kDamage;
    });
    ASSERT_NE(told, found.end()) << text(found);
    const Buffer bytes = *world.disk.content(segments[i]);
    EXPECT_EQ(told->position, records::parse_header(bytes)->size());
  }
  EXPECT_EQ(last.batches, kRecords + 1u - 2);
}

TEST_F(Check, LeftoversAreListed) {
  fill();
  world.disk.set_content(world.path("00000000000000000000.log.cut"), Buffer(10));
  world.disk.set_content(world.path("notes.txt"), Buffer(10));
  world.disk.set_content("/data/channels/kafka.gone/channel", Buffer(10));
  world.disk.set_content("/data/channels/.removed/x/channel", Buffer(10));
  world.disk.set_content("/data/channels/.stray/y/channel", Buffer(10));
  const auto found = check();
  EXPECT_EQ(found.size(), 5u) << text(found);
  EXPECT_EQ(worst(found), Weight::kNote);
}

TEST_F(Check, ChannelsOfAnotherTopicOrOfALaterStartAreDamage) {
  fill();
  ++world.incarnation;
  EXPECT_EQ(worst(check()), Weight::kDamage);
  --world.incarnation;
  --world.epoch;
  EXPECT_EQ(worst(check()), Weight::kDamage);
}

}  // namespace
}  // namespace kanal::log::test
