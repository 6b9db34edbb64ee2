// Damage of the RocksDB store, from single values to lost files: an error that says where, or a
// state that was once true; never a crash and never something made up.
#include "journal_check.hpp"
#include "kanal/base/logging.hpp"
#include "names.hpp"
#include "record_frame.hpp"
#include "store_support.hpp"

#include <rocksdb/db.h>

#include <algorithm>
#include <fstream>
#include <functional>

namespace kanal::reserved {
namespace {

namespace fs = std::filesystem;

Result<Content> read(const std::string& path) {
  auto store = open_rocks_store(path);
  if (!store) return std::unexpected(store.error());
  auto session = (*store)->open();
  if (!session) return std::unexpected(session.error());
  return content_of(**session);
}

/// Every state the writes of write_some() go through.
std::vector<Content> states() {
  return {{},
          {{kOrders, {"a"}}},
          {{kOrders, {"a", "b"}}},
          {{kOrders, {"a", "b"}}, {kPids, {"p"}}},
          {{kOrders, {"abc"}}, {kPids, {"p"}}}};
}

void write_some(const std::string& path) {
  auto store = open_rocks_store(path);
  ASSERT_TRUE(store) << store.error().detail;
  auto session = (*store)->open();
  ASSERT_TRUE(session);
  ASSERT_TRUE(append(**session, kOrders, {"a"}));
  ASSERT_TRUE(append(**session, kOrders, {"b"}));
  ASSERT_TRUE(append(**session, kPids, {"p"}));
  ASSERT_TRUE(roll(**session, kOrders, {"abc"}, Durability::kSynced));
}

void with_database(const std::string& path, const std::function<void(rocksdb::DB&)>& change) {
  rocksdb::DB* db = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open({}, path, &db).ok());
  const std::unique_ptr<rocksdb::DB> owner(db);
  change(*db);
  ASSERT_TRUE(db->FlushWAL(true).ok());
}

class RocksDamage : public testing::Test {
 protected:
  void SetUp() override {
    (void)set_log_level("off");  // RocksDB has much to say here
    write_some(path_);
  }
  void TearDown() override { (void)set_log_level("info"); }
  void expect_error_naming(const std::string& what) {
    const auto found = read(path_);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, ErrorCode::KAFKA_STORAGE_ERROR);
    EXPECT_NE(found.error().detail.find(what), std::string::npos) << found.error().detail;
  }

  ScratchDirectory directory_;
  std::string path_ = directory_.path();
  std::string prefix_ = channel_prefix(kOrders);
  std::string record_ = record_key(prefix_, 2, 1);
};

TEST_F(RocksDamage, AChangedValueNamesItsChannelAndGeneration) {
  with_database(path_, [&](rocksdb::DB& db) {
    std::string value;
    ASSERT_TRUE(db.Get({}, record_, &value).ok());
    value.back() = static_cast<char>(value.back() ^ 1);
    ASSERT_TRUE(db.Put({}, record_, value).ok());
  });
  expect_error_naming("_KAFKA_CONFIG_.orders.2");
}

TEST_F(RocksDamage, ANewerRecordFormatIsRefused) {
  with_database(path_, [&](rocksdb::DB& db) {
    std::string value;
    ASSERT_TRUE(db.Get({}, record_, &value).ok());
    value[0] = 2;
    ASSERT_TRUE(db.Put({}, record_, value).ok());
  });
  expect_error_naming("format 2");
}

TEST_F(RocksDamage, AMissingRecordIsNoticed) {
  with_database(path_, [&](rocksdb::DB& db) {
    const std::string second = record_key(prefix_, 2, 3);
    ASSERT_TRUE(db.Put({}, second, frame(second, as_bytes("x"))).ok());
  });
  expect_error_naming("record 2 is missing");
}

TEST_F(RocksDamage, ARecordOfADeadGenerationIsNoticed) {
  with_database(path_, [&](rocksdb::DB& db) {
    const std::string old = record_key(prefix_, 1, 1);
    ASSERT_TRUE(db.Put({}, old, frame(old, as_bytes("x"))).ok());
  });
  expect_error_naming("_KAFKA_CONFIG_.orders.1");
}

TEST_F(RocksDamage, AMissingPointerIsNoticed) {
  with_database(path_, [&](rocksdb::DB& db) { ASSERT_TRUE(db.Delete({}, prefix_).ok()); });
  expect_error_naming("_KAFKA_CONFIG_.orders.2");
}

TEST_F(RocksDamage, AForeignKeyIsNoticed) {
  with_database(path_, [&](rocksdb::DB& db) { ASSERT_TRUE(db.Put({}, "zz", "x").ok()); });
  expect_error_naming("7A7A");
}

