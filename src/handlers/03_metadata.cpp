// Metadata (3): the broker, its topics and their leaders; the one request that may create a topic
// by asking for it.
//
// Behavior
// - Where the setting and the request allow it, a missing topic is created before the answer
// leaves; this first answer
//   still says UNKNOWN_TOPIC_OR_PARTITION, as Kafka's, and the next one has the topic.
// - The broker's address is that of the listener the request came in on.
// Version notes
// - 0: an empty list asks for all; 1+: null does. 10-11 refuse ids and null names (INVALID_REQUEST
// for every topic);
//   12+ finds by id. 8-10 may ask for the cluster's allowed operations, 8+ for the topics'.
#include <algorithm>

#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/wire/messages/metadata.hpp"
#include "topic_lookup.hpp"

namespace kanal::handlers {
namespace {

using broker::Context;
using broker::Task;
using Request = wire::MetadataRequest;
using Response = wire::MetadataResponse;

void add_topic(Context& context, const broker::Topic& topic, Response& response) {
  auto& entry = response.topics.emplace_back();
  entry.name = topic.name();
  entry.topic_id = topic.id();
  entry.partitions.reserve(topic.partitions.size());
  for (const auto& partition : topic.partitions) {
    auto& described = entry.partitions.emplace_back();
    described.partition_index = partition->id().partition;
    described.leader_id = context.broker.leader(partition->id());
    described.leader_epoch = context.broker.leader_epoch();
    described.replica_nodes = {described.leader_id};
    described.isr_nodes = {described.leader_id};
  }
}

void add_missing(Response& response, std::optional<std::string> name, const Uuid& id,
                 ErrorCode error) {
  auto& entry = response.topics.emplace_back();
  entry.error_code = error;
  entry.is_internal = name && is_internal_topic(*name);
  entry.name = std::move(name);
  entry.topic_id = id;
}

/// Kafka 4.4 answers a name-less topic and, below version 12, an id for the whole request.
ErrorCode check(const Context& context, const Request& request) {
  if (!request.topics) return ErrorCode::NONE;
  for (const auto& topic : *request.topics) {
    const bool named_by_id = !topic.topic_id.is_zero();
    if (context.api_version < 12 && context.api_version >= 10 && (named_by_id || !topic.name)) {
      return ErrorCode::INVALID_REQUEST;
    }
    if (!named_by_id && !topic.name) return ErrorCode::UNKNOWN_SERVER_ERROR;
  }
  return ErrorCode::NONE;
}

void refuse_all(const Request& request, ErrorCode error, Response& response) {
  for (const auto& topic : *request.topics) {
    add_missing(response, std::string(topic.name.value_or("")), topic.topic_id, error);
  }
  response.error_code = error;
}

std::vector<std::string_view> distinct_names(const Request& request) {
  std::vector<std::string_view> names;
  for (const auto& topic : *request.topics) {
    if (topic.name) names.push_back(*topic.name);
  }
  std::ranges::sort(names);
  const auto twice = std::ranges::unique(names);
  names.erase(twice.begin(), twice.end());
  return names;
}

void add_by_ids(Context& context, const Request& request, const broker::Topics& topics,
                Response& response) {
  std::vector<Uuid> seen;
  for (const auto& asked : *request.topics) {
    if (asked.topic_id.is_zero() || std::ranges::find(seen, asked.topic_id) != seen.end()) continue;
    seen.push_back(asked.topic_id);
    if (const auto topic = topics.find(asked.topic_id))
      add_topic(context, *topic, response);
    else
      add_missing(response, std::nullopt, asked.topic_id, ErrorCode::UNKNOWN_TOPIC_ID);
  }
}

/// Creates what is missing and may be; what is refused gets its own error.
Task<void> create_missing(Context& context, std::vector<std::string> missing, Response& response) {
  std::vector<coordinator::CatalogCommand> commands;
  for (const std::string& name : missing) {
    coordinator::CreateTopic command;
    command.name = name;
    command.fresh_id = fresh_uuid(context.broker.random());
    command.created = context.broker.clock().wall();
    commands.push_back(std::move(command));
  }
  const std::vector<coordinator::CatalogReply> replies =
      co_await context.broker.change_catalog(context, std::move(commands));
  for (std::size_t i = 0; i < missing.size(); ++i) {
    // Created or refused, Kafka's answer is the same; only a broken disk is worth another one.
    const bool broken = !replies[i] && replies[i].error().code == ErrorCode::KAFKA_STORAGE_ERROR;
    add_missing(response, missing[i], {},
                broken ? replies[i].error().code : ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
  }
}

Task<void> add_by_names(Context& context, const Request& request,
                        std::shared_ptr<const broker::Topics> topics, Response& response) {
  const bool create =
      request.allow_auto_topic_creation && context.broker.config()->auto_create_topics;
  std::vector<std::string> missing;
  for (const std::string_view name : distinct_names(request)) {
    const auto topic = topics->find(name);
    if (topic != nullptr)
      add_topic(context, *topic, response);
    else if (!check_topic_name(name))
      add_missing(response, std::string(name), {}, ErrorCode::INVALID_TOPIC_EXCEPTION);
    else if (create && !is_internal_topic(name))
      missing.emplace_back(name);
    else
      add_missing(response, std::string(name), {}, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
  }
  if (!missing.empty()) co_await create_missing(context, std::move(missing), response);
}

}  // namespace

Task<Response> handle(Context& context, Request request) {
  Response response;
  if (const ErrorCode error = check(context, request); error != ErrorCode::NONE) {
    refuse_all(request, error, response);
    co_return response;
  }
  auto& self = response.brokers.emplace_back();
  self.node_id = context.broker.node_id();
  self.host = context.peer.listener->host;
  self.port = context.peer.listener->port;
  self.rack = context.broker.config()->node.rack;
  response.cluster_id = context.broker.cluster_id();
  response.controller_id = context.broker.node_id();

  const auto topics = context.broker.topics();
  const bool all = !request.topics || (context.api_version == 0 && request.topics->empty());
  const bool by_id = !all && std::ranges::any_of(*request.topics, [](const auto& t) {
    return !t.topic_id.is_zero();
  });
  if (all)
    topics->for_each([&](const broker::TopicPtr& topic) { add_topic(context, *topic, response); });
  else if (by_id)
    add_by_ids(context, request, *topics, response);
  else
    co_await add_by_names(context, request, topics, response);

  if (request.include_cluster_authorized_operations)
    response.cluster_authorized_operations = kClusterOperations;
  if (request.include_topic_authorized_operations) {
    for (auto& topic : response.topics) {
      if (topic.name) topic.topic_authorized_operations = kTopicOperations;
    }
  }
  co_return response;
}

}  // namespace kanal::handlers
