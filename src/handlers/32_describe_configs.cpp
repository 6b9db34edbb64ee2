// DescribeConfigs (32): the settings of topics, brokers, groups, client-metrics subscriptions and
// loggers, with where each value comes from.
//
// Behavior
// - Each resource fails alone, but a type that does not exist fails them all, as in Kafka.
// - BROKER "" is the cluster default: what was set for all brokers while running.
// - Groups and client-metrics subscriptions that nobody has seen are described by their defaults.
// - A list of keys filters the answer; null or an empty one asks for all.
// Version notes
// - 1+ synonyms where asked for; 3+ type and, where asked for, documentation.
#include <algorithm>

#include "authorize.hpp"
#include "config_changes.hpp"
#include "kanal/base/logging.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/coordinator/resource_config.hpp"
#include "kanal/wire/messages/describe_configs.hpp"

namespace kanal::handlers {
namespace {

using broker::Context;
using coordinator::ConfigResourceType;
using Request = wire::DescribeConfigsRequest;
using Response = wire::DescribeConfigsResponse;
using Entries = std::vector<coordinator::ConfigEntry>;

Result<Entries> describe_topic(Context& context, std::string_view name) {
  if (!authorize(context, Operation::kDescribeConfigs, ResourceType::kTopic, name)) {
    return fail(ErrorCode::TOPIC_AUTHORIZATION_FAILED);
  }
  if (auto valid = check_topic_name(name); !valid) return std::unexpected(valid.error());
  const auto topic = context.broker.topics()->find(name);
  if (topic == nullptr) return fail(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
  return coordinator::describe_topic_configs(*context.broker.config(), topic->entry->overlay);
}

/// Whether the name is this broker's; `or_empty` is said where the empty name would do as well.
Result<void> check_own_id(Context& context, std::string_view name, std::string_view or_empty) {
  const auto id = parse_node_id(name);
  if (!id) {
    return invalid_request("Broker id must be an integer, but it is: " +
                           std::string(name.substr(0, 249)));
  }
  if (NodeId(*id) == context.broker.node_id()) return {};
  return invalid_request("Unexpected broker id, expected " +
                         std::to_string(context.broker.node_id().value()) + std::string(or_empty) +
                         " but received " + std::string(name.substr(0, 249)));
}

Result<Entries> describe_broker(Context& context, std::string_view name) {
  if (name.empty()) return coordinator::describe_cluster_default_configs(*context.broker.config());
  if (auto own = check_own_id(context, name, " or empty string,"); !own) {
    return std::unexpected(own.error());
  }
  return coordinator::describe_broker_configs(*context.broker.config());
}

Result<Entries> describe_loggers(Context& context, std::string_view name) {
  if (name.empty()) return invalid_request("Broker id must not be empty");
  if (auto own = check_own_id(context, name, ""); !own) return std::unexpected(own.error());
  Entries entries;
  for (const auto& [logger, level] : logger_levels()) {
    auto& entry = entries.emplace_back();
    entry.name = logger;
    entry.value = level;
    entry.source = coordinator::ConfigSource::kDynamicBrokerLogger;
  }
  return entries;
}

Result<Entries> describe_group(Context& context, std::string_view name) {
  if (!authorize(context, Operation::kDescribeConfigs, ResourceType::kGroup, name)) {
    return fail(ErrorCode::GROUP_AUTHORIZATION_FAILED);
  }
  if (name.empty()) return invalid_request("Group name must not be empty");
  const auto stored = context.broker.dynamic_configs();
  return coordinator::describe_group_configs(*context.broker.config(),
                                             stored->of(ConfigResourceType::kGroup, name));
}

Result<Entries> describe_client_metrics(Context& context, std::string_view name) {
  if (name.empty()) return invalid_request("Client metrics subscription name must not be empty");
  const auto stored = context.broker.dynamic_configs();
  return coordinator::describe_client_metrics_configs(
      stored->of(ConfigResourceType::kClientMetrics, name));
}

Result<Entries> describe(Context& context, const Request::Resource& resource) {
  const auto type = coordinator::resource_type(resource.resource_type);
  const std::string_view name = resource.resource_name;
  if (type == ConfigResourceType::kTopic) return describe_topic(context, name);
  if (type == ConfigResourceType::kGroup) return describe_group(context, name);
  if (!authorize(context, Operation::kDescribeConfigs, ResourceType::kCluster, kClusterName)) {
    return fail(ErrorCode::CLUSTER_AUTHORIZATION_FAILED);
  }
  if (type == ConfigResourceType::kBroker) return describe_broker(context, name);
  if (type == ConfigResourceType::kBrokerLogger) return describe_loggers(context, name);
  return describe_client_metrics(context, name);
}

/// The error that a resource of no type is to the whole request.
Result<void> check_types(const Request& request) {
  for (const auto& resource : request.resources) {
    if (coordinator::resource_type(resource.resource_type) != ConfigResourceType::kUnknown)
      continue;
    return invalid_request("Unexpected resource type UNKNOWN for resource " +
                           std::string(resource.resource_name.substr(0, 249)));
  }
  return {};
}

void add(Response::Result& result, coordinator::ConfigEntry& entry, const Request& request) {
  auto& config = result.configs.emplace_back();
  config.name = std::move(entry.name);
  config.value = std::move(entry.value);
  config.read_only = entry.read_only;
  config.config_source = static_cast<std::int8_t>(entry.source);
  config.is_sensitive = entry.sensitive;
  config.config_type = static_cast<std::int8_t>(entry.type);
  const bool logger = entry.source == coordinator::ConfigSource::kDynamicBrokerLogger;
  if (request.include_documentation) config.documentation = std::string(entry.documentation);
  if (logger) config.documentation = "";  // whatever was asked for, as Kafka
  if (!request.include_synonyms) return;
  for (coordinator::ConfigSynonym& synonym : entry.synonyms) {
    auto& described = config.synonyms.emplace_back();
    described.name = std::move(synonym.name);
    described.value = std::move(synonym.value);
    described.source = static_cast<std::int8_t>(synonym.source);
  }
}

}  // namespace

broker::Task<Response> handle(Context& context, Request request) {
  Response response;
  const Result<void> typed = check_types(request);
  for (const Request::Resource& resource : request.resources) {
    auto& result = response.results.emplace_back();
    result.resource_type = resource.resource_type;
    result.resource_name = std::string(resource.resource_name);
    result.error_message = "";  // never null in Kafka's answers
    Result<Entries> entries =
        typed ? describe(context, resource) : Result<Entries>(std::unexpected(typed.error()));
    if (!entries) {
      result.error_code = entries.error().code;
      result.error_message = entries.error().detail;
      continue;
    }
    const auto& keys = resource.configuration_keys;
    const bool all = !keys || keys->empty();
    for (coordinator::ConfigEntry& entry : *entries) {
      if (all || std::ranges::find(*keys, entry.name) != keys->end()) add(result, entry, request);
    }
  }
  co_return response;
}

}  // namespace kanal::handlers
