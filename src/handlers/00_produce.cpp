// Produce (0): appends record batches.
//
// Behavior
// - Every partition fails alone. Its record set is checked outside any lock, then numbered and
// written under it.
// - acks 0: no answer; an error closes the connection instead, so that the client learns of it.
// - acks 1 and -1 are the same on one node: written, or synced too where the topic asks for it
// (flush.messages=1).
//   Nothing is answered before the high watermark has passed it, and a duplicate waits for its
//   original.
// - A topic is not created here: clients create it through Metadata, which has the flag for it.
// Version notes
// - 3-6 refuse zstd; 8+ carry per-record errors; 10+ name the leader beside NOT_LEADER_OR_FOLLOWER;
// 13 names topics by id.
#include <limits>
#include <optional>

#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/wire/messages/produce.hpp"
#include "topic_lookup.hpp"

namespace kanal::handlers {
namespace {

using broker::Broker;
using broker::Context;
using Request = wire::ProduceRequest;
using Response = wire::ProduceResponse;
using Answer = Response::Topic::Partition;

std::optional<records::Codec> target_codec(coordinator::TopicCompression compression) {
  switch (compression) {
    case coordinator::TopicCompression::kProducer:
      return std::nullopt;
    case coordinator::TopicCompression::kUncompressed:
      return records::Codec::kNone;
    case coordinator::TopicCompression::kGzip:
      return records::Codec::kGzip;
    case coordinator::TopicCompression::kSnappy:
      return records::Codec::kSnappy;
    case coordinator::TopicCompression::kLz4:
      return records::Codec::kLz4;
    case coordinator::TopicCompression::kZstd:
      return records::Codec::kZstd;
  }
  return std::nullopt;
}

records::ProduceRules rules_for(const coordinator::TopicConfig& config, const Context& context) {
  records::ProduceRules rules;
  rules.log_append_time = config.timestamp_type == coordinator::TimestampKind::kLogAppendTime;
  rules.before_max_ms = config.timestamp_before_max_ms;
  rules.after_max_ms = config.timestamp_after_max_ms;
  rules.now = context.broker.clock().wall();
  rules.max_message_bytes = config.max_message_bytes;
  rules.compacted = config.cleanup_compact;
  rules.max_decompressed_bytes = config.max_decompressed_message_bytes;
  rules.produce_version = context.api_version;
  rules.compression = target_codec(config.compression_type);
  rules.levels.gzip = config.gzip_level;
  rules.levels.lz4 = config.lz4_level;
  rules.levels.zstd = config.zstd_level;
  return rules;
}

void refuse(Answer& answer, ErrorCode code, std::string message = {}) {
  answer.error_code = code;
  answer.base_offset = kNoOffset;
  if (!message.empty()) answer.error_message = std::move(message);
}

void refuse(Answer& answer, records::Rejection& rejection) {
  refuse(answer, rejection.code, std::move(rejection.message));
  for (records::RecordError& error : rejection.record_errors) {
    auto& entry = answer.record_errors.emplace_back();
    entry.batch_index = error.batch_index;
    entry.batch_index_error_message = std::move(error.message);
  }
}

struct Pending {  // an answer that waits for its records' commit; answers stay where they are
  Answer* answer;
  broker::Ticket ticket;
};

/// A compressed batch that inflates past this continues on a helper thread, so that it delays its
/// own connection only.
constexpr std::uint64_t kInflateBudget = 4 << 20;
constexpr std::uint64_t kNoBudget = std::numeric_limits<std::uint64_t>::max();

class Produce {
 public:
  Produce(Context& context, const Request& request)
      : context_(context),
        request_(request),
        by_id_(context.api_version >= 13),
        topics_(context.broker.topics()) {}

  void run() {
    response_.responses.reserve(request_.topic_data.size());
    ErrorCode refuse_all = ErrorCode::NONE;
    if (!request_.transactional_id && has_transactional_batch()) {
      refuse_all = ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
    } else if (request_.acks < -1 || request_.acks > 1) {
      refuse_all = ErrorCode::INVALID_REQUIRED_ACKS;
    }
    for (const Request::Topic& topic : request_.topic_data) {
      if (topic.partition_data.empty()) continue;
      auto& answered = response_.responses.emplace_back();
      answered.name = std::string(topic.name);
      answered.topic_id = topic.topic_id;
      answered.partition_responses.reserve(topic.partition_data.size());
      const broker::TopicPtr found = find_topic(*topics_, topic.name, topic.topic_id, by_id_);
      for (const Request::Topic::Partition& partition : topic.partition_data) {
        if (is_overridden(topic, partition)) continue;
        Answer& answer = answered.partition_responses.emplace_back();
        answer.index = partition.index;
        if (refuse_all != ErrorCode::NONE)
          refuse(answer, refuse_all);
        else
          append(found, topic, partition, answer);
        failed_ |= answer.error_code != ErrorCode::NONE;
      }
    }
  }

  /// Batches too large to be inflated on an I/O thread; finish_large() checks and appends them, on
  /// a helper thread.
  [[nodiscard]] bool has_large() const noexcept { return !large_.empty(); }
  void finish_large() {
    records::Scratch scratch;
    for (const Large& large : large_) {
      auto& answer = response_.responses[large.topic].partition_responses[large.partition];
      check_and_append(large.found, *large.asked, {scratch, kNoBudget}, answer);
      failed_ |= answer.error_code != ErrorCode::NONE;
    }
    large_.clear();
  }

