// DeleteRecords (21): moves the log start; what lies below it can no longer be read, also after a
// restart.
//
// Behavior
// - -1 is the high watermark; an offset outside [log start .. high watermark] moves nothing below
// the log start and is
//   OFFSET_OUT_OF_RANGE above the high watermark. The answer's low watermark is the log start that
//   holds now.
// - A partition named twice is answered once, with the last offset named.
// - A topic that is only compacted is POLICY_VIOLATION, as in Kafka.
#include <map>

#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/wire/messages/delete_records.hpp"
#include "topic_lookup.hpp"

namespace kanal::handlers {
namespace {

using broker::Context;
using Request = wire::DeleteRecordsRequest;
using Response = wire::DeleteRecordsResponse;

/// Blocks: the new start is written before it is answered, and so outlives kill -9.
Result<Offset> trim(broker::Partition& partition, Offset asked) {
  const auto ask = [&] {
    return partition.with_log([](log::Partition& log) { return log.watermarks(); });
  };
  auto marks = ask();
  if (!marks) return std::unexpected(marks.error());
  const Offset start = asked == kNoOffset ? marks->high_watermark : asked;
  if (start < Offset(0) || start > marks->high_watermark)
    return fail(ErrorCode::OFFSET_OUT_OF_RANGE);
  if (start <= marks->log_start) return marks->log_start;
  if (auto moved = partition.trim(start); !moved) return std::unexpected(moved.error());
  marks = ask();
  if (!marks) return std::unexpected(marks.error());
  return marks->log_start;
}

Result<Offset> delete_up_to(const broker::Topics& topics, std::string_view name,
                            PartitionIndex index, Offset start) {
  const Found found =
      find_partition(topics.find(name), index, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
  if (is_internal_topic(name)) return fail(ErrorCode::INVALID_TOPIC_EXCEPTION);
  if (found.error != ErrorCode::NONE) return fail(found.error);
  const coordinator::TopicConfig& config = found.topic->config();
  if (config.cleanup_compact && !config.cleanup_delete) return fail(ErrorCode::POLICY_VIOLATION);
  return trim(*found.partition, start);
}

}  // namespace

broker::Task<Response> handle(Context& context, Request request) {
  Response response;
  const auto topics = context.broker.topics();
  std::map<std::string_view, std::map<PartitionIndex, Offset>> asked;
  for (const auto& topic : request.topics) {
    for (const auto& partition : topic.partitions)
      asked[topic.name][partition.partition_index] = partition.offset;
  }
  auto work = [&] {
    for (const auto& [name, partitions] : asked) {
      auto& answered = response.topics.emplace_back();
      answered.name = std::string(name);
      for (const auto& [index, wanted] : partitions) {
        auto& answer = answered.partitions.emplace_back();
        answer.partition_index = index;
        const Result<Offset> start = delete_up_to(*topics, name, index, wanted);
        answer.low_watermark = start ? *start : kNoOffset;
        answer.error_code = start ? ErrorCode::NONE : start.error().code;
      }
    }
  };
  co_await context.broker.on_helper(context, std::move(work));
  co_return response;
}

}  // namespace kanal::handlers
