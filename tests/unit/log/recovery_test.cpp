#include "world.hpp"

#include "kanal/records/batch.hpp"

#include <algorithm>
#include <numeric>

namespace kanal::log::test {
namespace {

using Offsets = std::vector<std::int64_t>;
using Disk = kanal::test::MemoryFileSystem;

const std::string kFirst = "00000000000000000000.log";

Offsets range(std::int64_t from, std::int64_t below) {
  Offsets all(static_cast<std::size_t>(below - from));
  std::iota(all.begin(), all.end(), from);
  return all;
}

/// Ten batches of one record each, as a killed process leaves them.
void fill(World& world, int batches = 10, bool checkpoint = false) {
  auto partition = world.open();
  for (int i = 0; i < batches; ++i)
    ASSERT_TRUE(world.append(*partition, {.value = "value " + std::to_string(i)}));
  if (checkpoint) {
    ASSERT_TRUE(partition->log().checkpoint(partition->checkpoint()));
  }
  world.helpers.run();
}

TEST(Recovery, ATornTailIsCutAtEveryByteAndReported) {
  World world;
  fill(world);
  const Buffer whole = *world.disk.content(world.path(kFirst));
  const std::size_t size = records::parse_header(whole)->size();
  for (std::size_t left = whole.size() - 2 * size - 3; left <= whole.size(); ++left) {
    world.disk.set_content(world.path(kFirst), Bytes(whole).first(left));
    world.kill();
    auto partition = world.open();
    ASSERT_NE(partition, nullptr);
    const auto sound = static_cast<std::int64_t>(left / size);
    const std::size_t torn = left % size;
    EXPECT_EQ(partition->watermarks().high_watermark, Offset(sound));
    EXPECT_EQ(world.report.cut_bytes, torn);
    EXPECT_EQ(world.report.detail.find(kFirst) != std::string::npos, torn != 0)
        << world.report.detail;
    if (torn != 0) {
      EXPECT_NE(world.report.detail.find("position " + std::to_string(left - torn)),
                std::string::npos);
    }
    EXPECT_EQ(world.disk.content(world.path(kFirst))->size(), left - torn);
    EXPECT_EQ(world.append(*partition)->base_offset, Offset(sound));
    EXPECT_EQ(read_all(world, *partition), range(0, sound + 1));
  }
}

TEST(Recovery, AZeroTailIsCutWhateverItsLength) {
  for (const std::size_t zeros : {1U, 17U, 60U, 61U, 4096U, 3'000'000U}) {
    World world;
    fill(world);
    Buffer bytes = *world.disk.content(world.path(kFirst));
    bytes.resize(bytes.size() + zeros);
    world.disk.set_content(world.path(kFirst), bytes);
    world.kill();
    auto partition = world.open();
    EXPECT_EQ(partition->watermarks().high_watermark, Offset(10));
    EXPECT_EQ(world.report.cut_bytes, zeros);
    EXPECT_NE(world.report.detail.find("zero"), std::string::npos);
  }
}

TEST(Recovery, AFileOfZerosAloneMeansThatNothingWasWritten) {
  World world;
  fill(world, 1);
  world.disk.set_content(world.path(kFirst), Buffer(5000));
  world.kill();
  auto partition = world.open();
  EXPECT_EQ(partition->watermarks().high_watermark, Offset(0));
  EXPECT_EQ(world.append(*partition)->base_offset, Offset(0));
  partition.reset();
  world.disk.set_content(world.path(kFirst), {});
  world.kill();
  EXPECT_EQ(world.open()->watermarks().high_watermark, Offset(0));
  EXPECT_EQ(world.report.cut_bytes, 0U);
}

TEST(Recovery, AChecksumOfZeroIsAsGoodAsAnyOther) {
  // The payload is searched for by solving four bytes of the value: CRC-32C is linear.
  World world;
  auto partition = world.open();
  Buffer bytes = make_batch({.value = "0000some more text"});
  const std::size_t value = bytes.size() - 1 - std::string("0000some more text").size();
  const auto crc_with = [&](std::uint32_t word) {
    std::memcpy(bytes.data() + value, &word, 4);
    return records::compute_crc(bytes);
  };
  const std::uint32_t zero = crc_with(0);
  std::array<std::uint32_t, 32> effect{}, word{};
  for (std::size_t bit = 0; bit < 32; ++bit) {
    word[bit] = 1U << bit;
    effect[bit] = crc_with(1U << bit) ^ zero;
  }
  std::uint32_t target = zero, solution = 0;
  for (std::size_t column = 0, row = 0; column < 32; ++column) {  // Gauss over GF(2)
    std::size_t pivot = row;
    while (pivot < 32 && (effect[pivot] >> column & 1) == 0) ++pivot;
    ASSERT_LT(pivot, 32U);
    std::swap(effect[row], effect[pivot]);
    std::swap(word[row], word[pivot]);
    for (std::size_t i = 0; i < 32; ++i) {
      if (i != row && (effect[i] >> column & 1) != 0)
        effect[i] ^= effect[row], word[i] ^= word[row];
    }
    if ((target >> column & 1) != 0) target ^= effect[row], solution ^= word[row];
    ++row;
  }
  ASSERT_EQ(crc_with(solution), 0U);
  store_be(bytes.data() + records::at::kCrc, std::uint32_t{0});
  ASSERT_TRUE(partition->append(bytes, records::parse_header(bytes).value(), Timestamp(0)));
  ASSERT_TRUE(world.append(*partition));
  partition.reset();
  world.kill();
  EXPECT_EQ(world.open()->watermarks().high_watermark, Offset(2));
  EXPECT_EQ(world.report.cut_bytes, 0U);
}

TEST(Recovery, EveryFlippedByteInTheMiddleIsReportedNotSkipped) {
  World world;
  fill(world, 4);
  world.open("other");  // opens whatever happens to the first
  const Buffer whole = *world.disk.content(world.path(kFirst));
  const std::size_t size = records::parse_header(whole)->size();
  for (std::size_t at = size; at < 2 * size; ++at) {
    Buffer bytes = whole;
    bytes[at] ^= std::byte{0x55};
    world.disk.set_content(world.path(kFirst), bytes);
    world.kill();
    const auto opened = world.try_open();
    ASSERT_FALSE(opened) << at;
    EXPECT_EQ(opened.error().code, ErrorCode::KAFKA_STORAGE_ERROR);
    EXPECT_NE(opened.error().detail.find(kFirst), std::string::npos);
    // A leader epoch that rose by damage shows at the next batch, whose epoch falls.
    const bool epoch = at - size >= records::at::kLeaderEpoch && at - size < records::at::kMagic;
    const std::string place = "position " + std::to_string(size);
    EXPECT_TRUE(epoch || opened.error().detail.find(place) != std::string::npos)
        << opened.error().detail;
    EXPECT_EQ(*world.disk.content(world.path(kFirst)), bytes)
        << "damage must stay for whoever looks at it";
    EXPECT_TRUE(world.open("other"));
  }
}

TEST(Recovery, AFlippedByteInTheLastBatchIsATornTail) {
  World world;
  fill(world, 4);
  const Buffer whole = *world.disk.content(world.path(kFirst));
  const std::size_t size = records::parse_header(whole)->size();
  for (std::size_t at = 3 * size; at < whole.size(); ++at) {
    Buffer bytes = whole;
    bytes[at] ^= std::byte{0x55};
    world.disk.set_content(world.path(kFirst), bytes);
    world.kill();
    const auto opened = world.try_open();
    if (at <
        3 * size + 16) {  // base offset, length, epoch: outside the checksum, may look like a gap
      EXPECT_TRUE(!opened || (*opened)->watermarks().high_watermark == Offset(3)) << at;
      if (!opened) {
        EXPECT_EQ(*world.disk.content(world.path(kFirst)), bytes);
      }
    } else {
      ASSERT_TRUE(opened) << at;
      EXPECT_EQ((*opened)->watermarks().high_watermark, Offset(3)) << at;
    }
  }
}

TEST(Recovery, ABatchInsideARecordIsNotTakenForOneOfTheLog) {
  World world;
  fill(world, 2);
  // A mirrored batch as a client has it, without a leader epoch, at a later offset.
  Buffer inner = make_batch({});
  records::set_base_offset(inner, Offset(50));
  Buffer outer = make_batch({.value = std::string(as_text(inner)) + std::string(100, 'x')});
  records::set_base_offset(outer, Offset(2));
  records::set_leader_epoch(outer, LeaderEpoch(0));
  Buffer bytes = *world.disk.content(world.path(kFirst));
  append(bytes, Bytes(outer).first(outer.size() - 20));
  world.disk.set_content(world.path(kFirst), bytes);
  world.kill();
  EXPECT_EQ(world.open()->watermarks().high_watermark, Offset(2));
}

TEST(Recovery, ASoundBatchOutOfPlaceIsDamage) {
  const auto with = [](std::int64_t offset, std::int32_t epoch) {
    World world;
    world.epoch = 3;
    fill(world, 4);
    Buffer more = make_batch({});
    records::set_base_offset(more, Offset(offset));
    records::set_leader_epoch(more, LeaderEpoch(epoch));
    Buffer bytes = *world.disk.content(world.path(kFirst));
    append(bytes, more);
    world.disk.set_content(world.path(kFirst), bytes);
    world.kill();
    world.epoch = 9;
    const auto opened = world.try_open();
    return opened ? (*opened)->watermarks().high_watermark.value() : std::int64_t{-1};
  };
  EXPECT_EQ(with(4, 3), 5);
  EXPECT_EQ(with(5, 3), -1);  // a gap
  EXPECT_EQ(with(3, 3), 4);   // a number given before: not of this log, cut
  EXPECT_EQ(with(4, 2), -1);  // the epoch falls
}

TEST(Recovery, ABatchWithAnOffsetThatNoneHasIsNoneOfTheLog) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t offset : {std::numeric_limits<std::int64_t>::min(), kMost, kMost - 1}) {
    World world;
    fill(world, 4);
    Buffer bytes = *world.disk.content(world.path(kFirst));
    const std::size_t size = bytes.size() / 4;
    bytes[2 * size + records::kHeaderSize] ^= std::byte{1};  // the third is torn
    records::set_base_offset(MutableBytes(bytes).subspan(3 * size), Offset(offset));
    world.disk.set_content(world.path(kFirst), bytes);
    world.kill();
    EXPECT_EQ(world.open()->watermarks().high_watermark, Offset(2)) << offset;
  }
}

