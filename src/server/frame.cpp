#include "frame.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace kanal::server {

FrameExtent find_frame(Bytes received, std::int32_t largest) noexcept {
  if (received.size() < kSizeBytes) return {};
  const auto size = load_be<std::int32_t>(received.data());
  if (size < kSmallestFrame || size > largest) return {FrameState::kInvalid, 0};
  const std::size_t bytes = kSizeBytes + static_cast<std::size_t>(size);
  return {received.size() < bytes ? FrameState::kPartial : FrameState::kComplete, bytes};
}

std::string describe_invalid_frame(Bytes received, std::int32_t largest) {
  const auto size = load_be<std::int32_t>(received.data());
  static constexpr std::array<std::string_view, 8> kVerbs = {"GET ", "POST", "HEAD", "PUT ",
                                                             "DELE", "OPTI", "CONN", "PRI "};
  const std::string_view start = as_text(received.first(kSizeBytes));
  if (std::ranges::find(kVerbs, start) != kVerbs.end()) {
    return "this is an HTTP request; the listener speaks the Kafka protocol";
  }
  if (start.starts_with("\x16\x03")) {
    return "this is a TLS handshake; the listener speaks plaintext";
  }
  if (size > largest) {
    return "frame size " + std::to_string(size) + " is larger than socket.request.max.bytes " +
           std::to_string(largest);
  }
  return "frame size " + std::to_string(size) + " is smaller than a request header";
}

}  // namespace kanal::server
