// Records of the reserved channels: what is written stays readable, and anything else is refused by
// name.
#include "kanal/wire/stored.hpp"

#include "kanal/wire/reader.hpp"
#include "kanal/wire/writer.hpp"

#include <gtest/gtest.h>

namespace kanal::wire {
namespace {

TopicRecord topic_record() {
  TopicRecord record;
  record.topic = "orders";
  record.topic_id.bytes[15] = 7;
  record.partition_count = 6;
  record.created = Timestamp(1'700'000'000'000);
  record.configs = {{.name = "cleanup.policy", .value = "compact"}};
  return record;
}

template <class Record>
Buffer stored(const Record& record) {
  Writer out;
  encode_stored(out, record);
  return {out.bytes().begin(), out.bytes().end()};
}

TEST(StoredRecords, ComeBackAsWhatTheyWere) {
  const Result<StoredRecord> topic = decode_stored(stored(topic_record()));
  ASSERT_TRUE(topic.has_value()) << topic.error().detail;
  EXPECT_EQ(std::get<TopicRecord>(*topic), topic_record());

  ClusterRecord cluster;
  cluster.node_id = NodeId(1);
  cluster.leader_epoch = LeaderEpoch(3);
  EXPECT_EQ(std::get<ClusterRecord>(decode_stored(stored(cluster)).value()), cluster);
}

TEST(StoredRecords, BeginWithTypeAndVersion) {
  ProducerIdBlockRecord block;
  block.next_block_start = ProducerId(1000);
  const Buffer bytes = stored(block);
  const unsigned char expected[] = {0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0x03, 0xe8, 0};
  EXPECT_TRUE(std::ranges::equal(bytes, std::as_bytes(std::span(expected))));
}

TEST(StoredRecords, DamageIsAStorageError) {
  Buffer unknown = stored(topic_record());
  unknown[1] = std::byte{99};
  EXPECT_EQ(decode_stored(unknown).error().detail, "stored record of unknown type 99");
  Buffer newer = stored(topic_record());
  newer[3] = std::byte{1};
  EXPECT_EQ(decode_stored(newer).error().detail, "TopicRecord v1: version is not served");
  Buffer longer = stored(topic_record());
  longer.push_back(std::byte{0});
  EXPECT_EQ(decode_stored(longer).error().detail, "stored record of type 1: 1 bytes left over");
  const Buffer whole = stored(topic_record());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const Result<StoredRecord> cut = decode_stored(Bytes(whole).first(length));
    ASSERT_FALSE(cut.has_value());
    EXPECT_EQ(cut.error().code, ErrorCode::KAFKA_STORAGE_ERROR);
  }
}

}  // namespace
}  // namespace kanal::wire