TEST(Recovery, ScansOnlyBehindTheCheckpoint) {
  World world;
  fill(world, 100, true);
  const auto size = world.disk.content(world.path(kFirst))->size();
  {
    world.kill();
    auto partition = world.open();
    EXPECT_EQ(world.report.scanned_bytes, 0U);
    EXPECT_EQ(partition->watermarks().high_watermark, Offset(100));
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(world.append(*partition, {.value = "value 1"}));
  }
  world.kill();
  auto partition = world.open();
  EXPECT_EQ(world.report.scanned_bytes, world.disk.content(world.path(kFirst))->size() - size);
  EXPECT_EQ(read_all(world, *partition), range(0, 110));
}

TEST(Recovery, AMissingOrDamagedCheckpointMeansAFullScan) {
  for (int damage = 0; damage < 3; ++damage) {
    World world;
    fill(world, 50, true);
    const std::string path = world.path("checkpoint");
    Buffer bytes = *world.disk.content(path);
    if (damage == 0) world.disk.erase(path);
    if (damage == 1) bytes[bytes.size() - 9] ^= std::byte{1};
    if (damage == 2) bytes.resize(bytes.size() - 1);
    if (damage != 0) world.disk.set_content(path, bytes);
    world.kill();
    auto partition = world.open();
    EXPECT_EQ(world.report.scanned_bytes, partition->bytes());
    EXPECT_EQ(world.report.detail.empty(), damage == 0) << world.report.detail;
    EXPECT_EQ(read_all(world, *partition), range(0, 50));
  }
}

