// OffsetForLeaderEpoch (23): where a leader epoch ends, so that a client finds out about a
// truncated log (KIP-320).
//
// Version notes
// - 3+ names the replica that asks; every client may.
#include "kanal/broker/broker.hpp"
#include "kanal/wire/messages/offset_for_leader_epoch.hpp"
#include "topic_lookup.hpp"

namespace kanal::handlers {
namespace {

using Request = wire::OffsetForLeaderEpochRequest;
using Response = wire::OffsetForLeaderEpochResponse;

void answer(const broker::Topics& topics, std::string_view name,
            const Request::Topic::Partition& asked, Response::Topic::Partition& answer) {
  answer.partition = asked.partition;
  const Found found =
      find_partition(topics.find(name), asked.partition, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
  answer.error_code = found.error;
  if (found.error != ErrorCode::NONE) return;
  if (auto epoch = found.partition->check_epoch(asked.current_leader_epoch); !epoch) {
    answer.error_code = epoch.error().code;
    return;
  }
  const auto end = found.partition->with_log(
      [&](log::Partition& log) { return log.end_of_epoch(asked.leader_epoch); });
  if (!end) {
    answer.error_code = end.error().code;
    return;
  }
  answer.leader_epoch = end->epoch;
  answer.end_offset = end->end_offset;
}

}  // namespace

broker::Task<Response> handle(broker::Context& context, Request request) {
  Response response;
  const auto topics = context.broker.topics();
  for (const auto& topic : request.topics) {
    auto& answered = response.topics.emplace_back();
    answered.topic = std::string(topic.topic);
    for (const auto& asked : topic.partitions)
      answer(*topics, topic.topic, asked, answered.partitions.emplace_back());
  }
  co_return response;
}

}  // namespace kanal::handlers
