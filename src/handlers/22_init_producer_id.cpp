// InitProducerId (22): a producer id for idempotent producing (KIP-98). Never the same twice.
//
// Behavior
// - Without a transactional id the answer is always a new id with epoch 0, whatever id the request
// names (as in Kafka).
// - Transactions are not served yet: a transactional id is refused for good, so that a client stops
// and says so. Version notes
// - 3+ may name an id and epoch; one without the other is INVALID_REQUEST.
#include "kanal/broker/broker.hpp"
#include "kanal/wire/messages/init_producer_id.hpp"

namespace kanal::handlers {
namespace {

ErrorCode check(const wire::InitProducerIdRequest& request) {
  if ((request.producer_id == kNoProducerId) != (request.producer_epoch == kNoProducerEpoch)) {
    return ErrorCode::INVALID_REQUEST;
  }
  if (!request.transactional_id) return ErrorCode::NONE;
  return request.transactional_id->empty() ? ErrorCode::INVALID_REQUEST
                                           : ErrorCode::UNSUPPORTED_VERSION;
}

}  // namespace

broker::Task<wire::InitProducerIdResponse> handle(broker::Context& context,
                                                  wire::InitProducerIdRequest request) {
  wire::InitProducerIdResponse response;
  response.producer_id = kNoProducerId;
  response.producer_epoch = kNoProducerEpoch;
  response.error_code = check(request);
  if (response.error_code != ErrorCode::NONE) co_return response;
  const Result<broker::ProducerIdentity> made = co_await context.broker.new_producer_id(context);
  if (!made) {
    response.error_code =
        ErrorCode::COORDINATOR_NOT_AVAILABLE;  // the disk may have room again: worth a repeat
    co_return response;
  }
  response.producer_id = made->id;
  response.producer_epoch = made->epoch;
  co_return response;
}

}  // namespace kanal::handlers
