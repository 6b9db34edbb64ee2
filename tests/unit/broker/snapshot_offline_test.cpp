#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "data_directory.hpp"
#include "kanal/broker/snapshot.hpp"
#include "support/scratch_directory.hpp"

namespace kanal::broker {
namespace {

namespace fs = std::filesystem;
const std::string kChannel = "channels/kafka.a/";

class OfflineSnapshot : public ::testing::Test {
 protected:
  OfflineSnapshot() {
    write("meta", encode_meta({"cluster-1", NodeId(3)}));
    write("reserved/CURRENT", "x");
  }

  void write(const std::string& name, const std::string& content) {
    const fs::path path = fs::path(scratch_.path()) / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << content;
  }
  SnapshotReport take() {
    auto report = snapshot_offline(*files_, scratch_.path(), scratch_.path("copy"));
    EXPECT_TRUE(report) << report.error().detail;
    return report ? *report : SnapshotReport{};
  }
  bool has(const std::string& name) const { return fs::exists(copy_of(name)); }

  std::uintmax_t links_of(const std::string& name) const {
    return fs::hard_link_count(copy_of(name));
  }

  fs::path copy_of(const std::string& name) const { return fs::path(scratch_.path("copy")) / name; }

  const kanal::test::ScratchDirectory scratch_;
  const std::unique_ptr<FileSystem> files_ = make_system_file_system();
};

TEST_F(OfflineSnapshot, HasTopicsOfEveryName) {
  write("channels/kafka.a.cut.b~1/channel", "x");
  write("channels/kafka.c.tmp/channel", "x");
  take();
  EXPECT_TRUE(has("channels/kafka.a.cut.b~1/channel"));
  EXPECT_TRUE(has("channels/kafka.c.tmp/channel"));
}

TEST_F(OfflineSnapshot, LeavesOutWhatIsNoPartOfALog) {
  write(kChannel + "channel", "x");
  write(kChannel + "00000000000000000000.log.cut", "x");
  write(kChannel + "compaction.tmp", "x");
  write("channels/.removed/kafka.b/channel", "x");
  take();
  EXPECT_TRUE(has(kChannel + "channel"));
  EXPECT_FALSE(has(kChannel + "00000000000000000000.log.cut"));
  EXPECT_FALSE(has(kChannel + "compaction.tmp"));
  EXPECT_FALSE(has("channels/.removed"));
}

TEST_F(OfflineSnapshot, LinksFullSegmentsThoseOfCompactionToo) {
  write(kChannel + "00000000000000000000.12.log", "compacted");
  write(kChannel + "00000000000000000000.12.kindex", "");
  write(kChannel + "00000000000000000100.log", "full");
  write(kChannel + "00000000000000000100.kindex", "");
  write(kChannel + "00000000000000000200.log", "the last");
  const auto report = take();
  EXPECT_EQ(report.logs.segments, 3U);
  EXPECT_EQ(report.logs.linked_bytes, std::string("compactedfull").size());
  EXPECT_EQ(links_of(kChannel + "00000000000000000000.12.log"), 2U);
  EXPECT_EQ(links_of(kChannel + "00000000000000000100.log"), 2U);
  EXPECT_EQ(links_of(kChannel + "00000000000000000200.log"), 1U);
}

TEST_F(OfflineSnapshot, CopiesEveryFileThatMayBeTheLastSegment) {
  write(kChannel + "00000000000000000100.7.log", "compacted");
  write(kChannel + "00000000000000000100.7.kindex", "");
  write(kChannel + "00000000000000000100.log", "full once");
  write(kChannel + "00000000000000000100.kindex", "");
  EXPECT_EQ(take().logs.linked_bytes, 0U);
  EXPECT_EQ(links_of(kChannel + "00000000000000000100.7.log"), 1U);
  EXPECT_EQ(links_of(kChannel + "00000000000000000100.log"), 1U);
}

}  // namespace
}  // namespace kanal::broker
