// The RocksDB store over a failing disk: every change failed once, a full disk, power cuts.
#include "faulty_files.hpp"
#include "kanal/base/logging.hpp"
#include "rocks_store.hpp"
#include "store_support.hpp"

#include <cerrno>
#include <chrono>
#include <functional>
#include <thread>

namespace kanal::reserved {
namespace {

using namespace std::chrono_literals;

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

/// `then`: after the first one.
void refuse_writes_while_full(
    const std::shared_ptr<FaultyFiles>& files, const std::function<void()>& then = [] {}) {
  const ScratchDirectory directory;
  auto opened = open_over(directory.path(), files);
  ASSERT_TRUE(opened);
  ASSERT_TRUE(append(*opened->session, kOrders, {"a"}));
  files->set_full(true);
  for (int i = 0; i < 3; ++i) {
    const auto refused = append(*opened->session, kOrders, {"refused"}, Durability::kSynced);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::KAFKA_STORAGE_ERROR);
    EXPECT_EQ(refused.error().os_error, ENOSPC) << refused.error().detail;
    if (i == 0) then();
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

TEST_F(RocksFaults, AFullDiskRefusesWritesAndMendsItself) {
  refuse_writes_while_full(std::make_shared<FaultyFiles>());
}

TEST_F(RocksFaults, AFullDiskThatTakesNoNewFileEitherMendsItself) {
  const auto files = std::make_shared<FaultyFiles>();
  files->refuse_files_when_full();
  // RocksDB itself tries to recover, on a thread of its own, and takes the file it cannot have for
  // the end. Until it has come to that it answers that it is busy, which would be mended anyway.
  const auto changes_of_others = [&] { return files->changes() - files->changes_of_this_thread(); };
  const auto recovery_has_failed = [&, before = changes_of_others()] {
    for (int i = 0; i < 1000 && changes_of_others() == before; ++i) std::this_thread::sleep_for(5ms);
    std::this_thread::sleep_for(50ms);
  };
  refuse_writes_while_full(files, recovery_has_failed);
}

TEST_F(RocksFaults, AQuotaThatIsUsedUpIsAFullDisk) {
  const auto files = std::make_shared<FaultyFiles>();
  files->use_quota();
  refuse_writes_while_full(files);
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

TEST_F(RocksFaults, AReadMendsWhatHasNotBeenClosedToo) {
  const ScratchDirectory directory;
  const auto files = std::make_shared<FaultyFiles>();
  auto opened = open_over(directory.path(), files);
  ASSERT_TRUE(opened);
  ASSERT_TRUE(append(*opened->session, kOrders, {"a"}));
  files->set_full(true);
  ASSERT_FALSE(append(*opened->session, kOrders, {"refused"}));
  files->set_full(false);
  ASSERT_TRUE(content_of(*opened->session));
  const auto stored = append(*opened->session, kOrders, {"b"});
  ASSERT_TRUE(stored) << stored.error().detail;
  EXPECT_EQ(content_of(*opened->session).value(), (Content{{kOrders, {"a", "b"}}}));
}

TEST_F(RocksFaults, AWriteThatDoesNotWaitForTheDiskDoesNotTryToMendIt) {
  const ScratchDirectory directory;
  const auto files = std::make_shared<FaultyFiles>();
  auto opened = open_over(directory.path(), files);
  ASSERT_TRUE(opened);
  ASSERT_TRUE(append(*opened->session, kOrders, {"a"}));
  files->set_full(true);
  ASSERT_FALSE(append(*opened->session, kOrders, {"refused"}));
  const std::uint64_t changes = files->changes_of_this_thread();
  for (const bool full : {true, false}) {
    files->set_full(full);
    const auto appended = append(*opened->session, kOrders, {"refused"});
    ASSERT_FALSE(appended);
    EXPECT_EQ(appended.error().os_error, ENOSPC);
    EXPECT_FALSE(roll(*opened->session, kOrders, {"refused"}));
    EXPECT_FALSE(opened->session->erase(kOrders, Durability::kWritten));
    EXPECT_EQ(files->changes_of_this_thread(), changes);
  }
  ASSERT_TRUE(opened->store->flush());
  ASSERT_TRUE(append(*opened->session, kOrders, {"b"}));
  EXPECT_EQ(content_of(*opened->session).value(), (Content{{kOrders, {"a", "b"}}}));
}

/// A write that reached the journal though its caller was told that there was no room.
template <class Write>
void write_and_refuse(FaultyFiles& files, const Write& write) {
  files.fill_syncs(true);
  const auto refused = write();
  files.fill_syncs(false);
  ASSERT_FALSE(refused);
  ASSERT_EQ(refused.error().os_error, ENOSPC) << refused.error().detail;
}

/// A repair whose change numbered `change` finds no room; whether it came to that.
bool repair_fails_at(std::uint64_t change, const ReservedName& refused) {
  const ScratchDirectory directory;
  const auto files = std::make_shared<FaultyFiles>();
  auto opened = open_over(directory.path(), files);
  EXPECT_TRUE(opened && append(*opened->session, kOrders, {"a"}, Durability::kSynced));
  write_and_refuse(*files, [&] {
    return append(*opened->session, refused, {"refused"}, Durability::kSynced);
  });
  files->fill_at(files->changes() + change);
  const auto first = append(*opened->session, kOrders, {"b"}, Durability::kSynced);
  if (!first) {
    const auto found = content_of(*opened->session);
    EXPECT_TRUE(found) << found.error().detail;
    EXPECT_EQ(found.value_or(Content{}), (Content{{kOrders, {"a"}}}));
    const auto second = append(*opened->session, kOrders, {"b"}, Durability::kSynced);
    EXPECT_TRUE(second) << second.error().detail;
  }
  const Content expected{{kOrders, {"a", "b"}}};
  EXPECT_EQ(content_of(*opened->session).value_or(Content{}), expected);
  *opened = {};
  auto reopened = open_over(directory.path(), files);
  EXPECT_TRUE(reopened) << reopened.error().detail;
  if (reopened) {
    EXPECT_EQ(content_of(*reopened->session).value_or(Content{}), expected);
  }
  return !first;
}

TEST_F(RocksFaults, ARepairThatFailsHalfwayShowsNothingAndLeavesNothingBehindForTheNext) {
  for (const ReservedName& refused : {kOrders, kPids}) {
    std::uint64_t change = 1;
    while (repair_fails_at(change, refused)) {
      ASSERT_FALSE(HasFailure()) << "change " << change << " of " << to_string(refused, 1);
      ASSERT_LT(++change, 200U);
    }
  }
}

TEST_F(RocksFaults, AWriteBehindARollThatFailedContinuesWhatTheRepairFound) {
  const ScratchDirectory directory;
  const auto files = std::make_shared<FaultyFiles>();
  auto opened = open_over(directory.path(), files);
  ASSERT_TRUE(opened);
  ASSERT_TRUE(append(*opened->session, kOrders, {"a", "b"}, Durability::kSynced));
  write_and_refuse(*files, [&] {
    return roll(*opened->session, kOrders, {"ab"}, Durability::kSynced);
  });
  const auto stored = append(*opened->session, kOrders, {"c"}, Durability::kSynced);
  ASSERT_TRUE(stored) << stored.error().detail;
  const auto found = content_of(*opened->session);
  ASSERT_TRUE(found) << found.error().detail;
  const Content rolled{{kOrders, {"ab", "c"}}}, unrolled{{kOrders, {"a", "b", "c"}}};
  EXPECT_TRUE(*found == rolled || *found == unrolled);
  *opened = {};
  auto reopened = open_over(directory.path(), files);
  ASSERT_TRUE(reopened) << reopened.error().detail;
  EXPECT_EQ(content_of(*reopened->session).value(), *found);
}

TEST_F(RocksFaults, WritersThatMeetAFullDiskTogetherLoseNothingThatWasStored) {
  const ScratchDirectory directory;
  const auto files = std::make_shared<FaultyFiles>();
  auto opened = open_over(directory.path(), files);
  ASSERT_TRUE(opened);
  ASSERT_TRUE(append(*opened->session, kPids, {"loaded"}));
  constexpr int kWriters = 4;
  Content expected{{kPids, {"loaded"}}};
  std::vector<std::vector<std::string>> stored(kWriters);
  std::vector<std::thread> writers;
  const auto channel = [](int writer) {
    return ReservedName{Kind::kConfig, "topic" + std::to_string(writer)};
  };
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      for (int i = 0; i < 100; ++i) {
        const std::string text = std::to_string(i);
        if (writer == 0 && i % 10 == 5) files->fill_at(files->changes() + 2);
        const auto durability = i % 2 == 0 ? Durability::kSynced : Durability::kWritten;
        if (append(*opened->session, channel(writer), {text}, durability))
          stored[static_cast<std::size_t>(writer)].push_back(text);
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  for (int writer = 0; writer < kWriters; ++writer)
    expected[channel(writer)] = stored[static_cast<std::size_t>(writer)];
  const auto found = content_of(*opened->session);
  ASSERT_TRUE(found) << found.error().detail;
  EXPECT_EQ(*found, expected);
  *opened = {};
  auto reopened = open_over(directory.path(), files);
  ASSERT_TRUE(reopened) << reopened.error().detail;
  EXPECT_EQ(content_of(*reopened->session).value(), expected);
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
