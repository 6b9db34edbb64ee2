// Produce inside of transactions, as the broker lets it in: who may write where, with which error,
// and what a transaction then has.
#include "kanal/broker/transactions.hpp"
#include "kanal/wire/messages/produce.hpp"
#include "one_broker.hpp"
#include "unit/log/transactional.hpp"

#include <map>
#include <string>

namespace kanal::handlers {

broker::Task<wire::ProduceResponse> handle(broker::Context&, wire::ProduceRequest);

namespace testing {
namespace {

using coordinator::TransactionReply;
using coordinator::TransactionVersion;
using enum ErrorCode;
using log::test::TxnBatch;

class ProduceTransactions : public OneBroker {
 protected:
  ProduceTransactions() { create("t", 3); }

  TransactionReply init(std::string_view id) {
    coordinator::InitProducerIdCommand command;
    command.timeout = std::chrono::minutes(1);
    broker::Context asking = context(22, 5);
    TransactionReply reply;
    do {
      reply = await(broker->transactions().init(asking, id, command));
    } while (reply.error == CONCURRENT_TRANSACTIONS);
    EXPECT_EQ(reply.error, NONE);
    return reply;
  }
  void add(std::string_view id, const TransactionReply& producer, std::int32_t partition) {
    coordinator::AddToTransactionCommand command;
    command.producer_id = producer.producer_id;
    command.producer_epoch = producer.producer_epoch;
    command.partitions.push_back({"t", PartitionIndex(partition)});
    EXPECT_EQ(broker->transactions().add(id, std::move(command)), NONE);
  }
  TransactionReply end(std::string_view id, const TransactionReply& producer, bool commit,
                       TransactionVersion version = TransactionVersion::k2) {
    coordinator::EndTransactionCommand command;
    command.producer_id = producer.producer_id;
    command.producer_epoch = producer.producer_epoch;
    command.commit = commit;
    command.version = version;
    broker::Context asking = context(26, 5);
    const TransactionReply reply = await(broker->transactions().end(asking, id, command));
    EXPECT_EQ(reply.error, NONE);
    return reply;
  }
  static TxnBatch batch(const TransactionReply& producer, std::int32_t sequence) {
    return {.producer = producer.producer_id.value(),
            .epoch = producer.producer_epoch.value(),
            .sequence = sequence};
  }

