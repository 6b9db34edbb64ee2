// The RocksDB store over a failing disk: every change failed once, a full disk, power cuts.
#include "faulty_files.hpp"
#include "kanal/base/logging.hpp"
#include "rocks_store.hpp"
#include "store_support.hpp"

#include <cerrno>

namespace kanal::reserved {
namespace {

class RocksFaults : public testing::Test {
 protected:
  void SetUp() override { (void)set_log_level("off"); }  // RocksDB has much to say here
  void TearDown() override { (void)set_log_level("info"); }
};

struct Opened {
  std::unique_ptr<Store> store;
  std::unique_ptr<Session> session;
};

Result<Opened> open_over(const std::string& path, const std::shared_ptr<FaultyFiles>& files) {
  auto store = open_rocks_store(path, files);
  if (!store) return std::unexpected(store.error());
  auto session = (*store)->open();
  if (!session) return std::unexpected(session.error());
  return Opened{std::move(*store), std::move(*session)};
}

/// A history of writes: which states it goes through, and how far it was answered.
struct History {
  std::vector<Content> states{Content{}};
  std::size_t answered = 0;  // the newest state whose write was answered as synced
};

/// Runs the script until a write fails; every write is synced.
History run_script(Session& session) {
  History history;
  const auto step = [&](const Result<Stored>& stored, auto&& change) {
    Content next = history.states.back();
    change(next);
    history.states.push_back(next);
    if (stored) history.answered = history.states.size() - 1;
    return stored.has_value();
  };
  const ReservedName group{Kind::kOffsets, "group"};
  for (int i = 0; i < 2; ++i) {
    const std::string text = std::to_string(i);
    if (!step(append(session, kOrders, {text, text}, Durability::kSynced),
              [&](Content& c) { c[kOrders].insert(c[kOrders].end(), {text, text}); })) {
      break;
    }
    if (!step(append(session, group, {text}, Durability::kSynced),
              [&](Content& c) { c[group].push_back(text); })) {
      break;
    }
    if (!step(roll(session, group, {"snapshot " + text}, Durability::kSynced),
              [&](Content& c) { c[group] = {"snapshot " + text}; })) {
      break;
    }
    if (i == 1 &&
        !step(session.erase(kOrders, Durability::kSynced), [&](Content& c) { c.erase(kOrders); })) {
      break;
    }
  }
  return history;
}

void expect_one_state_of(const History& history, const Content& found, std::uint64_t change) {
  for (std::size_t i = history.answered; i < history.states.size(); ++i) {
    if (history.states[i] == found) return;
  }
  ADD_FAILURE() << "after change " << change << " failed, the content is no state from "
                << history.answered << " to " << history.states.size() - 1;
}

TEST_F(RocksFaults, EveryFailedChangeLeavesAWholeState) {
  std::uint64_t changes = 0;
  {
    const ScratchDirectory directory;
    const auto files = std::make_shared<FaultyFiles>();
    auto opened = open_over(directory.path(), files);
    ASSERT_TRUE(opened) << opened.error().detail;
    const History history = run_script(*opened->session);
    EXPECT_EQ(history.answered + 1, history.states.size());
    changes = files->changes();
  }
  for (const bool power_cut : {false, true}) {
    for (std::uint64_t change = 1; change <= changes; ++change) {
      const ScratchDirectory directory;
      const auto files = std::make_shared<FaultyFiles>();
      files->fail_change(change, /*lasting=*/power_cut);
      History history;
      if (auto opened = open_over(directory.path(), files)) history = run_script(*opened->session);
      if (power_cut) files->cut_power();
      files->fail_change(0, false);
      auto reopened = open_over(directory.path(), files);
      ASSERT_TRUE(reopened) << "change " << change << ": " << reopened.error().detail;
      const auto found = content_of(*reopened->session);
      ASSERT_TRUE(found) << "change " << change << ": " << found.error().detail;
      expect_one_state_of(history, *found, change);
    }
  }
}

TEST_F(RocksFaults, APowerCutKeepsWhatWasSyncedAndAPrefixOfTheRest) {
  const ScratchDirectory directory;
  const auto files = std::make_shared<FaultyFiles>();
  {
    auto opened = open_over(directory.path(), files);
    ASSERT_TRUE(opened);
    ASSERT_TRUE(append(*opened->session, kOrders, {"unsynced, but before a synced one"}));
    ASSERT_TRUE(append(*opened->session, kPids, {"synced"}, Durability::kSynced));
    ASSERT_TRUE(append(*opened->session, kPids, {"lost"}));
    files->fail_change(files->changes() + 1, /*lasting=*/true);  // nothing gets out any more
  }
  files->cut_power();
  auto opened = open_over(directory.path(), files);
  ASSERT_TRUE(opened) << opened.error().detail;
  EXPECT_EQ(content_of(*opened->session).value(),
            (Content{{kOrders, {"unsynced, but before a synced one"}}, {kPids, {"synced"}}}));
}

TEST_F(RocksFaults, FlushMakesEverythingDurable) {
  const ScratchDirectory directory;
  const auto files = std::make_shared<FaultyFiles>();
  {
    auto opened = open_over(directory.path(), files);
    ASSERT_TRUE(opened);
    ASSERT_TRUE(append(*opened->session, kOrders, {"a"}));
    ASSERT_TRUE(opened->store->flush());
    files->fail_change(files->changes() + 1, /*lasting=*/true);
  }
  files->cut_power();
  auto opened = open_over(directory.path(), files);
  ASSERT_TRUE(opened) << opened.error().detail;
  EXPECT_EQ(content_of(*opened->session).value(), (Content{{kOrders, {"a"}}}));
}

TEST_F(RocksFaults, AFullDiskRefusesWritesAndMendsItself) {
  const ScratchDirectory directory;
  const auto files = std::make_shared<FaultyFiles>();
  auto opened = open_over(directory.path(), files);
  ASSERT_TRUE(opened);
  ASSERT_TRUE(append(*opened->session, kOrders, {"a"}));
  files->set_full(true);
  for (int i = 0; i < 3; ++i) {
    const auto refused = append(*opened->session, kOrders, {"refused"}, Durability::kSynced);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::KAFKA_STORAGE_ERROR);
    EXPECT_EQ(refused.error().os_error, ENOSPC) << refused.error().detail;
  }
  files->set_full(false);
  const auto stored = append(*opened->session, kOrders, {"b"}, Durability::kSynced);
  ASSERT_TRUE(stored) << stored.error().detail;
  const Content expected{{kOrders, {"a", "b"}}};
  EXPECT_EQ(content_of(*opened->session).value(), expected);
  *opened = {};
  auto reopened = open_over(directory.path(), files);
  ASSERT_TRUE(reopened);
  EXPECT_EQ(content_of(*reopened->session).value(), expected);
}

TEST_F(RocksFaults, AfterAFullDiskAReadIsEnoughToMendIt) {
  const ScratchDirectory directory;
  const auto files = std::make_shared<FaultyFiles>();
  auto opened = open_over(directory.path(), files);
  ASSERT_TRUE(opened);
  ASSERT_TRUE(append(*opened->session, kOrders, {"a"}));
  files->set_full(true);
  for (int i = 0; i < 3; ++i) ASSERT_FALSE(append(*opened->session, kOrders, {"refused"}));
  files->set_full(false);
  std::vector<std::string> found;
  const auto visit = [&](const ReservedName&, Bytes record) -> Result<void> {
    found.emplace_back(as_text(record));
    return {};
  };
  const auto read = opened->session->replay_channel(kOrders, visit);
  ASSERT_TRUE(read) << read.error().detail;
  EXPECT_EQ(found, std::vector<std::string>{"a"});
}

TEST_F(RocksFaults, AnyOtherFailedWriteStaysRefused) {
  const ScratchDirectory directory;
  const auto files = std::make_shared<FaultyFiles>();
  auto opened = open_over(directory.path(), files);
  ASSERT_TRUE(opened);
  ASSERT_TRUE(append(*opened->session, kOrders, {"a"}, Durability::kSynced));
  files->fail_change(files->changes() + 1, /*lasting=*/false);
  const auto failed = append(*opened->session, kOrders, {"b"}, Durability::kSynced);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().os_error, EIO);
  EXPECT_FALSE(append(*opened->session, kOrders, {"c"}, Durability::kSynced));
  EXPECT_EQ(content_of(*opened->session).value(), (Content{{kOrders, {"a"}}}));
}

}  // namespace
}  // namespace kanal::reserved
