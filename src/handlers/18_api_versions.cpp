// ApiVersions (18): what this broker serves. Unknown versions never get here: dispatch answers them
// with version 0.
//
// Version notes
// - 3+ names the client's software, which must look like a name (KIP-511); 5 names the cluster and
//   node it means to talk to, both or none: REBOOTSTRAP_REQUIRED if it is another one (KIP-1242).
// - 3 does not list what a feature supports from level 0 on: old clients fail on it (KAFKA-17492).
#include <algorithm>

#include "kanal/broker/broker.hpp"
#include "kanal/coordinator/features.hpp"
#include "kanal/handlers/route.hpp"
#include "kanal/wire/messages/api_versions.hpp"

namespace kanal::handlers {
namespace {

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// [a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?
bool is_software_name(std::string_view text) {
  const auto inner = [](char c) { return is_alphanumeric(c) || c == '-' || c == '.'; };
  return !text.empty() && is_alphanumeric(text.front()) && is_alphanumeric(text.back()) &&
         std::ranges::all_of(text, inner);
}

ErrorCode check(const broker::Context& context, const wire::ApiVersionsRequest& request) {
  if (context.api_version >= 3 && !(is_software_name(request.client_software_name) &&
                                    is_software_name(request.client_software_version))) {
    return ErrorCode::INVALID_REQUEST;
  }
  if (request.cluster_id.has_value() != (request.node_id != NodeId(-1)))
    return ErrorCode::INVALID_REQUEST;
  if (request.cluster_id && (*request.cluster_id != context.broker.cluster_id() ||
                             request.node_id != context.broker.node_id())) {
    return ErrorCode::REBOOTSTRAP_REQUIRED;
  }
  return ErrorCode::NONE;
}

}  // namespace

broker::Task<wire::ApiVersionsResponse> handle(broker::Context& context,
                                               wire::ApiVersionsRequest request) {
  wire::ApiVersionsResponse response;
  response.error_code = check(context, request);
  if (response.error_code != ErrorCode::NONE) co_return response;
  context.peer.software_name = std::string(request.client_software_name);
  context.peer.software_version = std::string(request.client_software_version);
  for (const Route& route : routes()) {
    auto& entry = response.api_keys.emplace_back();
    entry.api_key = route.key;
    entry.min_version = route.advertised_min;
    entry.max_version = route.max_version;
  }
  for (const coordinator::Feature& feature : coordinator::kFeatures) {
    if (feature.lowest > 0 || context.api_version >= 4) {
      auto& supported = response.supported_features.emplace_back();
      supported.name = feature.name;
      supported.min_version = feature.lowest;
      supported.max_version = feature.highest;
    }
    auto& finalized = response.finalized_features.emplace_back();
    finalized.name = feature.name;
    finalized.max_version_level = finalized.min_version_level = feature.finalized;
  }
  response.finalized_features_epoch = 0;
  co_return response;
}

}  // namespace kanal::handlers
