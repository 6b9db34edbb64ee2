// ListOffsets (2): the offset for a point in time, exact to the record, or for one of Kafka's
// special times.
//
// Behavior
// - -1 latest (of committed records; of stable ones under read committed), -2 earliest, -3 the
// record with the largest
//   timestamp, -4 earliest kept locally (= earliest here), -5 and -6 ask about remote storage:
//   offset -1, no error.
// - By time: the first record at or after it, in offset order, also where timestamps are out of
// order; markers count. -1 if that one, or the one of -3, cannot be fetched (yet).
// - The leader epoch of an answer is that of the record it names.
// - A partition named twice is answered once, with INVALID_REQUEST; a special time that this
// version does not know with
//   UNSUPPORTED_VERSION.
// Version notes
// - 7 knows -3, 8 -4, 9 -5, 11 -6.
#include <map>

#include "kanal/broker/broker.hpp"
#include "kanal/wire/messages/list_offsets.hpp"
#include "time_lookup.hpp"
#include "topic_lookup.hpp"

namespace kanal::handlers {
namespace {

using broker::Context;
using broker::Task;
using Request = wire::ListOffsetsRequest;
using Response = wire::ListOffsetsResponse;
using Asked = Request::Topic::Partition;
using Answer = Response::Topic::Partition;

constexpr std::int64_t kLatest = -1, kEarliest = -2, kMaxTimestamp = -3, kEarliestLocal = -4,
                       kLatestTiered = -5, kEarliestPendingUpload = -6;

bool knows(std::int64_t timestamp, std::int16_t version) {
  if (timestamp >= kEarliest) return true;
  if (timestamp == kMaxTimestamp) return version >= 7;
  if (timestamp == kEarliestLocal) return version >= 8;
  if (timestamp == kLatestTiered) return version >= 9;
  return timestamp == kEarliestPendingUpload && version >= 11;
}

void fill_special(Answer& answer, std::int64_t timestamp, const Marks& seen) {
  if (timestamp == kLatest) {
    answer.offset = seen.end;
    answer.leader_epoch = seen.current;
  } else if (timestamp == kEarliest || timestamp == kEarliestLocal) {
    answer.offset = seen.marks.log_start;
    answer.leader_epoch = seen.at_start;
  }
}

Result<Marks> marks_of(broker::Partition& partition, bool read_committed) {
  return partition.with_log([&](log::Partition& log) {
    const log::Watermarks marks = log.watermarks();
    const Offset end = read_committed ? marks.last_stable : marks.high_watermark;
    return Marks{marks, log.leader_epoch(), log.epoch_at(marks.log_start), end};
  });
}

struct Question {
  const Asked& asked;
  bool read_committed;
};

Task<void> fill_by_time(Context& context, broker::Partition& partition, Question question,
                        Marks seen, Answer& answer) {
  const Asked& asked = question.asked;
  Result<std::optional<records::TimedOffset>> found;
  for (;;) {
    if (asked.timestamp.value() == kMaxTimestamp)
      found = co_await find_largest(context, partition, seen);
    else
      found = co_await find_record(context, partition, asked.timestamp, seen);
    if (found || found.error().code != ErrorCode::OFFSET_OUT_OF_RANGE) break;
    // A trim came between finding and reading: what is left is looked through.
    const auto left = marks_of(partition, question.read_committed);
    if (!left || left->marks.log_start == seen.marks.log_start) break;
    seen = *left;
  }
  if (!found) {
    answer.error_code = found.error().code;
    co_return;
  }
  if (!*found || (*found)->offset >= seen.end) co_return;  // nothing there: -1, -1
  answer.timestamp = (*found)->timestamp;
  answer.offset = (*found)->offset;
  const auto epoch =
      partition.with_log([&](log::Partition& log) { return log.epoch_at(answer.offset); });
  if (epoch) answer.leader_epoch = *epoch;
}

Task<void> answer_one(Context& context, broker::TopicPtr topic, Question question, Answer& answer) {
  const Asked& asked = question.asked;
  const Found found = find_partition(std::move(topic), asked.partition_index,
                                     ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
  answer.error_code = found.error;
  if (found.error != ErrorCode::NONE) co_return;
  if (auto epoch = found.partition->check_epoch(asked.current_leader_epoch); !epoch) {
    answer.error_code = epoch.error().code;
    co_return;
  }
  const auto seen = marks_of(*found.partition, question.read_committed);
  if (!seen) {
    answer.error_code = seen.error().code;
    co_return;
  }
  const std::int64_t timestamp = asked.timestamp.value();
  if (timestamp >= 0 || timestamp == kMaxTimestamp)
    co_await fill_by_time(context, *found.partition, question, *seen, answer);
  else
    fill_special(answer, timestamp, *seen);
}

}  // namespace

Task<Response> handle(Context& context, Request request) {
  Response response;
  const auto topics = context.broker.topics();
  std::map<std::pair<std::string_view, PartitionIndex>, int> times;
  for (const auto& topic : request.topics) {
    for (const Asked& asked : topic.partitions) ++times[{topic.name, asked.partition_index}];
  }
  const bool isolation_known = request.isolation_level == 0 || request.isolation_level == 1;
  for (const auto& topic : request.topics) {
    auto& answered = response.topics.emplace_back();
    answered.name = std::string(topic.name);
    for (const Asked& asked : topic.partitions) {
      int& named = times[{topic.name, asked.partition_index}];
      if (named == 0) continue;  // a repetition that has its answer
      Answer& answer = answered.partitions.emplace_back();
      answer.partition_index = asked.partition_index;
      if (named > 1)
        answer.error_code = ErrorCode::INVALID_REQUEST;
      else if (!knows(asked.timestamp.value(), context.api_version))
        answer.error_code = ErrorCode::UNSUPPORTED_VERSION;
      else if (!isolation_known)
        answer.error_code = ErrorCode::UNKNOWN_SERVER_ERROR;  // as Kafka
      else {
        const Question question{asked, request.isolation_level == 1};
        co_await answer_one(context, topics->find(topic.name), question, answer);
      }
      named = named > 1 ? 0 : named;
    }
    if (answered.partitions.empty()) response.topics.pop_back();
  }
  co_return response;
}

}  // namespace kanal::handlers
