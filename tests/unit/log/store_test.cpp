// The clean shutdown, recovery points, and what the store tells its sink.
#include "world.hpp"

#include <cerrno>
#include <thread>

namespace kanal::log::test {
namespace {

using Disk = kanal::test::MemoryFileSystem;

const std::string kClean = "/data/channels/clean-shutdown";
const std::string kPoints = "/data/channels/recovery-points";

std::vector<std::unique_ptr<Partition>> open_all(World& world, int count) {
  std::vector<std::unique_ptr<Partition>> partitions;
  for (int i = 0; i < count; ++i) partitions.push_back(world.open("t", i));
  return partitions;
}

void stop_all(World& world, std::vector<std::unique_ptr<Partition>>& partitions) {
  world.store().prepare_stop();
  for (auto& partition : partitions)
    ASSERT_TRUE(partition->log().checkpoint(partition->checkpoint()));
  ASSERT_TRUE(world.store().stop({}));
  partitions.clear();
}

TEST(CleanStop, AStartTouchesNoFileOfAnyChannel) {
  World world;
  auto partitions = open_all(world, 50);
  for (int i = 0; i < 50; i += 2)
    ASSERT_TRUE(world.append(*partitions[static_cast<std::size_t>(i)]));
  stop_all(world, partitions);
  EXPECT_TRUE(world.disk.content(kClean));
  EXPECT_FALSE(world.disk.content(kPoints));
  world.kill();
  EXPECT_FALSE(world.disk.content(kClean));
  EXPECT_TRUE(world.disk.content(kPoints));
  world.disk.take_count(Disk::kAll);
  partitions = open_all(world, 50);
  EXPECT_EQ(world.disk.take_count(Disk::kAll), 0U);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(partitions[static_cast<std::size_t>(i)]->watermarks().high_watermark,
              Offset(i % 2 == 0 ? 1 : 0));
  }
}

TEST(CleanStop, CountsOnceEvenWhenTheNextProcessDiesAtOnce) {
  World world;
  auto partition = world.open();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(world.append(*partition));
  world.stop({partition.get()});
  partition.reset();
  world.kill();
  partition = world.open();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(world.append(*partition));
  partition.reset();
  world.kill();
  partition = world.open();
  EXPECT_TRUE(world.report.scanned);
  EXPECT_EQ(partition->watermarks().high_watermark, Offset(8));
  // Only what came after the recovery point was read.
  EXPECT_EQ(world.report.scanned_bytes, 3 * make_batch({}).size());
}

TEST(CleanStop, AMarkThatCannotBeTakenAwayOpensNothing) {
  for (const auto kind : {Disk::kRename, Disk::kSyncDirectory}) {
    World world;
    auto partition = world.open();
    ASSERT_TRUE(world.append(*partition));
    world.stop({partition.get()});
    partition.reset();
    // The directory of the channels is synced after its parent was.
    world.disk.fail({.at = kind == Disk::kRename ? 0U : 1U,
                     .kinds = static_cast<std::uint32_t>(kind),
                     .error = EIO});
    world.kill();
    EXPECT_TRUE(world.disk.fault_fired());
    EXPECT_FALSE(world.try_open());
    EXPECT_FALSE(world.store().stop({}));
    world.disk.clear_faults();
    world.kill();
    EXPECT_EQ(world.open()->watermarks().high_watermark, Offset(1));
  }
}

TEST(CleanStop, EveryFlippedBitOfItsFileIsNoticed) {
  World world;
  auto partition = world.open();
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(world.append(*partition, {.producer = 4, .epoch = 0, .sequence = i}));
  world.stop({partition.get()});
  partition.reset();
  const Buffer whole = *world.disk.content(kClean);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    Buffer bytes = whole;
    bytes[at] ^= std::byte{1};
    world.disk.set_content(kClean, bytes);
    world.disk.erase(kPoints);
    world.kill();
    auto again = world.open();
    EXPECT_TRUE(world.report.scanned) << at;
    EXPECT_EQ(again->watermarks().high_watermark, Offset(3));
    EXPECT_TRUE(world.append(*again, {.producer = 4, .epoch = 0, .sequence = 2})->duplicate);
  }
}

