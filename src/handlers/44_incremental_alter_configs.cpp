// IncrementalAlterConfigs (44): sets, deletes, appends to or subtracts from single settings
// (KIP-339), read and written in one turn, so that two clients never undo each other's change.
//
// Behavior
// - Each resource fails alone and changes as a whole; one named twice is INVALID_REQUEST, both
// times.
// - Appending and subtracting are for lists. Loggers (KIP-412) are set and deleted only, and go
// back to the start-up file's level at a restart.
// - An unknown operation is INVALID_REQUEST for brokers and UNKNOWN_SERVER_ERROR elsewhere, as in
// Kafka.
#include "config_changes.hpp"
#include "kanal/wire/messages/incremental_alter_configs.hpp"

namespace kanal::handlers {

broker::Task<wire::IncrementalAlterConfigsResponse> handle(
    broker::Context& context, wire::IncrementalAlterConfigsRequest request) {
  ChangeRequest change{.resources = {}, .replace = false, .validate_only = request.validate_only};
  for (const auto& resource : request.resources) {
    auto& wanted = change.resources.emplace_back();
    wanted.type = resource.resource_type;
    wanted.name = std::string(resource.resource_name);
    for (const auto& config : resource.configs) {
      auto& setting = wanted.changes.emplace_back();
      setting.name = std::string(config.name);
      setting.operation = static_cast<coordinator::ConfigOperation>(config.config_operation);
      if (config.value) setting.value = std::string(*config.value);
    }
  }
  auto outcomes = co_await change_configs(context, change);
  wire::IncrementalAlterConfigsResponse response;
  answer(change, outcomes, response);
  co_return response;
}

}  // namespace kanal::handlers
