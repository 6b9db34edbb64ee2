// How the answer to one record set of a Produce request is filled in. Plain functions: any thread.
#pragma once

#include <string>
#include <utility>

#include "kanal/broker/partition.hpp"
#include "kanal/records/validate.hpp"
#include "kanal/wire/messages/produce.hpp"

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

/// Kafka tells the log start beside an error, but for those that say nothing about the log.
inline void tell_log_start(broker::Partition& partition, ErrorCode code, ProduceAnswer& answer) {
  if (code == ErrorCode::CORRUPT_MESSAGE || code == ErrorCode::MESSAGE_TOO_LARGE ||
      code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION || code == ErrorCode::NOT_LEADER_OR_FOLLOWER ||
      code == ErrorCode::KAFKA_STORAGE_ERROR) {
    return;
  }
  const auto start =
      partition.with_log([](log::Partition& log) { return log.watermarks().log_start; });
  if (start) answer.log_start_offset = *start;
}

struct PendingAnswer {  // an answer that waits for its records' commit; answers stay where they are
  ProduceAnswer* answer;
  broker::Ticket ticket;
};

}  // namespace kanal::handlers
