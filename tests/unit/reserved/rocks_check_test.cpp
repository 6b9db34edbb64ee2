// Looking over the RocksDB store without a write, and copying it while it is in use.
#include "kanal/base/logging.hpp"
#include "kanal/reserved/check.hpp"
#include "store_support.hpp"

#include <fstream>

namespace kanal::reserved {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}
void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::map<std::string, std::string> files_in(const std::string& directory) {
  std::map<std::string, std::string> all;
  for (const auto& entry : fs::directory_iterator(directory))
    all[entry.path().filename()] = read_file(entry.path());
  return all;
}

class RocksCheck : public testing::Test {
 protected:
  void SetUp() override {
    (void)set_log_level("off");
    {  // a start's worth of tables
      auto store = open_rocks_store(path_);
      ASSERT_TRUE(store) << store.error().detail;
      auto session = (*store)->open();
      ASSERT_TRUE(append(**session, kOrders, {"a", "b"}));
      ASSERT_TRUE(roll(**session, kOrders, {"abc"}, Durability::kSynced));
    }
    store_ = open_rocks_store(path_).value();
    session_ = store_->open().value();
    ASSERT_TRUE(append(*session_, kPids, {"p", "q"}, Durability::kSynced));
    ASSERT_TRUE(append(*session_, kOrders, {"d"}, Durability::kSynced));
  }
  void TearDown() override { (void)set_log_level("info"); }
  void close() {
    session_.reset();
    store_.reset();
  }
  ReservedFigures check(const std::string& path) {
    found_.clear();
    content_.clear();
    return check_rocks_store(
        path,
        [this](const ReservedName& name, Bytes record) -> Result<void> {
          content_[name].emplace_back(as_text(record));
          return {};
        },
        [this](Finding finding) { found_.push_back(std::move(finding)); });
  }
  [[nodiscard]] std::string text() const {
    std::string all;
    for (const Finding& finding : found_) all += finding.file + ": " + finding.text + "\n";
    return all;
  }

  const Content sound_{{kOrders, {"abc", "d"}}, {kPids, {"p", "q"}}};
  const ScratchDirectory scratch_;
  const std::string path_ = scratch_.path();
  std::unique_ptr<Store> store_;
  std::unique_ptr<Session> session_;
  std::vector<Finding> found_;
  Content content_;
};

TEST_F(RocksCheck, ASoundStoreIsReadWithoutAWrite) {
  close();
  const auto before = files_in(path_);
  const ReservedFigures figures = check(path_);
  EXPECT_TRUE(figures.readable);
  EXPECT_TRUE(found_.empty()) << text();
  EXPECT_EQ(content_, sound_);
  EXPECT_EQ(figures.channels, 2u);
  EXPECT_EQ(figures.records, 4u);
  EXPECT_EQ(files_in(path_), before);
}

TEST_F(RocksCheck, ACopyOfAStoreInUseHasAllThatWasWritten) {
  const std::string copy = scratch_.path("copy");
  ASSERT_TRUE(copy_rocks_store(*store_, copy));
  ASSERT_TRUE(append(*session_, kPids, {"later"}));
  check(copy);
  EXPECT_TRUE(found_.empty()) << text();
  EXPECT_EQ(content_, sound_);
  auto opened = open_rocks_store(copy);
  ASSERT_TRUE(opened) << opened.error().detail;
  auto session = (*opened)->open();
  EXPECT_EQ(content_of(**session).value(), sound_);
  EXPECT_FALSE(copy_rocks_store(*make_memory_store(), scratch_.path("no")));
  EXPECT_FALSE(copy_rocks_store(*store_, copy)) << "it is there";
}

TEST_F(RocksCheck, ACopyRightAfterAStartOpensToo) {
  close();
  store_ = open_rocks_store(path_).value();  // its journal is empty
  const std::string copy = scratch_.path("copy");
  ASSERT_TRUE(copy_rocks_store(*store_, copy));
  auto opened = open_rocks_store(copy);
  ASSERT_TRUE(opened) << opened.error().detail;
  auto session = (*opened)->open();
  EXPECT_EQ(content_of(**session).value(), sound_);
}

TEST_F(RocksCheck, EveryFlippedByteIsFoundOrWasNeverRead) {
  close();
  int flips = 0;
  for (const auto& [name, sound] : files_in(path_)) {
    if (name.starts_with("OPTIONS") || name == "IDENTITY" || name == "LOCK") continue;
    for (std::size_t at = 0; at < sound.size(); at += 1 + sound.size() / 60) {
      std::string bytes = sound;
      bytes[at] = static_cast<char>(bytes[at] ^ 0x04);
      write_file(fs::path(path_) / name, bytes);
      check(path_);
      // A table's footer has bytes that mean nothing; in the journal every byte counts.
      const bool harmless = name.ends_with(".sst") && content_ == sound_;
      EXPECT_TRUE(!found_.empty() || harmless) << name << ":" << at;
      ++flips;
    }
    write_file(fs::path(path_) / name, sound);
  }
  EXPECT_GT(flips, 100);
  check(path_);
  EXPECT_TRUE(found_.empty()) << text();
}

TEST_F(RocksCheck, ATornJournalIsRecoverableAndALostOneIsDamage) {
  close();
  fs::path journal;
  for (const auto& entry : fs::directory_iterator(path_)) {
    if (entry.path().extension() == ".log") journal = entry.path();
  }
  const std::string sound = read_file(journal);
  ASSERT_GT(sound.size(), 10u);
  write_file(journal, sound.substr(0, sound.size() - 3));
  EXPECT_TRUE(check(path_).readable);
  ASSERT_EQ(found_.size(), 1u) << text();
  EXPECT_EQ(found_[0].weight, Finding::Weight::kRecoverable);
  EXPECT_EQ(content_, (Content{{kOrders, {"abc"}}, {kPids, {"p", "q"}}}));
  // A hole of zeros where a power cut lost a page that a later one does not lack.
  write_file(journal, sound + std::string(4096, '\0') + "later");
  EXPECT_TRUE(check(path_).readable);
  ASSERT_EQ(found_.size(), 1u) << text();
  EXPECT_EQ(found_[0].weight, Finding::Weight::kRecoverable);
  EXPECT_EQ(content_, sound_);
  fs::remove(journal);
  check(path_);
  ASSERT_FALSE(found_.empty());
  EXPECT_EQ(found_[0].weight, Finding::Weight::kDamage);
}

TEST_F(RocksCheck, ARecordThatItsMachineRefusesIsDamageOfItsChannel) {
  close();
  std::vector<Finding> found;
  int seen = 0;
  (void)check_rocks_store(
      path_,
      [&](const ReservedName& name, Bytes) -> Result<void> {
        ++seen;
        if (name == kOrders) return fail(ErrorCode::KAFKA_STORAGE_ERROR, "not a topic");
        return {};
      },
      [&](Finding finding) { found.push_back(std::move(finding)); });
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].text.find("_KAFKA_CONFIG_.orders"), std::string::npos) << found[0].text;
  EXPECT_NE(found[0].text.find("not a topic"), std::string::npos) << found[0].text;
  EXPECT_EQ(seen, 3);
}

}  // namespace
}  // namespace kanal::reserved
