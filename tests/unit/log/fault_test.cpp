// Every step of a workload fails once, for good, with a kill or with a power cut; afterwards the
// log must open and hold what was promised.
#include "world.hpp"

#include <algorithm>
#include <cerrno>
#include <map>
#include <random>

namespace kanal::log::test {
namespace {

using Disk = kanal::test::MemoryFileSystem;

/// What was appended, by base offset: the checksum tells the batches apart.
struct Promise {
  std::map<std::int64_t, std::uint32_t> acknowledged;
  std::map<std::int64_t, std::vector<std::uint32_t>> attempted;
  std::int64_t start = 0;  // trims that were answered
  std::int64_t tried_start = 0;
  std::int64_t durable = 0;  // end of what a sync or a checkpoint covered
  int refused = 0;
};

class Workload {
 public:
  Workload(World& world, Promise& promise, bool late_helpers)
      : world_(world), promise_(promise), late_helpers_(late_helpers) {}

  /// Appends with rolls, syncs, checkpoints, trims, and a clean restart in the middle. Goes on
  /// after errors as a broker does.
  void run() {
    open();
    appends(12);
    checkpoint();
    appends(7);
    trim(9);
    sync();
    appends(5);
    restart();
    appends(6);
    checkpoint();
    trim(20);
    appends(6);
    sync();
    appends(3);
    if (partition_ == nullptr) open();
  }
  std::unique_ptr<Partition> take() { return std::move(partition_); }

 private:
  void open() {
    auto opened = world_.try_open();
    if (!opened) return;
    partition_ = std::move(*opened);
  }
  void appends(int count) {
    if (partition_ == nullptr) open();
    for (int i = 0; i < count && partition_ != nullptr; ++i) {
      const std::int64_t base = partition_->watermarks().staged_end.value();
      Buffer batch = make_batch({.value = "value " + std::to_string(counter_++)});
      const auto header = records::parse_header(batch).value();
      promise_.attempted[base].push_back(header.crc);
      const auto appended = partition_->append(batch, header, Timestamp(0));
      if (!appended) {
        EXPECT_EQ(appended.error().code, ErrorCode::KAFKA_STORAGE_ERROR);
        ++promise_.refused;
        continue;
      }
      EXPECT_EQ(appended->base_offset, Offset(base));
      if (appended->committed) promise_.acknowledged[base] = header.crc;
      staged_[base] = header.crc;
      run_helpers();
    }
  }
  void synced(std::int64_t end) {
    promise_.durable = std::max(promise_.durable, end);
    for (const auto& [base, crc] : staged_) {
      if (base < end) promise_.acknowledged[base] = crc;
    }
  }
  void sync() {
    if (partition_ == nullptr) return;
    if (const auto end = partition_->log().sync()) {
      partition_->commit(*end);
      synced(to_offset(*end).value());
    }
    run_helpers();
  }
  void checkpoint() {
    if (partition_ == nullptr) return;
    const Checkpoint state = partition_->checkpoint();
    if (partition_->log().checkpoint(state)) {
      partition_->commit(state.upto);
      synced(to_offset(state.upto).value());
    }
    run_helpers();
  }
  void trim(std::int64_t start) {
    if (partition_ == nullptr || partition_->watermarks().high_watermark.value() < start) return;
    promise_.tried_start = start;
    if (partition_->trim(Offset(start))) promise_.start = start;
    run_helpers();
  }
  void restart() {
    if (partition_ != nullptr) {
      world_.store().prepare_stop();
      const Checkpoint state = partition_->checkpoint();
      const bool kept = partition_->log().checkpoint(state).has_value();
      if (world_.store().stop({}) && kept && !world_.disk.fault_fired()) {
        synced(to_offset(state.upto).value());
      }
      world_.helpers.run();
      partition_.reset();
    }
    staged_.clear();
    world_.kill();
    open();
  }

  void run_helpers() {
    if (!late_helpers_) world_.helpers.run();
  }

