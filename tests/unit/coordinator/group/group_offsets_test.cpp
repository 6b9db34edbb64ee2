// Committed offsets: who may commit, what is kept, OffsetDelete, DeleteGroups, topics that go, and
// the expiry (KIP-211).
#include "group_support.hpp"

namespace kanal::coordinator {
namespace {

using enum ErrorCode;

const CommittedOffset* committed(const LiveGroup& live, const std::string& topic = "orders",
                                 std::int32_t partition = 0) {
  return live.group().committed(topic, topic_uuid(1), PartitionIndex(partition));
}

TEST(GroupCommit, WithoutMembersAnybodyMay) {
  LiveGroup live;
  EXPECT_EQ(live.commit_outside(42), NONE);
  ASSERT_NE(committed(live), nullptr);
  EXPECT_EQ(committed(live)->offset, Offset(42));
  EXPECT_EQ(live.group().state(), GroupState::kEmpty);
  EXPECT_EQ(live.group().protocol_type(), "");
  EXPECT_EQ(live.commit({.member = "m", .generation = -1}), NONE) << "whatever the member id";
  LiveGroup nameless({}, "");
  EXPECT_EQ(nameless.commit_outside(1), NONE) << "as for old clients in Kafka";
}

TEST(GroupCommit, KeepsAllThatCameWithIt) {
  LiveGroup live;
  CommitCommand command;
  command.offsets.push_back(to_commit({.partition = 3, .offset = 7, .metadata = "note"}));
  command.offsets.back().leader_epoch = LeaderEpoch(5);
  EXPECT_EQ(live.commit(command).at(0), NONE);
  const CommittedOffset* found = committed(live, "orders", 3);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->leader_epoch, LeaderEpoch(5));
  EXPECT_EQ(found->metadata, "note");
  EXPECT_EQ(found->committed, live.wall());
  EXPECT_EQ(found->expires, std::nullopt);
  EXPECT_EQ(committed(live, "orders", 2), nullptr);
  EXPECT_EQ(committed(live, "other", 3), nullptr);
}

TEST(GroupCommit, ToAGroupThatDoesNotExistAsAMember) {
  LiveGroup live;
  CommitCommand command;
  command.generation = 0;
  command.member_id = "m";
  command.offsets.resize(2);
  EXPECT_EQ(live.commit(command), (std::vector{ILLEGAL_GENERATION, ILLEGAL_GENERATION}));
  command.knows_group_id_not_found = true;
  EXPECT_EQ(live.commit(command), (std::vector{GROUP_ID_NOT_FOUND, GROUP_ID_NOT_FOUND}));
  EXPECT_TRUE(live.group().vacant());
}

TEST(GroupCommit, ChecksInKafkasOrder) {
  LiveGroup live;
  (void)live.commit_outside(1);
  EXPECT_EQ(live.commit({.member = "m", .generation = 0}), UNKNOWN_MEMBER_ID) << "it exists";
  const std::string id = live.stable_alone();
  EXPECT_EQ(live.commit({.member = id}), NONE);
  EXPECT_EQ(live.commit({.member = id, .generation = 0}), ILLEGAL_GENERATION);
  EXPECT_EQ(live.commit({.member = id, .generation = 2}), ILLEGAL_GENERATION);
  EXPECT_EQ(live.commit({.member = id, .generation = -1}), ILLEGAL_GENERATION);
  EXPECT_EQ(live.commit({.member = "m", .generation = 2}), UNKNOWN_MEMBER_ID);
  EXPECT_EQ(live.commit({.member = "", .generation = 1}), UNKNOWN_MEMBER_ID);
  EXPECT_EQ(live.commit_outside(1), UNKNOWN_MEMBER_ID) << "tools may not while it has members";
  EXPECT_EQ(live.commit({.member = "", .generation = -1, .instance = "i"}), UNKNOWN_MEMBER_ID);
}

TEST(GroupCommit, DuringTheJoinOfTheOldGenerationDuringTheSyncNot) {
  LiveGroup live;
  const auto members = live.stable(2);
  (void)live.join({.member = members[0]});
  EXPECT_EQ(live.commit({.member = members[1]}), NONE) << "before it gives up its partitions";
  (void)live.join({.member = members[1]});
  ASSERT_EQ(live.group().state(), GroupState::kCompletingRebalance);
  EXPECT_EQ(live.commit({.member = members[1], .generation = 2}), REBALANCE_IN_PROGRESS);
  EXPECT_EQ(live.commit({.member = members[1], .generation = 1}), ILLEGAL_GENERATION);
}

TEST(GroupCommit, KeepsTheSession) {
  LiveGroup live;
  const std::string id = live.stable_alone();
  for (int i = 0; i < 5; ++i) {
    live.pass(milliseconds{9'999});
    ASSERT_EQ(live.commit({.member = id}), NONE);
  }
}

TEST(GroupCommit, LongMetadataIsRefusedForItsPartitionAlone) {
  LiveGroup live;
  const std::string longest(4'096, 'x'), longer(4'097, 'x');
  std::string wide;  // 2 bytes, one UTF-16 unit each
  for (int i = 0; i < 4'096; ++i) wide += "\xc3\xa9";
  std::string wider;  // 4 bytes, two UTF-16 units each
  for (int i = 0; i < 2'049; ++i) wider += "\xf0\x9f\x98\x80";
  CommitCommand command;
  std::int32_t partition = 0;
  for (const std::string_view metadata : {std::string_view(longest), std::string_view(longer),
                                          std::string_view(wide), std::string_view(wider)}) {
    command.offsets.push_back(to_commit({.partition = partition++, .metadata = metadata}));
  }
  EXPECT_EQ(live.commit(command),
            (std::vector{NONE, OFFSET_METADATA_TOO_LARGE, NONE, OFFSET_METADATA_TOO_LARGE}));
  EXPECT_EQ(live.stored().size(), 2U);
}

TEST(GroupOffsets, OfAnEarlierTopicOfThatNameAreNotFound) {
  LiveGroup live;
  (void)live.commit_outside(42);
  EXPECT_EQ(live.group().committed("orders", topic_uuid(2), PartitionIndex(0)), nullptr);
  EXPECT_NE(live.group().committed("orders", Uuid{}, PartitionIndex(0)), nullptr);
}

TEST(GroupOffsets, AreVisitedInOrder) {
  LiveGroup live;
  (void)live.commit_outside(1, "b", 10);
  (void)live.commit_outside(2, "b", 9);
  (void)live.commit_outside(3, "a", 1);
  std::string seen;
  live.group().for_each_offset(
      [&](std::string_view topic, PartitionIndex partition, const CommittedOffset& offset) {
        seen += std::string(topic) + std::to_string(partition.value()) + "=" +
                std::to_string(offset.offset.value()) + " ";
      });
  EXPECT_EQ(seen, "a1=3 b9=2 b10=1 ");
  EXPECT_EQ(live.group().live_records(), 3U);
}

TEST(GroupOffsets, GoWithTheirTopic) {
  LiveGroup live;
  (void)live.leave(live.stable_alone());
  (void)live.commit_outside(1, "orders", 0);
  (void)live.commit_outside(1, "orders", 1);
  CommitCommand other;
  other.offsets.push_back(to_commit({.topic = "other", .topic_id = 2}));
  (void)live.commit(std::move(other));
  live.forget_topics({topic_uuid(1)});
  EXPECT_EQ(committed(live), nullptr);
  EXPECT_NE(live.group().committed("other", topic_uuid(2), PartitionIndex(0)), nullptr);
  live.forget_topics({topic_uuid(1)});
  EXPECT_TRUE(live.effects().records.empty()) << "nothing left to forget";
  EXPECT_EQ(committed(*live.restarted()), nullptr);
}

TEST(GroupOffsets, OfSeveralTopicsThatAreGoneGoInOneStep) {
  LiveGroup live;
  (void)live.leave(live.stable_alone());
  CommitCommand all;
  for (std::uint8_t id = 1; id <= 3; ++id)
    all.offsets.push_back(to_commit({.topic = "same", .partition = id, .topic_id = id}));
  (void)live.commit(std::move(all));
  live.forget_topics({topic_uuid(1), topic_uuid(3), topic_uuid(9)});
  EXPECT_EQ(live.effects().records.size(), 2U);
  const auto left = [&](std::int32_t partition) {
    return live.group().committed("same", Uuid{}, PartitionIndex(partition)) != nullptr;
  };
  EXPECT_FALSE(left(1));
  EXPECT_TRUE(left(2)) << "of another topic that had the name";
  EXPECT_FALSE(left(3));
}

TEST(GroupOffsets, AGroupThatHadNothingElseLeavesNoChannelBehind) {
  LiveGroup live;
  (void)live.commit_outside(1);
  live.forget_topics({topic_uuid(1)});
  EXPECT_TRUE(live.stored().empty());
  EXPECT_EQ(live.group().state(), GroupState::kEmpty) << "as in Kafka, until the next round";
  EXPECT_FALSE(live.group().vacant());
  live.expire_offsets();
  EXPECT_TRUE(live.group().vacant());
}

TEST(OffsetDelete, RemovesWhatIsThereAndAnswersForTheRest) {
  LiveGroup live;
  EXPECT_EQ(live.delete_offsets({{"orders", 0}}).group, GROUP_ID_NOT_FOUND);
  (void)live.commit_outside(1, "orders", 0);
  (void)live.commit_outside(1, "orders", 1);
  const auto answer = live.delete_offsets({{"orders", 0}, {"orders", 9}, {"orders", 0}});
  EXPECT_EQ(answer.group, NONE);
  EXPECT_EQ(answer.partitions, (std::vector{NONE, NONE, NONE}));
  EXPECT_EQ(live.effects().records.size(), 1U);
  EXPECT_EQ(committed(live, "orders", 0), nullptr);
  EXPECT_NE(committed(live, "orders", 1), nullptr);
  LiveGroup nameless({}, "");
  EXPECT_EQ(nameless.delete_offsets({{"orders", 0}}).group, INVALID_GROUP_ID);
}

TEST(OffsetDelete, LeavesTopicsAloneThatConsumersAreSubscribedTo) {
  LiveGroup live;
  const std::string id = live.stable_alone();
  (void)live.commit({.member = id}, 1, "orders");
  (void)live.commit({.member = id}, 1, "old");
  const auto answer = live.delete_offsets({{"orders", 0}, {"old", 0}});
  EXPECT_EQ(answer.partitions, (std::vector{GROUP_SUBSCRIBED_TO_TOPIC, NONE}));
  EXPECT_EQ(committed(live, "old"), nullptr);
  EXPECT_NE(committed(live, "orders"), nullptr);
  EXPECT_EQ(live.restarted()->delete_offsets({{"orders", 0}}).partitions.at(0),
            GROUP_SUBSCRIBED_TO_TOPIC);
  (void)live.leave(id);
  EXPECT_EQ(live.delete_offsets({{"orders", 0}}).partitions.at(0), NONE);
}

TEST(OffsetDelete, OfTheLastOffsetLeavesTheMembersAlone) {
  LiveGroup live;
  const std::string id = live.stable_alone();
  (void)live.commit({.member = id}, 1, "old");
  (void)live.delete_offsets({{"old", 0}});
  EXPECT_EQ(live.group().live_records(), 1U);
  EXPECT_EQ(live.restarted()->heartbeat({.member = id}), NONE);
}

TEST(OffsetDelete, WhenTheSubscriptionCannotBeReadEveryTopicCountsAsSubscribed) {
  for (const std::string& garbage :
       {std::string(), std::string("\0", 1), std::string("\0\1\xff\xff\xff\xff", 6),
        std::string("\0\1\0\0\0\2\0\1a", 9), std::string("\0\0\0\0\0\1\0\6orders", 14),
        std::string("\0\1\x7f\xff\xff\xff\0\1a", 9)}) {
    LiveGroup live;
    (void)live.commit_outside(1, "old");
    (void)live.stable_alone({.protocols = {{"range", garbage}}});
    EXPECT_EQ(live.delete_offsets({{"old", 0}}).partitions.at(0), GROUP_SUBSCRIBED_TO_TOPIC);
  }
}

TEST(OffsetDelete, OfAGroupOfAnotherTypeOnlyWhenItIsEmpty) {
  LiveGroup live;
  (void)live.commit_outside(1);
  const std::string id = live.stable_alone({.type = "connect"});
  const auto refused = live.delete_offsets({{"orders", 0}});
  EXPECT_EQ(refused.group, NON_EMPTY_GROUP);
  EXPECT_TRUE(refused.partitions.empty());
  (void)live.leave(id);
  EXPECT_EQ(live.delete_offsets({{"orders", 0}}).group, NONE);
}

TEST(DeleteGroups, OfAnEmptyGroupOnly) {
  LiveGroup live;
  EXPECT_EQ(live.delete_group(), GROUP_ID_NOT_FOUND);
  const std::string id = live.stable_alone();
  (void)live.commit({.member = id});
  EXPECT_EQ(live.delete_group(), NON_EMPTY_GROUP);
  (void)live.leave(id);
  EXPECT_EQ(live.delete_group(), NONE);
  EXPECT_TRUE(live.group().vacant());
  EXPECT_TRUE(live.stored().empty());
  EXPECT_EQ(committed(live), nullptr);
  EXPECT_EQ(live.group().state(), GroupState::kDead);
  EXPECT_EQ(live.delete_group(), GROUP_ID_NOT_FOUND);
  (void)live.stable_alone();  // made again, it begins anew
  EXPECT_EQ(live.group().describe().members.size(), 1U);
}

constexpr std::chrono::days kRetention{7};

TEST(OffsetExpiry, OfASimpleConsumerCountsFromItsLastCommit) {
  LiveGroup live;
  (void)live.commit_outside(1, "orders", 0);
  live.pass(kRetention - milliseconds{1});
  (void)live.commit_outside(1, "orders", 1);
  live.expire_offsets();
  EXPECT_NE(committed(live, "orders", 0), nullptr);
  live.pass(milliseconds{1});
  live.expire_offsets();
  EXPECT_EQ(committed(live, "orders", 0), nullptr);
  EXPECT_NE(committed(live, "orders", 1), nullptr);
  live.pass(kRetention);
  live.expire_offsets();
  EXPECT_TRUE(live.group().vacant());
  EXPECT_TRUE(live.stored().empty());
}

TEST(OffsetExpiry, OfAConsumerGroupCountsFromWhenItBecameEmpty) {
  LiveGroup live;
  const std::string id = live.stable_alone({.session = milliseconds{1'800'000}});
  (void)live.commit({.member = id});
  for (int i = 0; i < 8 * 48; ++i) {
    live.pass(std::chrono::minutes{29});
    ASSERT_EQ(live.heartbeat({.member = id}), NONE);
    live.expire_offsets();
  }
  ASSERT_NE(committed(live), nullptr) << "a live member keeps what it is subscribed to";
  (void)live.leave(id);
  live.pass(kRetention - milliseconds{1});
  live.expire_offsets();
  EXPECT_NE(committed(live), nullptr);
  const auto restarted = live.restarted();
  restarted->pass(milliseconds{1});
  restarted->expire_offsets();
  EXPECT_TRUE(restarted->group().vacant()) << "since when it is empty survives a restart";
  live.pass(milliseconds{1});
  live.expire_offsets();
  EXPECT_TRUE(live.group().vacant());
}

TEST(OffsetExpiry, OfTopicsNobodyIsSubscribedToAnyMore) {
  LiveGroup live;
  const JoinArgs args{.session = milliseconds{1'800'000}};
  const std::string id = live.stable_alone(args);
  (void)live.commit({.member = id}, 1, "orders");
  (void)live.commit({.member = id}, 1, "old");
  for (int i = 0; i < 8 * 48; ++i) {
    live.pass(std::chrono::minutes{29});
    (void)live.heartbeat({.member = id});
  }
  live.expire_offsets();
  EXPECT_EQ(committed(live, "old"), nullptr);
  EXPECT_NE(committed(live, "orders"), nullptr);
  EXPECT_EQ(live.group().state(), GroupState::kStable);
}

/// Two members with these protocols' metadata, a long time after all was committed; what is left.
std::vector<std::string> left_of(const std::vector<std::string>& metadata) {
  LiveGroup live;
  std::vector<WaiterId> joins;
  for (const std::string& each : metadata) {
    joins.push_back(
        live.enter({.protocols = {{"range", each}}, .session = milliseconds{1'800'000}}).second);
  }
  std::vector<std::string> members;
  for (const WaiterId join : joins) {
    live.await(join);
    members.push_back(live.joined(join).member_id);
  }
  for (const std::string& member : members) {
    if (member != live.joined(joins[0]).leader) (void)live.sync({.member = member});
  }
  (void)live.sync({.member = live.joined(joins[0]).leader});
  EXPECT_EQ(live.group().state(), GroupState::kStable);
  const std::vector<std::string> topics = {"a", "b", "nobody's"};
  for (const std::string& topic : topics) {
    EXPECT_EQ(live.commit({.member = members[0]}, 1, topic), NONE);
  }
  for (int i = 0; i < 8 * 48; ++i) {
    live.pass(std::chrono::minutes{29});
    for (const std::string& member : members) (void)live.heartbeat({.member = member});
  }
  live.expire_offsets();
  std::vector<std::string> left;
  for (const std::string& topic : topics) {
    if (committed(live, topic) != nullptr) left.push_back(topic);
  }
  return left;
}

TEST(OffsetExpiry, WhatAnyMemberIsSubscribedToStays) {
  EXPECT_EQ(left_of({subscription({"a"}), subscription({"b"})}),
            (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(left_of({subscription({"a"}), subscription({"a"})}), std::vector<std::string>{"a"});
}

TEST(OffsetExpiry, NothingGoesWhileOneMembersSubscriptionCannotBeRead) {
  const std::vector<std::string> all = {"a", "b", "nobody's"};
  const std::string whole = subscription({"b"});
  EXPECT_EQ(left_of({subscription({"a"}), "garbage"}), all);
  EXPECT_EQ(left_of({subscription({"a"}), whole.substr(0, whole.size() / 2)}), all);
}

TEST(OffsetExpiry, NotWhileItRebalancesNorForOtherProtocolTypes) {
  for (const bool rebalances : {true, false}) {
    LiveGroup live;
    JoinArgs args{.session = milliseconds{1'800'000}, .rebalance = seconds{100'000'000}};
    if (!rebalances) args.type = "connect";
    const std::string id = live.stable_alone(args);
    (void)live.commit({.member = id}, 1, "old");
    if (rebalances) (void)live.enter(args);
    for (int i = 0; i < 8 * 48; ++i) {
      live.pass(std::chrono::minutes{29});
      (void)live.heartbeat({.member = id});
    }
    live.expire_offsets();
    EXPECT_NE(committed(live, "old"), nullptr) << rebalances;
  }
}

TEST(OffsetExpiry, AnExplicitRetentionCounts) {  // OffsetCommit v2-4
  LiveGroup live;
  CommitCommand command;
  command.retention_ms = 1'000;
  command.offsets.push_back(to_commit({}));
  (void)live.commit(std::move(command));
  (void)live.commit_outside(1, "other");
  EXPECT_EQ(committed(live)->expires, live.wall() + 1'000);
  live.pass(milliseconds{999});
  live.expire_offsets();
  EXPECT_NE(committed(live), nullptr);
  live.pass(milliseconds{1});
  const auto restarted = live.restarted();
  for (LiveGroup* each : {&live, restarted.get()}) {
    each->expire_offsets();
    EXPECT_EQ(committed(*each), nullptr);
    EXPECT_NE(committed(*each, "other"), nullptr);
  }
}

TEST(OffsetExpiry, AnEmptyGroupWithoutOffsetsGoes) {
  LiveGroup live;
  (void)live.leave(live.stable_alone());
  const std::string pending = live.joined(live.join({})).member_id;
  live.expire_offsets();
  EXPECT_FALSE(live.group().vacant()) << "somebody is about to come back with this id";
  (void)live.leave(pending);
  live.expire_offsets();
  EXPECT_TRUE(live.group().vacant());
  EXPECT_TRUE(live.stored().empty());
}

TEST(OffsetExpiry, AClockThatGoesBackExpiresNothing) {
  GroupLimits limits;
  LiveGroup live(limits);
  (void)live.commit_outside(1);
  live.pass(-std::chrono::hours{1});
  live.expire_offsets();
  EXPECT_NE(committed(live), nullptr);
}

}  // namespace
}  // namespace kanal::coordinator
