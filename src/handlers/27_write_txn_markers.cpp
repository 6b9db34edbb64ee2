// WriteTxnMarkers (27): ends a producer's transaction in single partitions, past the transaction
// itself: what `kafka-transactions abort` sends for one that hangs (KIP-664).
//
// Behavior
// - Every partition fails alone: missing, INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED.
//   A marker is written also where no transaction is open, as in Kafka.
// - Answered by producer, topic and partition, each once, with what it was told last. A marker
//   without partitions has no answer. A partition named twice in one marker is written once (Kafka
//   never answers then).
// Version notes
// - 1 has no version of the transaction: it ends as one of version 1, so that the producer's own
//   epoch is good.
#include "kanal/wire/messages/write_txn_markers.hpp"

#include <map>
#include <set>
#include <utility>

#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "topic_lookup.hpp"

namespace kanal::handlers {
namespace {

using broker::Broker;
using broker::Context;
using Request = wire::WriteTxnMarkersRequest;
using Response = wire::WriteTxnMarkersResponse;

constexpr std::chrono::seconds kWait{30};  // for commits: request.timeout.ms, which is fixed

bool allowed(const Context& context) {
  return authorize(context, Operation::kAlter, ResourceType::kCluster, kClusterName) ||
         authorize(context, Operation::kClusterAction, ResourceType::kCluster, kClusterName);
}

class Markers {
 public:
  explicit Markers(Context& context) : context_(context), topics_(context.broker.topics()) {}

  void refuse(const Request::Marker& marker, ErrorCode error) {
    for (const auto& topic : marker.topics) {
      for (const PartitionIndex index : topic.partition_indexes) told(marker, topic, index) = error;
    }
  }

  void write(const Request::Marker& marker) {
    Broker::Together together(context_.broker);
    const log::EndMarker end{.producer = marker.producer_id,
                             .epoch = marker.producer_epoch,
                             .type = marker.transaction_result ? records::ControlType::kCommit
                                                               : records::ControlType::kAbort,
                             .coordinator_epoch = marker.coordinator_epoch,
                             .version = marker.transaction_version};
    std::set<std::pair<std::string_view, PartitionIndex>> written;
    for (const auto& topic : marker.topics) {
      const broker::TopicPtr found = topics_->find(topic.name);
      for (const PartitionIndex index : topic.partition_indexes) {
        if (!written.emplace(topic.name, index).second) continue;
        ErrorCode& error = told(marker, topic, index);
        error = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
        if (found == nullptr) continue;
        const auto partition = found->partition(index);
        if (partition == nullptr) continue;
        error = ErrorCode::INVALID_REQUEST;
        if (end.version < 0) continue;
        const auto appended = together.append_marker(partition, end);
        error = appended ? ErrorCode::NONE : appended.error().code;
        if (appended && !appended->committed) {
          tickets_.push_back({partition, appended->last});
          awaited_.push_back(&error);
        }
      }
    }
  }

  broker::Task<void> committed() {
    const Time deadline = context_.broker.clock().now() + kWait;
    co_await context_.broker.committed(context_, tickets_, deadline);
    for (std::size_t i = 0; i < tickets_.size(); ++i) {
      const ErrorCode outcome = Broker::outcome(tickets_[i]);
      if (outcome != ErrorCode::NONE) *awaited_[i] = outcome;
    }
  }

  [[nodiscard]] Response response() const {
    Response response;
    for (const auto& [producer, topics] : told_) {
      auto& marker = response.markers.emplace_back();
      marker.producer_id = producer;
      for (const auto& [name, partitions] : topics) {
        auto& topic = marker.topics.emplace_back();
        topic.name = std::string(name);
        for (const auto& [index, error] : partitions) topic.partitions.push_back({index, error});
      }
    }
    return response;
  }

 private:
  using ByPartition = std::map<PartitionIndex, ErrorCode>;

  ErrorCode& told(const Request::Marker& marker, const Request::Marker::Topic& topic,
                  PartitionIndex index) {
    return told_[marker.producer_id][topic.name][index];
  }

  Context& context_;
  const std::shared_ptr<const broker::Topics> topics_;
  std::map<ProducerId, std::map<std::string_view, ByPartition>> told_;
  std::vector<broker::Ticket> tickets_;
  std::vector<ErrorCode*> awaited_;  // of the same ticket, in told_
};

}  // namespace

broker::Task<Response> handle(Context& context, Request request) {
  Markers markers(context);
  const bool may = allowed(context);
  for (const Request::Marker& marker : request.markers) {
    if (may)
      markers.write(marker);
    else
      markers.refuse(marker, ErrorCode::CLUSTER_AUTHORIZATION_FAILED);
  }
  co_await markers.committed();
  co_return markers.response();
}

}  // namespace kanal::handlers
