// The per-record part of the produce checks: keys, timestamps, offset deltas, and the largest
// timestamp. Collects what is wrong with which record instead of stopping, as Kafka does. Belongs
// to one call.
#pragma once

#include "kanal/records/record.hpp"
#include "kanal/records/validate.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kanal::records {

/// Whether a record's own time lies within the topic's limits; differences wrap as Kafka's do.
[[nodiscard]] inline bool check_timestamp(Timestamp timestamp, const ProduceRules& rules) noexcept {
  if (timestamp == kNoTimestamp) return true;
  const std::uint64_t age =
      static_cast<std::uint64_t>(rules.now.value()) - static_cast<std::uint64_t>(timestamp.value());
  return static_cast<std::int64_t>(age) <= rules.before_max_ms &&
         static_cast<std::int64_t>(0 - age) <= rules.after_max_ms;
}

class RecordCheck {
 public:
  RecordCheck(const BatchHeader& header, const ProduceRules& rules, Codec target)
      : header_(header), rules_(rules), target_(target) {}
  RecordCheck(const BatchHeader& header, const ProduceRules& rules)
      : RecordCheck(header, rules, header.codec()) {}

  void add(const RecordFields& record) {
    const Timestamp timestamp = header_.timestamp_of(record.timestamp_delta);
    const std::int32_t index = count_++;
    if (rules_.compacted && !record.has_key()) {
      fault(index, false, "records of a compacted topic need a key");
    } else if (!rules_.log_append_time && timestamp != kNoTimestamp) {
      if (!check_timestamp(timestamp, rules_)) {
        fault(index, true, errors_.size() < kMaxRecordErrors ? out_of_range(timestamp) : "");
      }
    } else if (header_.log_append_time()) {
      fault(index, true, "producers may not set the LogAppendTime bit");
    }
    if (timestamp > max_timestamp_) {
      max_timestamp_ = timestamp;
      max_timestamp_delta_ = record.offset_delta;
      max_timestamp_index_ = index;
    }
    dense_ = dense_ && record.offset_delta == index;
  }

  [[nodiscard]] const BatchHeader& header() const noexcept { return header_; }
  [[nodiscard]] Codec target() const noexcept { return target_; }
  [[nodiscard]] bool has_errors() const noexcept { return !errors_.empty(); }
  [[nodiscard]] bool dense() const noexcept { return dense_; }  // offset deltas are 0, 1, 2, …
  [[nodiscard]] Timestamp max_timestamp() const noexcept { return max_timestamp_; }
  [[nodiscard]] std::int32_t max_timestamp_delta() const noexcept { return max_timestamp_delta_; }
  [[nodiscard]] std::int32_t max_timestamp_index() const noexcept { return max_timestamp_index_; }

  /// The answer for the collected errors: a bad timestamp outweighs a missing key.
  [[nodiscard]] Rejection rejection() {
    Rejection rejection;
    rejection.code = bad_timestamp_ ? ErrorCode::INVALID_TIMESTAMP : ErrorCode::INVALID_RECORD;
    rejection.message = std::to_string(error_count_) + " of " +
                        std::to_string(header_.record_count) +
                        " records were refused, the first because: " + errors_.front().message;
    rejection.detail = rejection.message;
    rejection.record_errors = std::move(errors_);
    return rejection;
  }

 private:
  void fault(std::int32_t index, bool timestamp, std::string message) {
    ++error_count_;
    bad_timestamp_ = bad_timestamp_ || timestamp;
    if (errors_.size() < kMaxRecordErrors) errors_.push_back({index, std::move(message)});
  }
  [[nodiscard]] std::string out_of_range(Timestamp timestamp) const {
    return "timestamp " + std::to_string(timestamp.value()) + " is out of the topic's range at " +
           std::to_string(rules_.now.value());
  }

  const BatchHeader& header_;
  const ProduceRules& rules_;
  Codec target_;
  std::vector<RecordError> errors_;
  std::int64_t error_count_ = 0;
  Timestamp max_timestamp_{-1};
  std::int32_t count_ = 0;
  std::int32_t max_timestamp_delta_ = 0;
  std::int32_t max_timestamp_index_ = 0;
  bool bad_timestamp_ = false;
  bool dense_ = true;
};

}  // namespace kanal::records