  using Answer = wire::ProduceResponse::Topic::Partition;
  /// One batch a partition.
  std::map<std::int32_t, Answer> produce(std::string_view id, std::int16_t version,
                                         const std::map<std::int32_t, TxnBatch>& batches) {
    wire::ProduceRequest request;
    if (!id.empty()) request.transactional_id = id;
    request.acks = -1;
    request.timeout = std::chrono::seconds(5);
    auto& topic = request.topic_data.emplace_back();
    if (version >= 13)
      topic.topic_id = broker->topics()->find("t")->id();
    else
      topic.name = "t";
    std::map<std::int32_t, Buffer> bytes;
    for (const auto& [index, spec] : batches) {
      bytes[index] = encode(spec);
      auto& partition = topic.partition_data.emplace_back();
      partition.index = PartitionIndex(index);
      partition.records = bytes[index];
    }
    broker::Context asking = context(0, version);
    auto response = await(handle(asking, std::move(request)));
    std::map<std::int32_t, Answer> answers;
    for (Answer& answer : response.responses.at(0).partition_responses)
      answers[answer.index.value()] = std::move(answer);
    return answers;
  }
  ErrorCode produce_one(std::string_view id, std::int16_t version, const TxnBatch& spec,
                        std::int32_t partition = 0) {
    return produce(id, version, {{partition, spec}}).at(partition).error_code;
  }
  log::Watermarks marks(std::int32_t partition = 0) {
    return broker->topics()
        ->find("t")
        ->partition(PartitionIndex(partition))
        ->with_log([](log::Partition& log) { return log.watermarks(); })
        .value();
  }
};

TEST_F(ProduceTransactions, VersionOneWritesOnlyToWhatItHasAdded) {
  const auto producer = init("id");
  add("id", producer, 0);
  const auto answers =
      produce("id", 11, {{0, batch(producer, 0)}, {1, batch(producer, 0)}, {7, {}}});
  EXPECT_EQ(answers.at(0).error_code, NONE);
  EXPECT_EQ(answers.at(0).base_offset, Offset(0));
  EXPECT_EQ(answers.at(1).error_code, TRANSACTION_ABORTABLE);
  EXPECT_EQ(answers.at(1).base_offset, kNoOffset);
  EXPECT_EQ(answers.at(7).error_code, UNKNOWN_TOPIC_OR_PARTITION);
  EXPECT_EQ(produce_one("id", 10, batch(producer, 0), 1), INVALID_TXN_STATE);
  EXPECT_EQ(marks(0).last_stable, Offset(0));
  EXPECT_EQ(marks(0).high_watermark, Offset(1));
  EXPECT_EQ(marks(1).high_watermark, Offset(0));
  end("id", producer, true, TransactionVersion::k1);
  EXPECT_EQ(marks(0).last_stable, Offset(2));
}

TEST_F(ProduceTransactions, VersionTwoAddsWhatItWritesTo) {
  for (const std::int16_t version : {std::int16_t{12}, std::int16_t{13}}) {
    const auto producer = init("id");
    const auto before = marks(0).high_watermark;
    const auto answers = produce("id", version, {{0, batch(producer, 0)}, {1, batch(producer, 0)}});
    EXPECT_EQ(answers.at(0).error_code, NONE);
    EXPECT_EQ(answers.at(1).error_code, NONE);
    EXPECT_EQ(marks(0).last_stable, before);
    end("id", producer, true);
    EXPECT_EQ(marks(0).last_stable, before + 2);
    EXPECT_EQ(marks(1).last_stable, before + 2);
  }
}

TEST_F(ProduceTransactions, ARepeatedBatchIsADuplicateWhileItsTransactionIsOpenOnly) {
  const auto first = init("one");
  add("one", first, 0);
  EXPECT_EQ(produce_one("one", 11, batch(first, 0)), NONE);
  const auto repeated = produce("one", 11, {{0, batch(first, 0)}}).at(0);
  EXPECT_EQ(repeated.error_code, NONE);
  EXPECT_EQ(repeated.base_offset, Offset(0));
  end("one", first, true, TransactionVersion::k1);
  EXPECT_EQ(produce_one("one", 11, batch(first, 0)), TRANSACTION_ABORTABLE);

  const auto second = init("two");
  EXPECT_EQ(produce_one("two", 12, batch(second, 0)), NONE);
  EXPECT_EQ(produce("two", 12, {{0, batch(second, 0)}}).at(0).base_offset, Offset(2));
  end("two", second, true);
  EXPECT_EQ(produce_one("two", 12, batch(second, 0)), INVALID_PRODUCER_EPOCH) << "it was raised";
  EXPECT_EQ(marks(0).high_watermark, Offset(4));
  EXPECT_EQ(marks(0).last_stable, Offset(4));
}

// A late write can never enter the next transaction (KIP-890).
TEST_F(ProduceTransactions, ALateBatchOfTheTransactionBeforeIsToldItsEpochIsOld) {
  const auto producer = init("id");
  EXPECT_EQ(produce_one("id", 12, batch(producer, 0)), NONE);
  const auto next = end("id", producer, false);
  EXPECT_EQ(produce_one("id", 12, batch(next, 0)), NONE);
  EXPECT_EQ(produce_one("id", 12, batch(producer, 1)), INVALID_PRODUCER_EPOCH);
  EXPECT_EQ(produce_one("id", 12, batch(producer, 0), 2), INVALID_PRODUCER_EPOCH);
  EXPECT_EQ(produce_one("id", 11, batch(producer, 1)), INVALID_PRODUCER_EPOCH);
}

TEST_F(ProduceTransactions, AFencedProducerIsToldItsEpochIsOldAlsoWhereItsTransactionIsUnknown) {
  const auto producer = init("id");
  add("id", producer, 0);
  EXPECT_EQ(produce_one("id", 11, batch(producer, 0)), NONE);
  init("id");  // aborts it
  EXPECT_EQ(marks(0).last_stable, Offset(2));
  EXPECT_EQ(produce_one("id", 11, batch(producer, 1)), INVALID_PRODUCER_EPOCH);
  EXPECT_EQ(produce_one("nobody", 11, batch(producer, 1)), INVALID_PRODUCER_EPOCH)
      << "the log knows";
  EXPECT_EQ(produce("id", 11, {{0, batch(producer, 1)}}).at(0).log_start_offset, Offset(-1));
  TxnBatch plain = batch(producer, 1);
  plain.transactional = false;
  const Answer answer = produce("", 11, {{0, plain}}).at(0);
  EXPECT_EQ(answer.error_code, INVALID_PRODUCER_EPOCH);
  EXPECT_EQ(answer.log_start_offset, Offset(0)) << "only of transactional batches it is not told";
}

TEST_F(ProduceTransactions, WhoIsNotTheProducerIsRefused) {
  const auto producer = init("id");
  const auto other = init("other");
  add("id", producer, 0);
  EXPECT_EQ(produce_one("", 11, batch(producer, 0)), TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
  EXPECT_EQ(produce_one("other", 11, batch(producer, 0)), INVALID_PRODUCER_ID_MAPPING);
  EXPECT_EQ(produce_one("nobody", 12, batch(producer, 0)), INVALID_PRODUCER_ID_MAPPING);
  auto later = batch(producer, 0);
  later.epoch = static_cast<std::int16_t>(later.epoch + 1);
  EXPECT_EQ(produce_one("id", 11, later), INVALID_PRODUCER_EPOCH);
  const auto mixed = produce("id", 11, {{0, batch(producer, 0)}, {1, batch(other, 0)}});
  for (const auto& [index, answer] : mixed) {
    EXPECT_EQ(answer.error_code, INVALID_PRODUCER_ID_MAPPING) << index;
    EXPECT_TRUE(answer.error_message);
  }
  const auto beside = produce("id", 11, {{0, batch(producer, 0)}, {9, batch(other, 0)}});
  EXPECT_EQ(beside.at(0).error_code, NONE) << "the other one has no partition";
  EXPECT_EQ(beside.at(9).error_code, UNKNOWN_TOPIC_OR_PARTITION);
}

TEST_F(ProduceTransactions, BesideATransactionOtherBatchesGoTheirOwnWay) {
  const auto producer = init("id");
  add("id", producer, 0);
  TxnBatch plain{.producer = 1'000'000, .transactional = false};
  const auto both = produce("id", 11, {{0, batch(producer, 0)}, {1, plain}});
  EXPECT_EQ(both.at(0).error_code, NONE);
  EXPECT_EQ(both.at(1).error_code, NONE);
  EXPECT_EQ(marks(1).last_stable, Offset(1));
  auto outside = batch(producer, 1);
  outside.transactional = false;
  EXPECT_EQ(produce_one("id", 11, outside), INVALID_TXN_STATE);
}

TEST_F(ProduceTransactions, VersionTwoBeginsWithSequenceZeroWhereNothingIsKnownOfTheProducer) {
  const auto first = init("one");
  add("one", first, 0);
  EXPECT_EQ(produce_one("one", 11, batch(first, 5)), NONE);
  const auto second = init("two");
  EXPECT_EQ(produce_one("two", 12, batch(second, 5)), OUT_OF_ORDER_SEQUENCE_NUMBER);
  EXPECT_EQ(produce_one("two", 12, batch(second, 0)), NONE);
}

TEST_F(ProduceTransactions, ABatchTooLargeForAnIoThreadIsPartOfItToo) {
  const auto producer = init("id");
  create("large", 1, {{"max.message.bytes", "10000000"}});
  records::BatchOptions options;
  options.producer_id = producer.producer_id;
  options.producer_epoch = producer.producer_epoch;
  options.base_sequence = 0;
  options.transactional = true;
  options.codec = records::Codec::kGzip;
  records::BatchBuilder builder(options);
  const std::string value(6 << 20, 'x');
  builder.add(Timestamp(1000), std::nullopt, as_bytes(value));
  records::Deflater deflater;
  Buffer large = builder.build(deflater).value();
  Buffer small = encode(batch(producer, 0));
  for (const std::int16_t version : {std::int16_t{11}, std::int16_t{12}}) {
    wire::ProduceRequest request;
    request.transactional_id = "id";
    request.acks = -1;
    request.timeout = std::chrono::seconds(5);
    for (auto& [name, bytes] : {std::pair<std::string_view, Buffer&>("large", large),
                                std::pair<std::string_view, Buffer&>("t", small)}) {
      auto& topic = request.topic_data.emplace_back();
      topic.name = name;
      auto& partition = topic.partition_data.emplace_back();
      partition.index = PartitionIndex(0);
      partition.records = bytes;
    }
    broker::Context asking = context(0, version);
    const auto response = await(handle(asking, std::move(request)));
    for (const auto& topic : response.responses) {
      EXPECT_EQ(topic.partition_responses.at(0).error_code,
                version == 11 ? TRANSACTION_ABORTABLE : NONE)
          << topic.name;
    }
  }
  const auto log = broker->topics()->find("large")->partition(PartitionIndex(0));
  end("id", producer, true);
  EXPECT_EQ(log->with_log([](log::Partition& in) { return in.watermarks().last_stable; }).value(),
            Offset(2));
}

}  // namespace
}  // namespace testing
}  // namespace kanal::handlers
