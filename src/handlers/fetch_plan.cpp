#include "fetch_plan.hpp"

#include <mutex>

#include "topic_lookup.hpp"

namespace kanal::handlers {
namespace {

using broker::Context;
using broker::FetchPartition;
using broker::FetchSession;
using Request = wire::FetchRequest;
using Response = wire::FetchResponse;

constexpr std::int32_t kNewSession = 0;  // session epoch: begin one
constexpr std::int32_t kNoSession = -1;  // session epoch: none, and end the one that is named
constexpr std::int16_t kTopicIdsSince = 13;

template <class Visit>
void for_each_asked(const Context& context, const Request& request, Visit&& visit) {
  const bool by_id = context.api_version >= kTopicIdsSince;
  for (const Request::Topic& topic : request.topics) {
    for (const Request::Topic::Partition& partition : topic.partitions) {
      FetchPartition asked;
      if (by_id)
        asked.topic_id = topic.topic_id;
      else
        asked.topic = std::string(topic.topic);
      asked.partition = partition.partition;
      asked.fetch_offset = partition.fetch_offset;
      asked.max_bytes = partition.partition_max_bytes;
      asked.current_leader_epoch = partition.current_leader_epoch;
      asked.last_fetched_epoch = partition.last_fetched_epoch;
      visit(std::move(asked));
    }
  }
}

void forget(const Context& context, const Request& request, FetchSession& session) {
  const bool by_id = context.api_version >= kTopicIdsSince;
  for (const Request::ForgottenTopic& topic : request.forgotten_topics_data) {
    for (const PartitionIndex partition : topic.partitions) {
      FetchPartition gone;
      if (by_id)
        gone.topic_id = topic.topic_id;
      else
        gone.topic = std::string(topic.topic);
      gone.partition = partition;
      session.forget(gone);
    }
  }
}

std::int32_t next_epoch(std::int32_t epoch) {
  return epoch == INT32_MAX ? 1 : epoch + 1;
}

/// Continues the session of the request under its lock; the copies that will be read go to the
/// plan.
void continue_session(Context& context, const Request& request, FetchPlan& plan,
                      std::vector<FetchPartition>& asked) {
  auto found = context.broker.fetch_sessions().find(request.session_id);
  if (!found) {
    plan.error = found.error().code;
    return;
  }
  FetchSession& session = **found;
  const std::lock_guard busy(session.busy);
  if (session.next_epoch != request.session_epoch) {
    plan.error = ErrorCode::INVALID_FETCH_SESSION_EPOCH;
    return;
  }
  if (session.by_topic_id != (context.api_version >= kTopicIdsSince)) {
    plan.error = ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR;
    return;
  }
  for_each_asked(context, request,
                 [&](FetchPartition partition) { session.put(std::move(partition)); });
  forget(context, request, session);
  asked.assign(session.partitions.begin(), session.partitions.end());
  if (session.partitions.empty()) {  // nothing left to fetch: the session ends, as in Kafka
    context.broker.fetch_sessions().remove(session.id);
    return;
  }
  plan.session_epoch = session.next_epoch;
  session.next_epoch = next_epoch(session.next_epoch);
  context.broker.fetch_sessions().touch(session, context.broker.clock().now(),
                                        session.partitions.size());
  plan.session = *found;
}

PlannedPartition resolve(const broker::Topics& topics, FetchPartition asked, bool by_id) {
  PlannedPartition planned;
  Found found = find_partition(find_topic(topics, asked.topic, asked.topic_id, by_id),
                               asked.partition, missing_topic(by_id));
  planned.asked = std::move(asked);
  planned.answer.partition_index = planned.asked.partition;
  // A session knows the name its topic had: made anew it has another id, gone it is just unknown.
  if (by_id && found.topic == nullptr && !planned.asked.known_name.empty()) {
    planned.inconsistent = topics.find(planned.asked.known_name) != nullptr;
    found.error = planned.inconsistent ? ErrorCode::NONE : ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
  }
  if (found.topic != nullptr) planned.asked.known_name = found.topic->name();
  planned.unresolved = found.error != ErrorCode::NONE;
  if (planned.unresolved) planned.answer = unreadable(planned.asked.partition, found.error);
  planned.topic = std::move(found.topic);
  planned.partition = std::move(found.partition);
  return planned;
}

/// Whether the client has to hear of it, and what it will have heard.
bool changed(FetchPartition& cached, const PlannedPartition& now) {
  const auto& answer = now.answer;
  const bool respond = answer.records.bytes > 0 || answer.error_code != ErrorCode::NONE ||
                       answer.diverging_epoch.epoch != kNoLeaderEpoch ||
                       cached.answered_high_watermark != answer.high_watermark.value() ||
                       cached.answered_log_start != answer.log_start_offset.value();
  cached.answered_high_watermark = answer.high_watermark.value();
  cached.answered_log_start = answer.log_start_offset.value();
  // After an error the next answer tells everything again.
  if (answer.error_code != ErrorCode::NONE) cached.answered_high_watermark = -1;
  return respond;
}

void add(Response& response, PlannedPartition& planned) {
  auto* topic = response.responses.empty() ? nullptr : &response.responses.back();
  if (topic == nullptr || topic->topic != planned.asked.topic ||
      topic->topic_id != planned.asked.topic_id) {
    topic = &response.responses.emplace_back();
    topic->topic = planned.asked.topic;
    topic->topic_id = planned.asked.topic_id;
  }
  topic->partitions.push_back(std::move(planned.answer));
}

/// What is not known comes first, then what was read: Kafka's order.
template <class Visit>
void for_each_in_order(FetchPlan& plan, Visit&& visit) {
  for (const bool unresolved : {true, false}) {
    for (PlannedPartition& planned : plan.partitions) {
      if (planned.unresolved == unresolved) visit(planned);
    }
  }
}

void create_session(Context& context, FetchPlan& plan, Response& response) {
  const auto random = static_cast<std::int32_t>(context.broker.random().next());
  const Time now = context.broker.clock().now();
  const auto session = context.broker.fetch_sessions().create(random, now, plan.partitions.size());
  if (session == nullptr) return;  // full: session-less, not an error
  const std::lock_guard busy(session->busy);
  session->by_topic_id = context.api_version >= kTopicIdsSince;
  for (PlannedPartition& planned : plan.partitions) {
    FetchPartition cached = planned.asked;
    (void)changed(cached, planned);
    session->put(std::move(cached));
  }
  response.session_id = session->id;
}

void settle_session(FetchPlan& plan, Response& response) {
  FetchSession& session = *plan.session;
  const std::lock_guard busy(session.busy);
  response.session_id = session.id;
  if (session.next_epoch !=
      next_epoch(plan.session_epoch)) {  // a later request has moved it on meanwhile
    response.error_code = ErrorCode::INVALID_FETCH_SESSION_EPOCH;
    return;
  }
  for_each_in_order(plan, [&](PlannedPartition& planned) {
    FetchPartition* cached = session.find(planned.asked);
    if (cached == nullptr) return;
    cached->known_name = planned.asked.known_name;
    if (!changed(*cached, planned)) return;
    // Who was served reads last next time, so that no partition starves behind a busy one.
    if (planned.answer.records.bytes > 0) session.move_to_end(planned.asked);
    add(response, planned);
  });
}

}  // namespace

Response::Topic::Partition unreadable(PartitionIndex partition, ErrorCode error) {
  Response::Topic::Partition answer;
  answer.partition_index = partition;
  answer.error_code = error;
  answer.high_watermark = kNoOffset;
  answer.aborted_transactions
      .emplace();  // empty, not null: what Kafka answers here at every isolation level
  return answer;
}

FetchPlan make_plan(Context& context, const Request& request) {
  FetchPlan plan;
  std::vector<FetchPartition> asked;
  const bool full = request.session_epoch == kNewSession || request.session_epoch == kNoSession;
  if (full) {
    if (request.session_id != 0) context.broker.fetch_sessions().remove(request.session_id);
    plan.may_create_session = request.session_epoch == kNewSession && context.api_version >= 7;
    FetchSession once;  // a partition named twice is fetched once
    for_each_asked(context, request,
                   [&](FetchPartition partition) { once.put(std::move(partition)); });
    asked.assign(once.partitions.begin(), once.partitions.end());
  } else {
    continue_session(context, request, plan, asked);
    if (plan.error != ErrorCode::NONE) return plan;
  }
  const auto topics = context.broker.topics();
  const bool by_id = context.api_version >= kTopicIdsSince;
  plan.partitions.reserve(asked.size());
  for (FetchPartition& partition : asked)
    plan.partitions.push_back(resolve(*topics, std::move(partition), by_id));
  return plan;
}

Response settle(Context& context, FetchPlan& plan) {
  Response response;
  if (plan.session != nullptr) {
    settle_session(plan, response);
    return response;
  }
  if (plan.may_create_session) create_session(context, plan, response);
  for_each_in_order(plan, [&](PlannedPartition& planned) { add(response, planned); });
  return response;
}

}  // namespace kanal::handlers
