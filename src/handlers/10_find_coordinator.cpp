// FindCoordinator (10): which broker coordinates a group or a transaction. On one node it is always
// this one.
//
// Version notes
// - 0 groups only; 1+ a key type; 4+ many keys in one request, each answered for itself.
#include "kanal/broker/broker.hpp"
#include "kanal/wire/messages/find_coordinator.hpp"

namespace kanal::handlers {
namespace {

using Request = wire::FindCoordinatorRequest;
using Response = wire::FindCoordinatorResponse;
constexpr std::int8_t kGroup = 0, kTransaction = 1;

}  // namespace

broker::Task<Response> handle(broker::Context& context, Request request) {
  Response response;
  const bool known = request.key_type == kGroup || request.key_type == kTransaction;
  // Share groups are not served, and Kafka answers an unknown kind of key like this too.
  const ErrorCode error = known ? ErrorCode::NONE : ErrorCode::INVALID_REQUEST;
  const broker::Listener& listener = *context.peer.listener;
  const auto fill = [&](auto& answer) {
    answer.error_code = error;
    answer.error_message = known ? "" : "The coordinator key type is not served by this broker.";
    answer.node_id = known ? context.broker.node_id() : NodeId(-1);
    answer.host = known ? listener.host : "";
    answer.port = known ? listener.port : -1;
  };
  if (context.api_version < 4) {
    fill(response);
    if (known) response.error_message = "NONE";
    co_return response;
  }
  for (const std::string_view key : request.coordinator_keys) {
    auto& coordinator = response.coordinators.emplace_back();
    coordinator.key = std::string(key);
    fill(coordinator);
  }
  co_return response;
}

}  // namespace kanal::handlers
