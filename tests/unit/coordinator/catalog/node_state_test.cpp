// Producer ids and cluster state.
#include "catalog/stored.hpp"
#include "catalog_support.hpp"
#include "kanal/coordinator/cluster_state.hpp"
#include "kanal/coordinator/producer_ids.hpp"
#include "kanal/reserved/memory_store.hpp"

#include <limits>
#include <set>

namespace kanal::coordinator {
namespace {

TEST(ProducerIds, AreHandedOutInBlocksFromZero) {
  ProducerIds ids;
  for (std::int64_t block = 0; block < 3; ++block) {
    const auto effects = ids.step(Time{}, {});
    ASSERT_EQ(effects.records.size(), 1U);
    ASSERT_TRUE(effects.replies.at(0));
    ProducerIdBlock given = *effects.replies[0];
    EXPECT_EQ(given.first(), ProducerId(block * 1'000));
    EXPECT_EQ(given.end(), ProducerId(block * 1'000 + 1'000));
    ASSERT_TRUE(ids.apply(effects.records[0]));
    EXPECT_EQ(ids.next_free(), given.end());
    for (std::int64_t i = 0; i < 1'000; ++i) ASSERT_EQ(given.take(), ProducerId(block * 1'000 + i));
    EXPECT_TRUE(given.empty());
    EXPECT_FALSE(given.take());
  }
}

TEST(ProducerIds, EndWithAnError) {
  ProducerIds ids;
  const auto last = std::numeric_limits<std::int64_t>::max() - 999;
  ASSERT_TRUE(ids.apply({"", encode_next_producer_id(ProducerId(last))}));
  const auto effects = ids.step(Time{}, {});
  EXPECT_TRUE(effects.records.empty());
  ASSERT_FALSE(effects.replies.at(0));
  EXPECT_EQ(effects.replies[0].error().code, ErrorCode::UNKNOWN_SERVER_ERROR);
}

TEST(ProducerIds, NeverGoBack) {
  ProducerIds ids;
  ASSERT_TRUE(ids.apply({"", encode_next_producer_id(ProducerId(2'000))}));
  ASSERT_TRUE(ids.apply({"", encode_next_producer_id(ProducerId(2'000))})) << "a rolled channel";
  const auto back = ids.apply({"", encode_next_producer_id(ProducerId(1'000))});
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().code, ErrorCode::KAFKA_STORAGE_ERROR);
  EXPECT_NE(back.error().detail.find("_KAFKA_PIDS_"), std::string::npos);
  EXPECT_EQ(ids.next_free(), ProducerId(2'000));
  EXPECT_FALSE(ids.apply({"", encode_cluster({uuid(1), NodeId(1), LeaderEpoch(0)})}));
}

TEST(ProducerIds, TheSnapshotIsTheState) {
  ProducerIds ids;
  EXPECT_TRUE(ids.snapshot("").empty());
  EXPECT_EQ(ids.live_records(), 0U);
  ASSERT_TRUE(ids.apply(ids.step(Time{}, {}).records[0]));
  ProducerIds replayed;
  for (const Buffer& body : ids.snapshot("")) ASSERT_TRUE(replayed.apply({"", body}));
  EXPECT_EQ(replayed.next_free(), ids.next_free());
  EXPECT_EQ(ids.live_records(), ids.snapshot("").size());
}

/// One life of a broker: takes `count` ids, then loses power. False if the store refused.
bool live_once(reserved::MemoryStore& store, int count, std::set<ProducerId>& handed_out) {
  auto session = std::move(*store.open());
  ProducerIds ids;
  EXPECT_TRUE(session->replay([&](const reserved::ReservedName&, Bytes body) {
    return ids.apply({"", Buffer(body.begin(), body.end())});
  }));
  ProducerIdBlock block;
  for (int i = 0; i < count; ++i) {
    auto id = block.take();
    if (!id) {
      const auto effects = ids.step(Time{}, {});
      const Bytes body(effects.records.at(0).body);
      const reserved::ReservedName name{reserved::Kind::kPids, ""};
      if (!session->append(name, {&body, 1}, reserved::Durability::kSynced)) return false;
      EXPECT_TRUE(ids.apply(effects.records[0]));
      block = *effects.replies.at(0);
      id = block.take();
    }
    EXPECT_TRUE(handed_out.insert(*id).second) << "twice: " << id->value();
  }
  return true;
}

TEST(ProducerIds, AreNeverHandedOutTwiceWhateverTheCrash) {
  using Failure = reserved::MemoryStore::Failure;
  for (const Failure failure : {Failure::kNothingWritten, Failure::kWrittenUnsynced}) {
    for (std::uint64_t write = 1; write <= 6; ++write) {
      for (const std::size_t survivors : {std::size_t{0}, std::size_t{1}}) {
        reserved::MemoryStore store;
        std::set<ProducerId> handed_out;
        store.fail_write(write, failure);
        for (const int count : {1, 1'500, 999, 2'100}) {
          (void)live_once(store, count, handed_out);
          store.power_cut(survivors);
        }
      }
    }
  }
}

TEST(ClusterState, TheFirstStartMakesTheClusterAndEveryStartRaisesTheEpoch) {
  std::vector<Record> channel;
  for (std::int32_t start = 0; start < 5; ++start) {
    ClusterState state;
    for (const Record& record : channel) ASSERT_TRUE(state.apply(record));
    EXPECT_EQ(state.facts().has_value(), start > 0);
    const auto effects = state.step(Time{}, StartNode{uuid(static_cast<std::uint32_t>(start)), NodeId(7)});
    ASSERT_TRUE(effects.replies.at(0));
    const ClusterFacts expected{uuid(0), NodeId(7), LeaderEpoch(start)};
    EXPECT_EQ(*effects.replies[0], expected);
    ASSERT_EQ(effects.records.size(), 1U);
    ASSERT_TRUE(state.apply(effects.records[0]));
    EXPECT_EQ(state.facts(), expected);
    channel.push_back(effects.records[0]);
    if (start == 3) {  // the channel is rolled
      channel.clear();
      for (const Buffer& body : state.snapshot("")) channel.push_back({"", body});
      EXPECT_EQ(channel.size(), state.live_records());
    }
  }
}

TEST(ClusterState, AnotherNodeIdIsRefused) {
  ClusterState state;
  ASSERT_TRUE(state.apply(state.step(Time{}, StartNode{uuid(0), NodeId(7)}).records.at(0)));
  const auto effects = state.step(Time{}, StartNode{uuid(1), NodeId(8)});
  EXPECT_TRUE(effects.records.empty());
  ASSERT_FALSE(effects.replies.at(0));
  EXPECT_EQ(effects.replies[0].error().code, ErrorCode::INVALID_CONFIG);
  EXPECT_NE(effects.replies[0].error().detail.find("node 7"), std::string::npos);
}

TEST(ClusterState, DamageNamesTheChannel) {
  ClusterState state;
  ASSERT_TRUE(state.apply({"", encode_cluster({uuid(1), NodeId(1), LeaderEpoch(5)})}));
  for (const ClusterFacts& facts : {ClusterFacts{uuid(2), NodeId(1), LeaderEpoch(6)},
                                    ClusterFacts{uuid(1), NodeId(2), LeaderEpoch(6)},
                                    ClusterFacts{uuid(1), NodeId(1), LeaderEpoch(4)},
                                    ClusterFacts{Uuid{}, NodeId(1), LeaderEpoch(6)},
                                    ClusterFacts{uuid(1), NodeId(1), LeaderEpoch(-1)}}) {
    const auto applied = state.apply({"", encode_cluster(facts)});
    ASSERT_FALSE(applied);
    EXPECT_NE(applied.error().detail.find("_KAFKA_CLUSTER_"), std::string::npos);
  }
}

TEST(ClusterState, TheEpochDoesNotWrapAround) {
  ClusterState state;
  ASSERT_TRUE(state.apply({"", encode_cluster({uuid(1), NodeId(1), LeaderEpoch(INT32_MAX)})}));
  EXPECT_FALSE(state.step(Time{}, StartNode{uuid(2), NodeId(1)}).replies.at(0));
}

}  // namespace
}  // namespace kanal::coordinator