TEST(CleanStop, RecordsAfterTheLastCheckpointMakeItUnclean) {
  for (const bool closed_before_stop : {false, true}) {
    World world;
    auto partition = world.open();
    ASSERT_TRUE(world.append(*partition));
    world.store().prepare_stop();
    ASSERT_TRUE(partition->log().checkpoint(partition->checkpoint()));
    ASSERT_TRUE(world.append(*partition, {.producer = 4, .epoch = 0, .sequence = 0}));
    if (closed_before_stop) partition.reset();
    ASSERT_TRUE(world.store().stop({}));
    if (!closed_before_stop) {
      EXPECT_FALSE(world.append(*partition));
    }
    partition.reset();
    world.kill();
    partition = world.open();
    EXPECT_TRUE(world.report.scanned);
    EXPECT_EQ(partition->watermarks().high_watermark, Offset(2));
    EXPECT_TRUE(world.append(*partition, {.producer = 4, .epoch = 0, .sequence = 0})->duplicate);
  }
}

TEST(CleanStop, AFileThatChangedSinceIsNoticedBeforeAnythingIsAppended) {
  World world;
  auto partition = world.open();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(world.append(*partition));
  world.stop({partition.get()});
  partition.reset();
  const std::string path = world.path("00000000000000000000.log");
  Buffer bytes = *world.disk.content(path);
  bytes.resize(bytes.size() - 1);
  world.disk.set_content(path, bytes);
  world.kill();
  partition = world.open();
  const auto refused = world.append(*partition);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().detail.find(path), std::string::npos);
  EXPECT_EQ(*world.disk.content(path), bytes);
}

TEST(CleanStop, AFileThatGrewIsNotCutByTheRollThatFollows) {
  World world;
  auto partition = world.open();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(world.append(*partition));
  world.stop({partition.get()});
  partition.reset();
  const std::string path = world.path("00000000000000000000.log");
  Buffer bytes = *world.disk.content(path);
  bytes.resize(bytes.size() + 100);
  world.disk.set_content(path, bytes);
  world.options.segment_bytes = static_cast<std::int64_t>(make_batch({}).size());
  world.kill();
  partition = world.open();
  EXPECT_FALSE(world.append(*partition));
  world.helpers.run();
  EXPECT_EQ(*world.disk.content(path), bytes);
  EXPECT_EQ(read(world, *partition, 0).error, ErrorCode::KAFKA_STORAGE_ERROR);
}

TEST(CleanStop, ADirectoryThatIsGoneIsAnErrorAfterACrash) {
  World world;
  auto partition = world.open();
  ASSERT_TRUE(world.append(*partition));
  world.stop({partition.get()});
  partition.reset();
  world.kill();  // recovery points from here on
  world.kill();
  for (const std::string& path : world.disk.files()) {
    if (path.find("/kafka.t/") != std::string::npos) world.disk.erase(path);
  }
  world.disk.erase("/data/channels/kafka.t");
  EXPECT_EQ(world.try_open().error().code, ErrorCode::KAFKA_STORAGE_ERROR);
}

TEST(CleanStop, CommitsWhatWaitsForASyncAndTellsTheSink) {
  World world;
  world.options.ack_after_sync = true;
  auto partition = world.open();
  ASSERT_TRUE(world.append(*partition, {.records = 4}));
  world.store().prepare_stop();
  ASSERT_TRUE(world.store().stop({}));
  ASSERT_EQ(world.sink.commits.size(), 1U);
  EXPECT_EQ(world.sink.commits[0].committed_end, Sequence(5));
}

TEST(CleanStop, TellsTheSinkWhatIsLost) {
  World world;
  world.options.ack_after_sync = true;
  auto partition = world.open();
  ASSERT_TRUE(world.append(*partition));
  world.disk.fail({.at = 0, .kinds = Disk::kSync, .error = EIO});
  world.store().prepare_stop();
  ASSERT_TRUE(world.store().stop({}));
  ASSERT_EQ(world.sink.losses.size(), 1U);
  EXPECT_EQ(world.sink.losses[0].why.code, ErrorCode::KAFKA_STORAGE_ERROR);
}

