// Offsets inside of transactions through the facade: they survive a kill, an end that cannot be
// stored is repeated, and nothing of a group that does not exist is made.
#include "group_world.hpp"

namespace kanal::broker::test {
namespace {

using reserved::MemoryStore;

class PendingOffsets : public GroupWorld {
 protected:
  /// Of producer 1, in a transaction's hold of its lock.
  ErrorCode commit_pending(std::string_view group, std::int64_t offset, std::int16_t epoch = 0) {
    coordinator::TxnCommitCommand command;
    command.producer_epoch = ProducerEpoch(epoch);
    return commit_pending(group, std::move(command), offset, broker->topics()->find("t")->id());
  }
  ErrorCode commit_pending(std::string_view group, coordinator::TxnCommitCommand command,
                           std::int64_t offset, const Uuid& topic_id) {
    command.producer_id = ProducerId(1);
    command.offsets.push_back({.topic = "t",
                               .topic_id = topic_id,
                               .partition = PartitionIndex(0),
                               .offset = Offset(offset),
                               .metadata = ""});
    Guarded<int, Rank::kTransaction> transaction(0);
    const auto errors =
        transaction.with([&](int) { return groups().commit_pending(group, std::move(command)); });
    settle();
    return errors.partitions.at(0);
  }
  ErrorCode end(std::string_view group, bool commit, std::int16_t epoch = 0) {
    Guarded<int, Rank::kTransaction> transaction(0);
    const ErrorCode error = transaction.with([&](int) {
      return groups().end_transaction(group, ProducerId(1), ProducerEpoch(epoch), commit);
    });
    settle();
    return error;
  }
  bool pending(std::string_view group) {
    bool found = false;
    (void)groups().visit(group, [&](const coordinator::Group& read) {
      found = read.has_pending("t", Uuid{}, PartitionIndex(0));
    });
    return found;
  }
};

TEST_F(PendingOffsets, SurviveAKillAndAreShownByTheCommitAfterIt) {
  create("t");
  EXPECT_EQ(commit("g", "t", 1), ErrorCode::NONE);
  EXPECT_EQ(commit_pending("g", 7), ErrorCode::NONE);
  EXPECT_EQ(committed("g", "t"), 1);
  kill();
  EXPECT_TRUE(pending("g"));
  EXPECT_EQ(committed("g", "t"), 1);
  EXPECT_EQ(end("g", true), ErrorCode::NONE);
  EXPECT_EQ(committed("g", "t"), 7);
  kill();
  EXPECT_FALSE(pending("g"));
  EXPECT_EQ(committed("g", "t"), 7);
  EXPECT_EQ(end("g", true), ErrorCode::NONE) << "repeated after a crash";
}

TEST_F(PendingOffsets, OfAGroupThatDoesNotExistEndAtOnce) {
  create("t");
  EXPECT_EQ(end("nobody", true), ErrorCode::NONE);
  EXPECT_EQ(end("nobody", false), ErrorCode::NONE);
  coordinator::TxnCommitCommand member;
  member.generation = 3;
  member.member_id = "m";
  EXPECT_EQ(commit_pending("nobody", member, 1, Uuid{}), ErrorCode::ILLEGAL_GENERATION);
  EXPECT_EQ(groups().size(), 0U);
  EXPECT_EQ(stored("nobody"), 0U);
}

TEST_F(PendingOffsets, MakeAGroupThatAnAbortLeavesNothingStoredOf) {
  create("t");
  EXPECT_EQ(commit_pending("g", 1), ErrorCode::NONE);
  EXPECT_EQ(groups().size(), 1U);
  EXPECT_EQ(end("g", false), ErrorCode::NONE);
  EXPECT_EQ(stored("g"), 0U);
  kill();
  EXPECT_EQ(groups().size(), 0U);
}

TEST_F(PendingOffsets, AnEndThatCannotBeStoredIsToBeTriedAgain) {
  create("t");
  for (const auto failure :
       {MemoryStore::Failure::kNothingWritten, MemoryStore::Failure::kWrittenUnsynced,
        MemoryStore::Failure::kDiskFull}) {
    EXPECT_EQ(commit("g", "t", 1), ErrorCode::NONE);
    EXPECT_EQ(commit_pending("g", 7), ErrorCode::NONE);
    store.fail_write(1, failure);
    helpers.paused = true;
    EXPECT_EQ(end("g", true), ErrorCode::COORDINATOR_NOT_AVAILABLE);
    EXPECT_EQ(end("g", true), ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
    EXPECT_EQ(commit_pending("g", 8), ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
    helpers.paused = false;
    settle();
    EXPECT_EQ(end("g", true), ErrorCode::NONE);
    EXPECT_EQ(committed("g", "t"), 7);
    EXPECT_FALSE(pending("g"));
  }
}

TEST_F(PendingOffsets, OneThatCouldNotBeStoredIsNotShownByTheCommit) {
  create("t");
  EXPECT_EQ(commit_pending("g", 7), ErrorCode::NONE);
  store.fail_write(1, MemoryStore::Failure::kNothingWritten);
  EXPECT_EQ(commit_pending("g", 8), ErrorCode::COORDINATOR_NOT_AVAILABLE);
  EXPECT_EQ(end("g", true), ErrorCode::NONE);
  EXPECT_EQ(committed("g", "t"), 7);
}

TEST_F(PendingOffsets, AChannelStaysAsSmallAsItsState) {
  create("t");
  for (std::int16_t epoch = 0; epoch < 500; ++epoch) {
    ASSERT_EQ(commit_pending("g", epoch, epoch), ErrorCode::NONE);
    ASSERT_EQ(end("g", true, static_cast<std::int16_t>(epoch + 1)), ErrorCode::NONE);
    ASSERT_LE(stored("g"), 65U);
  }
  kill();
  EXPECT_EQ(committed("g", "t"), 499);
}

TEST_F(PendingOffsets, GoWithTheirTopicAndAreNotThoseOfOneMadeAgain) {
  create("t");
  EXPECT_EQ(commit_pending("g", 7), ErrorCode::NONE);
  remove("t");
  EXPECT_FALSE(pending("g"));
  EXPECT_EQ(stored("g"), 0U);
  create("t");
  EXPECT_EQ(end("g", true), ErrorCode::NONE);
  EXPECT_EQ(committed("g", "t"), -1);

  EXPECT_EQ(commit_pending("g", 8), ErrorCode::NONE);
  kill();
  EXPECT_TRUE(pending("g"));
  EXPECT_EQ(end("g", true), ErrorCode::NONE);
  EXPECT_EQ(committed("g", "t"), 8);
}

TEST_F(PendingOffsets, OfTopicsThatAreGoneAreDroppedAtTheStart) {
  const Uuid gone = create("t");
  remove("t");
  EXPECT_EQ(commit_pending("g", {}, 7, gone), ErrorCode::NONE) << "found in an earlier picture";
  kill();
  EXPECT_FALSE(pending("g"));
  EXPECT_EQ(stored("g"), 0U);
}

TEST_F(PendingOffsets, AStoppedBrokerEndsNothing) {
  create("t");
  EXPECT_EQ(commit_pending("g", 7), ErrorCode::NONE);
  groups().stop();
  EXPECT_EQ(end("g", true), ErrorCode::COORDINATOR_NOT_AVAILABLE);
  EXPECT_EQ(commit_pending("g", 8), ErrorCode::COORDINATOR_NOT_AVAILABLE);
}

}  // namespace
}  // namespace kanal::broker::test
