// A topic deleted and made again while a helper still works on the old one's files: whatever the
// helper does next must not land in the new one's directory, which has the same name.
#include "world.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace kanal::log::test {
namespace {

/// A memory disk on which opening a file can take long.
class SlowFiles final : public FileSystem {
 public:
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override {
    if (!slow_.empty() && path.ends_with(slow_) && !std::exchange(waited_, true)) wait();
    return disk.open(path, mode);
  }
  Result<std::vector<DirectoryEntry>> list(const std::string& path) override {
    return disk.list(path);
  }
  Result<bool> exists(const std::string& path) override { return disk.exists(path); }
  Result<void> create_directories(const std::string& path) override {
    return disk.create_directories(path);
  }
  Result<void> rename(const std::string& from, const std::string& to) override {
    return disk.rename(from, to);
  }
  Result<void> remove(const std::string& path) override { return disk.remove(path); }
  Result<void> remove_all(const std::string& path) override { return disk.remove_all(path); }
  Result<void> sync_directory(const std::string& path) override {
    return disk.sync_directory(path);
  }
  Result<void> sync_all(const std::string& path) override { return disk.sync_all(path); }
  Result<DiskSpace> space(const std::string& path) override { return disk.space(path); }
  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override {
    return disk.lock(path);
  }

  /// The next file so named is opened once the topic was made again, if that comes soon: who waits
  /// for the helper never makes it, and nothing but this test's time is lost.
  void slow_down(std::string name) { slow_ = std::move(name); }
  void await_helper() {
    std::unique_lock hold(mutex_);
    changed_.wait(hold, [&] { return helper_waits_; });
  }
  void made_again() {
    const std::lock_guard hold(mutex_);
    made_again_ = true;
    changed_.notify_all();
  }

  kanal::test::MemoryFileSystem disk;

 private:
  void wait() {
    std::unique_lock hold(mutex_);
    helper_waits_ = true;
    changed_.notify_all();
    changed_.wait_for(hold, std::chrono::milliseconds(300), [&] { return made_again_; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string slow_;
  bool waited_ = false, helper_waits_ = false, made_again_ = false;
};

using Work = std::move_only_function<void()>;

class MadeAgain : public ::testing::Test {
 protected:
  MadeAgain() {
    world.options.segment_bytes = static_cast<std::int64_t>(make_batch({}).size());
    old = world.open();
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(world.append(*old));
    world.helpers.run();
  }
  /// `work` is at the opening of `file` when the topic is deleted and made again.
  void make_again_within(const std::string& file, Work work) {
    files.slow_down(file);
    std::thread helper(std::move(work));
    files.await_helper();
    EXPECT_TRUE(world.store().remove(world.id()));
    world.incarnation = 9;
    made = world.open();
    EXPECT_TRUE(world.append(*made));
    const auto before = files.disk.files();
    files.made_again();
    helper.join();
    EXPECT_EQ(files.disk.files(), before);
    made.reset();
    old.reset();
    world.kill();
    made = world.open();
    EXPECT_EQ(read_all(world, *made), std::vector<std::int64_t>{0});
  }

  SlowFiles files;
  World world{&files};
  std::unique_ptr<Partition> old, made;
};

TEST_F(MadeAgain, ATrimsHelperRemovesNothingOfTheTopicMadeAgain) {
  ASSERT_TRUE(old->trim(Offset(2)));
  make_again_within("/channel", world.helpers.take());
}

TEST_F(MadeAgain, AFileToBeKeptForAWhileIsNotTheNewTopicsEither) {
  world.options.file_delete_delay_ms = 1000;
  old->configure(world.options);
  ASSERT_TRUE(old->trim(Offset(2)));
  make_again_within("/channel", world.helpers.take());
}

TEST_F(MadeAgain, ASealWritesNoIndexIntoTheTopicMadeAgain) {
  ASSERT_TRUE(world.append(*old));  // rolls
  make_again_within(".kindex", world.helpers.take());
}

TEST_F(MadeAgain, ALoadWritesNoIndexIntoTheTopicMadeAgain) {
  const std::string index = world.path("00000000000000000000.kindex");
  ASSERT_TRUE(files.disk.content(index)) << index;
  const std::uint64_t size = make_batch({}).size();
  ASSERT_TRUE(files.disk.remove(index));
  world.store().load({ChannelHandle(0), size, 0}, [](Result<void> done) { EXPECT_TRUE(done); });
  make_again_within(".kindex", world.helpers.take());
}

TEST_F(MadeAgain, ACheckpointIsNotWrittenIntoTheTopicMadeAgain) {
  const Checkpoint state = old->checkpoint();
  make_again_within("checkpoint.tmp", [&] { (void)old->log().checkpoint(state); });
}

TEST_F(MadeAgain, ACheckpointTakenEarlierDoesNotReplaceALaterOne) {
  const Checkpoint early = old->checkpoint();
  ASSERT_TRUE(world.append(*old));
  const Checkpoint late = old->checkpoint();
  ASSERT_TRUE(old->log().checkpoint(late));
  const auto written = files.disk.content(world.path("checkpoint"));
  ASSERT_TRUE(old->log().checkpoint(early));
  EXPECT_EQ(files.disk.content(world.path("checkpoint")), written);
}

TEST(StartMovedAtTheStop, ATrimBehindTheLastCheckpointIsNotTakenBackByTheNextStart) {
  for (const bool within : {false, true}) {
    World world;
    world.options.segment_bytes = static_cast<std::int64_t>(make_batch({}).size());
    auto partition = world.open();
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(world.append(*partition));
    world.helpers.run();
    world.store().prepare_stop();
    const Checkpoint last = partition->checkpoint();
    if (within) {
      ASSERT_TRUE(partition->trim(Offset(2)));
    }
    ASSERT_TRUE(partition->log().checkpoint(last));
    if (!within) {
      ASSERT_TRUE(partition->trim(Offset(2)));
    }
    world.helpers.run();
    ASSERT_TRUE(world.store().stop({}));
    partition.reset();
    world.start();
    partition = world.open();
    EXPECT_EQ(partition->watermarks().log_start, Offset(2));
    EXPECT_EQ(read_all(world, *partition, 2), (std::vector<std::int64_t>{2, 3}));
    EXPECT_TRUE(world.append(*partition));
  }
}

}  // namespace
}  // namespace kanal::log::test
