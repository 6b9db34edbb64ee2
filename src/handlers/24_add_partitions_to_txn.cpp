// AddPartitionsToTxn (24, KIP-98): what a producer will write to becomes part of its transaction.
//
// Behavior
// - All or nothing: if a partition is missing none is added, and those that exist are told
//   OPERATION_NOT_ATTEMPTED. Kafka's own topics are refused for clients, whether or not they exist.
// - Answered in the order of the request, what is named twice twice; where partitions have errors
//   of their own, each once.
// Version notes
// - 2+ know PRODUCER_FENCED; before it is INVALID_PRODUCER_EPOCH.
// - 4+ are Kafka's between brokers: several transactions, each added to or only verified (KIP-890).
#include "kanal/wire/messages/add_partitions_to_txn.hpp"

#include <map>

#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/broker/transactions.hpp"
#include "topic_lookup.hpp"

namespace kanal::handlers {
namespace {

using broker::Context;
using Request = wire::AddPartitionsToTxnRequest;
using Response = wire::AddPartitionsToTxnResponse;
using coordinator::TransactionPartition;
using coordinator::TransactionVersion;
using Topics = std::vector<Request::Topic>;
using Results = std::vector<Response::TopicResult>;

constexpr std::int16_t kFirstOfBrokers = 4;

/// Every partition is told the same.
Results same_for_all(const Topics& topics, ErrorCode error) {
  Results results;
  results.reserve(topics.size());
  for (const Request::Topic& topic : topics) {
    auto& result = results.emplace_back();
    result.name = std::string(topic.name);
    result.results_by_partition.reserve(topic.partitions.size());
    for (const PartitionIndex index : topic.partitions)
      result.results_by_partition.push_back({index, error});
  }
  return results;
}

/// Each partition is told its own, once.
class ByPartition {
 public:
  void add(std::string_view topic, PartitionIndex index, ErrorCode error) {
    errors_[topic].try_emplace(index, error);
    any_failed_ |= error != ErrorCode::NONE;
  }
  [[nodiscard]] bool any_failed() const noexcept { return any_failed_; }
  /// `good` instead of NONE.
  [[nodiscard]] Results results(ErrorCode good = ErrorCode::NONE) const {
    Results results;
    for (const auto& [topic, partitions] : errors_) {
      auto& result = results.emplace_back();
      result.name = std::string(topic);
      for (const auto& [index, error] : partitions)
        result.results_by_partition.push_back({index, error == ErrorCode::NONE ? good : error});
    }
    return results;
  }

 private:
  std::map<std::string_view, std::map<PartitionIndex, ErrorCode>> errors_;
  bool any_failed_ = false;
};

/// One transaction of the request.
struct Asked {
  broker::TransactionWriter writer;
  bool verify_only = false;
  const Topics& topics;
};

ByPartition check(const Context& context, const Topics& topics) {
  const bool by_broker = context.api_version >= kFirstOfBrokers;
  const auto existing = context.broker.topics();
  ByPartition checked;
  for (const Request::Topic& topic : topics) {
    const bool allowed =
        by_broker || (!is_internal_topic(topic.name) &&
                      authorize(context, Operation::kWrite, ResourceType::kTopic, topic.name));
    const broker::TopicPtr found = existing->find(topic.name);
    for (const PartitionIndex index : topic.partitions) {
      ErrorCode error = ErrorCode::NONE;
      if (!allowed)
        error = ErrorCode::TOPIC_AUTHORIZATION_FAILED;
      else if (found == nullptr || found->partition(index) == nullptr)
        error = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
      checked.add(topic.name, index, error);
    }
  }
  return checked;
}

Results verify(const Context& context, const Asked& asked) {
  ByPartition verified;
  for (const Request::Topic& topic : asked.topics) {
    for (const PartitionIndex index : topic.partitions) {
      const TransactionPartition partition{topic.name, index};
      verified.add(topic.name, index,
                   context.broker.transactions().verify(asked.writer, partition));
    }
  }
  return verified.results();
}

ErrorCode add(const Context& context, const Asked& asked) {
  coordinator::AddToTransactionCommand command;
  command.producer_id = asked.writer.producer_id;
  command.producer_epoch = asked.writer.producer_epoch;
  command.version = asked.writer.version;
  command.knows_fenced = context.api_version >= 2;
  for (const Request::Topic& topic : asked.topics) {
    for (const PartitionIndex index : topic.partitions)
      command.partitions.push_back({topic.name, index});
  }
  return context.broker.transactions().add(asked.writer.id, std::move(command));
}

/// `added`: set where the transaction may have changed.
Results carry_out(const Context& context, const Asked& asked, bool& added) {
  if (context.api_version < kFirstOfBrokers &&
      !authorize(context, Operation::kWrite, ResourceType::kTransactionalId, asked.writer.id))
    return same_for_all(asked.topics, ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
  const ByPartition checked = check(context, asked.topics);
  if (checked.any_failed()) return checked.results(ErrorCode::OPERATION_NOT_ATTEMPTED);
  if (asked.verify_only) return verify(context, asked);
  const ErrorCode error = add(context, asked);
  added = error == ErrorCode::NONE;
  return same_for_all(asked.topics, error);
}

/// Before version 4 the request is one transaction of a client.
std::vector<Asked> asked_by(const Context& context, const Request& request) {
  if (context.api_version < kFirstOfBrokers) {
    return {{{request.v3_and_below_transactional_id, request.v3_and_below_producer_id,
              request.v3_and_below_producer_epoch, TransactionVersion::k1},
             false,
             request.v3_and_below_topics}};
  }
  std::vector<Asked> all;
  for (const Request::Transaction& one : request.transactions) {
    all.push_back(
        {{one.transactional_id, one.producer_id, one.producer_epoch, TransactionVersion::k2},
         one.verify_only,
         one.topics});
  }
  return all;
}

Response answer(const Context& context, const std::vector<Asked>& all,
                std::vector<Results> results) {
  Response response;
  if (context.api_version < kFirstOfBrokers) {
    response.results_by_topic_v3_and_below = std::move(results.front());
    return response;
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    response.results_by_transaction.push_back(
        {std::string(all[i].writer.id), std::move(results[i])});
  }
  return response;
}

}  // namespace

broker::Task<Response> handle(Context& context, Request request) {
  if (context.api_version >= kFirstOfBrokers &&
      !authorize(context, Operation::kClusterAction, ResourceType::kCluster, kClusterName)) {
    Response refused;
    refused.error_code = ErrorCode::CLUSTER_AUTHORIZATION_FAILED;
    co_return refused;
  }
  const std::vector<Asked> all = asked_by(context, request);
  std::vector<Results> results;
  std::vector<std::size_t> added;
  bool sync = false;
  for (const Asked& asked : all) {
    bool changed = false;
    results.push_back(carry_out(context, asked, changed));
    if (!changed) continue;
    added.push_back(results.size() - 1);
    sync |= any_acks_after_sync(*context.broker.topics(), asked.topics);
  }
  if (!added.empty()) {
    const auto synced = co_await context.broker.reserved_synced(context, sync);
    if (!synced) {
      for (const std::size_t at : added)
        results[at] = same_for_all(all[at].topics, ErrorCode::COORDINATOR_NOT_AVAILABLE);
    }
  }
  co_return answer(context, all, std::move(results));
}

}  // namespace kanal::handlers
