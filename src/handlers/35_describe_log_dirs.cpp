// DescribeLogDirs (35): the data directory, the size of every partition in it, and the room on its
// volume.
//
// Behavior
// - A size is that of the partition's segment files; what DeleteRecords cut off is not counted once
//   its segments are gone. Lag is 0 and nothing is on the move: a partition has one log.
// - Null asks for all partitions, an empty list for none. Topics and partitions that do not exist,
//   and those whose log cannot be used, are left out.
// Version notes
// - 3 has an error for the whole answer; below, the list is empty then. 4 adds total and usable
//   bytes, 5 whether the directory is cordoned (never).
#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/wire/messages/describe_log_dirs.hpp"

namespace kanal::handlers {
namespace {

using broker::Context;
using Request = wire::DescribeLogDirsRequest;
using Response = wire::DescribeLogDirsResponse;

void add(broker::Partition& partition, std::vector<Response::Result::Topic::Partition>& to) {
  const auto bytes = partition.with_log([](log::Partition& log) { return log.bytes(); });
  if (!bytes) return;
  auto& described = to.emplace_back();
  described.partition_index = partition.id().partition;
  described.partition_size = static_cast<std::int64_t>(*bytes);
}

void add_all(const broker::Topics& topics, Response::Result& result) {
  topics.for_each([&](const broker::TopicPtr& topic) {
    auto& described = result.topics.emplace_back();
    described.name = topic->name();
    for (const auto& partition : topic->partitions) add(*partition, described.partitions);
    if (described.partitions.empty()) result.topics.pop_back();
  });
}

void add_asked(const broker::Topics& topics, const Request& request, Response::Result& result) {
  std::map<std::string_view, std::set<PartitionIndex>> asked;
  for (const auto& topic : *request.topics)
    asked[topic.topic].insert(topic.partitions.begin(), topic.partitions.end());
  for (const auto& [name, indexes] : asked) {
    const broker::TopicPtr topic = topics.find(name);
    if (topic == nullptr) continue;
    auto& described = result.topics.emplace_back();
    described.name = topic->name();
    for (const PartitionIndex index : indexes) {
      if (const auto partition = topic->partition(index)) add(*partition, described.partitions);
    }
    if (described.partitions.empty()) result.topics.pop_back();
  }
}

std::int64_t clamped(std::uint64_t bytes) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::min<std::uint64_t>(bytes, kMost));
}

/// Asks the disk: blocks.
void describe(Context& context, const broker::Topics& topics, const Request& request,
              Response::Result& result) {
  result.log_dir = context.broker.data_dir();
  const Result<DiskSpace> space = context.broker.files().space(context.broker.data_dir());
  if (!space) {
    result.error_code = ErrorCode::KAFKA_STORAGE_ERROR;
    return;
  }
  result.total_bytes = clamped(space->total_bytes);
  result.usable_bytes = clamped(space->usable_bytes);
  if (request.topics)
    add_asked(topics, request, result);
  else
    add_all(topics, result);
}

}  // namespace

broker::Task<Response> handle(Context& context, Request request) {
  Response response;
  if (!authorize(context, Operation::kDescribe, ResourceType::kCluster, kClusterName)) {
    response.error_code = ErrorCode::CLUSTER_AUTHORIZATION_FAILED;
    co_return response;
  }
  const auto topics = context.broker.topics();
  auto& result = response.results.emplace_back();
  auto work = [&] { describe(context, *topics, request, result); };
  co_await context.broker.on_helper(context, std::move(work));
  co_return response;
}

}  // namespace kanal::handlers
