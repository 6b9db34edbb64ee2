// One round of a Fetch over its plan: reads every partition, and registers watches where a wait is
// given. Stops at cold bytes and goes on from there. One request, its I/O thread.
#pragma once

#include <algorithm>
#include <optional>

#include "fetch_plan.hpp"
#include "kanal/broker/broker.hpp"

namespace kanal::handlers {

struct FetchWants {
  std::int64_t min_bytes = 0;
  std::int64_t max_bytes = 0;  // a negative one is refused by the first partition, as in Kafka
  bool read_committed = false;
  bool as_replica = false;
};

class FetchRound {  // one round over the plan; may stop at cold bytes and go on from there
 public:
  FetchRound(broker::Context& context, FetchPlan& plan, const FetchWants& wants,
             broker::FetchWait* wait)
      : context_(context), plan_(plan), wants_(wants), wait_(wait), room_(wants.max_bytes) {
    context_.slices.clear();
  }

  /// The bytes to load before it can go on, or nothing when the round is complete.
  std::optional<log::Miss> run() {
    for (; next_ < plan_.partitions.size(); ++next_) {
      PlannedPartition& planned = plan_.partitions[next_];
      if (planned.unresolved) continue;
      anything_to_wait_for_ = true;
      if (auto miss = read(planned)) return miss;
      room_ = std::max<std::int64_t>(room_, 0);
    }
    return std::nullopt;
  }
  /// Cold bytes could not be loaded: this partition fails, the others go on.
  void give_up(const Error& error) { refuse(plan_.partitions[next_++].answer, error.code); }

  [[nodiscard]] bool enough() const {
    return failed_ || !anything_to_wait_for_ || bytes_ >= wants_.min_bytes;
  }

 private:
  void refuse(wire::FetchResponse::Topic::Partition& answer, ErrorCode code) {
    answer.error_code = code;
    answer.high_watermark = answer.last_stable_offset = answer.log_start_offset = kNoOffset;
    answer.records = {};
    answer.aborted_transactions.reset();
    failed_ = true;
  }

  std::optional<log::Miss> read(PlannedPartition& planned) {
    auto& answer = planned.answer;
    answer.error_code = ErrorCode::NONE;
    answer.records = {};
    if (planned.inconsistent) return refuse(answer, ErrorCode::INCONSISTENT_TOPIC_ID), std::nullopt;
    // Only a replica of the partition may fetch as one, and there is none beside the leader.
    if (wants_.as_replica) return refuse(answer, ErrorCode::NOT_LEADER_OR_FOLLOWER), std::nullopt;
    const LeaderEpoch claimed = std::max(planned.asked.current_leader_epoch, kNoLeaderEpoch);
    const std::int64_t max_bytes = std::min<std::int64_t>(room_, planned.asked.max_bytes);
    if (auto epoch = planned.partition->check_epoch(claimed); !epoch) {
      refuse(answer, epoch.error().code);
      if (epoch.error().code == ErrorCode::FENCED_LEADER_EPOCH && context_.api_version >= 16)
        name_leader(answer);
      return std::nullopt;
    }
    if (planned.asked.last_fetched_epoch.value() >= 0 && diverges(planned)) return std::nullopt;
    const bool readable = max_bytes >= 0;
    const log::FetchLimits limits{readable ? static_cast<std::uint32_t>(max_bytes) : 0,
                                  readable && bytes_ == 0, wants_.read_committed};
    const std::size_t first_slice = context_.slices.size();
    auto outcome =
        planned.partition->read(planned.asked.fetch_offset, limits, context_.slices, wait_);
    if (!outcome) {
      context_.slices.resize(first_slice);
      if (const auto* miss = std::get_if<log::Miss>(&outcome.error())) return *miss;
      refuse(answer, std::get<Error>(outcome.error()).code);
      return std::nullopt;
    }
    const log::Watermarks& marks = outcome->watermarks;
    const Offset end = wants_.read_committed ? marks.last_stable : marks.high_watermark;
    if (!readable && planned.asked.fetch_offset < end) {
      return refuse(answer, ErrorCode::UNKNOWN_SERVER_ERROR), std::nullopt;
    }
    fill(answer, marks);
    for (const log::AbortedTransaction& aborted : outcome->aborted)
      answer.aborted_transactions->push_back({aborted.producer, aborted.first});
    answer.records.bytes = outcome->records.bytes;
    answer.records.first_slice = static_cast<std::uint32_t>(first_slice);
    answer.records.slice_count = static_cast<std::uint32_t>(context_.slices.size() - first_slice);
    bytes_ += outcome->records.bytes;
    room_ -= outcome->records.bytes;
    return std::nullopt;
  }

  void fill(wire::FetchResponse::Topic::Partition& answer, const log::Watermarks& marks) const {
    answer.high_watermark = marks.high_watermark;
    answer.last_stable_offset = marks.last_stable;
    answer.log_start_offset = marks.log_start;
    if (wants_.read_committed) answer.aborted_transactions.emplace();
  }

  void name_leader(wire::FetchResponse::Topic::Partition& answer) const {
    answer.current_leader.leader_id = context_.broker.node_id();
    answer.current_leader.leader_epoch = context_.broker.leader_epoch();
  }

  /// KIP-595: the client's last epoch ended earlier than where it wants to read on.
  bool diverges(PlannedPartition& planned) {
    struct Seen {
      log::EpochEnd end;
      log::Watermarks marks;
    };
    const auto seen = planned.partition->with_log([&](log::Partition& log) {
      return Seen{log.end_of_epoch(planned.asked.last_fetched_epoch), log.watermarks()};
    });
    if (!seen) return refuse(planned.answer, seen.error().code), true;
    if (seen->end.end_offset == kNoOffset || seen->end.epoch == kNoLeaderEpoch) {
      return refuse(planned.answer, ErrorCode::OFFSET_OUT_OF_RANGE), true;
    }
    if (seen->end.epoch >= planned.asked.last_fetched_epoch &&
        seen->end.end_offset >= planned.asked.fetch_offset) {
      return false;
    }
    fill(planned.answer, seen->marks);
    planned.answer.diverging_epoch.epoch = seen->end.epoch;
    planned.answer.diverging_epoch.end_offset = seen->end.end_offset;
    return failed_ = true;  // answered at once
  }

  broker::Context& context_;
  FetchPlan& plan_;
  const FetchWants& wants_;
  broker::FetchWait* wait_;
  std::int64_t room_;
  std::size_t next_ = 0;
  std::int64_t bytes_ = 0;
  bool failed_ = false;
  bool anything_to_wait_for_ = false;
};

}  // namespace kanal::handlers
