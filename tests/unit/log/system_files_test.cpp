// The log over the operating system's files.
#include "compaction_record.hpp"
#include "keyed.hpp"

#include "kanal/log/snapshot.hpp"

#include <filesystem>
#include <random>

#include <sys/stat.h>
#include <unistd.h>

namespace kanal::log::test {
namespace {

class OnDisk : public testing::Test {
 protected:
  OnDisk() {
    std::string name = (std::filesystem::temp_directory_path() / "kanal-log-XXXXXX").string();
    root_ = mkdtemp(name.data());
    std::filesystem::create_directories(root_ + "/data");
  }
  ~OnDisk() override { std::filesystem::remove_all(root_); }
  [[nodiscard]] std::string channels() const { return root_ + "/data/channels"; }

  std::string root_;
  std::unique_ptr<FileSystem> files_ = make_system_file_system();
};

TEST_F(OnDisk, KeepsEverythingOverKillsAndCleanStops) {
  World world(files_.get(), channels());
  world.options.segment_bytes = 20'000;
  std::mt19937 random(1);
  std::vector<std::int64_t> bases;
  for (int run = 0; run < 6; ++run) {
    auto partition = world.open();
    ASSERT_EQ(read_all(world, *partition, 0, 5000), bases) << run;
    for (int i = 0; i < 100; ++i) {
      const auto appended = world.append(
          *partition, {.records = 1 + i % 4, .value = std::string(random() % 900, 'v')});
      ASSERT_TRUE(appended);
      bases.push_back(appended->base_offset.value());
    }
    if (run % 3 == 1) {
      ASSERT_TRUE(partition->log().checkpoint(partition->checkpoint()));
    }
    if (run % 2 == 0) world.stop({partition.get()});
    partition.reset();
    world.kill();
  }
}

TEST_F(OnDisk, ReservesWithoutChangingTheSizeAndGivesTheRestBack) {
  World world(files_.get(), channels());
  auto partition = world.open();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(world.append(*partition, {.value = std::string(10'000, 'x')}));
  }
  const std::string path = world.path("00000000000000000000.log");
  struct stat status;
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  const std::uint64_t bytes = partition->bytes();
  EXPECT_EQ(static_cast<std::uint64_t>(status.st_size), bytes);
  partition.reset();
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_LE(static_cast<std::uint64_t>(status.st_blocks) * 512, bytes + 65'536);
}

TEST_F(OnDisk, ATornTailIsCut) {
  World world(files_.get(), channels());
  {
    auto partition = world.open();
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(world.append(*partition));
  }
  const std::string path = world.path("00000000000000000000.log");
  const auto size = std::filesystem::file_size(path);
  std::filesystem::resize_file(path, size - 7);
  world.kill();
  auto partition = world.open();
  EXPECT_EQ(partition->watermarks().high_watermark, Offset(4));
  EXPECT_EQ(world.append(*partition)->base_offset, Offset(4));
  EXPECT_EQ(std::filesystem::file_size(path), size);
}

TEST_F(OnDisk, TrimsRemovesAndSweeps) {
  World world(files_.get(), channels());
  world.options.segment_bytes = 500;
  auto partition = world.open();
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(world.append(*partition));
  ASSERT_TRUE(partition->trim(Offset(17)));
  world.helpers.run();
  EXPECT_FALSE(std::filesystem::exists(world.path("00000000000000000000.log")));
  EXPECT_EQ(read_all(world, *partition, 17).size(), 13U);
  ASSERT_TRUE(world.store().remove(world.id()));
  EXPECT_FALSE(std::filesystem::exists(world.path("channel")));
  partition.reset();
  world.kill();
  EXPECT_TRUE(std::filesystem::is_empty(channels()));
}

TEST_F(OnDisk, ASnapshotOfACompactedAndTrimmedLogKeepsWhereTheNextPassBegins) {
  World world(files_.get(), channels());
  world.options.segment_bytes = 400;
  auto partition = world.open();
  for (int i = 0; i < 80; ++i) {
    put(world, *partition, "k" + std::to_string(i % 3 == 0 ? i : i % 7), std::string(60, 'v'));
  }
  pass(world, *partition);
  const auto clean = partition->log().first_dirty();
  ASSERT_TRUE(clean);
  ASSERT_TRUE(partition->trim(Offset(40)));
  world.helpers.run();
  const auto ours = read_compaction(*files_, world.path("compaction"));
  ASSERT_TRUE(ours);
  ASSERT_LE(ours->record.segments.front().end, Sequence(40));  // still listed
  const std::string copy = root_ + "/copy";
  std::filesystem::create_directories(copy);
  LogSnapshot snapshot(*files_, copy, copy);
  const std::function<Result<Checkpoint>()> moment = [&] { return partition->checkpoint(); };
  ASSERT_TRUE(snapshot.add(world.id(), partition->log(), moment));
  ASSERT_TRUE(snapshot.finish([] { return false; }));
  const auto record =
      read_compaction(*files_, copy + "/" + directory_name(world.id()) + "/compaction");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->record.first_dirty, *clean);
}

TEST_F(OnDisk, LongTopicNamesHaveADirectory) {
  World world(files_.get(), channels());
  const std::string topic(249, 'n');
  for (const int index : {0, 1, 9999}) {
    auto partition = world.open(topic, index);
    ASSERT_TRUE(world.append(*partition)) << index;
    EXPECT_TRUE(std::filesystem::exists(channels() + "/" + directory_name(world.id(topic, index)) +
                                        "/channel"));
  }
}

}  // namespace
}  // namespace kanal::log::test
