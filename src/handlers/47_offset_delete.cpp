// OffsetDelete (47): takes committed offsets away, of topics that no member is subscribed to
// (KIP-496).
//
// Behavior
// - What is wrong with the group is the whole answer. Else each partition fails alone where it does
//   not exist or its topic is in use (GROUP_SUBSCRIBED_TO_TOPIC); no offset there is no error.
//   Those that do not exist stand first.
#include "kanal/wire/messages/offset_delete.hpp"

#include <map>

#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/broker/groups.hpp"

namespace kanal::handlers {
namespace {

using broker::Context;
using Request = wire::OffsetDeleteRequest;
using Response = wire::OffsetDeleteResponse;

class Deletion {
 public:
  Deletion(Context& context, const Request& request) : context_(context), request_(request) {}

  Response run() {
    if (const ErrorCode error = check_group(); error != ErrorCode::NONE) return failed(error);
    const auto topics = context_.broker.topics();
    for (const Request::Topic& topic : request_.topics) check(*topics, topic);
    const auto partitions = command_.partitions;
    const auto result =
        context_.broker.groups().delete_offsets(request_.group_id, std::move(command_));
    if (result.group != ErrorCode::NONE) return failed(result.group);
    for (std::size_t i = 0; i < partitions.size(); ++i)
      add(partitions[i].first, partitions[i].second, result.partitions[i]);
    return std::move(response_);
  }

 private:
  [[nodiscard]] ErrorCode check_group() const {
    if (!authorize(context_, Operation::kDelete, ResourceType::kGroup, request_.group_id))
      return ErrorCode::GROUP_AUTHORIZATION_FAILED;
    return request_.group_id.empty() ? ErrorCode::INVALID_GROUP_ID : ErrorCode::NONE;
  }

  void check(const broker::Topics& topics, const Request::Topic& topic) {
    const broker::TopicPtr found = topics.find(topic.name);
    const bool allowed = authorize(context_, Operation::kRead, ResourceType::kTopic, topic.name);
    for (const auto& partition : topic.partitions) {
      const PartitionIndex index = partition.partition_index;
      if (!allowed)
        add(topic.name, index, ErrorCode::TOPIC_AUTHORIZATION_FAILED);
      else if (found == nullptr || found->partition(index) == nullptr)
        add(topic.name, index, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
      else
        command_.partitions.emplace_back(topic.name, index);
    }
  }

  void add(std::string_view topic, PartitionIndex index, ErrorCode error) {
    const auto [at, added] = entries_.try_emplace(topic, response_.topics.size());
    if (added) response_.topics.emplace_back().name = std::string(topic);
    response_.topics[at->second].partitions.push_back({index, error});
  }

  static Response failed(ErrorCode error) {
    Response response;
    response.error_code = error;
    return response;
  }

  Context& context_;
  const Request& request_;
  coordinator::DeleteOffsetsCommand command_;
  std::map<std::string_view, std::size_t> entries_;
  Response response_;
};

}  // namespace

broker::Task<Response> handle(Context& context, Request request) {
  Deletion deletion(context, request);
  Response response = deletion.run();
  if (response.error_code != ErrorCode::NONE) co_return response;
  const auto synced = co_await context.broker.reserved_synced(context);
  if (!synced) response.error_code = ErrorCode::COORDINATOR_NOT_AVAILABLE;
  co_return response;
}

}  // namespace kanal::handlers
