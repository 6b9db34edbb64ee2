// Offsets inside of transactions: seen by nobody before the end, then all at once or never; fenced
// by generation, member and instance (KIP-447); what else happens to a group while they are there.
#include "group_support.hpp"

namespace kanal::coordinator {
namespace {

using enum ErrorCode;

/// -1: none.
std::int64_t committed(const LiveGroup& live, std::int32_t partition = 0,
                       const std::string& topic = "orders") {
  const CommittedOffset* found = live.group().committed(topic, Uuid{}, PartitionIndex(partition));
  return found != nullptr ? found->offset.value() : -1;
}
bool pending(const LiveGroup& live, std::int32_t partition = 0, const Uuid& topic_id = {},
             const std::string& topic = "orders") {
  return live.group().has_pending(topic, topic_id, PartitionIndex(partition));
}
constexpr bool kCommit = true, kAbort = false;

TEST(PendingOffsets, NobodySeesThemBeforeTheCommit) {
  LiveGroup live;
  EXPECT_EQ(live.pend({}, {.offset = 7, .metadata = "note"}), NONE);
  EXPECT_EQ(committed(live), -1);
  EXPECT_TRUE(pending(live));
  EXPECT_FALSE(pending(live, 1));
  live.group().for_each_offset([](std::string_view, PartitionIndex, const CommittedOffset&) {
    ADD_FAILURE() << "nothing is committed yet";
  });
  const Timestamp written = live.wall();
  live.pass(seconds{5});
  EXPECT_EQ(live.end_transaction({}, kCommit), NONE);
  EXPECT_FALSE(pending(live));
  const CommittedOffset* offset =
      live.group().committed("orders", topic_uuid(1), PartitionIndex(0));
  ASSERT_NE(offset, nullptr);
  EXPECT_EQ(offset->offset, Offset(7));
  EXPECT_EQ(offset->metadata, "note");
  EXPECT_EQ(offset->committed, written) << "as Kafka, which keeps the record's own time";
}

TEST(PendingOffsets, AnAbortShowsAgainWhatWasThere) {  // bug case 58: 88 must clear
  LiveGroup live;
  (void)live.commit_outside(3);
  EXPECT_EQ(live.pend({}, {.offset = 7}), NONE);
  EXPECT_EQ(committed(live), 3);
  EXPECT_EQ(live.end_transaction({}, kAbort), NONE);
  EXPECT_FALSE(pending(live));
  EXPECT_EQ(committed(live), 3);
}

TEST(PendingOffsets, TheEndIsOneRecordHoweverManyThereAre) {
  LiveGroup live;
  const std::vector<OffsetArgs> three = {
      {.partition = 0, .offset = 1}, {.partition = 1, .offset = 2}, {.topic = "b", .offset = 3}};
  EXPECT_EQ(live.commit_pending({}, three), (std::vector{NONE, NONE, NONE}));
  EXPECT_EQ(live.effects().records.size(), 3U);
  (void)live.end_transaction({}, kCommit);
  EXPECT_EQ(live.effects().records.size(), 1U) << "so that no crash can show a part of it";
  EXPECT_EQ(committed(live, 0), 1);
  EXPECT_EQ(committed(live, 1), 2);
  EXPECT_EQ(committed(live, 0, "b"), 3);
}

TEST(PendingOffsets, AnEndThatIsRepeatedOrMeetsNothingChangesNothing) {
  LiveGroup live;
  EXPECT_EQ(live.end_transaction({}, kCommit), NONE);
  EXPECT_TRUE(live.group().vacant()) << "no group is made by it";
  (void)live.pend({}, {.offset = 1});
  (void)live.end_transaction({}, kCommit);
  for (const bool commit : {kCommit, kAbort}) {
    EXPECT_EQ(live.end_transaction({}, commit), NONE);
    EXPECT_TRUE(live.effects().records.empty());
  }
  EXPECT_EQ(live.end_transaction({.id = 2}, kAbort), NONE);
  EXPECT_TRUE(live.effects().records.empty());
  EXPECT_EQ(committed(live), 1);
}

TEST(PendingOffsets, OfOnePartitionTheLastOneStagedCounts) {  // bug case 53
  LiveGroup live;
  (void)live.pend({}, {.offset = 5});
  (void)live.pend({}, {.offset = 5});
  EXPECT_EQ(live.commit_pending({}, std::vector<OffsetArgs>{{.offset = 9}, {.offset = 6}}),
            (std::vector{NONE, NONE}));
  EXPECT_EQ(live.group().live_records(), 1U);
  (void)live.end_transaction({}, kCommit);
  EXPECT_EQ(committed(live), 6);
}

TEST(PendingOffsets, AnOrdinaryCommitThatWasWrittenLaterStays) {
  LiveGroup live;
  (void)live.pend({}, {.offset = 7});
  (void)live.commit_outside(3);
  EXPECT_EQ(committed(live), 3);
  EXPECT_TRUE(pending(live)) << "unstable all the same";
  const auto rolled = live.from(live.group().snapshot("g"));
  for (LiveGroup* each : {&live, rolled.get()}) {
    (void)each->end_transaction({}, kCommit);
    EXPECT_EQ(committed(*each), 3);
  }
}

TEST(PendingOffsets, OfTwoTransactionsTheOffsetThatWasWrittenLaterCounts) {
  for (const std::int64_t first : {1, 2}) {
    LiveGroup live;
    (void)live.commit_outside(1);
    (void)live.pend({.id = 1}, {.offset = 10});
    (void)live.pend({.id = 2}, {.offset = 20});
    (void)live.end_transaction({.id = first}, kCommit);
    EXPECT_EQ(committed(live), first * 10);
    EXPECT_TRUE(pending(live));
    const auto rolled = live.from(live.group().snapshot("g"));
    for (LiveGroup* each : {&live, rolled.get()}) {
      (void)each->end_transaction({.id = 3 - first}, kCommit);
      EXPECT_EQ(committed(*each), 20) << "whichever ended first";
    }
  }
}

TEST(PendingOffsets, DoNotGetIntoTheNextTransaction) {  // bug cases 53 and 54
  LiveGroup live;
  (void)live.pend({.epoch = 3}, {.partition = 0, .offset = 1});
  (void)live.pend({.epoch = 3}, {.partition = 1, .offset = 1});
  EXPECT_EQ(live.pend({.epoch = 4}, {.partition = 1, .offset = 2}), NONE);
  EXPECT_FALSE(pending(live, 0)) << "of an earlier epoch";
  EXPECT_EQ(live.pend({.epoch = 3}, {.partition = 0, .offset = 3}), INVALID_PRODUCER_EPOCH);
  EXPECT_TRUE(live.effects().records.empty());
  for (const bool commit : {kCommit, kAbort}) {
    EXPECT_EQ(live.end_transaction({.epoch = 3}, commit), NONE) << "a late end of the earlier";
    EXPECT_TRUE(live.effects().records.empty());
  }
  EXPECT_EQ(live.restarted()->group().live_records(), 1U);
  (void)live.end_transaction({.epoch = 4}, kCommit);
  EXPECT_EQ(committed(live, 0), -1);
  EXPECT_EQ(committed(live, 1), 2);
}

TEST(PendingOffsets, AreEndedByTheRaisedEpochToo) {  // KIP-890: a marker of version 2
  LiveGroup live;
  (void)live.pend({.epoch = 3}, {.offset = 1});
  (void)live.end_transaction({.epoch = 4}, kCommit);
  EXPECT_EQ(committed(live), 1);
}

TEST(PendingOffsets, AGroupThatDoesNotExistIsMadeWithoutAGenerationOnly) {
  LiveGroup live;
  const std::vector<OffsetArgs> one = {{}};
  EXPECT_EQ(live.commit_pending({}, one, {.member = "m", .generation = 0}),
            std::vector{ILLEGAL_GENERATION});
  EXPECT_EQ(live.commit_pending({}, one, {.member = "m", .generation = 0}, 6),
            std::vector{GROUP_ID_NOT_FOUND});
  EXPECT_TRUE(live.group().vacant());
  EXPECT_EQ(live.commit_pending({}, one, {.member = "m", .generation = -1}), std::vector{NONE});
  EXPECT_EQ(live.group().state(), GroupState::kEmpty);
  EXPECT_EQ(live.commit_pending({}, one, {.member = "m", .generation = 0}),
            std::vector{UNKNOWN_MEMBER_ID})
      << "it exists";
}

TEST(PendingOffsets, AreFencedByMemberAndGenerationInKafkasOrder) {  // KIP-447
  LiveGroup live;
  const std::vector<OffsetArgs> one = {{}};
  const auto by = [&](const MemberArgs& member) {
    return live.commit_pending({}, one, member).at(0);
  };
  const std::string id = live.stable_alone();
  EXPECT_EQ(by({.member = id, .generation = 1}), NONE);
  EXPECT_EQ(by({.member = id, .generation = 0}), ILLEGAL_GENERATION);
  EXPECT_EQ(by({.member = id, .generation = 2}), ILLEGAL_GENERATION);
  EXPECT_EQ(by({.member = id, .generation = -1}), ILLEGAL_GENERATION);
  EXPECT_EQ(by({.member = "m", .generation = 2}), UNKNOWN_MEMBER_ID);
  EXPECT_EQ(by({.member = "m", .generation = -1}), UNKNOWN_MEMBER_ID);
  EXPECT_EQ(by({.member = "", .generation = 1}), UNKNOWN_MEMBER_ID);
  EXPECT_EQ(by({.member = "", .generation = -1, .instance = "i"}), UNKNOWN_MEMBER_ID);
  EXPECT_EQ(by({.member = "", .generation = -1}), NONE)
      << "clients before v3 name nobody, and commit to groups with members";
  (void)live.leave(id);
  EXPECT_EQ(by({.member = id, .generation = 1}), UNKNOWN_MEMBER_ID);
  EXPECT_EQ(by({.member = id, .generation = -1}), NONE) << "an empty group lets everybody";
}

TEST(PendingOffsets, AreFencedByTheInstance) {
  LiveGroup live;
  const std::string id = live.stable(1, {.instance = "i"}).at(0);
  const std::vector<OffsetArgs> one = {{}};
  EXPECT_EQ(live.commit_pending({}, one, {.member = id, .instance = "i0"}), std::vector{NONE});
  EXPECT_EQ(live.commit_pending({}, one, {.member = "old", .instance = "i0"}),
            std::vector{FENCED_INSTANCE_ID});
  EXPECT_EQ(live.commit_pending({}, one, {.member = id, .instance = "i9"}),
            std::vector{UNKNOWN_MEMBER_ID});
}

TEST(PendingOffsets, DuringARebalanceToo) {
  LiveGroup live;
  const auto members = live.stable(2);
  (void)live.join({.member = members[0]});
  const std::vector<OffsetArgs> one = {{}};
  ASSERT_EQ(live.group().state(), GroupState::kPreparingRebalance);
  EXPECT_EQ(live.commit_pending({}, one, {.member = members[1]}), std::vector{NONE});
  (void)live.join({.member = members[1]});
  ASSERT_EQ(live.group().state(), GroupState::kCompletingRebalance);
  EXPECT_EQ(live.commit_pending({}, one, {.member = members[1], .generation = 2}),
            std::vector{NONE})
      << "unlike OffsetCommit";
  EXPECT_EQ(live.commit_pending({}, one, {.member = members[1], .generation = 1}),
            std::vector{ILLEGAL_GENERATION});
}

TEST(PendingOffsets, KeepNoSession) {
  LiveGroup live;
  const std::string id = live.stable_alone();
  live.pass(milliseconds{9'999});
  EXPECT_EQ(live.commit_pending({}, std::vector<OffsetArgs>{{}}, {.member = id}),
            std::vector{NONE});
  live.pass(milliseconds{1});
  EXPECT_EQ(live.group().state(), GroupState::kEmpty);
}

TEST(PendingOffsets, LongMetadataIsRefusedForItsPartitionAlone) {
  LiveGroup live;
  const std::string longer(4'097, 'x');
  const std::vector<OffsetArgs> two = {{.partition = 0, .metadata = longer}, {.partition = 1}};
  EXPECT_EQ(live.commit_pending({}, two), (std::vector{OFFSET_METADATA_TOO_LARGE, NONE}));
  EXPECT_FALSE(pending(live, 0));
  EXPECT_TRUE(pending(live, 1));
}

TEST(PendingOffsets, AllAreRefusedThatTogetherAreTooLarge) {
  LiveGroup live;
  live.max_bytes = 100;
  const std::vector<OffsetArgs> two = {{.partition = 0}, {.partition = 1}};
  EXPECT_EQ(live.commit_pending({}, two),
            (std::vector{UNKNOWN_SERVER_ERROR, UNKNOWN_SERVER_ERROR}));
  EXPECT_TRUE(live.group().vacant()) << "not even the group";
  EXPECT_TRUE(live.stored().empty());
  EXPECT_EQ(live.pend({}, {.partition = 1}), NONE);
  live.max_bytes = 1;
  EXPECT_EQ(live.end_transaction({}, kCommit), NONE) << "what is promised always fits";
  EXPECT_EQ(committed(live, 1), 1);
}

TEST(PendingOffsets, GoWithTheirGroup) {
  LiveGroup live;
  (void)live.pend({}, {.offset = 1});
  EXPECT_EQ(live.delete_group(), NONE) << "an open transaction does not keep it, as in Kafka";
  EXPECT_TRUE(live.group().vacant());
  EXPECT_TRUE(live.stored().empty());
  EXPECT_EQ(live.end_transaction({}, kCommit), NONE);
  EXPECT_TRUE(live.group().vacant());
  (void)live.commit_outside(5);  // made again
  (void)live.end_transaction({}, kCommit);
  EXPECT_EQ(committed(live), 5);
}

TEST(PendingOffsets, GoByOffsetDelete) {
  LiveGroup live;
  (void)live.commit_outside(1);
  (void)live.pend({.id = 1}, {.partition = 0, .offset = 7});
  (void)live.pend({.id = 2}, {.partition = 0, .offset = 8});
  (void)live.pend({.id = 2}, {.partition = 1, .offset = 8});
  EXPECT_EQ(live.delete_offsets({{"orders", 0}, {"orders", 9}}).partitions,
            (std::vector{NONE, NONE}));
  EXPECT_EQ(live.effects().records.size(), 1U);
  EXPECT_FALSE(pending(live, 0));
  EXPECT_EQ(committed(live, 0), -1);
  (void)live.end_transaction({.id = 1}, kCommit);
  EXPECT_TRUE(live.effects().records.empty());
  (void)live.end_transaction({.id = 2}, kCommit);
  EXPECT_EQ(committed(live, 0), -1);
  EXPECT_EQ(committed(live, 1), 8);
}

TEST(PendingOffsets, ThatWereAllDeletedLeaveNoChannelBehind) {
  LiveGroup live;
  (void)live.pend({}, {.partition = 0});
  (void)live.pend({}, {.partition = 1});
  (void)live.delete_offsets({{"orders", 0}});
  EXPECT_FALSE(live.stored().empty());
  (void)live.delete_offsets({{"orders", 1}});
  EXPECT_TRUE(live.stored().empty());
  EXPECT_EQ(live.group().state(), GroupState::kEmpty) << "until the next round of expiry";
}

TEST(PendingOffsets, ThatWereAllAbortedLeaveNoChannelBehind) {
  LiveGroup live;
  (void)live.pend({.id = 1}, {.partition = 0});
  (void)live.pend({.id = 2}, {.partition = 0});
  (void)live.end_transaction({.id = 1}, kAbort);
  EXPECT_FALSE(live.stored().empty());
  (void)live.end_transaction({.id = 2}, kAbort);
  EXPECT_TRUE(live.stored().empty());
  live.expire_offsets();
  EXPECT_TRUE(live.group().vacant());
}

constexpr std::chrono::days kRetention{7};

TEST(PendingOffsets, KeepWhatIsCommittedAndTheGroupFromExpiry) {
  LiveGroup live;
  (void)live.commit_outside(1, "orders", 0);
  (void)live.commit_outside(1, "orders", 1);
  (void)live.pend({}, {.partition = 0, .offset = 7});
  live.pass(kRetention);
  live.expire_offsets();
  EXPECT_EQ(committed(live, 0), 1);
  EXPECT_EQ(committed(live, 1), -1);
  (void)live.end_transaction({}, kAbort);
  live.expire_offsets();
  EXPECT_TRUE(live.group().vacant());
  EXPECT_TRUE(live.stored().empty());

  (void)live.pend({}, {.offset = 7});
  live.pass(kRetention);
  live.expire_offsets();
  EXPECT_FALSE(live.group().vacant()) << "also where nothing is committed";
  (void)live.end_transaction({}, kCommit);
  live.expire_offsets();
  EXPECT_TRUE(live.group().vacant()) << "its age counts from when it was written, as in Kafka";
}

TEST(PendingOffsets, GoWithTheirTopic) {
  LiveGroup live;
  (void)live.pend({}, {.partition = 0, .offset = 7});
  (void)live.pend({}, {.topic = "b", .offset = 7, .topic_id = 2});
  EXPECT_TRUE(pending(live, 0, topic_uuid(1)));
  EXPECT_FALSE(pending(live, 0, topic_uuid(2)));
  live.forget_topics({topic_uuid(1)});
  EXPECT_FALSE(pending(live));
  EXPECT_TRUE(pending(live, 0, topic_uuid(2), "b"));
  live.forget_topics({topic_uuid(1)});
  EXPECT_TRUE(live.effects().records.empty()) << "nothing left to forget";
  (void)live.end_transaction({}, kCommit);
  EXPECT_EQ(committed(live), -1);
  EXPECT_EQ(committed(live, 0, "b"), 7);
}

TEST(PendingOffsets, OfATopicMadeAgainStayWhenTheOldOneIsForgotten) {
  LiveGroup live;
  (void)live.commit_outside(3);
  (void)live.pend({.id = 1}, {.offset = 4});
  (void)live.pend({.id = 2}, {.offset = 7, .topic_id = 2});
  live.forget_topics({topic_uuid(1)});
  EXPECT_EQ(committed(live), -1);
  EXPECT_FALSE(pending(live, 0, topic_uuid(1)));
  EXPECT_TRUE(pending(live, 0, topic_uuid(2)));
  const auto restarted = live.restarted();
  for (LiveGroup* each : {&live, restarted.get()}) {
    (void)each->end_transaction({.id = 2}, kCommit);
    EXPECT_EQ(committed(*each), 7);
  }
}

TEST(PendingOffsets, ThatAForgottenCommitHadOvertakenCountAgain) {
  LiveGroup live;
  (void)live.pend({}, {.offset = 7, .topic_id = 2});
  (void)live.commit_outside(3);  // of the old topic, found in an earlier picture of the catalog
  live.forget_topics({topic_uuid(1)});
  const auto rolled = live.from(live.group().snapshot("g"));
  for (LiveGroup* each : {&live, rolled.get()}) {
    (void)each->end_transaction({}, kCommit);
    EXPECT_EQ(committed(*each), 7);
  }
}

TEST(PendingOffsets, SurviveARestart) {
  LiveGroup live;
  const auto members = live.stable(2);
  (void)live.commit_pending({}, std::vector<OffsetArgs>{{.offset = 7}}, {.member = members[0]});
  const auto restarted = live.restarted();
  EXPECT_TRUE(pending(*restarted));
  EXPECT_EQ(restarted->heartbeat({.member = members[0]}), NONE);
  (void)restarted->end_transaction({}, kCommit);
  EXPECT_EQ(committed(*restarted), 7);
  const auto again = restarted->restarted();
  EXPECT_EQ(committed(*again), 7);
  EXPECT_FALSE(pending(*again));
}

TEST(PendingOffsets, HoweverManyLeaveAChannelThatRolls) {
  LiveGroup live;
  std::size_t most = 0;
  for (int i = 0; i < 20'000; ++i) {
    (void)live.pend({.id = i % 3}, {.partition = i % 2, .offset = i});
    if (i % 5 == 4) (void)live.end_transaction({.id = i % 3}, i % 2 == 0);
    most = std::max(most, live.stored().size());
    EXPECT_LE(live.group().live_records(), 8U);
    if (wants_roll(live.stored().size(), live.group().live_records())) {
      live.stored() = live.group().snapshot("g");
    }
  }
  EXPECT_LT(most, 100U);
}

TEST(PendingOffsets, AreVisitedInOrder) {
  LiveGroup live;
  (void)live.pend({.id = 2, .epoch = 5}, {.offset = 1});
  (void)live.pend({.id = 1}, {.topic = "b", .offset = 2});
  (void)live.pend({.id = 1}, {.topic = "a", .partition = 3, .offset = 3});
  std::string seen;
  live.group().for_each_pending([&](const Group::Pending& each) {
    seen += std::to_string(each.producer_id.value()) + "/" +
            std::to_string(each.producer_epoch.value()) + " " + std::string(each.topic) +
            std::to_string(each.partition.value()) + "=" +
            std::to_string(each.offset.offset.value()) + "; ";
  });
  EXPECT_EQ(seen, "1/0 a3=3; 1/0 b0=2; 2/5 orders0=1; ");
}

}  // namespace
}  // namespace kanal::coordinator
