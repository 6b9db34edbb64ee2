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
  const ChangeRequest change = change_of(request, false);
  auto outcomes = co_await change_configs(context, change);
  wire::IncrementalAlterConfigsResponse response;
  answer(change, outcomes, response);
  co_return response;
}

}  // namespace kanal::handlers