  [[nodiscard]] Response& response() noexcept { return response_; }
  [[nodiscard]] std::vector<Pending>& pending() noexcept { return pending_; }
  [[nodiscard]] bool failed() const noexcept { return failed_; }

 private:
  // Of a partition named twice in one request the last record set counts, as in Kafka.
  static bool is_overridden(const Request::Topic& topic,
                            const Request::Topic::Partition& partition) {
    for (const auto* later = &partition + 1;
         later != topic.partition_data.data() + topic.partition_data.size(); ++later) {
      if (later->index == partition.index) return true;
    }
    return false;
  }

  bool has_transactional_batch() const {
    for (const auto& topic : request_.topic_data) {
      for (const auto& partition : topic.partition_data) {
        if (!partition.records) continue;
        const auto header = records::parse_header(*partition.records);
        if (header && header->magic == 2 && header->is_transactional()) return true;
      }
    }
    return false;
  }

  void append(const broker::TopicPtr& topic, const Request::Topic& named,
              const Request::Topic::Partition& partition, Answer& answer) {
    if (!authorize(context_, Operation::kWrite, ResourceType::kTopic, named.name)) {
      return refuse(answer, ErrorCode::TOPIC_AUTHORIZATION_FAILED);
    }
    if (!by_id_ && is_internal_topic(named.name))
      return refuse(answer, ErrorCode::INVALID_TOPIC_EXCEPTION);
    const Found found = find_partition(topic, partition.index, missing_topic(by_id_));
    if (found.error != ErrorCode::NONE) return refuse(answer, found.error);
    if (!partition.records)
      return refuse(answer, ErrorCode::INVALID_RECORD, "The record set is null.");
    check_and_append(found, partition, {context_.io.scratch(), kInflateBudget}, answer);
  }

  struct Means {
    records::Scratch& scratch;
    std::uint64_t inflate_budget;
  };

  void check_and_append(const Found& found, const Request::Topic::Partition& asked, Means means,
                        Answer& answer) {
    records::ProduceRules rules = rules_for(found.topic->config(), context_);
    rules.inflate_budget = means.inflate_budget;
    auto checked = records::check_produce(*asked.records, rules, means.scratch);
    if (!checked && checked.error().over_budget) {
      large_.push_back({response_.responses.size() - 1, index_of(answer), &asked, found});
      return;
    }
    if (!checked) {
      if (!checked.error().before_append)
        tell_log_start(*found.partition, checked.error().code, answer);
      return refuse(answer, checked.error());
    }
    if (checked->header.is_transactional()) {  // no transactional id is known here
      return refuse(answer, ErrorCode::INVALID_PRODUCER_ID_MAPPING);
    }
    auto appended = context_.broker.append(found.partition, *checked);
    if (!appended) {
      tell_log_start(*found.partition, appended.error().code, answer);
      return refuse(answer, appended.error().code, std::move(appended.error().detail));
    }
    answer.error_code = ErrorCode::NONE;
    answer.base_offset = appended->base_offset;
    answer.log_append_time = appended->log_append_time;
    answer.log_start_offset = appended->log_start;
    if (!appended->committed && request_.acks != 0) {
      pending_.push_back({&answer, {found.partition, appended->last}});
    }
  }

  [[nodiscard]] std::size_t index_of(const Answer& answer) const {
    return static_cast<std::size_t>(&answer -
                                    response_.responses.back().partition_responses.data());
  }

  // Kafka tells the log start beside an error, but for those that say nothing about the log.
  static void tell_log_start(broker::Partition& partition, ErrorCode code, Answer& answer) {
    if (code == ErrorCode::CORRUPT_MESSAGE || code == ErrorCode::MESSAGE_TOO_LARGE ||
        code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION ||
        code == ErrorCode::NOT_LEADER_OR_FOLLOWER || code == ErrorCode::KAFKA_STORAGE_ERROR) {
      return;
    }
    const auto start =
        partition.with_log([](log::Partition& log) { return log.watermarks().log_start; });
    if (start) answer.log_start_offset = *start;
  }

  Context& context_;
  const Request& request_;
  const bool by_id_;
  const std::shared_ptr<const broker::Topics> topics_;
  Response response_;
  struct Large {
    std::size_t topic, partition;
    const Request::Topic::Partition* asked;
    Found found;
  };
  std::vector<Large> large_;
  std::vector<Pending> pending_;
  bool failed_ = false;
};

broker::Task<void> await_commits(Context& context, const Request& request,
                                 std::vector<Pending>& pending) {
  std::vector<broker::Ticket> tickets;
  tickets.reserve(pending.size());
  for (Pending& wait : pending) tickets.push_back(wait.ticket);
  const Time deadline = context.broker.clock().now() + request.timeout;
  co_await context.broker.committed(context, tickets, deadline);
  for (const Pending& wait : pending) {
    const ErrorCode outcome = Broker::outcome(wait.ticket);
    if (outcome != ErrorCode::NONE) refuse(*wait.answer, outcome);
  }
}

}  // namespace

broker::Task<Response> handle(Context& context, Request request) {
  Produce produce(context, request);
  produce.run();
  if (produce.has_large()) {
    auto work = [&produce] { produce.finish_large(); };
    co_await context.broker.on_helper(context, std::move(work));
  }
  if (!produce.pending().empty()) co_await await_commits(context, request, produce.pending());
  if (request.acks == 0) {
    context.suppress_response = true;
    context.close_connection = produce.failed();
  }
  co_return std::move(produce.response());
}

}  // namespace kanal::handlers
