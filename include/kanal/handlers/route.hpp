// The table of served APIs, generated from src/wire/schema: key, versions, and what decodes,
// handles and encodes. Immutable: any thread; run() belongs to the I/O thread of the connection
// whose Context it gets.
#pragma once

#include "kanal/base/error.hpp"
#include "kanal/broker/context.hpp"
#include "kanal/wire/reader.hpp"
#include "kanal/wire/writer.hpp"

#include <cstdint>
#include <span>
#include <string_view>

namespace kanal::handlers {

struct Route {
  std::int16_t key;
  std::string_view name;
  std::int16_t min_version;
  std::int16_t max_version;
  std::int16_t advertised_min;  // what ApiVersions reports as the lowest (Produce: 0, though 0-2
                                // are refused)
  std::int16_t flexible_from;   // headers and bodies are flexible from this version on
  std::int16_t fixed_response_header;  // ApiVersions: 0, always; else -1

  /// Decodes the body, awaits handle(), encodes the answer in the request's version into `out`
  /// (nothing where the handler set suppress_response). An error is a body that cannot be read: the
  /// connection is closed. `body`'s frame must outlive the returned task.
  broker::Task<Result<void>> (*run)(broker::Context& context, wire::Reader& body,
                                    std::int16_t version, wire::Writer& out);

  [[nodiscard]] bool serves(std::int16_t version) const noexcept {
    return version >= min_version && version <= max_version;
  }
  [[nodiscard]] bool flexible(std::int16_t version) const noexcept {
    return version >= flexible_from;
  }
  [[nodiscard]] std::int16_t request_header(std::int16_t version) const noexcept {
    return flexible(version) ? std::int16_t{2} : std::int16_t{1};
  }
  [[nodiscard]] std::int16_t response_header(std::int16_t version) const noexcept {
    if (fixed_response_header >= 0) return fixed_response_header;
    return flexible(version) ? std::int16_t{1} : std::int16_t{0};
  }
};

/// The route of an API key; nullptr for one that is not served.
[[nodiscard]] const Route* find_route(std::int16_t key) noexcept;

/// All of them, by rising key.
[[nodiscard]] std::span<const Route> routes() noexcept;

}  // namespace kanal::handlers