TEST(Recovery, EveryFlippedBitOfTheCheckpointIsNoticed) {
  World world;
  fill(world, 5, true);
  const std::string path = world.path("checkpoint");
  const Buffer whole = *world.disk.content(path);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    Buffer bytes = whole;
    bytes[at] ^= std::byte{1};
    world.disk.set_content(path, bytes);
    world.kill();
    ASSERT_TRUE(world.open());
    EXPECT_FALSE(world.report.detail.empty()) << at;
    EXPECT_GT(world.report.scanned_bytes, 0U) << at;
  }
}

TEST(Recovery, BytesThatACheckpointVouchesForMustBeThere) {
  World world;
  fill(world, 10, true);
  Buffer bytes = *world.disk.content(world.path(kFirst));
  bytes.resize(bytes.size() - 1);
  world.disk.set_content(world.path(kFirst), bytes);
  world.kill();
  EXPECT_EQ(world.try_open().error().code, ErrorCode::KAFKA_STORAGE_ERROR);
  world.disk.erase(world.path(kFirst));
  world.kill();
  EXPECT_EQ(world.try_open().error().code, ErrorCode::KAFKA_STORAGE_ERROR);
}

TEST(Recovery, DamageInAnEarlierSegmentIsAnError) {
  World world;
  world.options.segment_bytes = 400;
  fill(world, 20);
  const Buffer whole = *world.disk.content(world.path(kFirst));
  for (const bool cut : {true, false}) {
    Buffer bytes = whole;
    if (cut) bytes.resize(bytes.size() - 1);
    if (!cut) bytes.back() ^= std::byte{1};
    world.disk.set_content(world.path(kFirst), bytes);
    world.kill();
    const auto opened = world.try_open();
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().detail.find(kFirst), std::string::npos);
  }
  world.disk.set_content(world.path(kFirst), whole);
  world.kill();
  EXPECT_EQ(read_all(world, *world.open()), range(0, 20));
}

