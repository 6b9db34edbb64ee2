// CreateTopics (19): stored and synced before it is answered; the topic can be used at once.
//
// Behavior
// - Each topic fails alone. A name twice in one request is INVALID_REQUEST, once. A timeout of 0 or
// less is
//   REQUEST_TIMED_OUT and nothing happens, as in Kafka.
// - validate_only runs every check and changes nothing.
// Version notes
// - 5+ answers with the topic's real counts and its configuration, 7 with its id.
#include <algorithm>
#include <map>

#include "kanal/broker/broker.hpp"
#include "kanal/wire/messages/create_topics.hpp"
#include "topic_lookup.hpp"

namespace kanal::handlers {
namespace {

using broker::Context;
using Request = wire::CreateTopicsRequest;
using Response = wire::CreateTopicsResponse;

coordinator::CreateTopic command_for(Context& context, const Request& request,
                                     const Request::Topic& topic) {
  coordinator::CreateTopic command;
  command.name = std::string(topic.name);
  command.partitions = topic.num_partitions;
  command.replication_factor = topic.replication_factor;
  for (const auto& assignment : topic.assignments) {
    command.assignments.push_back({assignment.partition_index, assignment.broker_ids});
  }
  for (const auto& config : topic.configs) {
    command.configs.push_back({std::string(config.name), {}});
    if (config.value) command.configs.back().value = std::string(*config.value);
  }
  command.validate_only = request.validate_only;
  command.fresh_id = fresh_uuid(context.broker.random());
  command.created = context.broker.clock().wall();
  return command;
}

void refuse(Response& response, std::string_view name, ErrorCode code, std::string message) {
  auto& entry = response.topics.emplace_back();
  entry.name = std::string(name);
  entry.error_code = code;
  if (!message.empty()) entry.error_message = std::move(message);
}

void describe(Context& context, const coordinator::TopicEntry& topic, Response::Topic& entry) {
  entry.topic_id = topic.id;  // with validate_only one that nobody will have, as Kafka's
  entry.num_partitions = topic.partition_count;
  entry.replication_factor = 1;
  entry.configs.emplace();
  for (auto& config : coordinator::created_topic_configs(*context.broker.config(), topic.overlay)) {
    auto& described = entry.configs->emplace_back();
    described.name = std::move(config.name);
    described.value = std::move(config.value);
    described.read_only = config.read_only;
    described.config_source = static_cast<std::int8_t>(config.source);
    described.is_sensitive = config.sensitive;
  }
}

void answer(Context& context, const std::string& name, const coordinator::CatalogReply& reply,
            Response& response) {
  if (!reply) return refuse(response, name, reply.error().code, reply.error().detail);
  auto& entry = response.topics.emplace_back();
  entry.name = name;
  describe(context, **reply, entry);
}

}  // namespace

broker::Task<Response> handle(Context& context, Request request) {
  Response response;
  std::map<std::string_view, int> times;
  for (const auto& topic : request.topics) ++times[topic.name];
  std::vector<coordinator::CreateTopic> creations;
  for (const auto& topic : request.topics) {
    if (times[topic.name] > 1) continue;
    if (!is_internal_topic(topic.name))
      creations.push_back(command_for(context, request, topic));
    else
      refuse(response, topic.name, ErrorCode::TOPIC_ALREADY_EXISTS,
             "The name belongs to a topic of Kafka's own.");
  }
  const auto refuse_creations = [&](ErrorCode code, const std::string& why) {
    for (const auto& creation : creations) refuse(response, creation.name, code, why);
    creations.clear();
  };
  if (request.timeout.count() <= 0) refuse_creations(ErrorCode::REQUEST_TIMED_OUT, {});
  if (auto fits = coordinator::check_partitions_of_request(creations, *context.broker.config());
      !fits) {
    refuse_creations(fits.error().code, fits.error().detail);
  }
  if (!creations.empty()) {
    std::vector<coordinator::CatalogCommand> commands(creations.begin(), creations.end());
    const auto replies = co_await context.broker.change_catalog(context, std::move(commands));
    for (std::size_t i = 0; i < creations.size(); ++i) {
      answer(context, creations[i].name, replies[i], response);
    }
  }
  for (const auto& [name, count] : times) {
    if (count > 1) refuse(response, name, ErrorCode::INVALID_REQUEST, "Duplicate topic name.");
  }
  co_return response;
}

}  // namespace kanal::handlers
