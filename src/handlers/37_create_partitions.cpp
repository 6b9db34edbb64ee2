// CreatePartitions (37): a topic grows; it never shrinks.
//
// Behavior
// - Each topic fails alone; a name twice is INVALID_REQUEST. A timeout of 0 or less is
// REQUEST_TIMED_OUT and nothing
//   happens. validate_only runs every check.
#include <map>

#include "kanal/broker/broker.hpp"
#include "kanal/wire/messages/create_partitions.hpp"
#include "topic_lookup.hpp"

namespace kanal::handlers {
namespace {

using Request = wire::CreatePartitionsRequest;
using Response = wire::CreatePartitionsResponse;

constexpr std::int32_t kMaxPartitionsOfRequest =
    10'000;  // Kafka's, whatever max.partitions.per.topic allows

void answer(Response& response, std::string_view name, ErrorCode code, std::string message = {}) {
  auto& entry = response.results.emplace_back();
  entry.name = std::string(name);
  entry.error_code = code;
  if (!message.empty()) entry.error_message = std::move(message);
}

coordinator::CreatePartitions command_for(const Request& request, const Request::Topic& topic) {
  coordinator::CreatePartitions command;
  command.name = std::string(topic.name);
  command.total_count = topic.count;
  command.validate_only = request.validate_only;
  if (topic.assignments) {
    command.assignments.emplace();
    for (const auto& assignment : *topic.assignments)
      command.assignments->push_back(assignment.broker_ids);
  }
  return command;
}

}  // namespace

broker::Task<Response> handle(broker::Context& context, Request request) {
  Response response;
  std::map<std::string_view, int> times;
  for (const auto& topic : request.topics) ++times[topic.name];
  std::vector<std::string_view> names;
  std::vector<coordinator::CatalogCommand> commands;
  for (const auto& topic : request.topics) {
    int& count = times[topic.name];
    if (count > 1)
      answer(response, topic.name, ErrorCode::INVALID_REQUEST, "Duplicate topic name.");
    if (count > 1 || count == 0) {
      count = 0;  // answered once, however often it is named
      continue;
    }
    if (request.timeout.count() <= 0) {
      answer(response, topic.name, ErrorCode::REQUEST_TIMED_OUT);
      continue;
    }
    if (is_internal_topic(topic.name)) {
      answer(response, topic.name, ErrorCode::INVALID_PARTITIONS,
             "The topic is one of Kafka's own and does not grow.");
      continue;
    }
    if (topic.count > kMaxPartitionsOfRequest) {
      answer(response, topic.name, ErrorCode::POLICY_VIOLATION,
             "Excessively large number of partitions per request.");
      continue;
    }
    names.push_back(topic.name);
    commands.emplace_back(command_for(request, topic));
  }
  if (commands.empty()) co_return response;
  const auto replies = co_await context.broker.change_catalog(context, std::move(commands));
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (replies[i])
      answer(response, names[i], ErrorCode::NONE);
    else
      answer(response, names[i], replies[i].error().code, replies[i].error().detail);
  }
  co_return response;
}

}  // namespace kanal::handlers
