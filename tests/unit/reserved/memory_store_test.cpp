#include "kanal/reserved/memory_store.hpp"

#include "store_support.hpp"

#include <cerrno>

namespace kanal::reserved {
namespace {

class MemoryStoreFaults : public testing::Test {
 protected:
  MemoryStoreFaults() { restart(); }
  void restart() {
    session_.reset();
    auto opened = store_.open();
    ASSERT_TRUE(opened);
    session_ = std::move(*opened);
  }
  Content content() { return content_of(*session_).value_or(Content{}); }

  MemoryStore store_;
  std::unique_ptr<Session> session_;
};

TEST_F(MemoryStoreFaults, APowerCutKeepsWhatWasSynced) {
  ASSERT_TRUE(append(*session_, kOrders, {"a"}));
  ASSERT_TRUE(append(*session_, kPids, {"p"}, Durability::kSynced));
  ASSERT_TRUE(append(*session_, kOrders, {"b"}));
  ASSERT_TRUE(append(*session_, kOrders, {"c"}));
  EXPECT_EQ(store_.unsynced_writes(), 2U);
  store_.power_cut(1);
  EXPECT_FALSE(append(*session_, kOrders, {"from the dead"}));
  restart();
  EXPECT_EQ(content(), (Content{{kOrders, {"a", "b"}}, {kPids, {"p"}}}));
}

TEST_F(MemoryStoreFaults, FlushSyncsEverything) {
  ASSERT_TRUE(append(*session_, kOrders, {"a"}));
  ASSERT_TRUE(store_.flush());
  store_.power_cut(0);
  restart();
  EXPECT_EQ(content(), (Content{{kOrders, {"a"}}}));
}

TEST_F(MemoryStoreFaults, FailsTheWriteItIsTold) {
  store_.fail_write(2, MemoryStore::Failure::kDiskFull);
  EXPECT_TRUE(append(*session_, kOrders, {"a"}));
  const auto full = append(*session_, kOrders, {"b"});
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::KAFKA_STORAGE_ERROR);
  EXPECT_EQ(full.error().os_error, ENOSPC);
  EXPECT_TRUE(append(*session_, kOrders, {"c"}));
  EXPECT_EQ(content(), (Content{{kOrders, {"a", "c"}}}));
}

TEST_F(MemoryStoreFaults, AFailedWriteMayComeToLifeAfterACrash) {
  ASSERT_TRUE(append(*session_, kOrders, {"a"}));
  store_.fail_write(1, MemoryStore::Failure::kWrittenUnsynced);
  EXPECT_FALSE(append(*session_, kOrders, {"b"}));
  EXPECT_EQ(content(), (Content{{kOrders, {"a"}}}));
  store_.kill();
  restart();
  EXPECT_EQ(content(), (Content{{kOrders, {"a", "b"}}}));
}

TEST_F(MemoryStoreFaults, DamageIsAnErrorThatNamesTheChannel) {
  ASSERT_TRUE(append(*session_, kOrders, {"a", "b"}));
  store_.damage(kOrders, 2);
  const auto found = content_of(*session_);
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().detail.find("_KAFKA_CONFIG_.orders.1"), std::string::npos);
}

}  // namespace
}  // namespace kanal::reserved
