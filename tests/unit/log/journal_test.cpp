// The journal that many logs share for their syncs: its bytes, what survives of it, and that a
// replay never brings back what was removed.
#include "blob.hpp"
#include "journal_format.hpp"
#include "segment_log.hpp"
#include "world.hpp"

#include "support/log_lines.hpp"

#include "kanal/log/check.hpp"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <latch>
#include <map>
#include <random>
#include <thread>

namespace kanal::log::test {
namespace {

using Disk = kanal::test::MemoryFileSystem;
using kanal::test::LogLines;

const std::string kPath = "/data/channels/journal";
constexpr std::int32_t kMany = 5;

// The bytes

Uuid some_id(std::uint8_t byte) {
  Uuid id;
  id.bytes[3] = byte;
  return id;
}

struct Bench {  // a half of a journal in memory
  static constexpr std::uint64_t kHalf = 64 << 10;
  JournalHeader header{kHalf, {77, 5}, 10, true};
  Disk disk;
  Buffer bytes = Buffer(kHalf);
  std::uint64_t end = kJournalBlock;

  Bench() { std::ranges::copy(encode_journal_header(header), bytes.begin()); }
  void add(std::uint64_t number, std::string_view text, JournalUse use = {77, 5}) {
    JournalEntry entry;
    entry.begin(use, number);
    for (const std::string_view directory : {"kafka.a", "kafka.b~3"}) {
      const JournalPiece piece{some_id(1),    PartitionIndex(3), directory,
                               Sequence(100), 4711,              {}};
      std::ranges::copy(as_bytes(text), entry.add(piece, text.size()).begin());
    }
    const Bytes made = entry.finish();
    std::ranges::copy(made, bytes.begin() + static_cast<std::ptrdiff_t>(end));
    end += made.size();
  }
  JournalHalf read() {
    disk.set_content("/j", bytes);
    auto file = disk.open("/j", OpenMode::kRead).value();
    return read_journal_half(*file, 0, header).value();
  }
};

TEST(JournalFormat, AnEntryReadsBackAsItWasWritten) {
  Bench bench;
  bench.add(10, "hello");
  bench.add(11, std::string(9000, 'x'));
  const JournalHalf half = bench.read();
  ASSERT_EQ(half.records.size(), 2U);
  EXPECT_EQ(half.end, bench.end);
  EXPECT_FALSE(half.broken_before);
  const auto pieces = half.records[0].pieces().value();
  ASSERT_EQ(pieces.size(), 2U);
  EXPECT_EQ(pieces[1].directory, "kafka.b~3");
  EXPECT_EQ(pieces[1].topic_id, some_id(1));
  EXPECT_EQ(pieces[1].partition, PartitionIndex(3));
  EXPECT_EQ(pieces[1].base, Sequence(100));
  EXPECT_EQ(pieces[1].position, 4711U);
  EXPECT_EQ(as_text(pieces[1].bytes), "hello");
  EXPECT_EQ(half.records[1].pieces().value()[0].bytes.size(), 9000U);
}

TEST(JournalFormat, AHeaderReadsBackAndOneOfItsCopiesIsEnough) {
  const JournalHeader header{1 << 20, {1234567890123, 42}, 99, true};
  Buffer block = encode_journal_header(header);
  for (const std::size_t broken : {std::size_t{0}, std::size_t{512}}) {
    Buffer torn = block;
    torn[broken + 20] ^= std::byte{1};
    const auto read = decode_journal_header(torn).value();
    ASSERT_TRUE(read);
    EXPECT_EQ(read->use, header.use);
    EXPECT_EQ(read->first, 99U);
    EXPECT_TRUE(read->live);
  }
  block[20] ^= std::byte{1};
  block[512 + 20] ^= std::byte{1};
  EXPECT_FALSE(decode_journal_header(block).value());
  EXPECT_FALSE(decode_journal_header(Buffer(kJournalBlock)).value());
}

TEST(JournalFormat, NoChangedByteOfAnEntryIsTakenForGood) {
  Bench whole;
  whole.add(10, "hello");
  const std::size_t length = load_be<std::uint32_t>(whole.bytes.data() + kJournalBlock + 32);
  for (std::size_t at = 0; at < length; ++at) {
    Bench bench;
    bench.bytes = whole.bytes;
    bench.bytes[kJournalBlock + at] ^= std::byte{0x40};
    // Bytes 6 and 7 are reserved: the checksum covers them too.
    EXPECT_TRUE(bench.read().records.empty()) << at;
  }
}

TEST(JournalFormat, AReusedBlockIsNeverTakenForALiveOne) {
  for (const JournalUse old : {JournalUse{77, 4}, JournalUse{76, 5}}) {
    Bench bench;
    bench.add(10, "new");
    bench.add(11, "old", old);
    EXPECT_EQ(bench.read().records.size(), 1U);
    EXPECT_FALSE(bench.read().broken_before);
  }
  Bench gap;  // nor one that does not come next
  gap.add(10, "new");
  gap.add(10, "again");
  EXPECT_EQ(gap.read().records.size(), 1U);
}

TEST(JournalFormat, AnEntryBehindADamagedOneTellsDamageFromATornEnd) {
  Bench bench;
  bench.add(10, "one");
  bench.add(11, "two");
  bench.add(12, "three");
  bench.bytes[2 * kJournalBlock + 50] ^= std::byte{1};
  EXPECT_EQ(bench.read().records.size(), 1U);
  EXPECT_EQ(bench.read().broken_before, 3 * kJournalBlock);
  bench.bytes[3 * kJournalBlock + 50] ^= std::byte{1};
  EXPECT_EQ(bench.read().records.size(), 1U);
  EXPECT_FALSE(bench.read().broken_before);
}

// The store

class Logs {
 public:
  explicit Logs(World& world, std::int32_t count = kMany) : world_(world), count_(count) {
    world.options.ack_after_sync = true;
    open();
  }
  void open() {
    for (std::int32_t i = 0; i < count_; ++i) all.push_back(world_.open("t", i));
  }
  void append(const BatchSpec& spec = {}) {
    for (const auto& log : all) ASSERT_TRUE(world_.append(*log, spec));
  }
  /// What the flusher does; how many are durable now.
  std::size_t sync() {
    std::vector<ChannelLog*> logs;
    for (const auto& log : all) logs.push_back(&log->log());
    std::size_t durable = 0;
    together = 0;
    world_.store().sync(logs, [&](std::span<LogStore::Synced> news) {
      together = std::max(together, news.size());
      for (const LogStore::Synced& each : news) {
        if (each.end) all[each.index]->commit(*each.end);
        durable += each.end ? 1 : 0;
      }
      if (on_news) on_news(durable);
    });
    return durable;
  }
  /// What all of them get becomes durable, so often.
  void commit(int times = 1, const BatchSpec& spec = {}) {
    for (int i = 0; i < times; ++i) {
      append(spec);
      ASSERT_EQ(sync(), all.size());
    }
  }
  /// Until the journal exists and names are durable, so that a sync needs one write and one sync.
  void warm_up() {
    commit();
    world_.helpers.run();
  }
  /// As the broker stops.
  void stop() {
    world_.store().prepare_stop();
    for (const auto& log : all) ASSERT_TRUE(log->log().checkpoint(log->checkpoint()));
    ASSERT_TRUE(world_.store().stop({}));
    all.clear();
  }
  void power_cut() {
    all.clear();
    world_.helpers.forget();
    world_.disk.power_cut();
    world_.kill();
  }
  [[nodiscard]] std::vector<std::size_t> sizes() {
    std::vector<std::size_t> sizes;
    for (const auto& log : all) {
      sizes.push_back(read_all(world_, *log, log->watermarks().log_start.value()).size());
    }
    return sizes;
  }
  std::vector<std::unique_ptr<Partition>> all;
  std::size_t together = 0;  // news of the largest call
  std::function<void(std::size_t)> on_news;  // after each call; gets how many are durable so far

