// The contract of a reserved store, held against every implementation.
#include "kanal/reserved/memory_store.hpp"
#include "store_support.hpp"

#include <functional>
#include <thread>
#include <utility>

namespace kanal::reserved {
namespace {

using namespace std::string_literals;

class Disk {  // where a store's content outlives the process
 public:
  virtual ~Disk() = default;
  virtual Store& start() = 0;  // a new process, after kill -9 of the last one
};

class RocksDisk final : public Disk {
 public:
  Store& start() override {
    store_.reset();
    auto opened = open_rocks_store(directory_.path());
    EXPECT_TRUE(opened) << opened.error().detail;
    store_ = std::move(*opened);
    return *store_;
  }

 private:
  ScratchDirectory directory_;
  std::unique_ptr<Store> store_;
};

class MemoryDisk final : public Disk {
 public:
  Store& start() override {
    store_.kill();
    return store_;
  }

 private:
  MemoryStore store_;
};

struct Implementation {
  std::string name;
  std::function<std::unique_ptr<Disk>()> make;
};

class ReservedStore : public testing::TestWithParam<Implementation> {
 protected:
  ReservedStore() : disk_(GetParam().make()) { restart(); }
  ~ReservedStore() override { session_.reset(); }
  void restart() {
    session_.reset();
    store_ = &disk_->start();
    auto opened = store_->open();
    ASSERT_TRUE(opened) << opened.error().detail;
    session_ = std::move(*opened);
  }
  Content content() {
    auto found = content_of(*session_);
    EXPECT_TRUE(found) << found.error().detail;
    return found ? *found : Content{};
  }

