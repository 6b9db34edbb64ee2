// DescribeProducers (61): the producers that a partition remembers, and their transactions
// (KIP-664).
//
// Behavior
// - A topic's error comes for each of its partitions: a name that cannot be one is
//   INVALID_TOPIC_EXCEPTION, a missing topic UNKNOWN_TOPIC_OR_PARTITION; a missing partition of a
//   topic that exists has no message, as in Kafka.
// - Producers in the order of their ids, each with its last sequence number and the largest
//   timestamp of its last batch, or the time of its last marker.
#include <algorithm>

#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/wire/messages/describe_producers.hpp"
#include "topic_lookup.hpp"

namespace kanal::handlers {
namespace {

using broker::Context;
using Request = wire::DescribeProducersRequest;
using Response = wire::DescribeProducersResponse;
using Described = Response::Topic::Partition;
using Active = Described::ActiveProducer;

Error check_topic(const Context& context, std::string_view name, const broker::TopicPtr& topic) {
  if (auto good = check_topic_name(name); !good) return good.error();
  if (!authorize(context, Operation::kRead, ResourceType::kTopic, name))
    return {ErrorCode::TOPIC_AUTHORIZATION_FAILED, "Reading the topic is not allowed."};
  if (topic == nullptr)
    return {ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, "There is no topic " + std::string(name) + "."};
  return {ErrorCode::NONE, ""};
}

/// Under the partition's lock: in no order yet.
std::vector<Active> active_producers(log::Partition& log) {
  std::vector<Active> all;
  for (const auto& [id, producer] : log.producers().producers()) {
    Active& active = all.emplace_back();
    active.producer_id = id;
    active.producer_epoch = producer.epoch.value();
    active.coordinator_epoch = producer.coordinator_epoch;
    active.current_txn_start_offset = producer.transaction;
    if (producer.count > 0) {
      const log::ProducedBatch& last = producer.batches[producer.count - 1U];
      active.last_sequence = last.last_sequence;
      active.last_timestamp = last.timestamp;
    }
    const bool ended = producer.coordinator_epoch >= 0 && !producer.in_transaction();
    if (ended && producer.last_timestamp != kNoTimestamp)
      active.last_timestamp = producer.last_timestamp;
  }
  return all;
}

void describe(const broker::Topic& topic, Described& answer) {
  const auto partition = topic.partition(answer.partition_index);
  if (partition == nullptr) {
    answer.error_code = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    return;
  }
  auto active = partition->with_log(active_producers);
  if (!active) {
    answer.error_code = active.error().code;
    return;
  }
  std::ranges::sort(*active, {}, &Active::producer_id);
  answer.active_producers = std::move(*active);
}

}  // namespace

broker::Task<Response> handle(Context& context, Request request) {
  Response response;
  const auto topics = context.broker.topics();
  for (const auto& asked : request.topics) {
    const broker::TopicPtr topic = topics->find(asked.name);
    const Error error = check_topic(context, asked.name, topic);
    auto& described = response.topics.emplace_back();
    described.name = std::string(asked.name);
    for (const PartitionIndex index : asked.partition_indexes) {
      Described& answer = described.partitions.emplace_back();
      answer.partition_index = index;
      answer.error_code = error.code;
      if (error.code == ErrorCode::NONE)
        describe(*topic, answer);
      else
        answer.error_message = error.detail;
    }
  }
  co_return response;
}

}  // namespace kanal::handlers