TEST_F(RocksDamage, ALostFileNeverPassesForANewStore) {
  for (const fs::directory_entry& entry : fs::directory_iterator(path_)) {
    const std::string file = entry.path().filename();
    if (file == "LOCK" || file == "IDENTITY" || file.starts_with("OPTIONS-")) continue;
    const fs::path aside = directory_.path("aside");
    fs::rename(entry.path(), aside);
    EXPECT_FALSE(read(path_)) << file;
    fs::rename(aside, entry.path());
  }
  EXPECT_EQ(read(path_).value(), states().back());
}

TEST_F(RocksDamage, AStoreLeftHalfMadeIsMadeAnew) {
  const std::string other = directory_.path("half");
  fs::create_directory(other);
  std::ofstream(other + "/NEW");
  std::ofstream(other + "/CURRENT") << "";
  std::ofstream(other + "/MANIFEST-000001") << "";
  EXPECT_EQ(read(other).value(), Content{});
  write_some(other);
  EXPECT_EQ(read(other).value(), states().back());
}

/// Flips a bit here and there in every file the database reads, and reads a copy of each.
template <class Check>
void flip_bits(const std::string& path, const std::string& copy, Check&& check) {
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    const std::string file = entry.path().filename();
    if (file == "LOCK" || file == "IDENTITY" || file.starts_with("OPTIONS-")) continue;
    const std::uintmax_t size = fs::file_size(entry.path());
    const std::uintmax_t stride = std::max<std::uintmax_t>(1, size / 16);
    for (std::uintmax_t at = 0; at < size; at += stride) {
      fs::remove_all(copy);
      fs::copy(path, copy);
      std::fstream damaged(copy + "/" + file, std::ios::in | std::ios::out | std::ios::binary);
      damaged.seekg(static_cast<std::streamoff>(at));
      const char byte = static_cast<char>(damaged.get() ^ 0x10);
      damaged.seekp(static_cast<std::streamoff>(at));
      damaged.put(byte);
      damaged.close();
      check(read(copy), file + " at " + std::to_string(at));
    }
  }
}

TEST_F(RocksDamage, AFlippedBitGivesAnErrorOrAnEarlierState) {
  const auto known = states();
  std::size_t errors = 0;
  flip_bits(path_, directory_.path("copy"), [&](const auto& found, const std::string& where) {
    errors += found ? 0 : 1;
    if (found) {
      EXPECT_NE(std::ranges::find(known, *found), known.end()) << where;
    }
  });
  EXPECT_GT(errors, 10U);
}

TEST_F(RocksDamage, AFlippedBitInATableNeverChangesTheState) {
  ASSERT_TRUE(read(path_));  // a start puts the journal's records into a table
  std::size_t errors = 0;
  flip_bits(path_, directory_.path("copy"), [&](const auto& found, const std::string& where) {
    errors += found ? 0 : 1;
    if (found) {
      EXPECT_EQ(*found, states().back()) << where;
    }
  });
  EXPECT_GT(errors, 10U);
}

TEST_F(RocksDamage, AHoleOfAPowerCutInTheJournalIsCut) {
  for (const fs::directory_entry& entry : fs::directory_iterator(path_)) {
    if (entry.path().extension() != ".log") continue;
    // The last two writes are there in part: zeros, then the end of the last one.
    const auto size = fs::file_size(entry.path());
    std::fstream journal(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    std::string bytes(size, '\0');
    journal.read(bytes.data(), static_cast<std::streamsize>(size));
    const std::size_t kept = check_journal(as_bytes(bytes.substr(0, size - 1))).at;
    journal.seekp(static_cast<std::streamoff>(kept));
    journal << std::string(size - kept - 10, '\0');
  }
  for (int start = 0; start < 2; ++start) {
    const auto found = read(path_);
    ASSERT_TRUE(found) << found.error().detail;
    EXPECT_EQ(*found, states()[3]);
  }
}

// A journal cut at any byte is what kill -9 during a write leaves.
TEST_F(RocksDamage, AJournalCutAnywhereGivesAnEarlierState) {
  const auto known = states();
  for (const fs::directory_entry& entry : fs::directory_iterator(path_)) {
    if (entry.path().extension() != ".log") continue;
    for (std::uintmax_t size = 0; size < fs::file_size(entry.path()); size += 7) {
      const std::string copy = directory_.path("copy");
      fs::remove_all(copy);
      fs::copy(path_, copy);
      fs::resize_file(fs::path(copy) / entry.path().filename(), size);
      const auto found = read(copy);
      ASSERT_TRUE(found) << size << ": " << found.error().detail;
      EXPECT_NE(std::ranges::find(known, *found), known.end()) << size;
    }
  }
}

}  // namespace
}  // namespace kanal::reserved
