// DescribeConfigs (32): the settings of topics and of the broker, with where each value comes from.
//
// Behavior
// - Each resource fails alone. BROKER "" is the cluster default: what was set for all brokers while
// running.
// - A list of keys filters the answer; null or an empty one asks for all.
// Version notes
// - 1+ synonyms where asked for; 3+ type and, where asked for, documentation.
#include <algorithm>
#include <charconv>

#include "kanal/broker/broker.hpp"
#include "kanal/wire/messages/describe_configs.hpp"

namespace kanal::handlers {
namespace {

using broker::Context;
using Request = wire::DescribeConfigsRequest;
using Response = wire::DescribeConfigsResponse;
using Entries = std::vector<coordinator::ConfigEntry>;

constexpr std::int8_t kTopic = 2, kBroker = 4;

Result<Entries> describe_topic(Context& context, std::string_view name) {
  if (auto valid = check_topic_name(name); !valid) return std::unexpected(valid.error());
  const auto topic = context.broker.topics()->find(name);
  if (topic == nullptr) return fail(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
  return coordinator::describe_topic_configs(*context.broker.config(), topic->entry->overlay);
}

Result<Entries> describe_broker(Context& context, std::string_view name) {
  if (name.empty()) return coordinator::describe_cluster_default_configs(*context.broker.config());
  std::int32_t id = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
  if (error != std::errc{} || end != name.data() + name.size()) {
    return fail(ErrorCode::INVALID_REQUEST,
                "A broker is named by its id, or by nothing for the cluster default; '" +
                    std::string(name) + "' is not a number.");
  }
  if (NodeId(id) != context.broker.node_id()) {
    return fail(ErrorCode::INVALID_REQUEST,
                "This is broker " + std::to_string(context.broker.node_id().value()) +
                    ", it cannot describe broker " + std::to_string(id) + ".");
  }
  return coordinator::describe_broker_configs(*context.broker.config());
}

Result<Entries> describe(Context& context, const Request::Resource& resource) {
  if (resource.resource_type == kTopic) return describe_topic(context, resource.resource_name);
  if (resource.resource_type == kBroker) return describe_broker(context, resource.resource_name);
  return fail(ErrorCode::INVALID_REQUEST, "Configs of resource type " +
                                              std::to_string(resource.resource_type) +
                                              " are not served by this broker.");
}

void add(Response::Result& result, coordinator::ConfigEntry& entry, const Request& request) {
  auto& config = result.configs.emplace_back();
  config.name = std::move(entry.name);
  config.value = std::move(entry.value);
  config.read_only = entry.read_only;
  config.config_source = static_cast<std::int8_t>(entry.source);
  config.is_sensitive = entry.sensitive;
  config.config_type = static_cast<std::int8_t>(entry.type);
  if (request.include_documentation) config.documentation = std::string(entry.documentation);
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
  for (const Request::Resource& resource : request.resources) {
    auto& result = response.results.emplace_back();
    result.resource_type = resource.resource_type;
    result.resource_name = std::string(resource.resource_name);
    result.error_message = "";  // never null in Kafka's answers
    Result<Entries> entries = describe(context, resource);
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
