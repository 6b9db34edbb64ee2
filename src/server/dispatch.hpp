// From a frame to what is to be done with it: header, key and version are checked before anything
// of the body is decoded. As in Kafka 4.4, an unknown key, an unsupported version and a header that
// cannot be read close the connection; ApiVersions of an unknown version (negative ones too) is
// answered in version 0 with error 35 and its own range, on a connection that stays open (KIP-511).
// Pure functions, any thread.
#pragma once

#include "kanal/base/bytes.hpp"
#include "kanal/handlers/route.hpp"
#include "kanal/wire/reader.hpp"
#include "kanal/wire/writer.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace kanal::server {

inline constexpr std::int16_t kApiVersionsKey = 18;

/// Finds the route of a key; handlers::find_route, or a test's own.
using RouteFinder = const handlers::Route* (*)(std::int16_t key);

struct RequestHeader {
  std::int16_t key = 0;
  std::int16_t version = 0;
  std::int32_t correlation_id = 0;
  std::string_view client_id;  // into the frame; empty if null
};

enum class Verdict : std::uint8_t {
  kRun,                 // decode and handle `body` by `route`
  kUnsupportedVersion,  // answer with write_unsupported_version
  kRefuse,              // close the connection; `reason` says why
};
struct OpenedRequest {
  Verdict verdict = Verdict::kRefuse;
  RequestHeader header;
  const handlers::Route* route = nullptr;
  wire::Reader
      body;  // stands behind the header; positions in its errors count from the start of the frame
  std::string reason;
};

/// `frame` is without its size, and outlives what is returned.
[[nodiscard]] OpenedRequest open_request(MutableBytes frame, RouteFinder find);

/// The response header: ApiVersions always has version 0, without tagged fields.
void write_response_header(wire::Writer& out, const handlers::Route& route, std::int16_t version,
                           std::int32_t correlation_id);

/// Header and body of the answer to ApiVersions of a version that `route` does not serve.
void write_unsupported_version(wire::Writer& out, const handlers::Route& route,
                               std::int32_t correlation_id);

}  // namespace kanal::server
