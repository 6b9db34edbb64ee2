// ListOffsets (2): the offset for a point in time, exact to the record, or for one of Kafka's
// special times.
//
// Behavior
// - -1 latest (of committed records; of stable ones under read committed), -2 earliest, -3 the
// record with the largest
//   timestamp, -4 earliest kept locally (= earliest here), -5 and -6 ask about remote storage:
//   offset -1, no error.
// - By time: the first record at or after it, in offset order, also where timestamps are out of
// order.
// - The leader epoch of an answer is that of the record it names.
// - A partition named twice is answered once, with INVALID_REQUEST; a special time that this
// version does not know with
//   UNSUPPORTED_VERSION.
// Version notes
// - 7 knows -3, 8 -4, 9 -5, 11 -6.
#include <map>

#include "kanal/broker/broker.hpp"
#include "kanal/records/lookup.hpp"
#include "kanal/wire/messages/list_offsets.hpp"
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

struct Marks {
  log::Watermarks marks;
  LeaderEpoch current, at_start;
};

void fill_special(Answer& answer, std::int64_t timestamp, const Marks& seen, bool read_committed) {
  if (timestamp == kLatest) {
    answer.offset = read_committed ? seen.marks.last_stable : seen.marks.high_watermark;
    answer.leader_epoch = seen.current;
  } else if (timestamp == kEarliest || timestamp == kEarliestLocal) {
    answer.offset = seen.marks.log_start;
    answer.leader_epoch = seen.at_start;
  }
}

/// The bytes of slices that a read gave, in one piece.
Result<Buffer> bytes_of(const std::vector<log::Slice>& slices) {
  Buffer bytes;
  for (const log::Slice& slice : slices) {
    if (const auto* memory = std::get_if<log::MemorySlice>(&slice.where)) {
      append(bytes, memory->bytes);
      continue;
    }
    const auto& file = std::get<log::FileSlice>(slice.where);
    const std::size_t before = bytes.size();
    bytes.resize(before + file.length);
    auto got = file.file->read_at(file.offset, MutableBytes(bytes).subspan(before));
    if (!got) return std::unexpected(got.error());
    bytes.resize(before + *got);
  }
  return bytes;
}

/// One batch that holds `from`, from memory or after loading it. Empty at the end of the log.
Task<Result<Buffer>> read_batch(Context& context, broker::Partition& partition, Offset from) {
  const log::FetchLimits one_batch{1, true, false};
  for (;;) {
    std::vector<log::Slice> slices;
    auto outcome = partition.read(from, one_batch, slices, nullptr);
    if (outcome) co_return bytes_of(slices);
    const auto* miss = std::get_if<log::Miss>(&outcome.error());
    if (miss == nullptr) co_return std::unexpected(std::get<Error>(outcome.error()));
    const Result<void> loaded = co_await context.broker.load(context, *miss);
    if (!loaded) co_return std::unexpected(loaded.error());
  }
}

using Position = std::optional<log::TimePosition>;

/// The first batch with a max timestamp of at least `timestamp`; without one, the first with the
/// largest.
Task<Result<Position>> find_batch(Context& context, broker::Partition& partition,
                                  std::optional<Timestamp> timestamp) {
  for (;;) {
    auto found = partition.with_log(
        [&](log::Partition& log) { return timestamp ? log.find(*timestamp) : log.find_max(); });
    if (!found) co_return std::unexpected(found.error());
    if (*found) co_return **found;
    const auto* miss = std::get_if<log::Miss>(&found->error());
    if (miss == nullptr) co_return std::unexpected(std::get<Error>(found->error()));
    const Result<void> loaded = co_await context.broker.load(context, *miss);
    if (!loaded) co_return std::unexpected(loaded.error());
  }
}

