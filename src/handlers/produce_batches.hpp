// The record sets of one Produce request: each is checked, appended and answered for itself. One
// request: its I/O thread, or for finish_large() a helper thread while the request waits.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/wire/messages/produce.hpp"
#include "produce_rules.hpp"
#include "topic_lookup.hpp"

namespace kanal::handlers {

using ProduceAnswer = wire::ProduceResponse::Topic::Partition;

inline void refuse(ProduceAnswer& answer, ErrorCode code, std::string message = {}) {
  answer.error_code = code;
  answer.base_offset = kNoOffset;
  if (!message.empty()) answer.error_message = std::move(message);
}

inline void refuse(ProduceAnswer& answer, records::Rejection& rejection) {
  refuse(answer, rejection.code, std::move(rejection.message));
  for (records::RecordError& error : rejection.record_errors) {
    auto& entry = answer.record_errors.emplace_back();
    entry.batch_index = error.batch_index;
    entry.batch_index_error_message = std::move(error.message);
  }
}

struct PendingAnswer {  // an answer that waits for its records' commit; answers stay where they are
  ProduceAnswer* answer;
  broker::Ticket ticket;
};

/// A compressed batch that inflates past this continues on a helper thread, so that it delays its
/// own connection only.
inline constexpr std::uint64_t kInflateBudget = 4 << 20;
inline constexpr std::uint64_t kNoBudget = std::numeric_limits<std::uint64_t>::max();

class ProduceBatches {
 public:
  ProduceBatches(broker::Context& context, const wire::ProduceRequest& request)
      : context_(context),
        request_(request),
        by_id_(context.api_version >= 13),
        topics_(context.broker.topics()) {}

  void run() {
    broker::Broker::Together together(context_.broker);
    const Means means{together, context_.io.scratch(), kInflateBudget};
    response_.responses.reserve(request_.topic_data.size());
    ErrorCode refuse_all = ErrorCode::NONE;
    if (!request_.transactional_id && has_transactional_batch()) {
      refuse_all = ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
    } else if (request_.acks < -1 || request_.acks > 1) {
      refuse_all = ErrorCode::INVALID_REQUIRED_ACKS;
    }
    for (const wire::ProduceRequest::Topic& topic : request_.topic_data) {
      if (topic.partition_data.empty()) continue;
      auto& answered = response_.responses.emplace_back();
      answered.name = std::string(topic.name);
      answered.topic_id = topic.topic_id;
      answered.partition_responses.reserve(topic.partition_data.size());
      const broker::TopicPtr found = find_topic(*topics_, topic.name, topic.topic_id, by_id_);
      for (const wire::ProduceRequest::Topic::Partition& partition : topic.partition_data) {
        if (is_overridden(topic, partition)) continue;
        ProduceAnswer& answer = answered.partition_responses.emplace_back();
        answer.index = partition.index;
        if (refuse_all != ErrorCode::NONE)
          refuse(answer, refuse_all);
        else
          append(means, found, topic, partition, answer);
        failed_ |= answer.error_code != ErrorCode::NONE;
      }
    }
  }

  /// Batches too large to be inflated on an I/O thread; finish_large() checks and appends them, on
  /// a helper thread.
  [[nodiscard]] bool has_large() const noexcept { return !large_.empty(); }
  void finish_large() {
    broker::Broker::Together together(context_.broker);
    records::Scratch scratch;
    const Means means{together, scratch, kNoBudget};
    for (const Large& large : large_) {
      auto& answer = response_.responses[large.topic].partition_responses[large.partition];
      check_and_append(means, large.found, *large.asked, answer);
      failed_ |= answer.error_code != ErrorCode::NONE;
    }
    large_.clear();
  }

  [[nodiscard]] wire::ProduceResponse& response() noexcept { return response_; }
  [[nodiscard]] std::vector<PendingAnswer>& pending() noexcept { return pending_; }
  [[nodiscard]] bool failed() const noexcept { return failed_; }

 private:
  struct Means {
    broker::Broker::Together& together;
    records::Scratch& scratch;
    std::uint64_t inflate_budget;
  };

  // Of a partition named twice in one request the last record set counts, as in Kafka.
  static bool is_overridden(const wire::ProduceRequest::Topic& topic,
                            const wire::ProduceRequest::Topic::Partition& partition) {
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

  void append(const Means& means, const broker::TopicPtr& topic,
              const wire::ProduceRequest::Topic& named,
              const wire::ProduceRequest::Topic::Partition& partition, ProduceAnswer& answer) {
    if (!authorize(context_, Operation::kWrite, ResourceType::kTopic, named.name)) {
      return refuse(answer, ErrorCode::TOPIC_AUTHORIZATION_FAILED);
    }
    if (!by_id_ && is_internal_topic(named.name))
      return refuse(answer, ErrorCode::INVALID_TOPIC_EXCEPTION);
    const Found found = find_partition(topic, partition.index, missing_topic(by_id_));
    if (found.error != ErrorCode::NONE) return refuse(answer, found.error);
    if (!partition.records)
      return refuse(answer, ErrorCode::INVALID_RECORD, "The record set is null.");
    check_and_append(means, found, partition, answer);
  }

  void check_and_append(const Means& means, const Found& found,
                        const wire::ProduceRequest::Topic::Partition& asked,
                        ProduceAnswer& answer) {
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
    auto appended = means.together.append(found.partition, *checked);
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

  [[nodiscard]] std::size_t index_of(const ProduceAnswer& answer) const {
    return static_cast<std::size_t>(&answer -
                                    response_.responses.back().partition_responses.data());
  }

  // Kafka tells the log start beside an error, but for those that say nothing about the log.
  static void tell_log_start(broker::Partition& partition, ErrorCode code, ProduceAnswer& answer) {
    if (code == ErrorCode::CORRUPT_MESSAGE || code == ErrorCode::MESSAGE_TOO_LARGE ||
        code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION ||
        code == ErrorCode::NOT_LEADER_OR_FOLLOWER || code == ErrorCode::KAFKA_STORAGE_ERROR) {
      return;
    }
    const auto start =
        partition.with_log([](log::Partition& log) { return log.watermarks().log_start; });
    if (start) answer.log_start_offset = *start;
  }

  broker::Context& context_;
  const wire::ProduceRequest& request_;
  const bool by_id_;
  const std::shared_ptr<const broker::Topics> topics_;
  wire::ProduceResponse response_;
  struct Large {
    std::size_t topic, partition;
    const wire::ProduceRequest::Topic::Partition* asked;
    Found found;
  };
  std::vector<Large> large_;
  std::vector<PendingAnswer> pending_;
  bool failed_ = false;
};

}  // namespace kanal::handlers
