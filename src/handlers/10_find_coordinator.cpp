// FindCoordinator (10): which broker coordinates a group or a transaction. On one node it is always
// this one, for any key.
//
// Version notes
// - 0 groups only; 1+ a key type; 4+ many keys in one request, each answered for itself.
// - 6 may ask for share groups; they are not served here.
#include "kanal/wire/messages/find_coordinator.hpp"

#include "authorize.hpp"
#include "kanal/broker/broker.hpp"

namespace kanal::handlers {
namespace {

using Request = wire::FindCoordinatorRequest;
using Response = wire::FindCoordinatorResponse;
constexpr std::int8_t kGroup = 0, kTransaction = 1;

ErrorCode check(const broker::Context& context, std::int8_t key_type, std::string_view key) {
  switch (key_type) {
    case kGroup:
      return authorize(context, Operation::kDescribe, ResourceType::kGroup, key)
                 ? ErrorCode::NONE
                 : ErrorCode::GROUP_AUTHORIZATION_FAILED;
    case kTransaction:
      return authorize(context, Operation::kDescribe, ResourceType::kTransactionalId, key)
                 ? ErrorCode::NONE
                 : ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
    default:  // Kafka answers an unknown kind of key like this too
      return ErrorCode::INVALID_REQUEST;
  }
}

template <class Answer>
void fill(broker::Context& context, ErrorCode error, Answer& answer) {
  const bool found = error == ErrorCode::NONE;
  const broker::Listener& listener = *context.peer.listener;
  answer.error_code = error;
  answer.error_message = found ? "" : "The coordinator cannot be given.";
  answer.node_id = found ? context.broker.node_id() : NodeId(-1);
  answer.host = found ? listener.host : "";
  answer.port = found ? listener.port : -1;
}

}  // namespace

broker::Task<Response> handle(broker::Context& context, Request request) {
  Response response;
  if (context.api_version < 4) {
    fill(context, check(context, request.key_type, request.key), response);
    if (response.error_code == ErrorCode::NONE) response.error_message = "NONE";
    co_return response;
  }
  response.coordinators.reserve(request.coordinator_keys.size());
  for (const std::string_view key : request.coordinator_keys) {
    auto& coordinator = response.coordinators.emplace_back();
    coordinator.key = std::string(key);
    fill(context, check(context, request.key_type, key), coordinator);
  }
  co_return response;
}

}  // namespace kanal::handlers
