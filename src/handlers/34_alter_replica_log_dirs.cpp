// AlterReplicaLogDirs (34): moves a partition's log to another directory. There is one directory,
// so a move to it is done already, and any other does not exist.
//
// Behavior
// - The directory is checked before the partition, as in Kafka: LOG_DIR_NOT_FOUND hides an unknown
//   partition. A partition named twice is answered once, for the directory named last.
// - Kafka moves through a directory of a longer name and refuses topics that leave no room for it;
//   so do we, so that a script fails here and there alike.
// Version notes
// - 2 is flexible.
#include <map>

#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/wire/messages/alter_replica_log_dirs.hpp"
#include "topic_lookup.hpp"

namespace kanal::handlers {
namespace {

using broker::Context;
using Request = wire::AlterReplicaLogDirsRequest;
using Response = wire::AlterReplicaLogDirsResponse;

constexpr std::size_t kLongestFileName = 255;

/// "<topic>-<partition>.<32 hex digits>-future"
std::size_t future_name_length(std::string_view topic, PartitionIndex index) {
  constexpr std::size_t kDashDotIdFuture = 1 + 1 + 32 + 7;
  return topic.size() + std::to_string(index.value()).size() + kDashDotIdFuture;
}

ErrorCode move(const Context& context, const broker::Topics& topics, std::string_view topic,
               PartitionIndex index, std::string_view directory) {
  if (future_name_length(topic, index) > kLongestFileName)
    return ErrorCode::INVALID_TOPIC_EXCEPTION;
  if (directory != context.broker.data_dir()) return ErrorCode::LOG_DIR_NOT_FOUND;
  const Found found =
      find_partition(topics.find(topic), index, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
  if (found.error != ErrorCode::NONE) return found.error;
  const auto usable = found.partition->with_log([](log::Partition&) { return true; });
  return usable ? ErrorCode::NONE : usable.error().code;
}

}  // namespace

broker::Task<Response> handle(Context& context, Request request) {
  Response response;
  std::map<std::string_view, std::map<PartitionIndex, std::string_view>> moves;
  for (const auto& directory : request.dirs) {
    for (const auto& topic : directory.topics) {
      for (const PartitionIndex index : topic.partitions) moves[topic.name][index] = directory.path;
    }
  }
  const bool allowed = authorize(context, Operation::kAlter, ResourceType::kCluster, kClusterName);
  const auto topics = context.broker.topics();
  for (const auto& [topic, partitions] : moves) {
    auto& result = response.results.emplace_back();
    result.topic_name = std::string(topic);
    for (const auto& [index, directory] : partitions) {
      auto& answer = result.partitions.emplace_back();
      answer.partition_index = index;
      answer.error_code = allowed ? move(context, *topics, topic, index, directory)
                                  : ErrorCode::CLUSTER_AUTHORIZATION_FAILED;
    }
  }
  co_return response;
}

}  // namespace kanal::handlers
