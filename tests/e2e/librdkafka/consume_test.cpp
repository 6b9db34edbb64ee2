// Where a consumer of librdkafka can start, and what it sees there.
#include <thread>

#include "shared_broker.hpp"

namespace kanal::e2e {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

using Consume = Librdkafka;

TEST_F(Consume, FromTheBeginning) {
  const std::string topic = make_topic();
  produce_numbers(address_, topic, 100);
  Consumer consumer(address_);
  consumer.assign({{topic, 0, RD_KAFKA_OFFSET_BEGINNING}});
  expect_numbers(consumer.read_to_end(), 100);
}

TEST_F(Consume, FromTheEndSeesOnlyWhatComesLater) {
  const std::string topic = make_topic();
  produce_numbers(address_, topic, 100);
  Consumer consumer(address_);
  consumer.assign({{topic, 0, RD_KAFKA_OFFSET_END}});
  EXPECT_THAT(consumer.read_to_end(), IsEmpty());
  produce_numbers(address_, topic, 10);
  expect_numbers(consumer.read(10), 10, 100);
}

TEST_F(Consume, FromAnOffsetInsideABatch) {
  const std::string topic = make_topic();
  produce_numbers(address_, topic, 1'000, {{"linger.ms", "100"}});
  Consumer consumer(address_);
  consumer.assign({{topic, 0, 777}});
  const auto records = consumer.read_to_end();
  ASSERT_THAT(records, SizeIs(223));
  EXPECT_EQ(records.front().offset, 777);
  EXPECT_EQ(records.front().value, "777");
}

TEST_F(Consume, TheLastFewRecords) {
  const std::string topic = make_topic();
  produce_numbers(address_, topic, 100);
  Consumer consumer(address_);
  consumer.assign({{topic, 0, RD_KAFKA_OFFSET_TAIL(7)}});
  const auto records = consumer.read_to_end();
  ASSERT_THAT(records, SizeIs(7));
  EXPECT_EQ(records.front().offset, 93);
}

TEST_F(Consume, FromATimestamp) {
  const std::string topic = make_topic(1, {{"retention.ms", "-1"}});  // they are of 1970
  const std::vector<std::int64_t> times{1'000, 3'000, 2'000, 5'000, 4'000};  // not in order
  Producer producer(address_);
  for (const bool apart : {false, true}) {  // in one batch, then one batch each
    for (const std::int64_t time : times) {
      const std::int64_t later = apart ? 10'000 : 0;
      ASSERT_EQ(
          producer.send({.topic = topic, .value = "v", .timestamp = 1'000'000 + later + time}),
          RD_KAFKA_RESP_ERR_NO_ERROR);
      if (apart) producer.flush();
    }
    producer.flush();
  }
  Consumer consumer(address_);
  const auto at = [&](std::int64_t time) {
    return consumer.offset_for_time(topic, 0, 1'000'000 + time);
  };
  EXPECT_EQ(at(-1'000'000), 0);
  EXPECT_EQ(at(1'000), 0);
  EXPECT_EQ(at(1'001), 1);
  EXPECT_EQ(at(2'500), 1);
  EXPECT_EQ(at(3'001), 3);
  EXPECT_EQ(at(5'000), 3);
  EXPECT_EQ(at(5'001), 5);
  EXPECT_EQ(at(13'001), 8);
  EXPECT_EQ(at(15'001), RD_KAFKA_OFFSET_END);
  consumer.assign({{topic, 0, at(13'001)}});
  EXPECT_THAT(consumer.read_to_end(), SizeIs(2));
}

TEST_F(Consume, SeeksBackAndForth) {
  const std::string topic = make_topic();
  produce_numbers(address_, topic, 50);
  Consumer consumer(address_);
  consumer.assign({{topic}});
  expect_numbers(consumer.read_to_end(), 50);
  consumer.seek({topic, 0, 10});
  EXPECT_EQ(consumer.read(1).front().offset, 10);
  consumer.seek({topic, 0, 49});
  EXPECT_EQ(consumer.read(1).front().offset, 49);
}

TEST_F(Consume, BoundsFollowAppendsAndDeletedRecords) {
  const std::string topic = make_topic();
  Consumer consumer(address_);
  EXPECT_EQ(consumer.bounds(topic, 0), std::pair(std::int64_t{0}, std::int64_t{0}));
  produce_numbers(address_, topic, 100);
  EXPECT_EQ(consumer.bounds(topic, 0), std::pair(std::int64_t{0}, std::int64_t{100}));
  EXPECT_EQ(admin_.delete_records(topic, 0, 40), 40);
  EXPECT_EQ(consumer.bounds(topic, 0), std::pair(std::int64_t{40}, std::int64_t{100}));
  consumer.assign({{topic, 0, RD_KAFKA_OFFSET_BEGINNING}});
  EXPECT_EQ(consumer.read(1).front().value, "40");
}

TEST_F(Consume, AnOffsetOutOfRangeIsAnErrorOrResets) {
  const std::string topic = make_topic();
  produce_numbers(address_, topic, 10);
  Consumer strict(address_);
  strict.assign({{topic, 0, 11}});
  rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
  for (int tries = 0; tries < 200 && error == RD_KAFKA_RESP_ERR_NO_ERROR; ++tries)
    strict.poll(milliseconds(100), error);
  EXPECT_EQ(error, RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET);
  Consumer lenient(address_, {{"auto.offset.reset", "earliest"}});
  lenient.assign({{topic, 0, 5'000}});
  expect_numbers(lenient.read_to_end(), 10);
}

TEST_F(Consume, AtTheEndIsNoError) {
  const std::string topic = make_topic();
  produce_numbers(address_, topic, 10);
  Consumer consumer(address_);
  consumer.assign({{topic, 0, 10}});
  EXPECT_THAT(consumer.read_to_end(), IsEmpty());
}

TEST_F(Consume, ManyPartitionsAtOnce) {
  constexpr int kPartitions = 20, kEach = 100;
  const std::string topic = make_topic(kPartitions);
  Producer producer(address_);
  for (int i = 0; i < kPartitions * kEach; ++i) {
    ASSERT_EQ(
        producer.send({.topic = topic, .partition = i % kPartitions, .value = std::to_string(i)}),
        RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  producer.flush();
  std::vector<Position> positions;
  positions.reserve(kPartitions);
  for (int p = 0; p < kPartitions; ++p) positions.push_back({topic, p});
  Consumer consumer(address_);
  consumer.assign(positions);
  const auto records = consumer.read_to_end();
  ASSERT_THAT(records, SizeIs(kPartitions * kEach));
  std::vector<std::int64_t> next(kPartitions, 0);
  for (const Record& record : records) {
    std::int64_t& offset = next[static_cast<std::size_t>(record.partition)];
    ASSERT_EQ(record.offset, offset);
    ASSERT_EQ(record.value, std::to_string(offset * kPartitions + record.partition));
    ++offset;
  }
}

TEST_F(Consume, AWaitingReaderIsWokenByARecord) {
  const std::string topic = make_topic(3);
  // Longer than the whole test may take: only a wake-up ends the wait in time.
  Consumer consumer(address_, {{"fetch.wait.max.ms", "60000"}, {"socket.timeout.ms", "120000"}});
  consumer.assign({{topic, 0}, {topic, 1}, {topic, 2}});
  EXPECT_FALSE(consumer.poll(milliseconds(300)).has_value());  // parked by then
  Producer producer(address_);
  for (int i = 0; i < 100; ++i) {
    const Record sent{.topic = topic, .partition = i % 3, .value = std::to_string(i)};
    ASSERT_EQ(producer.deliver(sent).error, RD_KAFKA_RESP_ERR_NO_ERROR);
    ASSERT_EQ(consumer.read(1).front().value, sent.value);
  }
}

TEST_F(Consume, ReadsWhileAnotherThreadWrites) {
  constexpr std::size_t kCount = 5'000;
  const std::string topic = make_topic();
  Consumer consumer(address_);
  consumer.assign({{topic}});
  std::jthread writer([&] {
    produce_numbers(address_, topic, kCount, {{"batch.num.messages", "7"}, {"linger.ms", "0"}});
  });
  expect_numbers(consumer.read(kCount), kCount);
}

}  // namespace
}  // namespace kanal::e2e
