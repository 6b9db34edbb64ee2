// What the tests of the transaction APIs share: each request in a line, its answer as pairs. One
// thread.
#pragma once

#include "kanal/wire/messages/add_offsets_to_txn.hpp"
#include "kanal/wire/messages/add_partitions_to_txn.hpp"
#include "kanal/wire/messages/api_versions.hpp"
#include "kanal/wire/messages/describe_producers.hpp"
#include "kanal/wire/messages/describe_transactions.hpp"
#include "kanal/wire/messages/end_txn.hpp"
#include "kanal/wire/messages/find_coordinator.hpp"
#include "kanal/wire/messages/init_producer_id.hpp"
#include "kanal/wire/messages/list_transactions.hpp"
#include "kanal/wire/messages/write_txn_markers.hpp"
#include "one_broker.hpp"

namespace kanal::handlers {

#define HANDLER(NAME) \
  broker::Task<wire::NAME##Response> handle(broker::Context& context, wire::NAME##Request request)
HANDLER(AddOffsetsToTxn);
HANDLER(AddPartitionsToTxn);
HANDLER(ApiVersions);
HANDLER(DescribeProducers);
HANDLER(DescribeTransactions);
HANDLER(EndTxn);
HANDLER(FindCoordinator);
HANDLER(InitProducerId);
HANDLER(ListTransactions);
HANDLER(WriteTxnMarkers);
#undef HANDLER

namespace testing {

using broker::ProducerIdentity;

using Named = std::vector<std::pair<std::string_view, std::vector<int>>>;  // topics, partitions
using Told = std::vector<std::pair<std::string, ErrorCode>>;               // "topic-partition"

class TransactionApis : public OneBroker {
 protected:
  template <class Request>
  auto ask(Request request, int version) {
    broker::Context asking = context(Request::kApiKey, static_cast<std::int16_t>(version));
    return await(handle(asking, std::move(request)));
  }

  wire::InitProducerIdResponse init(std::optional<std::string_view> id, ProducerIdentity own = {},
                                    int version = 5, int timeout_ms = 60'000) {
    wire::InitProducerIdRequest request;
    request.transactional_id = id;
    request.transaction_timeout = std::chrono::milliseconds(timeout_ms);
    request.producer_id = own.id;
    request.producer_epoch = own.epoch;
    return ask(std::move(request), version);
  }
  /// One that is made, or made again.
  ProducerIdentity producer(std::string_view id) {
    const auto response = init(id);
    EXPECT_EQ(response.error_code, ErrorCode::NONE);
    return {response.producer_id, response.producer_epoch};
  }

  template <class Result>
  static Told told(const std::vector<Result>& results) {
    Told all;
    for (const auto& topic : results) {
      for (const auto& [index, error] : topic.results_by_partition)
        all.emplace_back(topic.name + "-" + std::to_string(index.value()), error);
    }
    return all;
  }
  template <class Topic>
  static std::vector<Topic> named(const Named& topics) {
    std::vector<Topic> all;
    for (const auto& [name, partitions] : topics) {
      auto& topic = all.emplace_back();
      topic.name = name;
      for (const int partition : partitions) topic.partitions.emplace_back(partition);
    }
    return all;
  }

  Told add(std::string_view id, ProducerIdentity own, const Named& topics, int version = 3) {
    using Request = wire::AddPartitionsToTxnRequest;
    Request request;
    request.v3_and_below_transactional_id = id;
    request.v3_and_below_producer_id = own.id;
    request.v3_and_below_producer_epoch = own.epoch;
    request.v3_and_below_topics = named<Request::Topic>(topics);
    return told(ask(std::move(request), version).results_by_topic_v3_and_below);
  }

  struct OfBroker {
    std::string_view id;
    ProducerIdentity own;
    bool verify_only = false;
    Named topics;
  };
  std::vector<std::pair<std::string, Told>> add_for_brokers(const std::vector<OfBroker>& all) {
    using Request = wire::AddPartitionsToTxnRequest;
    Request request;
    for (const OfBroker& one : all) {
      auto& transaction = request.transactions.emplace_back();
      transaction.transactional_id = one.id;
      transaction.producer_id = one.own.id;
      transaction.producer_epoch = one.own.epoch;
      transaction.verify_only = one.verify_only;
      transaction.topics = named<Request::Topic>(one.topics);
    }
    const auto response = ask(std::move(request), 5);
    EXPECT_EQ(response.error_code, ErrorCode::NONE);
    std::vector<std::pair<std::string, Told>> results;
    for (const auto& result : response.results_by_transaction)
      results.emplace_back(result.transactional_id, told(result.topic_results));
    return results;
  }