TEST(Recovery, ASyncSealsFullSegmentsSoThatTheirDamageIsNoPowerCut) {
  World world;
  world.options.segment_bytes = 400;
  world.options.ack_after_sync = true;
  {
    auto partition = world.open();
    for (int i = 0; i < 12; ++i) ASSERT_TRUE(world.append(*partition));
    ASSERT_TRUE(partition->log().sync());  // no helper has run yet
  }
  Buffer bytes = *world.disk.content(world.path(kFirst));
  bytes.resize(bytes.size() - 1);
  world.disk.set_content(world.path(kFirst), bytes);
  world.kill();
  const auto opened = world.try_open();
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().detail.find(kFirst), std::string::npos);
}

TEST(Recovery, SegmentsBehindALostTailAreSetAside) {
  World world;
  world.options.segment_bytes = 400;
  {
    auto partition = world.open();
    for (int i = 0; i < 12; ++i) ASSERT_TRUE(world.append(*partition));
  }  // nothing was synced or sealed
  Buffer bytes = *world.disk.content(world.path(kFirst));
  const std::size_t size = records::parse_header(bytes)->size();
  bytes.resize(bytes.size() - 1);
  world.disk.set_content(world.path(kFirst), bytes);
  world.kill();
  auto partition = world.open();
  const auto sound = static_cast<std::int64_t>(bytes.size() / size);
  EXPECT_EQ(partition->watermarks().high_watermark, Offset(sound));
  EXPECT_NE(world.report.detail.find("Set aside"), std::string::npos);
  EXPECT_GT(world.report.cut_bytes, 6 * size);
  EXPECT_EQ(world.append(*partition)->base_offset, Offset(sound));
  const auto files = world.disk.files();
  EXPECT_EQ(std::count_if(files.begin(), files.end(),
                          [](const std::string& path) { return path.ends_with(".log.cut"); }),
            2);
  partition.reset();
  world.kill();
  EXPECT_EQ(read_all(world, *world.open()), range(0, sound + 1));
}

