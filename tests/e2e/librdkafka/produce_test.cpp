// What producers of librdkafka rely on: reports, order, sizes, codecs, acks, nulls, headers,
// timestamps.
#include <fstream>

#include "shared_broker.hpp"

namespace kanal::e2e {
namespace {

using testing::Each;
using testing::Field;
using testing::SizeIs;

constexpr auto kNone = RD_KAFKA_RESP_ERR_NO_ERROR;

std::vector<Record> read_all(const std::string& address, const std::string& topic,
                             const Settings& settings = {}) {
  Consumer consumer(address, settings);
  consumer.assign({{topic}});
  return consumer.read_to_end();
}

/// Codec bits of the first batch as it lies on the disk.
int stored_codec(const std::string& topic) {
  std::ifstream file(shared_broker().active_segment(topic, 0), std::ios::binary);
  constexpr int kAttributes = 21;
  char header[kAttributes + 2] = {};
  file.read(header, sizeof header);
  return header[kAttributes + 1] & 7;
}

using Produce = Librdkafka;

TEST_F(Produce, ReportsEachDeliveryWithItsOffset) {
  const std::string topic = make_topic(2);
  Producer producer(address_);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(producer.send({.topic = topic, .partition = i % 2, .value = std::to_string(i)}),
              kNone);
  }
  const auto& deliveries = producer.flush();
  ASSERT_THAT(deliveries, SizeIs(100));
  std::int64_t next[2] = {0, 0};
  for (const Delivery& delivery : deliveries) {
    EXPECT_EQ(delivery.error, kNone);
    EXPECT_EQ(delivery.status, RD_KAFKA_MSG_STATUS_PERSISTED);
    EXPECT_EQ(delivery.offset, next[delivery.partition]++);
  }
  EXPECT_EQ(next[0], 50);
  EXPECT_EQ(next[1], 50);
}

TEST_F(Produce, TenThousandSmallRecordsInOrder) {
  const std::string topic = make_topic();
  produce_numbers(address_, topic, 10'000);
  expect_numbers(read_all(address_, topic), 10'000);
}

TEST_F(Produce, TenThousandSmallRecordsInOrderIdempotent) {
  const std::string topic = make_topic();
  produce_numbers(address_, topic, 10'000,
                  {{"enable.idempotence", "true"}, {"batch.num.messages", "100"}});
  expect_numbers(read_all(address_, topic), 10'000);
}

TEST_F(Produce, TwoIdempotentProducersOnOnePartition) {
  const std::string topic = make_topic();
  const Settings idempotent{{"enable.idempotence", "true"}};
  Producer one(address_, idempotent), two(address_, idempotent);
  for (int i = 0; i < 500; ++i) {
    ASSERT_EQ(one.send({.topic = topic, .key = "one", .value = std::to_string(i)}), kNone);
    ASSERT_EQ(two.send({.topic = topic, .key = "two", .value = std::to_string(i)}), kNone);
  }
  EXPECT_THAT(one.flush(), Each(Field(&Delivery::error, kNone)));
  EXPECT_THAT(two.flush(), Each(Field(&Delivery::error, kNone)));
  std::map<std::string, int> next;
  for (const Record& record : read_all(address_, topic)) {
    ASSERT_EQ(record.value, std::to_string(next[record.key.value()]++));
  }
  EXPECT_EQ(next["one"], 500);
  EXPECT_EQ(next["two"], 500);
}

TEST_F(Produce, NullAndEmptyAreDifferent) {
  const std::string topic = make_topic();
  const std::vector<std::pair<Bytes, Bytes>> pairs{
      {std::nullopt, "v"}, {"k", std::nullopt}, {std::nullopt, std::nullopt}, {"", ""}, {"k", "v"}};
  Producer producer(address_);
  for (const auto& [key, value] : pairs)
    ASSERT_EQ(producer.send({.topic = topic, .key = key, .value = value}), kNone);
  EXPECT_THAT(producer.flush(), Each(Field(&Delivery::error, kNone)));
  std::vector<std::pair<Bytes, Bytes>> read;
  for (const Record& record : read_all(address_, topic))
    read.emplace_back(record.key, record.value);
  EXPECT_EQ(read, pairs);
}

TEST_F(Produce, HeadersKeepOrderRepeatsNullsAndBytes) {
  const std::string topic = make_topic();
  const Headers headers{{"a", "1"},
                        {"b", std::nullopt},
                        {"a", "2"},
                        {"", ""},
                        {"binary", std::string("\0\xff\n", 3)},
                        {"long", std::string(10'000, 'h')}};
  Producer producer(address_);
  EXPECT_EQ(producer.deliver({.topic = topic, .value = "v", .headers = headers}).error, kNone);
  const auto records = read_all(address_, topic);
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_EQ(records[0].headers, headers);
}

TEST_F(Produce, OneMegabyteRecords) {
  const std::string topic = make_topic();
  Producer producer(address_, {{"message.max.bytes", "2000000"}});
  std::vector<std::string> values;
  for (int i = 0; i < 5; ++i) {
    std::string value(1'000'000, '\0');
    for (std::size_t at = 0; at < value.size(); ++at)
      value[at] = static_cast<char>((at * 2654435761u >> 11) + i);
    ASSERT_EQ(producer.send({.topic = topic, .value = value}), kNone);
    values.push_back(std::move(value));
  }
  EXPECT_THAT(producer.flush(), Each(Field(&Delivery::error, kNone)));
  // The second reader asks for far less than a record at a time: the first batch comes whole all
  // the same.
  for (const Settings& settings : {Settings{}, Settings{{"fetch.message.max.bytes", "1000"}}}) {
    const auto records = read_all(address_, topic, settings);
    ASSERT_THAT(records, SizeIs(5));
    for (std::size_t i = 0; i < 5; ++i) EXPECT_TRUE(records[i].value == values[i]) << i;
  }
}

TEST_F(Produce, TooLargeForTheTopicIsRefusedAndTheNextOneIsNot) {
  const std::string topic = make_topic(1, {{"max.message.bytes", "10000"}});
  Producer producer(address_);
  const Delivery refused = producer.deliver({.topic = topic, .value = std::string(20'000, 'x')});
  EXPECT_EQ(refused.error, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
  EXPECT_EQ(refused.status, RD_KAFKA_MSG_STATUS_NOT_PERSISTED);
  const Delivery stored = producer.deliver({.topic = topic, .value = std::string(9'000, 'x')});
  EXPECT_EQ(stored.error, kNone);
  EXPECT_EQ(stored.offset, 0);
}

TEST_F(Produce, TooLargeForTheBrokerIsRefused) {
  const std::string topic = make_topic();
  Producer producer(address_, {{"message.max.bytes", "3000000"}});
  EXPECT_EQ(producer.deliver({.topic = topic, .value = std::string(2'000'000, 'x')}).error,
            RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
}

TEST_F(Produce, LogAppendTimeIsTheBrokersClock) {
  const std::string topic = make_topic(1, {{"message.timestamp.type", "LogAppendTime"}});
  const std::int64_t before = now_ms();
  Producer producer(address_);
  const Delivery delivery =
      producer.deliver({.topic = topic, .value = "v", .timestamp = 1'000'000});
  const std::int64_t after = now_ms();
  const auto records = read_all(address_, topic);
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_EQ(records[0].timestamp_type, RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME);
  EXPECT_GE(records[0].timestamp, before);
  EXPECT_LE(records[0].timestamp, after);
  EXPECT_EQ(delivery.timestamp, records[0].timestamp);
}

TEST_F(Produce, CreateTimeIsTheProducers) {
  const std::string topic = make_topic(1, {{"retention.ms", "-1"}});  // they are of 1970
  Producer producer(address_);
  for (const std::int64_t time : {1'000'000, 3'000'000, 2'000'000}) {
    ASSERT_EQ(producer.send({.topic = topic, .value = "v", .timestamp = time}), kNone);
  }
  producer.flush();
  std::vector<std::int64_t> times;
  for (const Record& record : read_all(address_, topic)) {
    EXPECT_EQ(record.timestamp_type, RD_KAFKA_TIMESTAMP_CREATE_TIME);
    times.push_back(record.timestamp);
  }
  EXPECT_EQ(times, (std::vector<std::int64_t>{1'000'000, 3'000'000, 2'000'000}));
}

TEST_F(Produce, ToAPartitionThatIsNotThereFails) {
  const std::string topic = make_topic(2);
  Producer producer(address_, {{"message.timeout.ms", "3000"}});
  EXPECT_EQ(producer.deliver({.topic = topic, .partition = 2, .value = "v"}).error,
            RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION);
}

TEST_F(Produce, WithoutAKeyOnACompactedTopicIsAnInvalidRecord) {
  const std::string topic = make_topic(1, {{"cleanup.policy", "compact"}});
  Producer producer(address_);
  EXPECT_EQ(producer.deliver({.topic = topic, .value = "v"}).error,
            RD_KAFKA_RESP_ERR_INVALID_RECORD);
  EXPECT_EQ(producer.deliver({.topic = topic, .key = "k", .value = "v"}).error, kNone);
}

TEST_F(Produce, MakesATopicThatIsMissing) {
  Producer producer(address_, {{"allow.auto.create.topics", "true"}});
  EXPECT_EQ(producer.deliver({.topic = name_, .value = "v"}).error, kNone);
  EXPECT_THAT(read_all(address_, name_), SizeIs(1));
}

class Acks : public Librdkafka, public testing::WithParamInterface<const char*> {};

TEST_P(Acks, ThousandRecordsArriveInOrder) {
  const std::string topic = make_topic();
  produce_numbers(address_, topic, 1'000, {{"acks", GetParam()}});
  Consumer consumer(address_);
  consumer.assign({{topic}});
  expect_numbers(consumer.read(1'000), 1'000);  // acks 0 is reported before it is there
}
INSTANTIATE_TEST_SUITE_P(All, Acks, testing::Values("0", "1", "all"));

struct Codec {
  const char* name;
  int bits;
};
class Compressed : public Librdkafka, public testing::WithParamInterface<Codec> {};

TEST_P(Compressed, BatchesAreStoredAsTheyCameAndReadBack) {
  const std::string topic = make_topic();
  // A first batch with enough in it to shrink: otherwise librdkafka sends it as it is.
  produce_numbers(address_, topic, 2'000,
                  {{"compression.type", GetParam().name},
                   {"linger.ms", "200"},
                   {"enable.idempotence", "true"}});
  expect_numbers(read_all(address_, topic), 2'000);
  EXPECT_EQ(stored_codec(topic), GetParam().bits);
}
INSTANTIATE_TEST_SUITE_P(All, Compressed,
                         testing::Values(Codec{"none", 0}, Codec{"gzip", 1}, Codec{"snappy", 2},
                                         Codec{"lz4", 3}, Codec{"zstd", 4}),
                         [](const auto& codec) { return codec.param.name; });

}  // namespace
}  // namespace kanal::e2e
