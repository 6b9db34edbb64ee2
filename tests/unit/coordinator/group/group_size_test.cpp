// How large what a group stores may be: message.max.bytes of one record of the group, or of the
// records of one commit.
#include "group_support.hpp"

namespace kanal::coordinator {
namespace {

using enum ErrorCode;

constexpr std::size_t kLimit = 1'048'588;
constexpr std::size_t kFits = 900 * 1'024;

std::string bytes(std::size_t size) {
  return std::string(size, 'x');
}

/// A member that brings this much, and its group's leader's SyncGroup.
ErrorCode join_and_sync(LiveGroup& live, std::size_t metadata, std::size_t assignment) {
  const WaiterId waiter = live.enter({.protocols = {{"range", bytes(metadata)}}}).second;
  live.await(waiter);
  const wire::JoinGroupResponse joined = live.joined(waiter);
  return live
      .synced(live.sync({.member = joined.member_id, .generation = joined.generation_id},
                        {{joined.member_id, bytes(assignment)}}))
      .error_code;
}

/// The command only refers to `metadata`.
CommitCommand commit_of(int partitions, std::string_view metadata) {
  CommitCommand command;
  for (int i = 0; i < partitions; ++i) {
    command.offsets.push_back(to_commit({.partition = i, .metadata = metadata}));
  }
  return command;
}

std::vector<ErrorCode> each(std::size_t count, ErrorCode error) {
  return std::vector<ErrorCode>(count, error);
}

TEST(GroupSize, MetadataAndAssignmentsBelowTheLimitAreStored) {
  LiveGroup large_metadata, large_assignment;
  EXPECT_EQ(join_and_sync(large_metadata, kFits, 10), NONE);
  EXPECT_EQ(join_and_sync(large_assignment, 10, kFits), NONE);
  EXPECT_GT(large_assignment.stored().back().size(), kFits);
  EXPECT_EQ(large_assignment.restarted()->group().describe().members.at(0).member_assignment.size(),
            kFits);
}

TEST(GroupSize, AGroupThatIsTooLargeIsNotStoredAndItsMembersAreCalledAgain) {
  for (const auto& [metadata, assignment] :
       {std::pair{kLimit, std::size_t{10}}, std::pair{std::size_t{10}, kLimit}}) {
    LiveGroup live;
    EXPECT_EQ(join_and_sync(live, metadata, assignment), UNKNOWN_SERVER_ERROR);
    EXPECT_EQ(live.group().state(), GroupState::kPreparingRebalance);
    ASSERT_EQ(live.stored().size(), 1U) << "that of the group without members";
    const auto member = live.group().describe().members.at(0);
    EXPECT_TRUE(member.member_assignment.empty());
    EXPECT_EQ(live.heartbeat({.member = member.member_id}), REBALANCE_IN_PROGRESS);
    EXPECT_EQ(live.restarted()->group().state(), GroupState::kEmpty);

    const WaiterId again = live.join({.member = member.member_id});
    EXPECT_EQ(live.joined(again).generation_id, 2);
    const WaiterId synced = live.sync({.member = member.member_id, .generation = 2},
                                      {{member.member_id, "less"}});
    EXPECT_EQ(live.synced(synced).error_code, NONE);
    EXPECT_EQ(live.group().state(), GroupState::kStable);
  }
}

TEST(GroupSize, AllMembersCountTogetherAndAllAreToldThatTheyAreTooLarge) {
  LiveGroup live;
  const JoinArgs args{.protocols = {{"range", bytes(kLimit / 2)}}};
  const WaiterId first = live.enter(args).second;
  const WaiterId second = live.enter(args).second;
  live.await(first);
  const std::string leader = live.joined(first).leader;
  const std::string follower =
      live.joined(leader == live.joined(first).member_id ? second : first).member_id;
  const WaiterId waits = live.sync({.member = follower});
  EXPECT_TRUE(live.parked(waits));
  EXPECT_EQ(live.synced(live.sync({.member = leader})).error_code, UNKNOWN_SERVER_ERROR);
  EXPECT_EQ(live.synced(waits).error_code, UNKNOWN_SERVER_ERROR);
}

TEST(GroupSize, OfSeveralProtocolsTheElectedOneAloneMustFit) {
  LiveGroup live;
  const std::string member = live.stable_alone(
      {.protocols = {{"range", bytes(kLimit / 2)}, {"sticky", bytes(kLimit / 2)}}});
  EXPECT_LT(live.stored().back().size(), kLimit);
  const auto other = live.restarted();
  EXPECT_EQ(other->group().state(), GroupState::kStable);
  EXPECT_EQ(other->group().describe().members.at(0).member_metadata.size(), kLimit / 2);
  EXPECT_EQ(other->heartbeat({.member = member}), NONE);
}

TEST(GroupSize, AReplacementThatIsTooLargeLeavesTheInstanceAsItWas) {
  LiveGroup live;
  const std::string old = live.stable_alone({.instance = "i"});
  const auto before = live.stored();
  live.pass(seconds{8});
  const wire::JoinGroupResponse refused =
      live.joined(live.join({.instance = "i",
                             .protocols = {{"range", bytes(kLimit)}},
                             .session = seconds{30},
                             .client = "new"}));
  EXPECT_EQ(refused.error_code, UNKNOWN_SERVER_ERROR);
  EXPECT_EQ(refused.member_id, "");
  EXPECT_EQ(refused.leader, old);
  EXPECT_EQ(refused.generation_id, 1);
  EXPECT_EQ(live.stored(), before);
  EXPECT_EQ(live.group().state(), GroupState::kStable);
  const auto member = live.group().describe().members.at(0);
  EXPECT_EQ(member.member_id, old);
  EXPECT_EQ(member.client_id, "app");
  EXPECT_EQ(member.member_metadata, buffer(subscription({"orders"})));
  EXPECT_EQ(live.heartbeat({.member = old, .instance = "i"}), NONE);

  const std::string smaller = live.joined(live.join({.instance = "i"})).member_id;
  EXPECT_EQ(live.heartbeat({.member = smaller, .instance = "i"}), NONE);
  EXPECT_EQ(live.heartbeat({.member = old, .instance = "i"}), FENCED_INSTANCE_ID);
}

TEST(GroupSize, AGroupWithoutMembersAlwaysFits) {
  LiveGroup live;
  const std::string member = live.stable_alone();
  live.max_bytes = 0;
  EXPECT_EQ(live.leave(member), NONE);
  EXPECT_EQ(live.group().state(), GroupState::kEmpty);
  EXPECT_EQ(live.restarted()->group().state(), GroupState::kEmpty);
  EXPECT_EQ(live.delete_group(), NONE);
  EXPECT_TRUE(live.stored().empty());
}

TEST(GroupSize, ACommitThatIsTooLargeStoresNothingOfIt) {
  LiveGroup live;
  EXPECT_EQ(live.commit(commit_of(220, bytes(4'096))), each(220, NONE));
  EXPECT_EQ(live.stored().size(), 220U);
  EXPECT_EQ(live.commit(commit_of(256, bytes(4'096))), each(256, UNKNOWN_SERVER_ERROR));
  EXPECT_EQ(live.stored().size(), 220U);
  EXPECT_EQ(live.commit(commit_of(256, bytes(1'024))), each(256, NONE));
}

TEST(GroupSize, APartitionThatWasRefusedAlreadyGetsTheErrorOfTheCommit) {
  LiveGroup live;
  const std::string longest = bytes(4'096), too_long = bytes(4'097);
  CommitCommand command = commit_of(256, longest);
  command.offsets.front().metadata = too_long;
  EXPECT_EQ(live.commit(std::move(command)), each(256, UNKNOWN_SERVER_ERROR));
}

TEST(GroupSize, ACommitThatIsTooLargeMakesNoGroup) {
  LiveGroup live;
  EXPECT_EQ(live.commit(commit_of(256, bytes(4'096))), each(256, UNKNOWN_SERVER_ERROR));
  EXPECT_TRUE(live.group().vacant());
  EXPECT_EQ(live.group().state(), GroupState::kDead);
}

}  // namespace
}  // namespace kanal::coordinator