TEST(Recovery, AMissingSegmentIsAnError) {
  for (const std::string& name : {kFirst, std::string("00000000000000000010.log")}) {
    World world;
    world.options.segment_bytes = 400;
    fill(world, 20);
    ASSERT_TRUE(world.disk.content(world.path(name)));
    world.disk.erase(world.path(name));
    world.kill();
    const auto opened = world.try_open();
    ASSERT_FALSE(opened) << name;
    EXPECT_EQ(opened.error().code, ErrorCode::KAFKA_STORAGE_ERROR);
  }
}

TEST(Recovery, AFileThatWentAfterACleanStopFailsItsLogForGoodAndNoOther) {
  World world;
  {
    auto harmed = world.open("t");
    auto other = world.open("u");
    ASSERT_TRUE(world.append(*harmed));
    ASSERT_TRUE(world.append(*other));
    world.stop({harmed.get(), other.get()});
  }
  const Buffer file = *world.disk.content(world.path(kFirst));
  world.disk.erase(world.path(kFirst));
  world.kill();
  auto harmed = world.open("t");
  EXPECT_EQ(read(world, *harmed, 0, 100).error, ErrorCode::KAFKA_STORAGE_ERROR);
  world.disk.set_content(world.path(kFirst), file);  // too late: the operator was told
  const auto refused = world.append(*harmed);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::KAFKA_STORAGE_ERROR);
  auto other = world.open("u");
  EXPECT_EQ(read_all(world, *other), range(0, 1));
  EXPECT_TRUE(world.append(*other));
}

TEST(Recovery, ForeignFilesInTheDirectoryAreLeftAlone) {
  World world;
  fill(world, 3);
  world.disk.set_content(world.path("note.txt"), as_bytes("mine"));
  world.disk.set_content(world.path("1.log"), as_bytes("not a segment"));
  world.disk.set_content(world.path("checkpoint.tmp"), as_bytes("half written"));
  world.kill();
  EXPECT_EQ(read_all(world, *world.open()), range(0, 3));
  EXPECT_TRUE(world.disk.content(world.path("note.txt")));
  EXPECT_TRUE(world.disk.content(world.path("1.log")));
  EXPECT_FALSE(world.disk.content(world.path("checkpoint.tmp")));
}

/// Twelve synced records in several segments.
std::unique_ptr<Partition> open_with_dozen(World& world) {
  world.options.segment_bytes = 200;
  auto partition = world.open();
  for (int i = 0; i < 12; ++i) EXPECT_TRUE(world.append(*partition));
  EXPECT_TRUE(partition->log().sync());
  return partition;
}

void cut_power_but_names(World& world) {
  kanal::test::MemoryFileSystem::PowerCut names_survive;
  names_survive.keep_names = [](std::string_view, std::size_t unsynced) { return unsynced; };
  world.disk.power_cut(names_survive);
}

TEST(Recovery, AFileBelowAnUnsyncedStartGoesOnlyOnceTheStartIsDurable) {
  World world;
  {
    const auto partition = open_with_dozen(world);
    ASSERT_TRUE(partition->trim(Offset(9)));
  }
  world.kill();  // the helper that would have synced the start never ran
  ASSERT_TRUE(world.open()) << "and removed what lies below it";
  cut_power_but_names(world);
  world.kill();
  const auto partition = world.open();
  ASSERT_NE(partition, nullptr);
  EXPECT_EQ(partition->watermarks().log_start, Offset(9));
}

