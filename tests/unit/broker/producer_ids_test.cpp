// Producer ids from a store that fails: never one twice.
#include "producer_ids.hpp"

#include "kanal/reserved/memory_store.hpp"
#include "unit/log/world.hpp"

#include <gtest/gtest.h>

#include <set>

namespace kanal::broker {
namespace {

using reserved::MemoryStore;

/// A session whose replays fail on demand.
class Unreadable final : public reserved::Session {
 public:
  explicit Unreadable(std::unique_ptr<reserved::Session> under) : under_(std::move(under)) {}
  Result<reserved::Stored> append(const reserved::ReservedName& name,
                                  std::span<const Bytes> records,
                                  reserved::Durability durability) override {
    return under_->append(name, records, durability);
  }
  Result<reserved::Stored> roll(const reserved::ReservedName& name, std::span<const Bytes> snapshot,
                                reserved::Durability durability) override {
    return under_->roll(name, snapshot, durability);
  }
  Result<reserved::Stored> erase(const reserved::ReservedName& name,
                                 reserved::Durability durability) override {
    return under_->erase(name, durability);
  }
  Result<void> replay(const Visitor& visitor) override { return under_->replay(visitor); }
  Result<void> replay_kind(reserved::Kind kind, const Visitor& visitor) override {
    if (failing_replays > 0) {
      --failing_replays;
      return fail(ErrorCode::KAFKA_STORAGE_ERROR, "the reserved store is closed");
    }
    return under_->replay_kind(kind, visitor);
  }
  Result<void> replay_channel(const reserved::ReservedName& name, const Visitor& visitor) override {
    return under_->replay_channel(name, visitor);
  }
  [[nodiscard]] std::uint64_t records_in(const reserved::ReservedName& name) const override {
    return under_->records_in(name);
  }

  int failing_replays = 0;

 private:
  std::unique_ptr<reserved::Session> under_;
};

class ProducerIdSourceTest : public ::testing::Test {
 protected:
  void start() {
    source.reset();
    session.reset();
    session = std::make_unique<Unreadable>(std::move(*store.open()));
    source = std::make_unique<ProducerIdSource>(*session, clock);
    const auto started = source->start();
    ASSERT_TRUE(started) << started.error().detail;
  }
  /// Uses up what is left, then asks for another block.
  Result<void> take_all_and_refill() {
    while (const auto id = source->take()) EXPECT_TRUE(taken.insert(*id).second) << "given twice";
    return source->refill();
  }

  log::test::HandClock clock;
  MemoryStore store;
  std::unique_ptr<Unreadable> session;
  std::unique_ptr<ProducerIdSource> source;
  std::set<ProducerId> taken;
};

TEST_F(ProducerIdSourceTest, NoIdIsGivenTwiceWhenAFailedWriteCannotBeReadBackAtOnce) {
  for (const auto failure : {MemoryStore::Failure::kNothingWritten, MemoryStore::Failure::kDiskFull,
                             MemoryStore::Failure::kWrittenUnsynced}) {
    start();
    ASSERT_TRUE(take_all_and_refill());
    store.fail_write(1, failure);
    ASSERT_FALSE(take_all_and_refill());
    session->failing_replays = 2;
    EXPECT_FALSE(take_all_and_refill());
    EXPECT_FALSE(take_all_and_refill());
    ASSERT_TRUE(take_all_and_refill());
    ASSERT_TRUE(take_all_and_refill());
    store.kill();
    start();
    ASSERT_TRUE(take_all_and_refill());
  }
}

}  // namespace
}  // namespace kanal::broker
