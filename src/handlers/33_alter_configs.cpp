// AlterConfigs (33): replaces all that is set on a resource; what is not named goes.
//
// Behavior
// - Each resource fails alone; one named twice is INVALID_REQUEST, both times. Loggers are not
// taken here, as in Kafka.
// - validate_only runs every check and changes nothing.
#include "config_changes.hpp"
#include "kanal/wire/messages/alter_configs.hpp"

namespace kanal::handlers {

broker::Task<wire::AlterConfigsResponse> handle(broker::Context& context,
                                                wire::AlterConfigsRequest request) {
  ChangeRequest change{.resources = {}, .replace = true, .validate_only = request.validate_only};
  for (const auto& resource : request.resources) {
    auto& wanted = change.resources.emplace_back();
    wanted.type = resource.resource_type;
    wanted.name = std::string(resource.resource_name);
    for (const auto& config : resource.configs) {
      auto& setting = wanted.changes.emplace_back();
      setting.name = std::string(config.name);
      if (config.value) setting.value = std::string(*config.value);
    }
  }
  auto outcomes = co_await change_configs(context, change);
  wire::AlterConfigsResponse response;
  answer(change, outcomes, response);
  co_return response;
}

}  // namespace kanal::handlers
