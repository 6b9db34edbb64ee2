// What readers are told of transactions: Fetch and ListOffsets of both isolation levels,
// DescribeProducers, DeleteRecords.
#include "kanal/wire/messages/delete_records.hpp"
#include "kanal/wire/messages/describe_producers.hpp"
#include "kanal/wire/messages/fetch.hpp"
#include "kanal/wire/messages/list_offsets.hpp"
#include "one_broker.hpp"
#include "unit/log/transactional.hpp"

#include <string>

namespace kanal::handlers {

broker::Task<wire::FetchResponse> handle(broker::Context&, wire::FetchRequest);
broker::Task<wire::ListOffsetsResponse> handle(broker::Context&, wire::ListOffsetsRequest);
broker::Task<wire::DescribeProducersResponse> handle(broker::Context&,
                                                     wire::DescribeProducersRequest);
broker::Task<wire::DeleteRecordsResponse> handle(broker::Context&, wire::DeleteRecordsRequest);

namespace testing {
namespace {

using log::test::End;
using log::test::TxnBatch;
using FetchedPartition = wire::FetchResponse::Topic::Partition;

constexpr std::int8_t kUncommitted = 0, kCommitted = 1;

class TransactionalReads : public OneBroker {
 protected:
  TransactionalReads() { create("t"); }

  std::shared_ptr<broker::Partition> partition() {
    return broker->topics()->find("t")->partition(PartitionIndex(0));
  }
  void write(const TxnBatch& batch) {
    Buffer bytes = encode(batch);
    records::CheckedBatch checked;
    checked.bytes = bytes;
    checked.header = records::parse_header(bytes).value();
    const auto appended = broker::Broker::Together(*broker).append(partition(), checked);
    ASSERT_TRUE(appended) << appended.error().detail;
  }
  void finish(const End& end) {
    const auto appended =
        broker::Broker::Together(*broker).append_marker(partition(), marker_of(end));
    ASSERT_TRUE(appended) << appended.error().detail;
  }