TEST(Recovery, AStartWhoseSyncFailedIsWrittenAgainBeforeAFileBelowItGoes) {
  World world;
  {
    const auto partition = open_with_dozen(world);
    const auto files = world.disk.files();
    ASSERT_TRUE(partition->trim(Offset(5)));
    ASSERT_TRUE(partition->trim(Offset(9)));
    world.disk.fail({.kinds = kanal::test::MemoryFileSystem::kSync, .sync_loses = true});
    world.helpers.run();  // the first one's sync fails, which is final
    EXPECT_EQ(world.disk.files(), files) << "nothing is removed";
    EXPECT_FALSE(world.append(*partition));
  }
  world.kill();
  world.disk.clear_faults();
  ASSERT_TRUE(world.open());
  cut_power_but_names(world);
  world.kill();
  const auto partition = world.open();
  ASSERT_NE(partition, nullptr);
  EXPECT_EQ(partition->watermarks().log_start, Offset(9));
  EXPECT_EQ(read(world, *partition, 9, 1 << 20).offsets, range(9, 12));
}

TEST(Recovery, AStartThatItsSyncLostIsThatOfTheCheckpoint) {
  World world;
  {
    const auto partition = open_with_dozen(world);
    ASSERT_TRUE(partition->trim(Offset(9)));
    world.disk.fail({.kinds = kanal::test::MemoryFileSystem::kSync, .sync_loses = true});
    world.helpers.run();
    world.disk.clear_faults();
    world.store().prepare_stop();
    EXPECT_FALSE(partition->log().checkpoint(partition->checkpoint())) << "which is kept anyway";
    ASSERT_TRUE(world.store().stop({}));
  }
  cut_power_but_names(world);
  for (int start = 0; start < 2; ++start) {
    world.kill();
    const auto partition = world.open();
    ASSERT_NE(partition, nullptr);
    EXPECT_EQ(partition->watermarks().log_start, Offset(9));
    EXPECT_EQ(read(world, *partition, 9, 1 << 20).offsets, range(9, 12));
  }
}

TEST(Identity, AnotherIncarnationsDirectoryIsMovedAway) {
  World world;
  fill(world, 3);
  world.kill();
  world.incarnation = 8;
  auto partition = world.open();
  EXPECT_NE(world.report.detail.find(".stray"), std::string::npos);
  EXPECT_EQ(partition->watermarks().high_watermark, Offset(0));
  EXPECT_EQ(world.append(*partition)->base_offset, Offset(0));
  const auto files = world.disk.files();
  EXPECT_EQ(std::ranges::count_if(files,
                                  [](const std::string& path) {
                                    return path.find("/.stray/") != std::string::npos &&
                                           path.ends_with(".log");
                                  }),
            1);
}

TEST(Identity, ACleanShutdownOfAnotherIncarnationIsNotTrusted) {
  World world;
  auto partition = world.open();
  ASSERT_TRUE(world.append(*partition));
  world.stop({partition.get()});
  partition.reset();
  world.kill();
  world.incarnation = 8;
  EXPECT_EQ(world.open()->watermarks().high_watermark, Offset(0));
}

TEST(Identity, EveryFlippedByteIsNoticedAndTheOtherHalfUsed) {
  World world;
  fill(world, 20);
  {
    world.kill();
    auto partition = world.open();
    ASSERT_TRUE(partition->trim(Offset(5)));
    ASSERT_TRUE(partition->trim(Offset(9)));
  }
  const std::string path = world.path("channel");
  const Buffer whole = *world.disk.content(path);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    if (at % 512 >= 56) continue;  // padding
    Buffer bytes = whole;
    bytes[at] ^= std::byte{1};
    world.disk.set_content(path, bytes);
    world.kill();
    auto partition = world.open();
    ASSERT_TRUE(partition) << at;
    EXPECT_FALSE(world.report.detail.empty()) << at;
    const Offset start = partition->watermarks().log_start;
    EXPECT_TRUE(start == Offset(5) || start == Offset(9)) << at;
    EXPECT_EQ(world.disk.content(path)->size(), whole.size());
    partition.reset();
    world.kill();
    EXPECT_TRUE(world.open());
    EXPECT_TRUE(world.report.detail.empty()) << world.report.detail;
  }
}