TEST(CleanStop, ManyDirtyChannelsAreSyncedByOneCall) {
  World world;
  auto partitions = open_all(world, 200);
  for (auto& partition : partitions) ASSERT_TRUE(world.append(*partition));
  world.disk.take_count(Disk::kAll);
  stop_all(world, partitions);
  EXPECT_LE(world.disk.take_count(Disk::kSync | Disk::kSyncDirectory), 4U);
  world.disk.power_cut();
  world.kill();
  partitions = open_all(world, 200);
  for (auto& partition : partitions) {
    EXPECT_EQ(partition->watermarks().high_watermark, Offset(1));
  }
}

TEST(CleanStop, WhatCannotBeSyncedIsNotCalledClean) {
  for (const int channels : {1, 200}) {
    World world;
    auto partitions = open_all(world, channels);
    for (auto& partition : partitions) ASSERT_TRUE(world.append(*partition));
    world.disk.fail({.at = 0, .kinds = Disk::kSync, .error = EIO});
    world.store().prepare_stop();
    for (auto& partition : partitions) {
      ASSERT_TRUE(partition->log().checkpoint(partition->checkpoint()));
    }
    ASSERT_TRUE(world.store().stop({}));
    partitions.clear();
    world.kill();
    ASSERT_TRUE(world.open());
    EXPECT_TRUE(world.report.scanned);
  }
}

TEST(CleanStop, APartitionThatIsGoneBeforeTheStopIsNotCalledClean) {
  World world;
  auto partition = world.open();
  ASSERT_TRUE(world.append(*partition));
  world.store().prepare_stop();
  ASSERT_TRUE(partition->log().checkpoint(partition->checkpoint()));
  partition.reset();
  ASSERT_TRUE(world.store().stop({}));
  world.kill();
  EXPECT_EQ(world.open()->watermarks().high_watermark, Offset(1));
  EXPECT_TRUE(world.report.scanned);
}

TEST(Checkpoints, CountTheBytesSinceTheLastOne) {
  World world;
  auto partition = world.open();
  EXPECT_EQ(partition->bytes_since_checkpoint(), 0U);
  ASSERT_TRUE(world.append(*partition));
  EXPECT_EQ(partition->bytes_since_checkpoint(), partition->bytes());
  const Checkpoint state = partition->checkpoint();
  ASSERT_TRUE(world.append(*partition));  // while the helper is still writing
  ASSERT_TRUE(partition->log().checkpoint(state));
  EXPECT_EQ(partition->bytes_since_checkpoint(), partition->bytes() / 2);
}

TEST(Checkpoints, AnEmptyPartitionsMakesNoFile) {
  World world;
  auto partition = world.open();
  ASSERT_TRUE(partition->log().checkpoint(partition->checkpoint()));
  EXPECT_TRUE(world.disk.files().empty());
}

TEST(Checkpoints, OfAnotherIncarnationAreNotUsed) {
  World world;
  {
    auto partition = world.open();
    ASSERT_TRUE(world.append(*partition));
    ASSERT_TRUE(partition->log().checkpoint(partition->checkpoint()));
  }
  const Buffer checkpoint = *world.disk.content(world.path("checkpoint"));
  world.kill();
  world.incarnation = 8;
  {
    auto partition = world.open();
    ASSERT_TRUE(world.append(*partition));
    ASSERT_TRUE(world.append(*partition));
  }
  world.disk.set_content(world.path("checkpoint"), checkpoint);
  world.kill();
  auto partition = world.open();
  EXPECT_EQ(world.report.scanned_bytes, partition->bytes());
}

