// Many logs that share their syncs, through every failing step and every power cut: what a sync
// answered for is there, nothing removed comes back.
#include "world.hpp"

#include <algorithm>
#include <cerrno>
#include <map>
#include <random>

namespace kanal::log::test {
namespace {

using Disk = kanal::test::MemoryFileSystem;
constexpr std::int32_t kLogs = 4;

struct Promise {
  std::map<std::int64_t, std::uint32_t> staged;  // by offset: the batch's checksum
  std::int64_t durable = 0;                      // all below was answered for
  std::int64_t tried_start = 0;
  std::uint8_t incarnation = 7;
};

class Workload {
 public:
  Workload(World& world, std::uint64_t seed) : world_(world), random_(seed) {
    world.options.ack_after_sync = true;
    world.options.segment_bytes = 900;
    world.journal_bytes = 64 << 10;
    promises_.resize(kLogs);
    logs_.resize(kLogs);
  }
  /// Until the disk fails, where that is for good.
  void run(int steps, bool goes_on = false) {
    for (std::int32_t i = 0; i < kLogs; ++i) open(i);
    for (int i = 0; i < steps && (goes_on || !world_.disk.fault_fired()); ++i) step();
  }
  /// Lets go of everything, as a process that ends; then the disk keeps what `random` says.
  void power_cut() {
    logs_.clear();
    world_.disk.clear_faults();
    world_.helpers.forget();
    world_.disk.power_cut(
        {[&](std::string_view, std::size_t writes) { return random_() % (writes + 1); },
         [&](std::size_t bytes) { return random_() % (bytes + 1); },
         [&](std::string_view, std::size_t names) { return random_() % (names + 1); }});
    (void)world_.disk.create_directories("/data");
    world_.kill();
  }
  void check() {
    for (std::int32_t i = 0; i < kLogs; ++i) {
      SCOPED_TRACE("log " + std::to_string(i));
      Promise& promise = promises_[static_cast<std::size_t>(i)];
      world_.incarnation = promise.incarnation;
      auto opened = world_.try_open("t", i);
      ASSERT_TRUE(opened) << opened.error().detail;
      const Watermarks marks = (*opened)->watermarks();
      EXPECT_LE(marks.log_start.value(), promise.tried_start);
      EXPECT_GE(marks.high_watermark.value(), promise.durable);
      for (const auto& [offset, crc] : contents(**opened)) {
        ASSERT_TRUE(promise.staged.contains(offset)) << offset;
        EXPECT_EQ(promise.staged[offset], crc) << offset;
      }
    }
  }