  ErrorCode add_group(std::string_view id, ProducerIdentity own, std::string_view group,
                      int version = 4) {
    wire::AddOffsetsToTxnRequest request;
    request.transactional_id = id;
    request.producer_id = own.id;
    request.producer_epoch = own.epoch;
    request.group_id = group;
    return ask(std::move(request), version).error_code;
  }

  wire::EndTxnResponse end(std::string_view id, ProducerIdentity own, bool commit,
                           int version = 4) {
    wire::EndTxnRequest request;
    request.transactional_id = id;
    request.producer_id = own.id;
    request.producer_epoch = own.epoch;
    request.committed = commit;
    return ask(std::move(request), version);
  }

  using State = wire::DescribeTransactionsResponse::State;
  State state(std::string_view id) {
    wire::DescribeTransactionsRequest request;
    request.transactional_ids = {id};
    const auto response = ask(std::move(request), 0);
    EXPECT_EQ(response.transaction_states.size(), 1U);
    EXPECT_EQ(response.transaction_states.at(0).transactional_id, id);
    return response.transaction_states.at(0);
  }

  wire::ListTransactionsResponse list(wire::ListTransactionsRequest request, int version = 2) {
    return ask(std::move(request), version);
  }
  std::vector<std::string> listed(wire::ListTransactionsRequest request, int version = 2) {
    const auto response = list(std::move(request), version);
    EXPECT_EQ(response.error_code, ErrorCode::NONE);
    std::vector<std::string> ids;
    for (const auto& each : response.transaction_states) ids.push_back(each.transactional_id);
    return ids;
  }

  struct Marker {
    ProducerIdentity own;
    Named topics;
    bool commit = false;
    int coordinator_epoch = 0;
    int transaction_version = 0;
  };
  std::vector<std::pair<ProducerId, Told>> write(const std::vector<Marker>& markers,
                                                 int version = 2) {
    wire::WriteTxnMarkersRequest request;
    for (const Marker& each : markers) {
      auto& marker = request.markers.emplace_back();
      marker.producer_id = each.own.id;
      marker.producer_epoch = each.own.epoch;
      marker.transaction_result = each.commit;
      marker.coordinator_epoch = each.coordinator_epoch;
      marker.transaction_version = static_cast<std::int8_t>(each.transaction_version);
      for (const auto& [name, partitions] : each.topics) {
        auto& topic = marker.topics.emplace_back();
        topic.name = name;
        for (const int partition : partitions) topic.partition_indexes.emplace_back(partition);
      }
    }
    std::vector<std::pair<ProducerId, Told>> results;
    for (const auto& marker : ask(std::move(request), version).markers) {
      Told all;
      for (const auto& topic : marker.topics) {
        for (const auto& [index, error] : topic.partitions)
          all.emplace_back(topic.name + "-" + std::to_string(index.value()), error);
      }
      results.emplace_back(marker.producer_id, std::move(all));
    }
    return results;
  }

  using Active = wire::DescribeProducersResponse::Topic::Partition::ActiveProducer;
  std::vector<Active> producers(std::string_view topic, int partition = 0) {
    wire::DescribeProducersRequest request;
    auto& asked = request.topics.emplace_back();
    asked.name = topic;
    asked.partition_indexes = {PartitionIndex(partition)};
    return ask(std::move(request), 0).topics.at(0).partitions.at(0).active_producers;
  }

  log::Watermarks watermarks(std::string_view topic, int partition = 0) {
    const auto found = broker->topics()->find(topic)->partition(PartitionIndex(partition));
    return found->with_log([](log::Partition& log) { return log.watermarks(); }).value();
  }
  void append_open(std::string_view topic, ProducerIdentity own, std::int32_t sequence = 0) {
    append(topic, {.timestamp = 5'000,
                   .producer = own.id.value(),
                   .epoch = own.epoch.value(),
                   .sequence = sequence,
                   .transactional = true});
  }
};

inline ProducerIdentity next(ProducerIdentity own) {
  return {own.id, own.epoch + std::int16_t{1}};
}

}  // namespace testing
}  // namespace kanal::handlers
