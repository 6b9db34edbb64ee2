#include "dispatch.hpp"

#include "kanal/base/error_code.hpp"

namespace kanal::server {
namespace {

std::string versions_of(const handlers::Route& route) {
  return std::to_string(route.min_version) + "-" + std::to_string(route.max_version);
}

}  // namespace

OpenedRequest open_request(MutableBytes frame, RouteFinder find) {
  OpenedRequest request{.verdict = Verdict::kRefuse,
                        .header = {},
                        .route = nullptr,
                        .body = wire::Reader(frame),
                        .reason = {}};
  wire::Reader& reader = request.body;
  RequestHeader& header = request.header;
  header.key = reader.int16("request_api_key");
  header.version = reader.int16("request_api_version");
  header.correlation_id = reader.int32("correlation_id");
  request.route = reader.failed() ? nullptr : find(header.key);
  if (request.route == nullptr) {
    request.reason = reader.failed() ? reader.error("request header", 1).detail : "unknown API key";
    return request;
  }
  const bool served = request.route->serves(header.version);
  if (!served && header.key != kApiVersionsKey) {
    request.reason = "unsupported version; served are " + versions_of(*request.route);
    return request;
  }
  const bool flexible = request.route->flexible(header.version);
  header.client_id = reader.nullable_text(false, "client_id").value_or(std::string_view{});
  if (flexible) reader.skip_tags();
  if (reader.failed()) {
    request.reason = reader.error("request header", flexible ? 2 : 1).detail;
    return request;
  }
  request.verdict = served ? Verdict::kRun : Verdict::kUnsupportedVersion;
  return request;
}

void write_response_header(wire::Writer& out, const handlers::Route& route, std::int16_t version,
                           std::int32_t correlation_id) {
  out.int32(correlation_id);
  if (route.response_header(version) > 0) out.uvarint(0);  // no tagged fields
}

void write_unsupported_version(wire::Writer& out, const handlers::Route& route,
                               std::int32_t correlation_id) {
  out.int32(correlation_id);
  out.int16(static_cast<std::int16_t>(ErrorCode::UNSUPPORTED_VERSION));
  out.array_size(false, 1);
  out.int16(route.key);
  out.int16(route.advertised_min);
  out.int16(route.max_version);
}

}  // namespace kanal::server
