// Replay equals life: after kill -9 members go on, from the records as from a snapshot; damaged and
// newer records are errors.
#include "group/records.hpp"
#include "group_support.hpp"

#include <chrono>
#include <random>

namespace kanal::coordinator {
namespace {

using enum ErrorCode;

using PlainOffset = std::tuple<Uuid, std::int64_t, std::int32_t, std::string, std::int64_t,
                               std::optional<std::int64_t>>;
using PlainOffsets = std::map<std::pair<std::string, std::int32_t>, PlainOffset>;

PlainOffsets offsets(const LiveGroup& live) {
  PlainOffsets plain;
  live.group().for_each_offset(
      [&](std::string_view topic, PartitionIndex partition, const CommittedOffset& offset) {
        std::optional<std::int64_t> expires;
        if (offset.expires) expires = offset.expires->value();
        plain[{std::string(topic), partition.value()}] = {
            offset.topic_id, offset.offset.value(),    offset.leader_epoch.value(),
            offset.metadata, offset.committed.value(), expires};
      });
  return plain;
}

std::string pending_offsets(const LiveGroup& live) {
  std::string shown;
  live.group().for_each_pending([&](const Group::Pending& each) {
    shown += std::to_string(each.producer_id.value()) + " " + std::string(each.topic) + " " +
             std::to_string(each.partition.value()) + "=" +
             std::to_string(each.offset.offset.value()) + "; ";
  });
  return shown;
}

void expect_same(const LiveGroup& live, const LiveGroup& other) {
  EXPECT_EQ(offsets(live), offsets(other));
  EXPECT_EQ(pending_offsets(live), pending_offsets(other));
  EXPECT_EQ(live.group().snapshot("g"), other.group().snapshot("g"));
  EXPECT_EQ(live.group().live_records(), other.group().live_records());
  // Between the beginning of a rebalance and the leader's sync the session is ahead of the records.
  const GroupState state = live.group().state();
  if (state != GroupState::kStable && state != GroupState::kEmpty) return;
  if (live.group().live_records() == 0) return;  // exists until the next round of expiry only
  EXPECT_EQ(live.group().describe(), other.group().describe());
  EXPECT_EQ(live.group().protocol_type(), other.group().protocol_type());
}

TEST(GroupReplay, MembersGoOnWithIdGenerationAndAssignment) {
  LiveGroup live;
  const auto members = live.stable(3);
  (void)live.commit({.member = members[1]}, 42);
  const auto restarted = live.restarted();
  EXPECT_EQ(restarted->group().state(), GroupState::kStable);
  EXPECT_EQ(restarted->group().describe(), live.group().describe());
  for (const std::string& member : members) {
    EXPECT_EQ(restarted->heartbeat({.member = member}), NONE);
    EXPECT_EQ(restarted->commit({.member = member}, 43), NONE);
    EXPECT_EQ(as_text(restarted->synced(restarted->sync({.member = member})).assignment),
              "of " + member);
  }
  EXPECT_EQ(restarted->joined(restarted->join({.member = members[1]})).generation_id, 1)
      << "all protocols are stored, so the same JoinGroup is the same";
}

TEST(GroupReplay, MembersGetAWholeSession) {
  LiveGroup live;
  const std::string id = live.stable_alone();
  live.pass(milliseconds{9'999});
  const auto restarted = live.restarted();
  restarted->pass(milliseconds{9'999});
  EXPECT_EQ(restarted->heartbeat({.member = id}), NONE);
  restarted->pass(seconds{10});
  EXPECT_EQ(restarted->group().state(), GroupState::kEmpty) << "nobody came back";
}

TEST(GroupReplay, ARebalanceThatWasNotFinishedIsAsIfItHadNotBegun) {
  LiveGroup live;
  const auto members = live.stable(2);
  (void)live.leave(members[1]);
  (void)live.join({.member = members[0]});
  ASSERT_EQ(live.group().state(), GroupState::kCompletingRebalance);
  const auto restarted = live.restarted();
  EXPECT_EQ(restarted->heartbeat({.member = members[0], .generation = 2}), ILLEGAL_GENERATION);
  const WaiterId again = restarted->join({.member = members[0]});
  restarted->pass(seconds{10});  // the one that left expires
  EXPECT_EQ(restarted->joined(again).generation_id, 2);
  EXPECT_EQ(restarted->joined(again).members.size(), 1U);
}

TEST(GroupReplay, TheSnapshotIsTheState) {
  LiveGroup live;
  const auto members = live.stable(2);
  for (int i = 0; i < 100; ++i) (void)live.commit({.member = members[i % 2]}, i, "orders", i % 3);
  const std::vector<Buffer> snapshot = live.group().snapshot("g");
  EXPECT_EQ(snapshot.size(), 4U);
  EXPECT_EQ(live.group().live_records(), 4U);
  expect_same(live, *live.from(snapshot));
  (void)live.enter();  // in the middle of a rebalance the stored generation is what counts
  expect_same(live, *live.from(live.group().snapshot("g")));
  EXPECT_EQ(live.from(live.group().snapshot("g"))->heartbeat({.member = members[0]}), NONE);
}

// Commands as clients send them, with old and new ids, at random.
class Chaos {
 public:
  explicit Chaos(std::uint32_t seed) : random_(seed) {
    GroupLimits limits;
    limits.max_size = 4;
    live_ = std::make_unique<LiveGroup>(limits);
  }
  LiveGroup& live() { return *live_; }
  void restart() {
    waiters_.clear();
    live_ = live_->restarted();
  }

  void act() {
    switch (pick(14)) {
      case 0:
      case 1:
        return join(live_->group().describe().members.size() < 3 ? "" : some_member());
      case 2:
      case 3:
        return join(some_member());
      case 4:
      case 5:
      case 6:
        return sync();
      case 7:
        (void)live_->heartbeat({some_member(), generation(), some_instance()});
        return;
      case 8:
        (void)live_->leave(some_member(), some_instance());
        return;
      case 9:
        (void)live_->commit({some_member(), generation(), some_instance()}, pick(1'000),
                            pick(2) == 0 ? "orders" : "old", pick(3));
        (void)live_->commit_outside(pick(1'000), "old", pick(2));
        return;
      case 10:
        return transact();
      case 11:
        live_->pass(milliseconds{pick(9'000)});
        return;
      default:
        return rarely();
    }
  }
  /// Nobody waits for ever.
  void expect_all_answered() {
    live_->pass(seconds{3'600});
    for (const WaiterId waiter : waiters_) EXPECT_FALSE(live_->parked(waiter)) << waiter;
  }

 private:
  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  void rarely() {
    switch (pick(8)) {
      case 0:
        live_->forget_topics({topic_uuid(1)});
        break;
      case 1:
        (void)live_->delete_offsets({{"old", pick(3)}, {"orders", 0}});
        break;
      case 2:
        live_->expire_offsets();
        break;
      case 3:
        (void)live_->delete_group();
        break;
      case 4:
        live_->skip(seconds{pick(20)});  // the driver is late
        break;
      case 5:
        live_->pass(seconds{pick(100)});
        break;
      default:
        break;
    }
  }
  void transact() {
    const std::vector<OffsetArgs> offsets = {
        {.topic = pick(2) == 0 ? "orders" : "old", .partition = pick(3), .offset = pick(1'000)}};
    const MemberArgs nobody{.member = "", .generation = -1};
    const MemberArgs member{some_member(), generation(), some_instance()};
    (void)live_->commit_pending({.id = pick(2)}, offsets, pick(2) == 0 ? nobody : member);
    if (pick(2) == 0) (void)live_->end_transaction({.id = pick(2)}, pick(2) == 0);
  }
  void join(const std::string& member) {
    JoinArgs args;
    args.member = member;
    args.instance = some_instance();
    args.rebalance = seconds{pick(20)};
    args.version = pick(2) == 0 ? 3 : 9;
    if (pick(4) == 0) args.protocols = {{"sticky", subscription({"orders"})}};
    if (pick(2) == 0) args.protocols.push_back({"sticky", subscription({"old"})});
    const WaiterId waiter = live_->join(args);
    waiters_.push_back(waiter);
    if (!live_->parked(waiter) && !live_->joined(waiter).member_id.empty()) {
      ids_.push_back(live_->joined(waiter).member_id);
    }
  }
  void sync() {
    const auto group = live_->group().describe();
    if (group.members.empty()) return;
    std::map<std::string, std::string> assignments;
    for (const auto& member : group.members) assignments[member.member_id] = member.member_id;
    const auto& member = group.members[random_() % group.members.size()];
    waiters_.push_back(live_->sync(
        {member.member_id, generation(), member.group_instance_id.value_or("")}, assignments));
  }
  std::string some_member() {
    const auto group = live_->group().describe();
    if (!group.members.empty() && pick(8) != 0) {
      return group.members[random_() % group.members.size()].member_id;
    }
    return ids_.empty() ? "stranger" : ids_[random_() % ids_.size()];
  }
  std::string some_instance() { return pick(6) == 0 ? std::to_string(pick(2)) : ""; }
  std::int32_t generation() {  // mostly the right one
    if (live_->group().state() == GroupState::kDead) return 0;
    const auto group = live_->group().describe();
    if (group.members.empty() || pick(10) == 0) return pick(5) - 1;
    for (std::int32_t guess = 0; guess < 1'000; ++guess) {
      const ErrorCode code = live_->heartbeat({group.members[0].member_id, guess});
      if (code != ILLEGAL_GENERATION) return guess;
    }
    return 0;
  }

  std::mt19937 random_;
  std::unique_ptr<LiveGroup> live_;
  std::vector<WaiterId> waiters_;
  std::vector<std::string> ids_;
};

TEST(GroupReplay, EqualsLifeAfterRandomCommands) {
  std::map<GroupState, int> seen;
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Chaos chaos(seed);
    for (int i = 0; i < 300 && !testing::Test::HasFailure(); ++i) {
      chaos.act();
      ++seen[chaos.live().group().state()];
      expect_same(chaos.live(), *chaos.live().restarted());
      if (i % 97 == 96) chaos.restart();
      if (wants_roll(chaos.live().stored().size(), chaos.live().group().live_records())) {
        chaos.live().stored() = chaos.live().group().snapshot("g");
      }
      EXPECT_EQ(chaos.live().group().vacant(), chaos.live().group().state() == GroupState::kDead &&
                                                   chaos.live().group().live_records() == 0);
      if (chaos.live().group().vacant()) {
        EXPECT_TRUE(chaos.live().stored().empty());
      }
    }
    chaos.expect_all_answered();
  }
  for (const GroupState state :
       {GroupState::kEmpty, GroupState::kPreparingRebalance, GroupState::kCompletingRebalance,
        GroupState::kStable, GroupState::kDead}) {
    EXPECT_GT(seen[state], 50) << "the commands reach " << to_string(state);
  }
}

Error error_of(const Buffer& body) {
  GroupLimits limits;
  Group group("payments", limits);
  const auto applied = group.apply({"payments", body});
  EXPECT_FALSE(applied);
  return applied ? Error{} : applied.error();
}

void expect_damaged(const Buffer& body, const std::string& what) {
  const Error error = error_of(body);
  EXPECT_EQ(error.code, KAFKA_STORAGE_ERROR);
  EXPECT_NE(error.detail.find("_KAFKA_OFFSETS_.payments: "), std::string::npos) << error.detail;
  EXPECT_NE(error.detail.find(what), std::string::npos) << error.detail;
}

wire::GroupRecord stored_group() {
  wire::GroupRecord record;
  record.generation = 3;
  record.protocol_type = "consumer";
  record.protocol_name = "range";
  record.leader = "a";
  for (const char* id : {"a", "b"}) {
    auto& member = record.members.emplace_back();
    member.member_id = id;
    member.instance_id = std::string("instance-") + id;
    member.session_timeout = seconds{10};
    member.protocols = {{"range", buffer("x")}};
  }
  return record;
}

TEST(GroupReplay, DamagedAndNewerRecordsNameTheChannel) {
  CommittedOffset offset;
  offset.topic_id = topic_uuid(1);
  const PartitionRef partition{"orders", PartitionIndex(0)};
  const EndOffsetsCommand end{
      .producer_id = ProducerId(1), .producer_epoch = ProducerEpoch(2), .commit = true};
  for (Buffer record :
       {encode_group(stored_group()), encode_commit(partition, offset), encode_tombstone(partition),
        encode_end(end), encode_pending(ProducerId(1), ProducerEpoch(2), partition, offset)}) {
    for (std::size_t length = 1; length < record.size(); ++length) {
      expect_damaged({record.begin(), record.begin() + static_cast<std::ptrdiff_t>(length)}, "");
    }
    const std::byte version = std::exchange(record[3], std::byte{99});
    expect_damaged(record, "version is not served");
    record[3] = version;
    record[1] = std::byte{3};
    expect_damaged(record, "");
  }
  expect_damaged(buffer(std::string("\0\3\0\0", 4) + std::string(25, '\0')), "another channel's");
}

TEST(GroupReplay, AProducerWhoseEpochGoesBackIsDamage) {
  const GroupLimits limits;
  Group group("payments", limits);
  const PartitionRef partition{"orders", PartitionIndex(0)};
  const auto apply = [&](std::int64_t producer, std::int16_t epoch) {
    return group.apply({"payments", encode_pending(ProducerId(producer), ProducerEpoch(epoch),
                                                   partition, CommittedOffset{})});
  };
  EXPECT_TRUE(apply(1, 2));
  EXPECT_TRUE(apply(2, 1));
  EXPECT_TRUE(apply(1, 3));
  const auto back = apply(1, 2);
  ASSERT_FALSE(back);
  EXPECT_NE(back.error().detail.find("_KAFKA_OFFSETS_.payments: "), std::string::npos);
  EXPECT_NE(back.error().detail.find("earlier epoch"), std::string::npos);
}

TEST(GroupReplay, ValuesThatDoNotGoTogetherAreDamage) {
  const auto damaged = [](const auto& change, const std::string& what) {
    wire::GroupRecord record = stored_group();
    change(record);
    expect_damaged(encode_group(record), what);
  };
  damaged([](auto& r) { r.generation = -1; }, "generation");
  damaged([](auto& r) { r.protocol_name.reset(); }, "needs a protocol");
  damaged([](auto& r) { r.protocol_type = ""; }, "needs a protocol");
  damaged([](auto& r) { r.protocol_name = "sticky"; }, "does not support");
  damaged([](auto& r) { r.members[1].member_id = "a"; }, "twice");
  damaged([](auto& r) { r.members[1].member_id = ""; }, "empty");
  damaged([](auto& r) { r.members[1].instance_id = "instance-a"; }, "instance");
  damaged([](auto& r) { r.leader = "c"; }, "leader");
}

std::string hex(const Buffer& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[static_cast<unsigned>(byte) >> 4U];
    text += kDigits[static_cast<unsigned>(byte) & 15U];
  }
  return text;
}

TEST(StoredFormat, OfAGroupAndItsOffsets) {
  wire::GroupRecord group = stored_group();
  group.members.pop_back();
  group.written = Timestamp(1'700'000'000'000);
  EXPECT_EQ(hex(encode_group(group)),
            "00050000"            // type, version
            "00000003"            // generation
            "09636f6e73756d6572"  // protocol type
            "0672616e6765"        // protocol name
            "0261"                // leader
            "0000018bcfe56800"    // written
            "02"                  // one member: id, instance id
            "0261"
            "0b696e7374616e63652d61"
            "0101"                  // client id and host
            "0000000000002710"      // rebalance and session timeout
            "020672616e6765027800"  // one protocol: name, metadata, tagged fields
            "01"                    // assignment
            "00"
            "00");  // tagged fields of the member and the record
  CommittedOffset offset;
  offset.topic_id = topic_uuid(1);
  offset.offset = Offset(42);
  offset.leader_epoch = LeaderEpoch(5);
  offset.metadata = "m";
  offset.committed = Timestamp(1);
  offset.expires = Timestamp(2);
  EXPECT_EQ(hex(encode_commit({"t", PartitionIndex(3)}, offset)),
            "00060000"
            "0274"
            "00000000000000000000000000000001"
            "00000003"  // topic, id, partition
            "000000000000002a"
            "00000005"
            "026d"  // offset, leader epoch, metadata
            "0000000000000001"
            "0000000000000002"
            "00");  // committed, expires
  EXPECT_EQ(hex(encode_tombstone({"t", PartitionIndex(3)}, topic_uuid(1))),
            "00070001"
            "0274"
            "00000003"
            "00000000000000000000000000000001"
            "00");
  EXPECT_EQ(
      hex(encode_pending(ProducerId(258), ProducerEpoch(7), {"t", PartitionIndex(3)}, offset)),
      "000c0000"
      "0000000000000102"
      "0007"  // producer
      "0274"
      "00000000000000000000000000000001"
      "00000003"  // topic, id, partition
      "000000000000002a"
      "00000005"
      "026d"
      "0000000000000001"
      "00");
  EXPECT_EQ(
      hex(encode_end(
          {.producer_id = ProducerId(258), .producer_epoch = ProducerEpoch(7), .commit = true})),
      "000d0000"
      "0000000000000102"
      "0007"
      "01"
      "00");
}

TEST(StoredFormat, OfATombstoneBeforeTransactions) {  // version 0: of whatever topic id
  LiveGroup live;
  (void)live.commit_outside(1, "t", 3);
  (void)live.pend({}, {.topic = "t", .partition = 3, .topic_id = 2});
  const Buffer old = buffer(std::string("\0\7\0\0\2t\0\0\0\3\0", 11));
  ASSERT_TRUE(live.group().apply({"g", old}));
  EXPECT_EQ(live.group().live_records(), 0U);
}

}  // namespace
}  // namespace kanal::coordinator