TEST(Threads, AppendsReadsSyncsCheckpointsAndLoadsGoTogether) {
  World world;
  world.options.segment_bytes = 3000;
  world.options.ack_after_sync = true;
  class ThreadExecutor final : public Executor {  // every job at once on its own thread
   public:
    void post(std::move_only_function<void()> work) override {
      const std::lock_guard hold(mutex_);
      threads_.emplace_back(std::move(work));
    }
    void join() {
      std::vector<std::thread> threads;
      {
        const std::lock_guard hold(mutex_);
        threads.swap(threads_);
      }
      for (std::thread& thread : threads) thread.join();
    }

   private:
    std::mutex mutex_;
    std::vector<std::thread> threads_;
  } helpers;
  auto store = make_segment_store(world.disk, helpers, world.clock, {"/data/channels", 4});
  store->start(world.sink);
  auto partition =
      Partition::open(*store, {world.id(), ChannelHandle(0), LeaderEpoch(0), world.options},
                      nullptr)
          .value();
  std::mutex lock;  // the partition's
  std::atomic<bool> done = false;
  std::thread flusher([&] {
    while (!done) {
      const auto end = partition->log().sync();
      ASSERT_TRUE(end);
      const std::lock_guard hold(lock);
      partition->commit(*end);
    }
  });
  std::thread keeper([&] {
    while (!done) {
      Checkpoint state;
      {
        const std::lock_guard hold(lock);
        state = partition->checkpoint();
      }
      ASSERT_TRUE(partition->log().checkpoint(state));
    }
  });
  std::thread reader([&] {
    std::int64_t from = 0;
    while (!done) {
      std::vector<Slice> slices;
      const std::unique_lock hold(lock);
      const auto fetched = partition->read(Offset(from), {500, true, false}, slices);
      if (fetched) {
        from = fetched->next.value();
      } else if (const auto* miss = std::get_if<Miss>(&fetched.error())) {
        store->load(*miss, [](Result<void>) {});
      }
    }
  });
  for (int i = 0; i < 300; ++i) {
    const std::lock_guard hold(lock);
    if (i % 50 == 0) world.disk.drop_caches();
    ASSERT_TRUE(world.append(*partition));
  }
  done = true;
  flusher.join();
  keeper.join();
  reader.join();
  helpers.join();
  const auto end = partition->log().sync();
  ASSERT_TRUE(end);
  EXPECT_EQ(*end, Sequence(301));
  partition.reset();
  store.reset();
  helpers.join();
  world.kill();
  EXPECT_EQ(world.open()->watermarks().high_watermark, Offset(300));
}

TEST(Store, AfterAPowerCutATopicMadeAgainHasNoneOfTheOldRecords) {
  World world;
  auto old = world.open("t");
  ASSERT_TRUE(world.append(*old));
  auto other = world.open("u");
  ASSERT_TRUE(world.append(*other));
  ASSERT_TRUE(other->log().sync());  // of the names too, but of no byte of the first channel
  ASSERT_TRUE(world.store().remove(world.id("t")));
  old.reset();
  world.incarnation = 8;
  auto made_again = world.open("t");
  EXPECT_EQ(made_again->watermarks().staged_end, Offset(0));
  made_again.reset();
  other.reset();
  kanal::test::MemoryFileSystem::PowerCut writes_survive;
  writes_survive.keep_writes = [](std::string_view path, std::size_t unsynced) {
    return path.ends_with("/channel") ? 0 : unsynced;
  };
  world.disk.power_cut(writes_survive);
  world.kill();
  EXPECT_EQ(world.open("t")->watermarks().staged_end, Offset(0));
}

TEST(Store, WhatAKillLeftOfADeletedTopicIsNotTakenForANewOnes) {
  World world;
  ASSERT_TRUE(world.append(*world.open("t")));
  world.kill();  // the deletion was stored, the directory not yet moved away
  world.disk.set_content(world.path("channel"), {});  // and its identity is not readable
  world.store().all_opened();
  world.incarnation = 8;
  EXPECT_EQ(world.open("t")->watermarks().staged_end, Offset(0));
  EXPECT_FALSE(world.report.detail.empty());
}

}  // namespace
}  // namespace kanal::log::test
