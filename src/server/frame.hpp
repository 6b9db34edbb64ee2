// Where one request frame ends: a big-endian int32 size and that many bytes. Pure functions, any
// thread.
#pragma once

#include "kanal/base/bytes.hpp"

#include <cstdint>
#include <string>

namespace kanal::server {

inline constexpr std::size_t kSizeBytes = 4;
/// API key, version, correlation id and the length of a client id.
inline constexpr std::int32_t kSmallestFrame = 10;

enum class FrameState : std::uint8_t {
  kPartial,   // more bytes needed: `bytes` in all, kSizeBytes while the size is not known
  kComplete,  // the first `bytes` bytes are a frame with its size
  kInvalid,   // no frame: close the connection
};
struct FrameExtent {
  FrameState state = FrameState::kPartial;
  std::size_t bytes = kSizeBytes;
};

/// The frame that `received` begins with; `largest` is socket.request.max.bytes.
[[nodiscard]] FrameExtent find_frame(Bytes received, std::int32_t largest) noexcept;

/// Why find_frame called it invalid, and what the other side seems to speak: a sentence for the
/// log.
[[nodiscard]] std::string describe_invalid_frame(Bytes received, std::int32_t largest);

}  // namespace kanal::server
