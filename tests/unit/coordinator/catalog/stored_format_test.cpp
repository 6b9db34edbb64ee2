// The bytes on disk, fixed: a change here is a new version in stored.yaml, never an edit.
#include "catalog/stored.hpp"
#include "catalog_support.hpp"

namespace kanal::coordinator {
namespace {

std::string hex(Bytes bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[static_cast<unsigned>(byte) >> 4];
    text += kDigits[static_cast<unsigned>(byte) & 15U];
  }
  return text;
}

TEST(StoredFormat, OfATopic) {
  TopicEntry topic;
  topic.name = "orders";
  for (std::uint8_t i = 0; i < 16; ++i) topic.id.bytes[i] = i;
  topic.partition_count = 3;
  topic.created = Timestamp(1'700'000'000'000);
  topic.overlay = {{"retention.ms", "1000"}};
  EXPECT_EQ(hex(encode_topic(topic)),
            "00010000"                          // type, version
            "076f7264657273"                    // name
            "000102030405060708090a0b0c0d0e0f"  // id
            "00000003"                          // partitions
            "0000018bcfe56800"                  // created
            "020d726574656e74696f6e2e6d73"      // one config: name
            "053130303000"                      // value, tagged fields
            "00");
  const auto back = decode_topic(encode_topic(topic));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->name, topic.name);
  EXPECT_EQ(back->id, topic.id);
  EXPECT_EQ(back->partition_count, 3);
  EXPECT_EQ(back->created, topic.created);
  EXPECT_EQ(back->overlay, topic.overlay);
}

TEST(StoredFormat, OfTheNextProducerId) {
  EXPECT_EQ(hex(encode_next_producer_id(ProducerId(1'000))), "0002000000000000000003e800");
  EXPECT_EQ(decode_next_producer_id(encode_next_producer_id(ProducerId(1'000))).value(),
            ProducerId(1'000));
}

TEST(StoredFormat, OfTheCluster) {
  ClusterFacts facts{uuid(1), NodeId(7), LeaderEpoch(2)};
  facts.cluster_id.bytes = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  EXPECT_EQ(hex(encode_cluster(facts)),
            "000300000102030405060708090a0b0c0d0e0f10000000070000000200");
  EXPECT_EQ(std::get<ClusterFacts>(decode_cluster_record(encode_cluster(facts)).value()), facts);
}

TEST(StoredFormat, ANewerVersionIsRefused) {
  for (Buffer record : {encode_cluster({uuid(1), NodeId(7), LeaderEpoch(2)}),
                        encode_next_producer_id(ProducerId(1))}) {
    record[3] = std::byte{1};
    EXPECT_FALSE(decode_cluster_record(record));
    EXPECT_FALSE(decode_next_producer_id(record));
  }
}

}  // namespace
}  // namespace kanal::coordinator
