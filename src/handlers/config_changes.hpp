// What AlterConfigs (33) and IncrementalAlterConfigs (44) have in common: each resource of a
// request is checked and changed alone, in Kafka's order of checks; and how resources are named,
// also in DescribeConfigs (32). On the connection's I/O thread.
#pragma once

#include "kanal/broker/broker.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kanal::handlers {

struct ResourceChange {
  std::int8_t type = 0;  // as the request has it
  std::string name;
  std::vector<coordinator::ConfigAlteration> changes;  // values may be missing, operations unknown
};
struct ChangeRequest {
  std::vector<ResourceChange> resources;
  bool replace = false;  // AlterConfigs: what is not named goes
  bool validate_only = false;
};

/// One outcome a resource, in the request's order; an error's empty detail is sent as null.
broker::Task<std::vector<Result<void>>> change_configs(broker::Context& context,
                                                       ChangeRequest request);

inline std::unexpected<Error> invalid_request(std::string text) {
  return fail(ErrorCode::INVALID_REQUEST, std::move(text));
}

/// Java's parseInt: a number with or without a sign.
[[nodiscard]] std::optional<std::int32_t> parse_node_id(std::string_view text);

/// What either request asks for; only IncrementalAlterConfigs has operations.
template <class Request>
ChangeRequest change_of(const Request& request, bool replace) {
  ChangeRequest change{.resources = {}, .replace = replace, .validate_only = request.validate_only};
  for (const auto& resource : request.resources) {
    auto& wanted = change.resources.emplace_back();
    wanted.type = resource.resource_type;
    wanted.name = std::string(resource.resource_name);
    for (const auto& config : resource.configs) {
      auto& setting = wanted.changes.emplace_back();
      setting.name = std::string(config.name);
      if constexpr (requires { config.config_operation; })
        setting.operation = static_cast<coordinator::ConfigOperation>(config.config_operation);
      if (config.value) setting.value = std::string(*config.value);
    }
  }
  return change;
}

/// The answer's entries, filled the same way by both requests.
template <class Response>
void answer(const ChangeRequest& request, std::vector<Result<void>>& outcomes, Response& response) {
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    auto& entry = response.responses.emplace_back();
    entry.resource_type = request.resources[i].type;
    entry.resource_name = request.resources[i].name;
    entry.error_message.reset();
    if (outcomes[i]) continue;
    entry.error_code = outcomes[i].error().code;
    std::string& detail = outcomes[i].error().detail;
    if (!detail.empty()) entry.error_message = std::move(detail);
  }
}

}  // namespace kanal::handlers