 private:
  World& world_;
  const std::int32_t count_;
};

using Sizes = std::vector<std::size_t>;

TEST(Journal, ManyLogsShareOneSync) {
  World world;
  Logs logs(world);
  logs.warm_up();
  for (int round = 2; round < 5; ++round) {
    logs.append();
    (void)world.disk.take_count(Disk::kAll);
    EXPECT_EQ(logs.sync(), logs.all.size());
    EXPECT_EQ(logs.together, logs.all.size());
    EXPECT_EQ(world.disk.take_count(Disk::kSync), 1U);
    EXPECT_EQ(world.disk.take_count(Disk::kWrite), 1U);
    EXPECT_EQ(world.disk.take_count(Disk::kSyncDirectory), 0U);
    EXPECT_EQ(logs.all[0]->watermarks().high_watermark, Offset(round));
  }
}

TEST(Journal, ABusyLogHoldsUpNobodyElse) {
  World world;
  Logs logs(world);
  logs.warm_up();
  logs.append();
  // A helper is at work on the first log's files until all others were told.
  auto& busy = dynamic_cast<SegmentLog&>(logs.all[0]->log());
  std::latch begun(1), told(1);
  std::thread helper([&] {
    busy.core()->in_turn([&] {
      begun.count_down();
      told.wait();
    });
  });
  begun.wait();
  Sizes news;
  logs.on_news = [&](std::size_t durable) {
    if (news.empty()) told.count_down();
    news.push_back(durable);
  };
  EXPECT_EQ(logs.sync(), logs.all.size());
  helper.join();
  EXPECT_EQ(news, (Sizes{kMany - 1, kMany}));
}

TEST(Journal, OneOrTwoLogsAreSyncedForThemselves) {
  World world;
  Logs logs(world, 2);
  logs.warm_up();
  EXPECT_FALSE(world.disk.content(kPath));
  logs.append();
  (void)world.disk.take_count(Disk::kAll);
  EXPECT_EQ(logs.sync(), 2U);
  EXPECT_EQ(world.disk.take_count(Disk::kSync), 2U);
}

TEST(Journal, EvenTheSmallestServesMany) {
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{2}, 4 * kJournalBlock}) {
    World world;
    world.journal_bytes = bytes;
    world.kill();
    Logs logs(world);
    logs.warm_up();
    logs.commit(5);
    logs.power_cut();
    logs.open();
    EXPECT_EQ(logs.sizes(), Sizes(kMany, 6));
  }
}