/// The record for `timestamp`, walking on from the first batch that may hold it: that one may hold
/// it only before the log start.
Task<Result<std::optional<records::TimedOffset>>> find_record(Context& context,
                                                              broker::Partition& partition,
                                                              Timestamp timestamp,
                                                              const Marks& seen) {
  using Outcome = Result<std::optional<records::TimedOffset>>;
  auto position = co_await find_batch(context, partition, timestamp);
  if (!position) co_return std::unexpected(position.error());
  if (!*position) co_return std::optional<records::TimedOffset>();
  Offset next = std::max(to_offset((*position)->sequence), seen.marks.log_start);
  while (next < seen.marks.high_watermark) {
    auto bytes = co_await read_batch(context, partition, next);
    if (!bytes) co_return std::unexpected(bytes.error());
    const auto header = records::parse_header(*bytes);
    if (!header) co_return std::unexpected(header.error());
    if (header->max_timestamp >= timestamp) {
      Outcome found =
          records::find_by_time(*bytes, timestamp, seen.marks.log_start, context.io.scratch());
      if (!found || *found) co_return found;
    }
    next = header->last_offset() + 1;
  }
  co_return std::optional<records::TimedOffset>();
}

/// -3: the first record with the largest timestamp of those that can be fetched. (Where
/// DeleteRecords cut it, Kafka goes on naming the deleted one.) One batch is read, but where the
/// log start cuts the batch with the largest timestamp between its records: then the headers of all
/// later ones decide.
Task<Result<std::optional<records::TimedOffset>>> find_largest(Context& context,
                                                               broker::Partition& partition,
                                                               const Marks& seen) {
  auto position = co_await find_batch(context, partition, std::nullopt);
  if (!position) co_return std::unexpected(position.error());
  std::optional<records::TimedOffset> largest;
  if (!*position) co_return largest;
  bool cut = false;
  Offset next = std::max(to_offset((*position)->sequence), seen.marks.log_start);
  do {
    auto bytes = co_await read_batch(context, partition, next);
    if (!bytes) co_return std::unexpected(bytes.error());
    const auto header = records::parse_header(*bytes);
    if (!header) co_return std::unexpected(header.error());
    next = header->last_offset() + 1;
    if (largest && header->max_timestamp <= largest->timestamp) continue;
    auto found = records::find_max_timestamp(*bytes, seen.marks.log_start, context.io.scratch());
    if (!found) co_return std::unexpected(found.error());
    if (*found) largest = **found;
    cut = cut || !largest || largest->timestamp != header->max_timestamp;
  } while (cut && next < seen.marks.high_watermark);
  co_return largest;
}

Task<void> fill_by_time(Context& context, broker::Partition& partition, const Asked& asked,
                        Marks seen, Answer& answer) {
  Result<std::optional<records::TimedOffset>> found;
  if (asked.timestamp.value() == kMaxTimestamp)
    found = co_await find_largest(context, partition, seen);
  else
    found = co_await find_record(context, partition, asked.timestamp, seen);
  if (!found) {
    answer.error_code = found.error().code;
    co_return;
  }
  if (!*found || (*found)->offset >= seen.marks.high_watermark) co_return;  // nothing there: -1, -1
  answer.timestamp = (*found)->timestamp;
  answer.offset = (*found)->offset;
  const auto epoch =
      partition.with_log([&](log::Partition& log) { return log.epoch_at(answer.offset); });
  if (epoch) answer.leader_epoch = *epoch;
}

Task<void> answer_one(Context& context, broker::TopicPtr topic, const Asked& asked,
                      bool read_committed, Answer& answer) {
  const Found found = find_partition(std::move(topic), asked.partition_index,
                                     ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
  answer.error_code = found.error;
  if (found.error != ErrorCode::NONE) co_return;
  if (auto epoch = found.partition->check_epoch(asked.current_leader_epoch); !epoch) {
    answer.error_code = epoch.error().code;
    co_return;
  }
  const auto seen = found.partition->with_log([](log::Partition& log) {
    const log::Watermarks marks = log.watermarks();
    return Marks{marks, log.leader_epoch(), log.epoch_at(marks.log_start)};
  });
  if (!seen) {
    answer.error_code = seen.error().code;
    co_return;
  }
  const std::int64_t timestamp = asked.timestamp.value();
  if (timestamp >= 0 || timestamp == kMaxTimestamp)
    co_await fill_by_time(context, *found.partition, asked, *seen, answer);
  else
    fill_special(answer, timestamp, *seen, read_committed);
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
      else
        co_await answer_one(context, topics->find(topic.name), asked, request.isolation_level == 1,
                            answer);
      named = named > 1 ? 0 : named;
    }
    if (answered.partitions.empty()) response.topics.pop_back();
  }
  co_return response;
}

}  // namespace kanal::handlers