  World& world_;
  Promise& promise_;
  const bool late_helpers_;  // what was posted runs at the restart or never
  std::unique_ptr<Partition> partition_;
  std::map<std::int64_t, std::uint32_t> staged_;
  int counter_ = 0;
};

/// All records from the start on, or an explanation.
std::map<std::int64_t, std::uint32_t> contents(World& world, Partition& partition) {
  std::map<std::int64_t, std::uint32_t> all;
  std::int64_t from = partition.watermarks().log_start.value();
  const std::int64_t end = partition.watermarks().high_watermark.value();
  while (from < end) {
    std::vector<Slice> slices;
    const auto fetched = partition.read(Offset(from), {200, true, false}, slices);
    if (!fetched) {
      const auto* miss = std::get_if<Miss>(&fetched.error());
      if (miss == nullptr) {
        ADD_FAILURE() << std::get<Error>(fetched.error()).detail;
        return all;
      }
      world.store().load(*miss, [](Result<void> done) { EXPECT_TRUE(done); });
      world.helpers.run();
      continue;
    }
    const Buffer bytes = bytes_of(slices);
    for (Bytes rest = bytes; !rest.empty();) {
      const auto header = records::parse_header(rest);
      if (!header || !records::verify_crc(rest.first(header->size()))) {
        ADD_FAILURE() << "unsound batch at " << from;
        return all;
      }
      EXPECT_EQ(header->base_offset.value(), from);
      all[from] = header->crc;
      from = header->next_offset().value();
      rest = rest.subspan(header->size());
    }
  }
  return all;
}

void check(World& world, const Promise& promise, bool power_cut, const std::string& trace) {
  SCOPED_TRACE(trace);
  auto opened = world.try_open();
  ASSERT_TRUE(opened) << opened.error().detail;
  Partition& partition = **opened;
  const auto found = contents(world, partition);
  const Watermarks marks = partition.watermarks();
  const std::int64_t start = marks.log_start.value();
  EXPECT_GE(start, power_cut ? 0 : promise.start);
  EXPECT_LE(start, std::max(promise.start, promise.tried_start));
  const std::int64_t promised = power_cut ? promise.durable : INT64_MAX;
  for (const auto& [base, crc] : promise.acknowledged) {
    if (base < start || base >= promised) continue;
    const auto there = found.find(base);
    ASSERT_NE(there, found.end()) << "lost offset " << base;
    EXPECT_EQ(there->second, crc) << "another record at offset " << base;
  }
  for (const auto& [base, crc] : found) {
    const auto attempts = promise.attempted.find(base);
    ASSERT_NE(attempts, promise.attempted.end()) << "invented offset " << base;
    EXPECT_TRUE(std::ranges::count(attempts->second, crc)) << "a record from elsewhere at " << base;
  }
  EXPECT_GE(marks.high_watermark.value(), power_cut ? promise.durable : 0);
  // And it goes on.
  const auto next = world.append(partition);
  ASSERT_TRUE(next) << next.error().detail;
  EXPECT_EQ(next->base_offset, marks.staged_end);
}

enum Names : std::uint64_t { kSomeNames, kAllNames };  // that a power cut leaves

struct Mode {
  const char* name;
  bool ack_after_sync;
  Disk::Fault fault;
  bool power_cut;
  bool late_helpers = false;
  Names names = kSomeNames;
};

void sweep(const Mode& mode) {
  for (std::uint64_t at = 0;; ++at) {
    World world;
    world.options.segment_bytes = 400;
    world.options.ack_after_sync = mode.ack_after_sync;
    Promise promise;
    Disk::Fault fault = mode.fault;
    fault.at = at;
    world.disk.fail(fault);
    {
      Workload workload(world, promise, mode.late_helpers);
      workload.run();
      const bool fired = world.disk.fault_fired();
      if (fault.sticky) workload.take().reset();  // under the fault: the process dies with it
      world.disk.clear_faults();
      workload.take().reset();
      if (!fired) return;
    }
    if (mode.power_cut) {
      std::mt19937_64 random(at * 7 + mode.names);
      world.helpers.forget();
      world.disk.power_cut(
          {[&](std::string_view, std::size_t writes) { return random() % (writes + 1); },
           [&](std::size_t bytes) { return random() % (bytes + 1); },
           [&](std::string_view, std::size_t changes) {
             return mode.names == kAllNames ? changes : random() % (changes + 1);
           }});
      // A directory whose making was never synced is gone; the server makes it again.
      (void)world.disk.create_directories("/data");
    }
    world.kill();
    check(world, promise, mode.power_cut, std::string(mode.name) + " step " + std::to_string(at));
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Faults, OneFailingStepLosesNothingAcknowledged) {
  sweep({"once, EIO", false, {.error = EIO}, false});
}
TEST(Faults, OneFailingStepWithAcksAfterSync) {
  sweep({"once, EIO, acks after sync", true, {.error = EIO}, false});
}
TEST(Faults, OneFullDisk) {
  sweep({"once, ENOSPC",
         false,
         {.kinds = Disk::kWrite | Disk::kAllocate | Disk::kOpen | Disk::kMakeDirectory,
          .error = ENOSPC},
         false});
}
TEST(Faults, KilledAtAnyStep) {
  sweep({"kill", false, {.error = EIO, .sticky = true}, false});
}
TEST(Faults, PowerCutAtAnyStep) {
  for (const Names names : {kSomeNames, kAllNames}) {
    sweep({"power cut", false, {.error = EIO, .sticky = true}, true, false, names});
  }
}
TEST(Faults, PowerCutAtAnyStepWithAcksAfterSync) {
  for (const Names names : {kSomeNames, kAllNames}) {
    sweep({"power cut, acks after sync", true, {.error = EIO, .sticky = true}, true, false, names});
  }
}

TEST(Faults, PowerCutAtAnyStepWhileTheHelpersAreLate) {
  for (const bool sync : {false, true}) {
    for (const Names names : {kSomeNames, kAllNames}) {
      sweep({"power cut, late helpers", sync, {.error = EIO, .sticky = true}, true, true, names});
    }
  }
}
TEST(Faults, KilledAtAnyStepWhileTheHelpersAreLate) {
  sweep({"kill, late helpers", false, {.error = EIO, .sticky = true}, false, true});
}

TEST(Faults, AFullDiskRefusesAndRecoversByItself) {
  World world;
  auto partition = world.open();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(world.append(*partition));
  const auto size = world.disk.bytes();
  world.disk.set_capacity(size + 30);
  for (int i = 0; i < 3; ++i) {
    const auto refused = world.append(*partition);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::KAFKA_STORAGE_ERROR);
    EXPECT_EQ(refused.error().os_error, ENOSPC);
  }
  EXPECT_EQ(world.disk.bytes(), size);  // cut back to the last whole batch
  EXPECT_EQ(read_all(world, *partition).size(), 5U);
  world.disk.set_capacity(std::nullopt);
  EXPECT_EQ(world.append(*partition)->base_offset, Offset(5));
  EXPECT_EQ(read_all(world, *partition).size(), 6U);
}

TEST(Faults, AFullDiskAtTheFirstAppendAndAtARollIsNotFinalEither) {
  World world;
  world.options.segment_bytes = 200;
  world.disk.set_capacity(100);
  auto partition = world.open();
  EXPECT_FALSE(world.append(*partition));
  world.disk.set_capacity(1024 + 160);
  EXPECT_EQ(world.append(*partition)->base_offset, Offset(0));
  EXPECT_EQ(world.append(*partition)->base_offset, Offset(1));
  EXPECT_FALSE(world.append(*partition));
  EXPECT_FALSE(world.append(*partition));
  world.disk.set_capacity(std::nullopt);
  EXPECT_EQ(world.append(*partition)->base_offset, Offset(2));
  partition.reset();
  world.kill();
  EXPECT_EQ(read_all(world, *world.open()).size(), 3U);
}

TEST(Faults, StartsOnAFullDisk) {
  World world;
  auto partition = world.open();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(world.append(*partition));
  partition.reset();
  world.disk.set_capacity(world.disk.bytes());
  world.kill();
  partition = world.open();
  EXPECT_EQ(read_all(world, *partition).size(), 5U);
  EXPECT_FALSE(world.append(*partition));
}

TEST(Faults, WithoutADurableDirectoryOfTheChannelsNoneIsOpened) {
  for (const std::uint32_t kind : {Disk::kMakeDirectory, Disk::kSyncDirectory}) {
    World world(nullptr, "/data/channels");
    world.disk.erase("/data/channels");
    world.disk.fail({.kinds = kind});
    world.kill();
    world.disk.clear_faults();
    const auto opened = world.try_open();
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::KAFKA_STORAGE_ERROR);
    world.kill();
    EXPECT_NE(world.open(), nullptr);
  }
}

TEST(Faults, PreallocationMayFail) {
  World world;
  world.disk.fail({.at = 0, .kinds = Disk::kAllocate, .error = ENOSPC, .sticky = true});
  auto partition = world.open();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(world.append(*partition));
}

TEST(Faults, AnyOtherWriteErrorIsFinalForThatLogAlone) {
  World world;
  auto partition = world.open();
  auto other = world.open("other");
  ASSERT_TRUE(world.append(*partition));
  world.disk.fail({.at = 0, .kinds = Disk::kWrite, .error = EIO});
  EXPECT_FALSE(world.append(*partition));
  world.disk.clear_faults();
  EXPECT_FALSE(world.append(*partition));
  EXPECT_FALSE(partition->log().sync());
  EXPECT_FALSE(partition->trim(Offset(1)));
  EXPECT_EQ(read_all(world, *partition).size(), 1U);
  EXPECT_TRUE(world.append(*other));
}

TEST(Faults, AFailedSyncIsFinal) {
  World world;
  world.options.ack_after_sync = true;
  auto partition = world.open();
  ASSERT_TRUE(world.append(*partition));
  world.disk.fail({.at = 0, .kinds = Disk::kSync, .error = ENOSPC});
  EXPECT_FALSE(partition->log().sync());
  world.disk.clear_faults();
  EXPECT_FALSE(partition->log().sync());
  EXPECT_EQ(world.append(*partition).error().code, ErrorCode::KAFKA_STORAGE_ERROR);
  EXPECT_EQ(partition->watermarks().high_watermark, Offset(0));
}

TEST(Faults, RunningOutOfDescriptorsIsNotFinal) {
  World world;
  world.max_open_files = 2;
  world.kill();
  std::vector<std::unique_ptr<Partition>> partitions;
  for (int i = 0; i < 6; ++i) {
    partitions.push_back(world.open("t", i));
    ASSERT_TRUE(world.append(*partitions.back()));
  }
  world.disk.fail({.at = 0, .kinds = Disk::kOpen, .error = EMFILE, .sticky = true});
  EXPECT_FALSE(world.append(*partitions[0]));
  EXPECT_FALSE(partitions[1]->log().sync());
  world.disk.clear_faults();
  EXPECT_EQ(world.append(*partitions[0])->base_offset, Offset(1));
  EXPECT_EQ(partitions[1]->log().sync(), Sequence(2));
  world.disk.fail({.at = 0, .kinds = Disk::kOpen, .error = EMFILE});
  EXPECT_TRUE(world.append(*partitions[2]));  // handles were given back and it was tried again
}

TEST(Faults, ATrimThatRunsOutOfHandlesHarmsNothingAndIsFinishedLater) {
  for (const bool by_trim : {false, true}) {
    World world;
    world.options.segment_bytes = static_cast<std::int64_t>(make_batch({}).size());
    auto partition = world.open();
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(world.append(*partition));
    ASSERT_TRUE(partition->log().sync());
    world.helpers.run();
    const auto first_files = [&] {
      return std::pair(world.disk.content(world.path("00000000000000000000.log")).has_value(),
                       world.disk.content(world.path("00000000000000000000.kindex")).has_value());
    };
    const Disk::Fault no_handles{.at = 0, .kinds = Disk::kOpen, .error = EMFILE, .sticky = true};
    world.disk.fail(no_handles);
    EXPECT_FALSE(partition->trim(Offset(2)));
    world.disk.clear_faults();
    ASSERT_TRUE(partition->trim(Offset(2)));
    world.disk.fail(no_handles);
    world.helpers.run();
    EXPECT_EQ(first_files(), std::pair(true, true)) << "before the start is durable nothing goes";
    world.disk.clear_faults();
    ASSERT_TRUE(world.append(*partition));
    if (by_trim)
      ASSERT_TRUE(partition->trim(Offset(3)));
    else
      ASSERT_TRUE(partition->log().sync());
    world.helpers.run();
    EXPECT_EQ(first_files(), std::pair(false, false));
  }
}

TEST(Faults, AnUnreadableDiskIsAnErrorOfTheReadAlone) {
  World world;
  auto partition = world.open();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(world.append(*partition));
  world.disk.fail({.at = 0, .kinds = Disk::kRead, .error = EIO});
  EXPECT_EQ(read(world, *partition, 0, 100).error, ErrorCode::KAFKA_STORAGE_ERROR);
  world.disk.clear_faults();
  EXPECT_EQ(read_all(world, *partition).size(), 10U);
  EXPECT_TRUE(world.append(*partition));
}

}  // namespace
}  // namespace kanal::log::test
