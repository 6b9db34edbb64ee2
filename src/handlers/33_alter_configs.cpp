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
  const ChangeRequest change = change_of(request, true);
  auto outcomes = co_await change_configs(context, change);
  wire::AlterConfigsResponse response;
  answer(change, outcomes, response);
  co_return response;
}

}  // namespace kanal::handlers