  std::unique_ptr<Disk> disk_;
  Store* store_ = nullptr;
  std::unique_ptr<Session> session_;
};

TEST_P(ReservedStore, TheJournalPositionRisesWithEveryWriteAndIsKept) {
  std::uint64_t last = store_->journal_position();
  const auto rises = [&] {
    const std::uint64_t before = std::exchange(last, store_->journal_position());
    return last > before;
  };
  ASSERT_TRUE(append(*session_, kOrders, {"a", "b"}));
  EXPECT_TRUE(rises());
  ASSERT_TRUE(roll(*session_, kOrders, {"c"}));
  EXPECT_TRUE(rises());
  restart();
  EXPECT_EQ(store_->journal_position(), last);
  ASSERT_TRUE(session_->erase(kOrders, Durability::kSynced));
  EXPECT_TRUE(rises());
}

TEST_P(ReservedStore, ReplaysEachChannelInItsOrder) {
  ASSERT_TRUE(append(*session_, kOrders, {"a", "b"}));
  ASSERT_TRUE(append(*session_, kPids, {"p"}));
  ASSERT_TRUE(append(*session_, kOrders, {"c"}));
  const Content expected{{kOrders, {"a", "b", "c"}}, {kPids, {"p"}}};
  EXPECT_EQ(content(), expected);
  restart();
  EXPECT_EQ(content(), expected);
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(append(*session_, kPids, {std::to_string(i)}));
  restart();
  const auto pids = content()[kPids];
  ASSERT_EQ(pids.size(), 301U);
  EXPECT_EQ(pids[300], "299");
}

TEST_P(ReservedStore, RollReplacesTheWholeChannel) {
  ASSERT_TRUE(append(*session_, kOrders, {"a", "b", "c"}));
  ASSERT_TRUE(append(*session_, kPids, {"p"}));
  ASSERT_TRUE(roll(*session_, kOrders, {"abc"}));
  ASSERT_TRUE(append(*session_, kOrders, {"d"}));
  EXPECT_EQ(session_->records_in(kOrders), 2U);
  const Content expected{{kOrders, {"abc", "d"}}, {kPids, {"p"}}};
  EXPECT_EQ(content(), expected);
  restart();
  EXPECT_EQ(content(), expected);
  EXPECT_EQ(session_->records_in(kOrders), 2U);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(roll(*session_, kOrders, {"x", std::to_string(i)}));
  restart();
  EXPECT_EQ(content()[kOrders], (std::vector<std::string>{"x", "9"}));
}

TEST_P(ReservedStore, EraseEndsAChannelAndItMayBeginAgain) {
  ASSERT_TRUE(append(*session_, kOrders, {"a", "b"}));
  ASSERT_TRUE(session_->erase(kOrders, Durability::kSynced));
  EXPECT_EQ(session_->records_in(kOrders), 0U);
  EXPECT_EQ(content(), Content{});
  restart();
  EXPECT_EQ(content(), Content{});
  ASSERT_TRUE(append(*session_, kOrders, {"new"}));
  restart();
  EXPECT_EQ(content(), (Content{{kOrders, {"new"}}}));
  ASSERT_TRUE(session_->erase({Kind::kTxn, "never there"}, Durability::kWritten));
}

TEST_P(ReservedStore, CountsTheRecordsOfTheLiveGeneration) {
  EXPECT_EQ(session_->records_in(kOrders), 0U);
  ASSERT_TRUE(append(*session_, kOrders, {"a", "b"}));
  ASSERT_TRUE(append(*session_, kOrders, {"c"}));
  EXPECT_EQ(session_->records_in(kOrders), 3U);
  ASSERT_TRUE(roll(*session_, kOrders, {"s"}));
  EXPECT_EQ(session_->records_in(kOrders), 1U);
}

TEST_P(ReservedStore, AppendsBeforeReplayGoBehindWhatIsThere) {
  ASSERT_TRUE(append(*session_, kOrders, {"a"}));
  restart();
  ASSERT_TRUE(append(*session_, kOrders, {"b"}));
  EXPECT_EQ(content()[kOrders], (std::vector<std::string>{"a", "b"}));
}

TEST_P(ReservedStore, ReplaysOneKindOrOneChannelAndNothingElse) {
  const ReservedName orders{Kind::kOffsets, "orders"}, zero{Kind::kOffsets, "orders\0x"s};
  ASSERT_TRUE(append(*session_, kOrders, {"config"}));
  ASSERT_TRUE(append(*session_, orders, {"a", "b"}));
  ASSERT_TRUE(append(*session_, zero, {"c"}));
  ASSERT_TRUE(append(*session_, {Kind::kTxn, "orders"}, {"t"}));
  const auto of_kind = [&](Kind kind) {
    Content found;
    EXPECT_TRUE(session_->replay_kind(kind, [&](const ReservedName& name, Bytes record) {
      found[name].emplace_back(as_text(record));
      return Result<void>();
    }));
    return found;
  };
  const auto of_channel = [&](const ReservedName& channel) {
    Content found;
    EXPECT_TRUE(session_->replay_channel(channel, [&](const ReservedName& name, Bytes record) {
      found[name].emplace_back(as_text(record));
      return Result<void>();
    }));
    return found;
  };
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(of_channel(orders), (Content{{orders, {"a", "b"}}}));
    EXPECT_EQ(of_channel({Kind::kOffsets, "order"}), Content{});
    EXPECT_EQ(of_kind(Kind::kOffsets), (Content{{orders, {"a", "b"}}, {zero, {"c"}}}));
    EXPECT_EQ(of_kind(Kind::kCluster), Content{});
    restart();
  }
}

TEST_P(ReservedStore, WritesOfAKindThatWasNotReplayedGoBehindWhatIsThere) {
  const ReservedName group{Kind::kOffsets, "g"};
  ASSERT_TRUE(append(*session_, kOrders, {"a"}));
  ASSERT_TRUE(append(*session_, group, {"a"}));
  restart();
  const auto nothing = [](const ReservedName&, Bytes) { return Result<void>(); };
  ASSERT_TRUE(session_->replay_kind(Kind::kConfig, nothing));
  ASSERT_TRUE(append(*session_, group, {"b"}));
  ASSERT_TRUE(append(*session_, kOrders, {"b"}));
  ASSERT_TRUE(session_->replay_kind(Kind::kConfig, nothing));
  ASSERT_TRUE(append(*session_, kOrders, {"c"}));
  EXPECT_EQ(session_->records_in(kOrders), 3U);
  EXPECT_EQ(content(), (Content{{kOrders, {"a", "b", "c"}}, {group, {"a", "b"}}}));
  restart();
  EXPECT_EQ(content(), (Content{{kOrders, {"a", "b", "c"}}, {group, {"a", "b"}}}));
}

TEST_P(ReservedStore, TakesAnyNameWithoutClash) {
  std::vector<ReservedName> names;
  for (const std::string& key :
       {"."s, ".."s, "/"s, "a/b"s, "a.b"s, "a~b"s, "~"s, "a"s, "a\0"s, "a\0\1"s, "\0"s, "\xFF"s,
        "gr\xC3\xBC\xC3\x9F"s, std::string(1024, 'k'), std::string(1024, '\xE2')}) {
    for (const Kind kind : {Kind::kConfig, Kind::kOffsets, Kind::kTxn})
      names.push_back({kind, key});
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    ASSERT_TRUE(append(*session_, names[i], {std::to_string(i), "second"}));
  }
  restart();
  const Content found = content();
  ASSERT_EQ(found.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(found.at(names[i]), (std::vector<std::string>{std::to_string(i), "second"}));
  }
}

TEST_P(ReservedStore, StoresEmptyAndLargeRecords) {
  const std::string large(3 << 20, 'L');
  ASSERT_TRUE(append(*session_, kOrders, {"", large, ""}));
  restart();
  EXPECT_EQ(content()[kOrders], (std::vector<std::string>{"", large, ""}));
}

TEST_P(ReservedStore, PositionsCountUp) {
  const auto first = append(*session_, kOrders, {"a"});
  const auto second = append(*session_, kPids, {"b"}, Durability::kSynced);
  ASSERT_TRUE(first && second);
  EXPECT_LT(first->position, second->position);
  EXPECT_TRUE(second->committed);
}

TEST_P(ReservedStore, AVisitorsErrorEndsTheReplay) {
  ASSERT_TRUE(append(*session_, kOrders, {"a", "b"}));
  int seen = 0;
  const auto replayed = session_->replay([&](const ReservedName&, Bytes) -> Result<void> {
    ++seen;
    return fail(ErrorCode::KAFKA_STORAGE_ERROR, "no more");
  });
  ASSERT_FALSE(replayed);
  EXPECT_EQ(replayed.error().detail, "no more");
  EXPECT_EQ(seen, 1);
}

TEST_P(ReservedStore, HasOneSessionAtATime) {
  EXPECT_FALSE(store_->open());
  session_.reset();
  EXPECT_TRUE(store_->open());
}

TEST_P(ReservedStore, ChannelsMayBeWrittenFromSeveralThreads) {
  constexpr int kThreads = 4, kRecords = 50;
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const ReservedName name{Kind::kOffsets, "group " + std::to_string(t)};
      for (int i = 0; i < kRecords; ++i) {
        EXPECT_TRUE(append(*session_, name, {std::to_string(i)}));
        if (i % 20 == 19) {
          EXPECT_TRUE(content_of(*session_));
        }
      }
    });
  }
  threads.clear();
  restart();
  const Content found = content();
  ASSERT_EQ(found.size(), std::size_t{kThreads});
  for (const auto& [name, records] : found) {
    ASSERT_EQ(records.size(), std::size_t{kRecords});
    for (int i = 0; i < kRecords; ++i)
      EXPECT_EQ(records[static_cast<std::size_t>(i)], std::to_string(i));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ReservedStore,
    testing::Values(Implementation{"Rocks", [] { return std::make_unique<RocksDisk>(); }},
                    Implementation{"Memory", [] { return std::make_unique<MemoryDisk>(); }}),
    [](const auto& implementation) { return implementation.param.name; });

}  // namespace
}  // namespace kanal::reserved
