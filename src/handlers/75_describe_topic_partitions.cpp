// DescribeTopicPartitions (75): topics in name order, page by page (KIP-966).
//
// Behavior
// - No topics named: all. At most max.request.partition.size.limit partitions an answer; the cursor
// says where to go on.
// - A cursor has to be among the named topics and its partition valid, else every named topic is
// INVALID_REQUEST.
#include <algorithm>

#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/wire/messages/describe_topic_partitions.hpp"
#include "topic_lookup.hpp"

namespace kanal::handlers {
namespace {

using broker::Context;
using Request = wire::DescribeTopicPartitionsRequest;
using Response = wire::DescribeTopicPartitionsResponse;

class Page {
 public:
  Page(Context& context, std::int32_t limit, std::string_view cursor_topic,
       std::int32_t cursor_partition)
      : context_(context),
        room_(limit),
        cursor_topic_(cursor_topic),
        cursor_partition_(cursor_partition) {}

  /// False once the page is full.
  bool add(std::string_view name, const broker::Topic* topic, bool report_missing) {
    if (room_ == 0) return stop_at(name, 0);
    if (topic == nullptr) {
      if (report_missing) add_missing(name);
      return true;
    }
    auto& entry = response_.topics.emplace_back();
    entry.name = topic->name();
    entry.topic_id = topic->id();
    entry.topic_authorized_operations = kTopicOperations;
    const auto count = static_cast<std::int32_t>(topic->partitions.size());
    const std::int32_t first = name == cursor_topic_ ? cursor_partition_ : 0;
    std::int32_t next = first;
    for (; next < count && room_ > 0; ++next, --room_)
      add_partition(entry, *topic->partitions[static_cast<std::size_t>(next)]);
    return next >= count || stop_at(name, next);
  }

  Response finish() { return std::move(response_); }

 private:
  bool stop_at(std::string_view topic, std::int32_t partition) {
    response_.next_cursor.emplace();
    response_.next_cursor->topic_name = std::string(topic);
    response_.next_cursor->partition_index = PartitionIndex(partition);
    return false;
  }

  void add_missing(std::string_view name) {
    auto& entry = response_.topics.emplace_back();
    entry.name = std::string(name);
    entry.error_code = check_topic_name(name) ? ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
                                              : ErrorCode::INVALID_TOPIC_EXCEPTION;
    entry.is_internal = is_internal_topic(name);
    entry.topic_authorized_operations = kTopicOperations;
  }

  void add_partition(Response::Topic& entry, const broker::Partition& partition) {
    auto& described = entry.partitions.emplace_back();
    described.partition_index = partition.id().partition;
    described.leader_id = context_.broker.leader(partition.id());
    described.leader_epoch = context_.broker.leader_epoch();
    described.replica_nodes = {described.leader_id};
    described.isr_nodes = {described.leader_id};
    described.eligible_leader_replicas.emplace();
    described.last_known_elr.emplace();
  }

  Context& context_;
  std::int32_t room_;
  std::string_view cursor_topic_;
  std::int32_t cursor_partition_;
  Response response_;
};

std::vector<std::string_view> sorted_names(const Request& request, std::string_view from) {
  std::vector<std::string_view> names;
  for (const auto& topic : request.topics) {
    if (topic.name >= from) names.push_back(topic.name);
  }
  std::ranges::sort(names);
  const auto twice = std::ranges::unique(names);
  names.erase(twice.begin(), twice.end());
  return names;
}

Response refused(const Request& request) {
  Response response;
  for (const auto& topic : request.topics) {
    auto& entry = response.topics.emplace_back();
    entry.name = std::string(topic.name);
    entry.error_code = ErrorCode::INVALID_REQUEST;
  }
  return response;
}

}  // namespace

broker::Task<Response> handle(Context& context, Request request) {
  const std::string_view from = request.cursor ? request.cursor->topic_name : std::string_view();
  const std::int32_t first = request.cursor ? request.cursor->partition_index.value() : 0;
  const std::vector<std::string_view> names = sorted_names(request, from);
  const bool all = request.topics.empty();
  if (first < 0 || (!all && request.cursor && std::ranges::find(names, from) == names.end()))
    co_return refused(request);
  const std::int32_t cap = context.broker.config()->max_request_partition_size_limit;
  Page page(context, std::max(std::min(cap, request.response_partition_limit), 1), from, first);
  const auto topics = context.broker.topics();
  if (all) {
    topics->visit_from(from, [&](const broker::TopicPtr& topic) {
      return page.add(topic->name(), topic.get(), false);
    });
  } else {
    for (const std::string_view name : names) {
      if (!page.add(name, topics->find(name).get(), true)) break;
    }
  }
  co_return page.finish();
}

}  // namespace kanal::handlers
