// What of a Produce request is part of a transaction. Its batches are checked first, each for
// itself, then all are verified (up to version 11: they were added before) or added (KIP-890) and
// appended in one hold of the transaction's lock, so that no end comes between. A request without a
// transactional id costs nothing of this. One request, one thread at a time.
#pragma once

#include <expected>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/broker/transactions.hpp"
#include "produce_answers.hpp"
#include "topic_lookup.hpp"

namespace kanal::handlers {

class ProduceTransaction {
 public:
  struct Batch {  // one that cannot be written takes part too, as in Kafka
    Found found;
    ProduceAnswer* answer;
    std::expected<records::CheckedBatch, records::Rejection> checked;
  };

  ProduceTransaction(broker::Context& context, const wire::ProduceRequest& request)
      : context_(context), request_(request) {}

  /// Whose transaction it is, of all batches together; or why nothing of the request is written.
  Error begin(const broker::Topics& topics) {
    const Error none{ErrorCode::NONE, ""};
    if (!has_transactional_batch()) return none;
    if (!request_.transactional_id ||
        !authorize(context_, Operation::kWrite, ResourceType::kTransactionalId,
                   *request_.transactional_id)) {
      return {ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ""};
    }
    for (const auto& topic : request_.topic_data) {
      const broker::TopicPtr found =
          find_topic(topics, topic.name, topic.topic_id, context_.api_version >= 13);
      if (found == nullptr) continue;
      for (const auto& partition : topic.partition_data) {
        if (found->partition(partition.index) == nullptr || is_follower_of_one(partition)) continue;
        return {ErrorCode::INVALID_PRODUCER_ID_MAPPING,
                "The request has transactional batches of more than one producer."};
      }
    }
    return none;
  }

  /// Whether its batch has to be given to add().
  [[nodiscard]] bool takes(const wire::ProduceRequest::Topic::Partition& partition) const {
    return writer_ && transactional(partition).has_value();
  }
  void add(Batch batch) { batches_.push_back(std::move(batch)); }

  /// Calls `append` with each of them and the error that it is refused with, or NONE.
  template <class Append>
  void write(Append&& append) {
    if (batches_.empty()) return;
    std::vector<coordinator::TransactionPartition> partitions;
    partitions.reserve(batches_.size());
    for (const Batch& batch : batches_)
      partitions.push_back({batch.found.topic->name(), batch.answer->index});
    const broker::Transactions::Append each = [&](std::span<const ErrorCode> errors) {
      for (std::size_t i = 0; i < batches_.size(); ++i)
        append(batches_[i], told(*batches_[i].found.partition, errors[i]));
    };
    context_.broker.transactions().write(*writer_, partitions, each);
    batches_.clear();
  }

  /// Version 2: what nothing is known of begins with sequence 0.
  [[nodiscard]] log::AppendTerms terms() const {
    return {.from_zero = writer_ && writer_->version == coordinator::TransactionVersion::k2};
  }

  /// In words, where Kafka has some.
  static std::string message(ErrorCode error) {
    if (error == ErrorCode::INVALID_TXN_STATE) return "The partition is not in the transaction.";
    if (error == ErrorCode::NOT_ENOUGH_REPLICAS)
      return "It cannot be told for now whether the partition is in the transaction.";
    return {};
  }

 private:
  using Header = std::optional<records::BatchHeader>;
  static Header transactional(const wire::ProduceRequest::Topic::Partition& partition) {
    if (!partition.records) return std::nullopt;
    const auto header = records::parse_header(*partition.records);
    if (!header || header->magic != 2 || !header->is_transactional()) return std::nullopt;
    return *header;
  }

  [[nodiscard]] bool has_transactional_batch() const {
    for (const auto& topic : request_.topic_data) {
      for (const auto& partition : topic.partition_data) {
        if (transactional(partition)) return true;
      }
    }
    return false;
  }

  /// Of the producer that was met first, which it is itself if there was none; or of none.
  bool is_follower_of_one(const wire::ProduceRequest::Topic::Partition& partition) {
    const Header header = transactional(partition);
    if (!header || !header->has_producer_id()) return true;
    if (!writer_) {
      const auto version = context_.api_version >= 12 ? coordinator::TransactionVersion::k2
                                                      : coordinator::TransactionVersion::k1;
      writer_.emplace(broker::TransactionWriter{*request_.transactional_id, header->producer_id,
                                                header->producer_epoch, version});
    }
    return writer_->producer_id == header->producer_id &&
           writer_->producer_epoch == header->producer_epoch;
  }

  /// What the client is told. That it is late, as the partition knows, comes before all else: a
  /// producer can go on from that (KAFKA-19690).
  ErrorCode told(broker::Partition& partition, ErrorCode error) const {
    if (error == ErrorCode::NONE) return error;
    const auto late = partition.with_log([&](log::Partition& log) {
      const auto& known = log.producers().producers();
      const auto found = known.find(writer_->producer_id);
      return found != known.end() && writer_->producer_epoch < found->second.epoch;
    });
    if (late && *late) return ErrorCode::INVALID_PRODUCER_EPOCH;
    const ErrorCode code = coordinator::writer_error(error, context_.api_version >= 11);
    // These and, below version 12, the next are repeated by clients only as one they know.
    const bool passes = code == ErrorCode::COORDINATOR_LOAD_IN_PROGRESS ||
                        code == ErrorCode::COORDINATOR_NOT_AVAILABLE ||
                        code == ErrorCode::NOT_COORDINATOR;
    const bool repeated = code == ErrorCode::CONCURRENT_TRANSACTIONS && context_.api_version < 12;
    return passes || repeated ? ErrorCode::NOT_ENOUGH_REPLICAS : code;
  }

  broker::Context& context_;
  const wire::ProduceRequest& request_;
  std::optional<broker::TransactionWriter> writer_;
  std::vector<Batch> batches_;
};

}  // namespace kanal::handlers