TEST(Identity, WhollyDamagedItIsAnErrorUnlessACheckpointKnowsIt) {
  for (const bool checkpoint : {false, true}) {
    World world;
    fill(world, 5, checkpoint);
    const std::string path = world.path("channel");
    Buffer bytes = *world.disk.content(path);
    bytes[20] ^= std::byte{1};
    bytes[512 + 20] ^= std::byte{1};
    world.disk.set_content(path, bytes);
    world.kill();
    const auto opened = world.try_open();
    EXPECT_EQ(opened.has_value(), checkpoint);
    if (checkpoint) {
      EXPECT_FALSE(world.report.detail.empty());
    } else {
      EXPECT_NE(opened.error().detail.find(path), std::string::npos);
    }
  }
}

TEST(Identity, AnUnfinishedFileIsMadeAgain) {
  for (const std::size_t size : {0U, 10U, 55U, 56U, 511U, 530U}) {
    World world;
    fill(world, 5);
    const std::string path = world.path("channel");
    Buffer bytes = *world.disk.content(path);
    bytes.resize(size);
    world.disk.set_content(path, bytes);
    world.kill();
    auto partition = world.open();
    ASSERT_TRUE(partition) << size;
    EXPECT_FALSE(world.report.detail.empty());
    EXPECT_EQ(read_all(world, *partition), range(0, 5));
  }
}

TEST(Identity, ANewerFormatIsRefusedUntouched) {
  World world;
  fill(world, 5);
  const std::string path = world.path("channel");
  Buffer bytes = *world.disk.content(path);
  for (const std::size_t slot : {0U, 512U}) bytes[slot + 5] = std::byte{2};
  world.disk.set_content(path, bytes);
  world.kill();
  const auto opened = world.try_open();
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().detail.find("newer"), std::string::npos);
  EXPECT_EQ(*world.disk.content(path), bytes);
}

TEST(Removal, RenamesAtOnceAndUnlinksLater) {
  World world;
  auto partition = world.open();
  ASSERT_TRUE(world.append(*partition));
  ASSERT_TRUE(world.store().remove(world.id()));
  EXPECT_FALSE(world.disk.content(world.path(kFirst)));
  EXPECT_FALSE(world.disk.files().empty());
  EXPECT_EQ(world.append(*partition).error().code, ErrorCode::KAFKA_STORAGE_ERROR);
  EXPECT_FALSE(partition->log().sync());
  world.helpers.run();
  EXPECT_TRUE(world.disk.files().empty());
  ASSERT_TRUE(world.store().remove(world.id()));  // missing is fine
  world.incarnation = 8;
  auto again = world.open();
  EXPECT_EQ(world.append(*again)->base_offset, Offset(0));
  partition.reset();
  EXPECT_EQ(read_all(world, *again), range(0, 1));
  EXPECT_EQ(again->log().sync(), Sequence(2));
}

TEST(Removal, WhatAKilledProcessHadRenamedIsUnlinkedAtTheNextStart) {
  World world;
  fill(world, 1);
  ASSERT_TRUE(world.store().remove(world.id()));
  world.kill();
  EXPECT_TRUE(world.disk.files().empty());
}

TEST(Removal, AnEmptyChannelNeverComesBackThroughALateAppend) {
  World world;
  auto partition = world.open();
  ASSERT_TRUE(world.store().remove(world.id()));
  EXPECT_FALSE(world.append(*partition));
  EXPECT_TRUE(world.disk.files().empty());
}

TEST(Removal, LongNamesAreRemovedToo) {
  World world;
  const std::string topic(249, 'n');
  auto partition = world.open(topic, 9999);
  ASSERT_TRUE(world.append(*partition));
  ASSERT_TRUE(world.store().remove(world.id(topic, 9999)));
  for (const std::string& path : world.disk.files()) {
    EXPECT_LT(path.size() - path.rfind("/.removed/"), 255U);
  }
  world.helpers.run();
  EXPECT_TRUE(world.disk.files().empty());
}

}  // namespace
}  // namespace kanal::log::test
