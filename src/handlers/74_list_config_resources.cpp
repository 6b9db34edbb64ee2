// ListConfigResources (74): the names of what has configs (KIP-1142).
//
// Behavior
// - Groups and client-metrics subscriptions are listed where something is set on them; topics,
// brokers and their loggers always. A type that the version does not know is UNSUPPORTED_VERSION
// for the whole request.
// Version notes
// - v0 lists client-metrics subscriptions alone, 1 any types, all where none is named.
#include <algorithm>

#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/wire/messages/list_config_resources.hpp"

namespace kanal::handlers {
namespace {

using coordinator::ConfigResourceType;
using Response = wire::ListConfigResourcesResponse;

class Listing {
 public:
  Listing(broker::Context& context, const wire::ListConfigResourcesRequest& request,
          Response& response)
      : context_(context), request_(request), response_(response) {}

  void fill() {
    if (context_.api_version == 0) return add_names(ConfigResourceType::kClientMetrics);
    for (const std::int8_t type : request_.resource_types) {
      if (coordinator::resource_type(type) != ConfigResourceType::kUnknown) continue;
      response_.error_code = ErrorCode::UNSUPPORTED_VERSION;
      return;
    }
    for (const auto type : {ConfigResourceType::kGroup, ConfigResourceType::kClientMetrics,
                            ConfigResourceType::kBrokerLogger, ConfigResourceType::kBroker,
                            ConfigResourceType::kTopic}) {
      if (is_wanted(type)) add_names(type);
    }
  }

 private:
  [[nodiscard]] bool is_wanted(ConfigResourceType type) const {
    const auto& types = request_.resource_types;
    return types.empty() || std::ranges::find(types, static_cast<std::int8_t>(type)) != types.end();
  }

  void add(ConfigResourceType type, std::string name) {
    auto& entry = response_.config_resources.emplace_back();
    entry.resource_type = static_cast<std::int8_t>(type);
    entry.resource_name = std::move(name);
  }

  void add_names(ConfigResourceType type) {
    const auto stored = context_.broker.dynamic_configs();
    if (type == ConfigResourceType::kTopic) {
      context_.broker.topics()->for_each(
          [&](const broker::TopicPtr& topic) { add(type, topic->name()); });
    } else if (type == ConfigResourceType::kGroup) {
      for (const auto& [name, overlay] : stored->groups) add(type, name);
    } else if (type == ConfigResourceType::kClientMetrics) {
      for (const auto& [name, overlay] : stored->client_metrics) add(type, name);
    } else {
      add(type, std::to_string(context_.broker.node_id().value()));
    }
  }

  broker::Context& context_;
  const wire::ListConfigResourcesRequest& request_;
  Response& response_;
};

}  // namespace

broker::Task<Response> handle(broker::Context& context, wire::ListConfigResourcesRequest request) {
  Response response;
  if (authorize(context, Operation::kDescribeConfigs, ResourceType::kCluster, kClusterName)) {
    Listing(context, request, response).fill();
  } else {
    response.error_code = ErrorCode::CLUSTER_AUTHORIZATION_FAILED;
  }
  co_return response;
}

}  // namespace kanal::handlers
