// Fetch (1): reads record batches, and waits for them.
//
// Behavior
// - Long poll without polling: each round reads every partition; too little, and it parks on a
// watch that was registered
//   in the same turn of the partition's lock as the read, until enough bytes came, an error, or
//   max_wait.
// - Batches go out whole, as stored; the first one of an answer always, however large.
// - An unknown topic beside idle partitions waits with them; alone it is answered at once (as Kafka
// does).
// - Cold bytes are loaded on a helper thread, then the read is repeated: a slow disk delays this
// answer only.
// - Sessions (KIP-227): fetch_plan.cpp.
// Version notes
// - 5 log start, 7 sessions, 9 leader epochs, 12 diverging epochs (KIP-595), 13 topic ids, 16 node
// endpoints.
#include <algorithm>

#include "authorize.hpp"
#include "fetch_plan.hpp"
#include "kanal/broker/broker.hpp"

namespace kanal::handlers {
namespace {

using broker::Context;
using Request = wire::FetchRequest;
using Response = wire::FetchResponse;

struct Wants {
  std::int64_t min_bytes = 0;
  std::int64_t max_bytes = 0;  // a negative one is refused by the first partition, as in Kafka
  bool read_committed = false;
  bool as_replica = false;
};

class Reading {  // one round over the plan; may stop at cold bytes and go on from there
 public:
  Reading(Context& context, FetchPlan& plan, const Wants& wants, broker::FetchWait* wait)
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
  void refuse(Response::Topic::Partition& answer, ErrorCode code) {
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
    answer.records.bytes = outcome->records.bytes;
    answer.records.first_slice = static_cast<std::uint32_t>(first_slice);
    answer.records.slice_count = static_cast<std::uint32_t>(context_.slices.size() - first_slice);
    bytes_ += outcome->records.bytes;
    room_ -= outcome->records.bytes;
    return std::nullopt;
  }

  void fill(Response::Topic::Partition& answer, const log::Watermarks& marks) const {
    answer.high_watermark = marks.high_watermark;
    answer.last_stable_offset = marks.last_stable;
    answer.log_start_offset = marks.log_start;
    if (wants_.read_committed) answer.aborted_transactions.emplace();
  }

  void name_leader(Response::Topic::Partition& answer) const {
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

  Context& context_;
  FetchPlan& plan_;
  const Wants& wants_;
  broker::FetchWait* wait_;
  std::int64_t room_;
  std::size_t next_ = 0;
  std::int64_t bytes_ = 0;
  bool failed_ = false;
  bool anything_to_wait_for_ = false;
};

broker::Task<bool> read_round(Context& context, FetchPlan& plan, const Wants& wants,
                              broker::FetchWait* wait) {
  Reading reading(context, plan, wants, wait);
  while (const std::optional<log::Miss> miss = reading.run()) {
    const Result<void> loaded = co_await context.broker.load(context, *miss);
    if (!loaded) reading.give_up(loaded.error());
  }
  co_return reading.enough();
}

broker::Task<void> read_until_enough(Context& context, FetchPlan& plan, const Wants& wants,
                                     Time deadline) {
  const Clock& clock = context.broker.clock();
  for (;;) {
    if (co_await read_round(context, plan, wants, nullptr)) co_return;
    if (context.cancelled || clock.now() >= deadline) co_return;
    const auto wait = std::make_shared<broker::FetchWait>(context.io, wants.min_bytes);
    const bool enough = co_await read_round(context, plan, wants, wait.get());
    if (!enough) co_await context.broker.park(context, *wait, deadline);
    wait->leave();
    if (enough) co_return;
  }
}

/// What Kafka answers to an isolation level it does not know: the error for the request and, by
/// name, for each partition.
Response refuse_request(const Context& context, const Request& request) {
  Response response;
  response.error_code = ErrorCode::UNKNOWN_SERVER_ERROR;
  response.session_id = request.session_id;
  if (context.api_version >= 13) return response;
  for (const auto& topic : request.topics) {
    auto& answered = response.responses.emplace_back();
    answered.topic = std::string(topic.topic);
    for (const auto& partition : topic.partitions) {
      answered.partitions.push_back(
          unreadable(partition.partition, ErrorCode::UNKNOWN_SERVER_ERROR));
    }
  }
  return response;
}

void add_endpoint(Context& context, Response& response) {
  for (const auto& topic : response.responses) {
    for (const auto& partition : topic.partitions) {
      if (partition.current_leader.leader_id != context.broker.node_id()) continue;
      auto& endpoint = response.node_endpoints.emplace_back();
      endpoint.node_id = context.broker.node_id();
      endpoint.host = context.peer.listener->host;
      endpoint.port = context.peer.listener->port;
      return;
    }
  }
}

}  // namespace

broker::Task<Response> handle(Context& context, Request request) {
  if (request.isolation_level < 0 || request.isolation_level > 1) {
    co_return refuse_request(context, request);
  }
  FetchPlan plan = make_plan(context, request);
  if (plan.error != ErrorCode::NONE) {
    Response refused;
    refused.error_code = plan.error;
    co_return refused;
  }
  const std::int32_t cap = context.broker.config()->fetch_max_bytes;
  Wants wants;
  wants.max_bytes = std::min(request.max_bytes, cap);
  wants.min_bytes = std::min<std::int64_t>(request.min_bytes, wants.max_bytes);
  wants.as_replica =
      request.replica_id.value() >= 0 || request.replica_state.replica_id.value() >= 0;
  wants.read_committed = request.isolation_level == 1;
  const Time deadline = context.broker.clock().now() + request.max_wait;
  co_await read_until_enough(context, plan, wants, deadline);
  Response response = settle(context, plan);
  if (context.api_version >= 16) add_endpoint(context, response);
  co_return response;
}

}  // namespace kanal::handlers
