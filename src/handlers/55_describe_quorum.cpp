// DescribeQuorum (55): the quorum of the cluster's metadata. It is this node alone: leader and only
// voter.
//
// Behavior
// - Only __cluster_metadata, partition 0, asked for by itself; anything else makes every partition
//   of the request UNKNOWN_TOPIC_OR_PARTITION.
// - There is no Raft log. The offsets are the position in the journal of the reserved channels,
//   where every change of the metadata goes: it counts up, over restarts too. The epoch is the
//   leader epoch, one more at every start.
// Version notes
// - 1+ when a replica was last heard of: now. 2+ directory ids (none here), the voter's address (of
//   the listener that was asked) and error messages, which are empty where there is no error.
#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/wire/messages/describe_quorum.hpp"

namespace kanal::handlers {
namespace {

using broker::Context;
using Request = wire::DescribeQuorumRequest;
using Response = wire::DescribeQuorumResponse;

constexpr std::string_view kMetadataTopic = "__cluster_metadata";
constexpr PartitionIndex kMetadataPartition{0};

bool asks_for_metadata(const Request& request) {
  return request.topics.size() == 1 && request.topics[0].topic_name == kMetadataTopic &&
         request.topics[0].partitions.size() == 1 &&
         request.topics[0].partitions[0].partition_index == kMetadataPartition;
}

void refuse_all(const Request& request, Response& response) {
  for (const auto& topic : request.topics) {
    auto& described = response.topics.emplace_back();
    described.topic_name = std::string(topic.topic_name);
    for (const auto& partition : topic.partitions) {
      auto& answer = described.partitions.emplace_back();
      answer.partition_index = partition.partition_index;
      answer.error_code = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
      answer.error_message = "Only __cluster_metadata, partition 0, has a quorum.";
    }
  }
}

void describe(Context& context, Response& response) {
  auto& topic = response.topics.emplace_back();
  topic.topic_name = std::string(kMetadataTopic);
  auto& partition = topic.partitions.emplace_back();
  partition.partition_index = kMetadataPartition;
  partition.error_message = "";
  partition.leader_id = context.broker.node_id();
  partition.leader_epoch = context.broker.leader_epoch();
  partition.high_watermark = context.broker.metadata_end();
  auto& voter = partition.current_voters.emplace_back();
  voter.replica_id = context.broker.node_id();
  voter.log_end_offset = partition.high_watermark;
  voter.last_fetch_timestamp = voter.last_caught_up_timestamp = context.broker.clock().wall();
  auto& node = response.nodes.emplace_back();
  node.node_id = context.broker.node_id();
  auto& listener = node.listeners.emplace_back();
  listener.name = context.peer.listener->name;
  listener.host = context.peer.listener->host;
  listener.port = static_cast<std::uint16_t>(context.peer.listener->port);
}

}  // namespace

broker::Task<Response> handle(Context& context, Request request) {
  Response response;
  response.error_message = "";
  if (!authorize(context, Operation::kDescribe, ResourceType::kCluster, kClusterName)) {
    response.error_code = ErrorCode::CLUSTER_AUTHORIZATION_FAILED;
    response.error_message = "Describing the quorum is not allowed.";
  } else if (asks_for_metadata(request)) {
    describe(context, response);
  } else {
    refuse_all(request, response);
  }
  co_return response;
}

}  // namespace kanal::handlers