 private:
  void open(std::int32_t index) {
    world_.incarnation = promises_[static_cast<std::size_t>(index)].incarnation;
    auto opened = world_.try_open("t", index);
    if (opened) logs_[static_cast<std::size_t>(index)] = std::move(*opened);
  }
  void step() {
    const auto index = static_cast<std::size_t>(random_() % kLogs);
    const std::uint64_t what = random_() % 100;
    if (what < 45) {
      for (std::size_t i = 0; i < logs_.size(); ++i) append(i);
      sync();
    } else if (what < 60) {
      append(index);
    } else if (what < 70) {
      sync();
    } else if (what < 80) {
      world_.helpers.run();
    } else if (what < 88) {
      trim(index);
    } else if (what < 95) {
      checkpoint(index);
    } else {
      make_again(index);
    }
  }
  void append(std::size_t index) {
    if (logs_[index] == nullptr) return;
    Promise& promise = promises_[index];
    const std::int64_t base = logs_[index]->watermarks().staged_end.value();
    Buffer batch = make_batch({.value = std::string(random_() % 200, 'v') + std::to_string(count_++)});
    const auto header = records::parse_header(batch).value();
    promise.staged[base] = header.crc;  // an append that fails may come back, as long as it is this
    (void)logs_[index]->append(batch, header, Timestamp(0));
  }
  void sync() {
    std::vector<ChannelLog*> channels;
    std::vector<std::size_t> which;
    for (std::size_t i = 0; i < logs_.size(); ++i) {
      if (logs_[i] == nullptr) continue;
      channels.push_back(&logs_[i]->log());
      which.push_back(i);
    }
    world_.store().sync(channels, [&](std::span<LogStore::Synced> news) {
      for (const LogStore::Synced& each : news) {
        if (each.end) durable(which[each.index], *each.end);
      }
    });
  }
  void durable(std::size_t index, Sequence end) {
    logs_[index]->commit(end);
    promises_[index].durable = std::max(promises_[index].durable, to_offset(end).value());
  }
  void trim(std::size_t index) {
    if (logs_[index] == nullptr) return;
    const Watermarks marks = logs_[index]->watermarks();
    const std::int64_t span = marks.high_watermark - marks.log_start;
    const std::int64_t start =
        marks.log_start.value() + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(span + 1));
    promises_[index].tried_start = std::max(promises_[index].tried_start, start);
    checkpoint(index);  // as the broker does: producers' state first
    (void)logs_[index]->trim(Offset(start));
  }
  void checkpoint(std::size_t index) {
    if (logs_[index] == nullptr) return;
    const Checkpoint state = logs_[index]->checkpoint();
    if (logs_[index]->log().checkpoint(state)) durable(index, state.upto);
  }
  void make_again(std::size_t index) {
    const auto partition = static_cast<std::int32_t>(index);
    Promise& promise = promises_[index];
    world_.incarnation = promise.incarnation;
    logs_[index].reset();
    if (!world_.store().remove(world_.id("t", partition))) return;
    promise = {.staged = {}, .incarnation = static_cast<std::uint8_t>(promise.incarnation + 1)};
    open(partition);
  }
  std::map<std::int64_t, std::uint32_t> contents(Partition& partition) {
    std::map<std::int64_t, std::uint32_t> all;
    std::int64_t from = partition.watermarks().log_start.value();
    while (from < partition.watermarks().high_watermark.value()) {
      std::vector<Slice> slices;
      const auto fetched = partition.read(Offset(from), {200, true, false}, slices);
      if (!fetched) {
        const auto* miss = std::get_if<Miss>(&fetched.error());
        if (miss == nullptr) {
          ADD_FAILURE() << std::get<Error>(fetched.error()).detail;
          return all;
        }
        world_.store().load(*miss, [](Result<void> done) { EXPECT_TRUE(done); });
        world_.helpers.run();
        continue;
      }
      const Buffer bytes = bytes_of(slices);
      for (Bytes rest = bytes; !rest.empty();) {
        const auto header = records::parse_header(rest);
        if (!header || !records::verify_crc(rest.first(header->size()))) {
          ADD_FAILURE() << "unsound batch at " << from;
          return all;
        }
        all[header->base_offset.value()] = header->crc;
        from = header->next_offset().value();
        rest = rest.subspan(header->size());
      }
    }
    return all;
  }

  World& world_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Partition>> logs_;
  std::vector<Promise> promises_;
  int count_ = 0;
};

TEST(JournalFaults, APowerCutAtAnyStepKeepsWhatASyncAnsweredFor) {
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    for (std::uint64_t at = 0;; at += 7) {
      SCOPED_TRACE("seed " + std::to_string(seed) + " step " + std::to_string(at));
      World world;
      Workload workload(world, seed);
      world.disk.fail({.at = at + seed, .error = EIO, .sticky = true});
      workload.run(60);
      const bool fired = world.disk.fault_fired();
      workload.power_cut();
      workload.check();
      if (testing::Test::HasFailure()) return;
      if (!fired) break;
    }
  }
}

TEST(JournalFaults, ManyPowerCutsAtTheEndOfLongRuns) {
  for (std::uint64_t seed = 100; seed < 130; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world;
    Workload workload(world, seed);
    workload.run(150);
    workload.power_cut();
    workload.check();
    if (testing::Test::HasFailure()) return;
  }
}

TEST(JournalFaults, OneFailedStepNeitherLosesNorInventsRecords) {
  for (std::uint64_t at = 0;; at += 11) {
    SCOPED_TRACE("step " + std::to_string(at));
    World world;
    Workload workload(world, 5);
    world.disk.fail({.at = at, .error = EIO});
    workload.run(60, true);
    const bool fired = world.disk.fault_fired();
    world.disk.clear_faults();
    workload.power_cut();
    workload.check();
    if (testing::Test::HasFailure() || !fired) return;
  }
}

}  // namespace
}  // namespace kanal::log::test
