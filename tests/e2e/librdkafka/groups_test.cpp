// Groups as librdkafka uses them. Brokers of their own, so that a first rebalance waits for nobody
// and a broker can be killed.
#include <algorithm>
#include <numeric>

#include "member.hpp"
#include "shared_broker.hpp"

namespace kanal::e2e {
namespace {

constexpr int kPartitions = 6;

class Groups : public testing::Test {
 protected:
  Groups() : broker_(KANALD, {"group.initial.rebalance.delay.ms=0"}) { broker_.start(); }

  void make_topic(const std::string& name, int partitions = kPartitions) {
    ASSERT_TRUE(Admin(broker_.address()).create({name, partitions}).ok());
  }
  /// `count` records, the same number in each partition.
  void produce(const std::string& topic, std::size_t count) {
    Producer producer(broker_.address());
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(producer.send({.topic = topic,
                               .partition = static_cast<std::int32_t>(i % kPartitions),
                               .value = std::to_string(sent_++)}),
                RD_KAFKA_RESP_ERR_NO_ERROR);
    }
    for (const Delivery& delivery : producer.flush())
      ASSERT_EQ(delivery.error, RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  /// Whether these members have all partitions, none of them twice.
  static bool share_all(const std::vector<Member*>& members) {
    Partitions all;
    std::size_t sum = 0;
    for (const Member* member : members) {
      all.insert(member->assigned().begin(), member->assigned().end());
      sum += member->assigned().size();
      if (member->assigned().empty()) return false;
    }
    return sum == kPartitions && all.size() == sum;
  }
  static std::size_t read_by(const std::vector<Member*>& members) {
    return std::accumulate(members.begin(), members.end(), std::size_t{0},
                           [](std::size_t sum, Member* m) { return sum + m->records().size(); });
  }
  std::vector<std::int64_t> committed_in(const std::string& group, const std::string& topic) {
    return committed(broker_.address(), group, topic, kPartitions);
  }

  BrokerProcess broker_;
  std::size_t sent_ = 0;
};

class Assignors : public Groups, public testing::WithParamInterface<std::string> {};

TEST_P(Assignors, MembersComeAndGoAndEveryRecordIsReadOnce) {
  make_topic("t");
  const Settings settings{{"partition.assignment.strategy", GetParam()}};
  const auto join = [&] {
    return std::make_unique<Member>(broker_.address(), "g", std::vector<std::string>{"t"},
                                    settings);
  };
  std::unique_ptr<Member> first = join();
  ASSERT_TRUE(poll_until({first.get()}, [&] { return share_all({first.get()}); }));
  produce("t", 60);
  ASSERT_TRUE(poll_until({first.get()}, [&] { return first->records().size() == 60; }));
  EXPECT_EQ(first->commit(), RD_KAFKA_RESP_ERR_NO_ERROR);

  std::unique_ptr<Member> second = join(), third = join();
  const std::vector<Member*> all{first.get(), second.get(), third.get()};
  ASSERT_TRUE(poll_until(all, [&] { return share_all(all); }));
  produce("t", 60);
  ASSERT_TRUE(poll_until(all, [&] { return read_by(all) == 120; }));
  for (Member* member : all) EXPECT_EQ(member->commit(), RD_KAFKA_RESP_ERR_NO_ERROR);

  first.reset();
  const std::vector<Member*> left{second.get(), third.get()};
  ASSERT_TRUE(poll_until(left, [&] { return share_all(left); }));
  const std::size_t before = read_by(left);
  produce("t", 60);
  ASSERT_TRUE(poll_until(left, [&] { return read_by(left) == before + 60; }));
  for (Member* member : left) EXPECT_EQ(member->commit(), RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_EQ(committed_in("g", "t"), std::vector<std::int64_t>(kPartitions, 30));
  const GroupInfo group = describe_group(broker_.address(), "g");
  EXPECT_EQ(group.state, "Stable");
  EXPECT_EQ(group.protocol, GetParam());
  EXPECT_EQ(group.members.size(), 2u);
}
INSTANTIATE_TEST_SUITE_P(With, Assignors,
                         testing::Values("range", "roundrobin", "cooperative-sticky"),
                         [](const auto& name) {
                           std::string text = name.param;
                           std::erase(text, '-');
                           return text;
                         });

class Restarts : public Groups, public testing::WithParamInterface<bool> {};

TEST_P(Restarts, MembersGoOnWithTheirIdsAndWithoutARebalance) {
  make_topic("t");
  Member first(broker_.address(), "g", {"t"}), second(broker_.address(), "g", {"t"});
  const std::vector<Member*> all{&first, &second};
  ASSERT_TRUE(poll_until(all, [&] { return share_all(all); }));
  produce("t", 60);
  ASSERT_TRUE(poll_until(all, [&] { return read_by(all) == 60; }));
  for (Member* member : all) EXPECT_EQ(member->commit(), RD_KAFKA_RESP_ERR_NO_ERROR);
  const std::vector<std::string> ids{first.id(), second.id()};
  const std::vector<int> rebalances{first.rebalances(), second.rebalances()};
  for (int round = 0; round < 2; ++round) {
    if (GetParam())
      broker_.kill9();
    else
      EXPECT_EQ(broker_.terminate(), 0);
    broker_.start();
    produce("t", 60);
    const std::size_t expected = 60 * static_cast<std::size_t>(round + 2);
    ASSERT_TRUE(poll_until(all, [&] { return read_by(all) == expected; }));
    for (Member* member : all) EXPECT_EQ(member->commit(), RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  EXPECT_EQ((std::vector<std::string>{first.id(), second.id()}), ids);
  EXPECT_EQ((std::vector<int>{first.rebalances(), second.rebalances()}), rebalances);
  EXPECT_EQ(committed_in("g", "t"), std::vector<std::int64_t>(kPartitions, 30));
}

TEST_P(Restarts, AGroupWithoutMembersResumesWhereItStopped) {
  make_topic("t");
  {
    Member member(broker_.address(), "g", {"t"});
    ASSERT_TRUE(poll_until({&member}, [&] { return share_all({&member}); }));
    produce("t", 60);
    ASSERT_TRUE(poll_until({&member}, [&] { return member.records().size() == 60; }));
    EXPECT_EQ(member.commit(), RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  if (GetParam())
    broker_.kill9();
  else
    EXPECT_EQ(broker_.terminate(), 0);
  broker_.start();
  EXPECT_EQ(committed_in("g", "t"), std::vector<std::int64_t>(kPartitions, 10));
  produce("t", 6);
  Member member(broker_.address(), "g", {"t"});
  ASSERT_TRUE(poll_until({&member}, [&] { return member.records().size() >= 6; }));
  EXPECT_EQ(member.records().size(), 6u);
  for (const Record& record : member.records()) EXPECT_EQ(record.offset, 10);
}
INSTANTIATE_TEST_SUITE_P(By, Restarts, testing::Bool(),
                         [](const auto& kill) { return kill.param ? "Kill9" : "Sigterm"; });

TEST_F(Groups, AStaticMemberComesBackWithoutARebalance) {
  make_topic("t");
  const auto named = [](const std::string& name) { return Settings{{"group.instance.id", name}}; };
  Member other(broker_.address(), "g", {"t"}, named("other"));
  auto member =
      std::make_unique<Member>(broker_.address(), "g", std::vector<std::string>{"t"}, named("one"));
  ASSERT_TRUE(
      poll_until({&other, member.get()}, [&] { return share_all({&other, member.get()}); }));
  const Partitions before = member->assigned();
  const int rebalances = other.rebalances();
  member.reset();  // a static member does not leave
  member =
      std::make_unique<Member>(broker_.address(), "g", std::vector<std::string>{"t"}, named("one"));
  ASSERT_TRUE(poll_until({&other, member.get()}, [&] { return !member->assigned().empty(); }));
  EXPECT_EQ(member->assigned(), before);
  produce("t", 60);
  ASSERT_TRUE(
      poll_until({&other, member.get()}, [&] { return read_by({&other, member.get()}) == 60; }));
  EXPECT_EQ(other.rebalances(), rebalances);
}

TEST_F(Groups, CooperativeMembersKeepWhatTheyAreNotAskedToGiveUp) {
  make_topic("t");
  const Settings settings{{"partition.assignment.strategy", "cooperative-sticky"}};
  Member first(broker_.address(), "g", {"t"}, settings);
  ASSERT_TRUE(poll_until({&first}, [&] { return share_all({&first}); }));
  Member second(broker_.address(), "g", {"t"}, settings);
  ASSERT_TRUE(poll_until({&first, &second}, [&] { return share_all({&first, &second}); }));
  EXPECT_FALSE(first.took_all_at_once());
}

TEST_F(Groups, OffsetsOfADeletedTopicAreForgotten) {
  make_topic("t");
  make_topic("kept");
  {
    Member member(broker_.address(), "g", {"t", "kept"});
    ASSERT_TRUE(poll_until({&member}, [&] { return member.assigned().size() == 2 * kPartitions; }));
    produce("t", 60);
    produce("kept", 60);
    ASSERT_TRUE(poll_until({&member}, [&] { return member.records().size() == 120; }));
    EXPECT_EQ(member.commit(), RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  EXPECT_EQ(committed_in("g", "t"), std::vector<std::int64_t>(kPartitions, 10));
  ASSERT_TRUE(Admin(broker_.address()).remove("t").ok());
  make_topic("t");
  EXPECT_EQ(committed_in("g", "t"), std::vector<std::int64_t>(kPartitions, -1));
  EXPECT_EQ(committed_in("g", "kept"), std::vector<std::int64_t>(kPartitions, 10));
  broker_.kill9();
  broker_.start();
  EXPECT_EQ(committed_in("g", "t"), std::vector<std::int64_t>(kPartitions, -1));
  EXPECT_EQ(committed_in("g", "kept"), std::vector<std::int64_t>(kPartitions, 10));
}

TEST_F(Groups, GroupIdsAreAnyText) {
  make_topic("t");
  produce("t", 6);
  const std::vector<std::string> names{"/",
                                       ".",
                                       "..",
                                       "~",
                                       "a/../b",
                                       "_KAFKA_OFFSETS_.g.1",
                                       "a b",
                                       "\xC3\xA9\xF0\x9F\x90\x93",
                                       std::string(1024, 'x')};
  for (const std::string& name : names) {
    Member member(broker_.address(), name, {"t"});
    ASSERT_TRUE(poll_until({&member}, [&] { return member.records().size() == 6; })) << name;
    EXPECT_EQ(member.commit(), RD_KAFKA_RESP_ERR_NO_ERROR) << name;
    EXPECT_EQ(describe_group(broker_.address(), name).members.size(), 1u) << name;
  }
  broker_.kill9();
  broker_.start();
  for (const std::string& name : names)
    EXPECT_EQ(committed_in(name, "t"), std::vector<std::int64_t>(kPartitions, 1)) << name;
}

}  // namespace
}  // namespace kanal::e2e