TEST(Journal, ASyncWithNothingNewCostsNothing) {
  World world;
  Logs logs(world);
  logs.warm_up();
  (void)world.disk.take_count(Disk::kAll);
  EXPECT_EQ(logs.sync(), logs.all.size());
  EXPECT_EQ(world.disk.take_count(Disk::kSync | Disk::kWrite), 0U);
}

TEST(Journal, APowerCutLosesNothingThatWasSynced) {
  World world;
  Logs logs(world);
  logs.warm_up();
  logs.commit(3);
  logs.append();  // not synced
  logs.power_cut();
  logs.open();
  EXPECT_EQ(logs.sizes(), Sizes(kMany, 4));
}

TEST(Journal, AKilledProcessLosesNothingEither) {
  World world;
  Logs logs(world);
  logs.warm_up();
  logs.commit();
  logs.append();
  logs.all.clear();
  world.kill();
  logs.open();
  EXPECT_EQ(logs.sizes(), Sizes(kMany, 3));
}

TEST(Journal, LargeTailsAndNewSegmentsAreSyncedForThemselves) {
  World world;
  world.options.segment_bytes = 100'000;
  Logs logs(world);
  logs.warm_up();
  ASSERT_TRUE(world.append(*logs.all[0], {.value = std::string(70'000, 'x')}));
  ASSERT_TRUE(world.append(*logs.all[1], {.value = std::string(60'000, 'x')}));
  ASSERT_TRUE(world.append(*logs.all[1], {.value = std::string(60'000, 'x')}));  // rolls
  ASSERT_TRUE(world.append(*logs.all[2]));
  ASSERT_TRUE(world.append(*logs.all[3]));
  EXPECT_EQ(logs.sync(), logs.all.size());
  logs.power_cut();
  logs.open();
  EXPECT_EQ(logs.sizes(), (Sizes{2, 3, 2, 2, 1}));
}

TEST(Journal, AHalfIsReusedOnlyOnceItsSegmentsAreSynced) {
  World world;
  Logs logs(world);
  logs.warm_up();
  for (const bool late_helpers : {false, true}) {
    // 128 KiB: a round takes 8 KiB, so these go round many times.
    for (int i = 0; i < 100; ++i) {
      logs.append({.value = std::string(1000, 'v')});
      ASSERT_EQ(logs.sync(), logs.all.size());
      if (!late_helpers) world.helpers.run();
    }
  }
  EXPECT_EQ(world.disk.content(kPath)->size(), world.journal_bytes);
  logs.power_cut();
  logs.open();
  EXPECT_EQ(logs.sizes(), Sizes(kMany, 201));
}

TEST(Journal, OutOfFileHandlesLogsAreSyncedForThemselvesUntilThereAreSome) {
  World world;
  Logs logs(world);
  logs.warm_up();
  logs.commit();
  logs.all.pop_back();  // its segment has to be opened before the half is used again
  LogLines lines("log");
  world.disk.fail({.kinds = Disk::kOpen, .error = EMFILE, .sticky = true});
  for (int i = 0; i < 40; ++i) {
    logs.append({.value = std::string(1000, 'v')});
    ASSERT_EQ(logs.sync(), logs.all.size());
  }
  EXPECT_TRUE(world.disk.fault_fired());
  world.disk.clear_faults();
  EXPECT_EQ(lines.with("journal failed"), 0U);
  logs.commit();
  world.helpers.run();
  logs.append();
  (void)world.disk.take_count(Disk::kAll);
  ASSERT_EQ(logs.sync(), logs.all.size());
  EXPECT_EQ(world.disk.take_count(Disk::kSync), 1U);
  logs.power_cut();
  logs.open();
  EXPECT_EQ(logs.sizes(), (Sizes{44, 44, 44, 44, 2}));
}

TEST(Journal, ATornLastEntryIsCut) {
  for (std::size_t kept = 0; kept < 9000; kept += 500) {
    World world;
    Logs logs(world);
    logs.warm_up();
    logs.commit();
    logs.append({.value = std::string(1000, 'y')});
    world.disk.fail({.kinds = Disk::kSync, .sticky = true});
    EXPECT_EQ(logs.sync(), 0U);
    logs.all.clear();
    world.helpers.forget();
    world.disk.clear_faults();
    world.disk.power_cut({[](std::string_view path, std::size_t writes) {
                            return path == kPath ? writes : 0;
                          },
                          [&](std::size_t) { return kept; },
                          {}});
    world.kill();
    logs.open();
    for (const std::size_t size : logs.sizes()) {
      EXPECT_GE(size, 2U) << kept;
      EXPECT_LE(size, 3U) << kept;
    }
    logs.append();
    EXPECT_EQ(logs.sync(), logs.all.size());
  }
}

TEST(Journal, ADeletedTopicAndOneMadeAgainNeverMeetOldRecords) {
  World world;
  Logs logs(world);
  logs.warm_up();
  logs.commit();
  for (std::int32_t i = 0; i < 2; ++i) {
    logs.all[static_cast<std::size_t>(i)].reset();
    ASSERT_TRUE(world.store().remove(world.id("t", i)));
  }
  world.helpers.run();
  world.incarnation = 8;
  auto again = world.open("t", 0);
  ASSERT_TRUE(world.append(*again, {.value = "new"}));
  ASSERT_TRUE(again->log().sync());
  ASSERT_TRUE(world.disk.sync_directory("/data/channels"));
  again.reset();
  logs.power_cut();
  again = world.open("t", 0);
  EXPECT_EQ(read_all(world, *again).size(), 1U);
  EXPECT_TRUE(read_all(world, *world.open("t", 1)).empty());
  world.incarnation = 7;
  EXPECT_EQ(read_all(world, *world.open("t", 2)).size(), 2U);
}

TEST(Journal, TrimmedSegmentsStayAway) {
  World world;
  Logs logs(world);
  logs.warm_up();
  logs.commit();
  ASSERT_TRUE(logs.all[0]->trim(Offset(2)));
  world.helpers.run();
  EXPECT_FALSE(world.disk.content(world.path(segment_name(Sequence(1)))));
  ASSERT_TRUE(world.disk.sync_directory(world.path("")));
  logs.power_cut();
  logs.open();
  EXPECT_EQ(logs.all[0]->watermarks().log_start, Offset(2));
  EXPECT_EQ(logs.sizes(), (Sizes{0, 2, 2, 2, 2}));
  EXPECT_FALSE(world.disk.content(world.path(segment_name(Sequence(1)))));
}

TEST(Journal, AReplayMayBeCutAtAnyStepAndBeginsAnew) {
  for (std::uint64_t at = 0;; ++at) {
    World world;
    Logs logs(world);
    logs.warm_up();
    logs.commit(3);
    logs.all.clear();
    world.helpers.forget();
    world.disk.power_cut();
    world.disk.fail({.at = at, .sticky = true});
    world.kill();
    for (std::int32_t i = 0; i < kMany; ++i) (void)world.try_open("t", i);
    const bool fired = world.disk.fault_fired();
    world.disk.clear_faults();
    world.helpers.forget();
    std::mt19937_64 random(at);
    world.disk.power_cut({[&](std::string_view, std::size_t n) { return random() % (n + 1); },
                          [&](std::size_t n) { return random() % (n + 1); },
                          [&](std::string_view, std::size_t n) { return random() % (n + 1); }});
    world.kill();
    logs.open();
    ASSERT_EQ(logs.sizes(), Sizes(kMany, 4)) << at;
    if (!fired) return;
  }
}

TEST(Journal, AStopLeavesItEmptyAndTheNextStartUsesItAgain) {
  World world;
  Logs logs(world);
  logs.warm_up();
  logs.commit();
  logs.stop();
  world.kill();
  LogLines lines("log");
  world.kill();
  EXPECT_EQ(lines.with("was replayed"), 0U);
  logs.open();
  EXPECT_EQ(logs.sizes(), Sizes(kMany, 2));
  logs.append();
  (void)logs.sync();  // names
  (void)world.disk.take_count(Disk::kAll);
  logs.append();
  EXPECT_EQ(logs.sync(), logs.all.size());
  EXPECT_EQ(world.disk.take_count(Disk::kSync), 1U);
}

/// Of three commits, damaged in the middle, which the disk does not show yet; its logs are closed.
Buffer damaged_journal(World& world, Logs& logs) {
  logs.warm_up();
  logs.commit(3);
  logs.all.clear();
  Buffer bytes = *world.disk.content(kPath);
  bytes[2 * kJournalBlock + 60] ^= std::byte{1};
  return bytes;
}

TEST(Journal, DamageInTheMiddleIsToldAndTheFileIsKept) {
  World world;
  Logs logs(world);
  const Buffer bytes = damaged_journal(world, logs);
  world.helpers.forget();
  world.disk.power_cut();
  world.disk.set_content(kPath, bytes);
  LogLines lines("log");
  world.kill();
  EXPECT_EQ(lines.with("The shared journal is damaged"), 1U);
  EXPECT_EQ(lines.with("position 8192"), 1U);
  EXPECT_TRUE(world.disk.content(kPath + ".damaged"));
  logs.open();  // what came before the damage is there
  EXPECT_EQ(logs.sizes(), Sizes(kMany, 2));
}

TEST(Journal, ASecondDamagedFileIsKeptBesideTheFirst) {
  World world;
  Logs logs(world);
  logs.warm_up();
  std::vector<Buffer> damaged;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 3; ++i) {
      logs.commit();
      world.helpers.run();
    }
    logs.all.clear();
    damaged.push_back(*world.disk.content(kPath));
    damaged.back()[2 * kJournalBlock + 60] ^= std::byte{1};
    world.disk.set_content(kPath, damaged.back());
    LogLines lines("log");
    world.kill();
    EXPECT_EQ(lines.with("kept=\"" + kPath + (round == 0 ? ".damaged\"" : ".damaged-2\"")), 1U);
    logs.open();
    logs.append();  // makes a new one
    ASSERT_EQ(logs.sync(), logs.all.size());
    world.helpers.run();
  }
  EXPECT_EQ(world.disk.content(kPath + ".damaged"), damaged[0]);
  EXPECT_EQ(world.disk.content(kPath + ".damaged-2"), damaged[1]);
}

TEST(Journal, TheCheckTellsOfDamageAndOfAllDamagedFilesThatWereKept) {
  World world;
  Logs logs(world);
  const Buffer bytes = damaged_journal(world, logs);
  world.disk.set_content(kPath, bytes);
  world.disk.set_content(kPath + ".damaged", bytes);
  world.disk.set_content(kPath + ".damaged-2", bytes);
  std::map<std::string, Finding::Weight> found;
  ChannelCheck check;
  check.directory = "/data/channels";
  check.channels.emplace();
  for (std::int32_t i = 0; i < kMany; ++i) check.channels->push_back(world.id("t", i));
  check.found = [&](const Finding& finding) {
    found[finding.file] = finding.weight;
    if (finding.text.find("not a file of kanald") != std::string::npos) ADD_FAILURE();
  };
  ASSERT_TRUE(check_channels(world.files(), check));
  EXPECT_EQ(found[kPath], Finding::Weight::kDamage);
  EXPECT_TRUE(found.contains(kPath + ".damaged"));
  EXPECT_TRUE(found.contains(kPath + ".damaged-2"));
}

TEST(Journal, ADamagedOneThatTheNextStartNeedsKeepsItsName) {
  World world;
  Logs logs(world);
  const Buffer bytes = damaged_journal(world, logs);
  world.disk.set_content(kPath, bytes);
  LogLines lines("log");
  world.disk.fail({.kinds = Disk::kWrite});  // of the replay into the first log
  world.kill();
  world.disk.clear_faults();
  EXPECT_EQ(lines.with("The shared journal is damaged"), 1U);
  EXPECT_EQ(lines.with("kept=\"" + kPath + "\""), 1U);
  EXPECT_EQ(world.disk.content(kPath), bytes);
  EXPECT_FALSE(world.try_open("t", 0));
  world.kill();
  EXPECT_EQ(world.disk.content(kPath + ".damaged"), bytes);
  EXPECT_TRUE(world.try_open("t", 0));
}

void damage_both_copies(World& world, const std::string& file) {
  Buffer bytes = *world.disk.content(file);
  bytes[20] ^= std::byte{1};
  bytes[512 + 20] ^= std::byte{1};
  world.disk.set_content(file, bytes);
}

TEST(Journal, BytesOfAChannelThatNobodyCanIdentifyAreKept) {
  World world;
  Logs logs(world);
  logs.warm_up();
  logs.commit(3);
  logs.all.clear();
  const std::string channel = world.path("channel");
  damage_both_copies(world, channel);
  const auto journal = world.disk.content(kPath);
  LogLines lines("log");
  world.kill();
  EXPECT_EQ(lines.with("The shared journal is damaged"), 1U);
  EXPECT_EQ(lines.with("'" + channel + "'"), 1U);
  EXPECT_EQ(world.disk.content(kPath + ".damaged"), journal);
}

TEST(Journal, ACheckpointTellsWhoseADirectoryIsToo) {
  World world;
  Logs logs(world);
  logs.warm_up();
  ASSERT_TRUE(logs.all[0]->log().checkpoint(logs.all[0]->checkpoint()));
  logs.commit(3);
  logs.all.clear();
  world.helpers.forget();
  world.disk.power_cut();
  damage_both_copies(world, world.path("channel"));
  LogLines lines("log");
  world.kill();
  EXPECT_EQ(lines.with("The shared journal is damaged"), 0U);
  logs.open();
  EXPECT_EQ(logs.sizes(), Sizes(kMany, 4));
}

TEST(Journal, WhileItIsKeptNoDamagedLogIsCut) {
  World world;
  Logs logs(world);
  logs.warm_up();
  logs.commit(3);
  logs.all.clear();
  const std::string second =
      "/data/channels/" + directory_name(world.id("t", 1)) + "/" + segment_name(Sequence(1));
  Buffer bytes = *world.disk.content(second);
  bytes[records::at::kLeaderEpoch + 20] ^= std::byte{1};  // what was synced before there was one
  world.disk.set_content(second, bytes);
  world.cut_damage = true;
  ++world.epoch;
  world.disk.fail({.kinds = Disk::kWrite});  // of the replay into the first log
  world.kill();
  world.disk.clear_faults();
  EXPECT_FALSE(world.try_open("t", 0));
  // The next replay would write over what is appended then.
  const auto second_opened = world.try_open("t", 1);
  ASSERT_FALSE(second_opened);
  EXPECT_NE(second_opened.error().detail.find("no log is cut as long as"), std::string::npos);
  EXPECT_TRUE(world.try_open("t", 2));
  ++world.epoch;
  world.kill();
  EXPECT_TRUE(world.try_open("t", 0));
  auto cut = world.open("t", 1);
  EXPECT_TRUE(world.report.damage_cut);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(world.append(*cut, {.value = "new"}));
  ASSERT_TRUE(cut->log().sync());
  cut.reset();
  world.cut_damage = false;
  world.kill();
  EXPECT_EQ(read_all(world, *world.open("t", 1)).size(), 5U);
}

TEST(Journal, WhileItIsKeptALogThatLacksWhatLiesBeforeAPieceStaysClosed) {
  World world;
  Logs logs(world);
  logs.warm_up();
  logs.commit(20);  // both halves are live
  logs.all.clear();
  world.helpers.forget();
  Buffer bytes = *world.disk.content(kPath);
  bytes[5 * kJournalBlock + 60] ^= std::byte{1};  // the fifth entry: the second half is sound
  world.disk.power_cut();
  world.disk.set_content(kPath, bytes);
  world.disk.fail({.kinds = Disk::kWrite});  // of the replay into the first log
  world.kill();
  world.disk.clear_faults();
  EXPECT_FALSE(world.try_open("t", 0));
  // What the second half has would be written over what is appended now.
  EXPECT_FALSE(world.try_open("t", 1));
  world.kill();
  EXPECT_EQ(world.disk.content(kPath + ".damaged"), bytes);
  logs.open();
  EXPECT_EQ(logs.sizes(), Sizes(kMany, 5));
  logs.commit(20, {.value = "other"});
  logs.power_cut();
  logs.open();
  EXPECT_EQ(logs.sizes(), Sizes(kMany, 25));
}

TEST(Journal, AStopDoesNotForgetWhatAChannelHadThatItCouldNotBeWrittenTo) {
  World world;
  Logs logs(world);
  logs.warm_up();
  logs.stop();
  world.kill();  // takes the mark
  logs.open();
  logs.commit(3);
  logs.all.clear();
  world.disk.fail({.kinds = Disk::kWrite});  // of the replay into the first log
  world.kill();
  world.disk.clear_faults();
  EXPECT_FALSE(world.try_open("t", 0));
  world.store().prepare_stop();
  ASSERT_TRUE(world.store().stop({}));
  world.disk.erase(kPath);
  world.disk.erase(world.path("checkpoint"));
  world.disk.erase(world.path(segment_name(Sequence(1))));
  world.kill();
  EXPECT_FALSE(world.try_open("t", 0));
}

TEST(Journal, ANewerFormatOrAnUnreadableFileKeepsAllChannelsClosed) {
  World world;
  Logs logs(world);
  logs.warm_up();
  logs.commit();
  logs.all.clear();
  world.disk.fail({.kinds = Disk::kRead});
  world.kill();
  EXPECT_FALSE(world.try_open("t", 0));
  world.disk.clear_faults();
  const Buffer ours = *world.disk.content(kPath);
  BlobWriter writer;
  writer.raw(Buffer(36));  // as long as ours
  Buffer newer = ours;
  std::ranges::copy(writer.seal("KNLJ", 2), newer.begin());
  world.disk.set_content(kPath, newer);
  world.kill();
  EXPECT_FALSE(world.try_open("t", 0));
  EXPECT_EQ(world.disk.content(kPath), newer);
  world.disk.set_content(kPath, ours);
  world.kill();
  EXPECT_TRUE(world.try_open("t", 0));
}

TEST(Journal, AFailedWriteIsToldOnceAndEverybodySyncsForHimself) {
  for (const std::uint32_t kind : {Disk::kWrite, Disk::kSync}) {
    World world;
    Logs logs(world);
    logs.warm_up();
    logs.append();
    LogLines lines("log");
    world.disk.fail({.kinds = kind});
    EXPECT_EQ(logs.sync(), logs.all.size());
    world.helpers.run();
    EXPECT_EQ(lines.with("The shared journal failed"), 1U);
    logs.commit(3);
    EXPECT_EQ(lines.with("The shared journal failed"), 1U);
    logs.power_cut();
    logs.open();
    EXPECT_EQ(logs.sizes(), Sizes(kMany, 5));
  }
}

TEST(Journal, ALogWhoseSyncFailedKeepsItsRecordsInTheJournal) {
  World world;
  Logs logs(world);
  logs.warm_up();
  logs.commit();
  world.disk.fail({.kinds = Disk::kSync});
  EXPECT_FALSE(logs.all[0]->log().sync());
  EXPECT_FALSE(world.append(*logs.all[0]));
  for (int i = 0; i < 200; ++i) {  // more than both halves hold
    for (std::size_t log = 1; log < logs.all.size(); ++log) {
      ASSERT_TRUE(world.append(*logs.all[log], {.value = std::string(1000, 'v')}));
    }
    ASSERT_EQ(logs.sync(), logs.all.size() - 1);
    world.helpers.run();
  }
  logs.power_cut();
  logs.open();
  EXPECT_EQ(logs.sizes(), (Sizes{2, 202, 202, 202, 202}));
}

TEST(Journal, WithoutRoomForItEverybodySyncsForHimself) {
  World world;
  Logs logs(world);
  logs.append();
  world.disk.set_capacity(world.disk.bytes() + 1000);
  ASSERT_EQ(logs.sync(), logs.all.size());
  world.helpers.run();
  EXPECT_FALSE(world.disk.content(kPath));
  logs.append();
  EXPECT_EQ(logs.sync(), logs.all.size());
  world.disk.set_capacity(std::nullopt);
  world.clock.pass(std::chrono::minutes(2));
  logs.append();
  EXPECT_EQ(logs.sync(), logs.all.size());
  world.helpers.run();
  EXPECT_TRUE(world.disk.content(kPath));
}

}  // namespace
}  // namespace kanal::log::test
