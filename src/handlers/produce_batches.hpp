// The record sets of one Produce request: each is checked, appended and answered for itself. One
// request: its I/O thread, or for finish_large() a helper thread while the request waits.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/wire/messages/produce.hpp"
#include "produce_answers.hpp"
#include "produce_rules.hpp"
#include "produce_transaction.hpp"
#include "topic_lookup.hpp"

namespace kanal::handlers {

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
        topics_(context.broker.topics()),
        transaction_(context, request) {}

  void run() {
    broker::Broker::Together together(context_.broker);
    const Means means{together, context_.io.scratch(), kInflateBudget};
    response_.responses.reserve(request_.topic_data.size());
    const Error refuse_all = transaction_.begin(*topics_);
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
        if (refuse_all.code != ErrorCode::NONE)
          refuse(answer, refuse_all.code, refuse_all.detail);
        else
          handle(means, found, topic, partition, answer);
        failed_ |= answer.error_code != ErrorCode::NONE;
      }
    }
    write_transaction(means);
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
    write_transaction(means);
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

  void handle(const Means& means, const broker::TopicPtr& topic,
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
    const bool reached = checked || !checked.error().before_append;
    if (reached && transaction_.takes(asked))
      return transaction_.add({found, &answer, std::move(checked)});
    append(means, found, checked, answer);
  }

  void write_transaction(const Means& means) {
    transaction_.write([&](ProduceTransaction::Batch& batch, ErrorCode error) {
      if (error != ErrorCode::NONE)
        refuse(*batch.answer, error, ProduceTransaction::message(error));
      else
        append(means, batch.found, batch.checked, *batch.answer);
      failed_ |= batch.answer->error_code != ErrorCode::NONE;
    });
  }

  using Checked = std::expected<records::CheckedBatch, records::Rejection>;
  void append(const Means& means, const Found& found, Checked& checked, ProduceAnswer& answer) {
    if (!checked && checked.error().before_append) return refuse(answer, checked.error());
    if (request_.acks < -1 || request_.acks > 1)
      return refuse(answer, ErrorCode::INVALID_REQUIRED_ACKS);
    if (!checked) {
      tell_log_start(*found.partition, checked.error().code, answer);
      return refuse(answer, checked.error());
    }
    if (checked->header.is_transactional() && !checked->header.has_producer_id())
      return refuse(answer, ErrorCode::INVALID_PRODUCER_ID_MAPPING);
    auto appended = means.together.append(found.partition, *checked, transaction_.terms());
    if (!appended) {
      // Kafka refuses a transactional batch of an old epoch before it asks the log.
      if (appended.error().code != ErrorCode::INVALID_PRODUCER_EPOCH ||
          !checked->header.is_transactional())
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
  ProduceTransaction transaction_;
  std::vector<PendingAnswer> pending_;
  bool failed_ = false;
};

}  // namespace kanal::handlers