  template <class Request>
  auto ask(std::int16_t version, Request request) {
    broker::Context asking = context(Request::kApiKey, version);
    return await(handle(asking, std::move(request)));
  }
  static wire::FetchRequest fetch_of(std::int64_t from, std::int8_t isolation) {
    wire::FetchRequest request;
    request.max_bytes = 1 << 20;
    request.min_bytes = 0;
    request.isolation_level = isolation;
    request.session_epoch = -1;
    auto& topic = request.topics.emplace_back();
    topic.topic = "t";
    auto& asked = topic.partitions.emplace_back();
    asked.fetch_offset = Offset(from);
    asked.partition_max_bytes = 1 << 20;
    return request;
  }
  FetchedPartition fetch(std::int64_t from, std::int8_t isolation, std::int16_t version = 12) {
    auto response = ask(version, fetch_of(from, isolation));
    return std::move(response.responses.at(0).partitions.at(0));
  }
  std::pair<std::int64_t, std::int64_t> list(std::int64_t timestamp, std::int8_t isolation) {
    wire::ListOffsetsRequest request;
    request.isolation_level = isolation;
    auto& topic = request.topics.emplace_back();
    topic.name = "t";
    topic.partitions.emplace_back().timestamp = Timestamp(timestamp);
    const auto response = ask(8, std::move(request));
    const auto& answer = response.topics.at(0).partitions.at(0);
    EXPECT_EQ(answer.error_code, ErrorCode::NONE);
    return {answer.offset.value(), answer.timestamp.value()};
  }
  std::vector<wire::DescribeProducersResponse::Topic::Partition::ActiveProducer> producers() {
    wire::DescribeProducersRequest request;
    auto& topic = request.topics.emplace_back();
    topic.name = "t";
    topic.partition_indexes.push_back(PartitionIndex(0));
    auto response = ask(0, std::move(request));
    return std::move(response.topics.at(0).partitions.at(0).active_producers);
  }
};

std::string shown(const FetchedPartition& answer) {
  std::string text = std::to_string(answer.high_watermark.value()) + "/" +
                     std::to_string(answer.last_stable_offset.value());
  if (!answer.aborted_transactions) return text + " null";
  for (const auto& aborted : *answer.aborted_transactions) {
    text += " " + std::to_string(aborted.producer_id.value()) + "@" +
            std::to_string(aborted.first_offset.value());
  }
  return text;
}

TEST_F(TransactionalReads, ReadCommittedStopsAtTheOpenTransactionReadUncommittedDoesNot) {
  write({.producer = 7, .sequence = 0, .transactional = false});
  write({.producer = 1, .records = 2});
  write({.producer = 7, .sequence = 1, .transactional = false});
  const auto committed = fetch(0, kCommitted);
  const auto uncommitted = fetch(0, kUncommitted);
  EXPECT_EQ(shown(committed), "4/1");
  EXPECT_EQ(shown(uncommitted), "4/1 null") << "the last stable offset is told to both";
  EXPECT_GT(uncommitted.records.bytes, 2 * committed.records.bytes);
  EXPECT_EQ(fetch(1, kCommitted).records.bytes, 0U);
  EXPECT_EQ(fetch(3, kCommitted).error_code, ErrorCode::NONE) << "above it, in the log";
  EXPECT_EQ(fetch(5, kCommitted).error_code, ErrorCode::OFFSET_OUT_OF_RANGE);
  EXPECT_EQ(shown(fetch(5, kCommitted)), "-1/-1 null");
}

TEST_F(TransactionalReads, TheAbortedTransactionsAreThoseOfWhatIsRead) {
  write({.producer = 1});                          // 0
  write({.producer = 2});                          // 1
  finish({.producer = 1, .commit = false});        // 2
  finish({.producer = 2, .commit = true});         // 3
  write({.producer = 3});                          // 4
  write({.producer = 7, .transactional = false});  // 5
  finish({.producer = 3, .commit = false});        // 6
  EXPECT_EQ(shown(fetch(0, kCommitted)), "7/7 1@0 3@4");
  EXPECT_EQ(shown(fetch(0, kUncommitted)), "7/7 null");
  EXPECT_EQ(shown(fetch(2, kCommitted)), "7/7 1@0 3@4") << "its marker is read";
  EXPECT_EQ(shown(fetch(3, kCommitted)), "7/7 3@4");
  EXPECT_EQ(shown(fetch(7, kCommitted)), "7/7") << "at the end: none, not null";

  auto request = fetch_of(0, kCommitted);
  request.max_bytes = 1;  // the first batch all the same
  const auto first = ask(12, std::move(request));
  EXPECT_EQ(shown(first.responses.at(0).partitions.at(0)), "7/7 1@0");
}

TEST_F(TransactionalReads, ASessionTellsTheAbortedTransactionsToo) {
  auto request = fetch_of(0, kCommitted);
  request.session_epoch = 0;
  const auto opened = ask(12, std::move(request));
  ASSERT_NE(opened.session_id, 0);
  write({.producer = 1});
  finish({.producer = 1, .commit = false});
  wire::FetchRequest next;
  next.max_bytes = 1 << 20;
  next.isolation_level = kCommitted;
  next.session_id = opened.session_id;
  next.session_epoch = 1;
  const auto response = ask(12, std::move(next));
  ASSERT_EQ(response.responses.size(), 1U);
  EXPECT_EQ(shown(response.responses[0].partitions.at(0)), "2/2 1@0");
}

TEST_F(TransactionalReads, LatestIsTheLastStableOffsetUnderReadCommitted) {
  write({.producer = 7, .transactional = false});
  write({.producer = 1});
  EXPECT_EQ(list(-1, kUncommitted).first, 2);
  EXPECT_EQ(list(-1, kCommitted).first, 1);
  EXPECT_EQ(list(-2, kCommitted).first, 0);
  finish({.commit = true});
  EXPECT_EQ(list(-1, kCommitted).first, 3);
}

TEST_F(TransactionalReads, ByTimeNothingIsToldOfWhatIsNotStable) {
  write({.producer = 7, .transactional = false});  // at 1000, as all
  write({.producer = 1});
  using Told = std::pair<std::int64_t, std::int64_t>;
  EXPECT_EQ(list(1000, kCommitted), Told(0, 1000));
  EXPECT_EQ(list(-3, kCommitted), Told(0, 1000));
  wire::DeleteRecordsRequest trim;
  auto& topic = trim.topics.emplace_back();
  topic.name = "t";
  topic.partitions.emplace_back().offset = Offset(1);
  ASSERT_EQ(ask(2, std::move(trim)).topics.at(0).partitions.at(0).error_code, ErrorCode::NONE);
  EXPECT_EQ(list(1000, kUncommitted), Told(1, 1000));
  EXPECT_EQ(list(1000, kCommitted), Told(-1, -1));
  EXPECT_EQ(list(-3, kCommitted), Told(-1, -1));
  const std::int64_t ended = clock.wall().value();
  finish({.commit = true});
  EXPECT_EQ(list(1000, kCommitted), Told(1, 1000));
  EXPECT_EQ(list(-3, kCommitted), Told(2, ended)) << "a marker has a time too, as in Kafka";
}

TEST_F(TransactionalReads, RecordsOfAnOpenTransactionCanBeDeleted) {
  write({.producer = 1, .records = 3});
  write({.producer = 7, .transactional = false});
  wire::DeleteRecordsRequest trim;
  auto& topic = trim.topics.emplace_back();
  topic.name = "t";
  topic.partitions.emplace_back().offset = Offset(4);
  const auto response = ask(2, std::move(trim));
  EXPECT_EQ(response.topics.at(0).partitions.at(0).error_code, ErrorCode::NONE);
  EXPECT_EQ(response.topics.at(0).partitions.at(0).low_watermark, Offset(4));
  write({.producer = 7, .sequence = 1, .transactional = false});
  EXPECT_EQ(shown(fetch(4, kCommitted)), "5/4") << "it is open all the same";
  EXPECT_EQ(producers().at(0).current_txn_start_offset, Offset(0));
  finish({.producer = 1, .commit = false});
  EXPECT_EQ(shown(fetch(4, kCommitted)), "6/6 1@0");
}

TEST_F(TransactionalReads, ProducersAreDescribedWithTheirTransactionAndTheirCoordinator) {
  write({.producer = 7, .transactional = false});
  write({.producer = 1, .epoch = 3, .records = 2});
  auto described = producers();
  ASSERT_EQ(described.size(), 2U);
  EXPECT_EQ(described[0].current_txn_start_offset, Offset(1));
  EXPECT_EQ(described[0].coordinator_epoch, -1);
  EXPECT_EQ(described[0].last_sequence, 1);
  EXPECT_EQ(described[0].last_timestamp, Timestamp(1000));
  EXPECT_EQ(described[1].current_txn_start_offset, kNoOffset);
  EXPECT_EQ(described[1].coordinator_epoch, -1);

  clock.pass(std::chrono::seconds(5));
  const Timestamp ended = clock.wall();
  finish({.producer = 1, .epoch = 4, .commit = true, .coordinator = 9, .version = 2});
  for (const bool again : {false, true}) {
    described = producers();
    EXPECT_EQ(described.at(0).producer_epoch, 4);
    EXPECT_EQ(described[0].current_txn_start_offset, kNoOffset);
    EXPECT_EQ(described[0].coordinator_epoch, 9);
    EXPECT_EQ(described[0].last_sequence, -1) << "the epoch was raised";
    EXPECT_EQ(described[0].last_timestamp, ended);
    if (!again) restart();
  }
}

}  // namespace
}  // namespace testing
}  // namespace kanal::handlers
