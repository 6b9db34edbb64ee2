#include "journal_check.hpp"

#include "store_support.hpp"

#include <fstream>
#include <iterator>

namespace kanal::reserved {
namespace {

namespace fs = std::filesystem;
using What = JournalState::What;

/// A journal that RocksDB wrote: small records, and one that goes over several blocks.
std::string written_journal() {
  const ScratchDirectory directory;
  auto store = open_rocks_store(directory.path());
  EXPECT_TRUE(store);
  auto session = (*store)->open();
  EXPECT_TRUE(session);
  EXPECT_TRUE(append(**session, kOrders, {"first"}));
  EXPECT_TRUE(append(**session, kOrders, {std::string(80'000, 'x')}));
  for (int i = 0; i < 20; ++i)
    EXPECT_TRUE(append(**session, kPids, {"record " + std::to_string(i)}));
  for (const fs::directory_entry& entry : fs::directory_iterator(directory.path())) {
    if (entry.path().extension() != ".log") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  return {};
}

class JournalCheck : public testing::Test {
 protected:
  static void SetUpTestSuite() { journal_ = written_journal(); }
  static What check(std::string_view journal) { return check_journal(as_bytes(journal)).what; }
  inline static std::string journal_;
};

TEST_F(JournalCheck, AWholeOneAndEveryTornTailPass) {
  ASSERT_GT(journal_.size(), 80'000U);
  EXPECT_EQ(check(""), What::kWhole);
  for (std::size_t size = 0; size <= journal_.size(); size += size < 81'000 ? 997 : 1) {
    EXPECT_EQ(check(std::string_view(journal_).substr(0, size)), What::kWhole) << size;
  }
}

TEST_F(JournalCheck, ADamagedLengthIsNoticedThoughItReachesTheEnd) {
  // The first of the last twenty records: its length grows past the end of the file.
  const std::size_t payload = journal_.find("record 0");
  ASSERT_NE(payload, std::string::npos);
  std::size_t noticed = 0;
  for (std::size_t at = payload - 90; at < payload; ++at) {
    std::string damaged = journal_;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    noticed += check(damaged) == What::kDamaged ? 1 : 0;
  }
  EXPECT_GT(noticed, 0U);
}

TEST_F(JournalCheck, ATypeThatEndsAJournalInSilenceIsNoticed) {
  constexpr std::size_t kType = 6;  // of the first record
  for (const int type : {5, 6, 7, 8, 100}) {
    std::string damaged = journal_;
    damaged[kType] = static_cast<char>(type);
    EXPECT_EQ(check(damaged), What::kDamaged) << type;
  }
}

TEST_F(JournalCheck, AHoleIsToldFromATail) {
  std::string zeros_behind = journal_ + std::string(5'000, '\0');
  EXPECT_EQ(check(zeros_behind), What::kWhole);
  std::string hole = journal_;
  const std::size_t record = journal_.find("record 3") + std::string_view("record 3").size();
  std::fill(hole.begin() + static_cast<std::ptrdiff_t>(record), hole.end() - 200, '\0');
  const JournalState state = check_journal(as_bytes(hole));
  EXPECT_EQ(state.what, What::kHole);
  EXPECT_EQ(state.at, record);
}

TEST_F(JournalCheck, ReadsAnyBytes) {
  for (std::size_t shift = 1; shift < 200; ++shift) {
    (void)check(std::string_view(journal_).substr(shift));
  }
  for (const char byte : {'\x01', '\x7F', '\xFF'}) (void)check(std::string(70'000, byte));
}

}  // namespace
}  // namespace kanal::reserved
