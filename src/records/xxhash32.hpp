// xxHash32 with seed 0, the checksum inside lz4 frames; Debian's liblz4 keeps its own copy hidden.
// Pure: any thread. Reads little endian words as x86-64 and arm64 hold them.
#pragma once

#include "kanal/base/bytes.hpp"

#include <bit>
#include <cstdint>
#include <cstring>

namespace kanal::records {

[[nodiscard]] inline std::uint32_t xxhash32(Bytes bytes) noexcept {
  constexpr std::uint32_t k1 = 2654435761U, k2 = 2246822519U, k3 = 3266489917U, k4 = 668265263U,
                          k5 = 374761393U;
  const auto word = [](const std::byte* at) {
    std::uint32_t value;
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  const auto round = [](std::uint32_t lane, std::uint32_t input) {
    return std::rotl(lane + input * k2, 13) * k1;
  };
  const std::byte* at = bytes.data();
  const std::byte* end = at + bytes.size();
  std::uint32_t hash = k5;
  if (bytes.size() >= 16) {
    std::uint32_t lanes[4] = {k1 + k2, k2, 0, 0U - k1};
    for (; end - at >= 16; at += 16) {
      for (int i = 0; i < 4; ++i) lanes[i] = round(lanes[i], word(at + 4 * i));
    }
    hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) +
           std::rotl(lanes[3], 18);
  }
  hash += static_cast<std::uint32_t>(bytes.size());
  for (; end - at >= 4; at += 4) hash = std::rotl(hash + word(at) * k3, 17) * k4;
  for (; at != end; ++at) hash = std::rotl(hash + static_cast<std::uint32_t>(*at) * k5, 11) * k1;
  hash = (hash ^ (hash >> 15)) * k2;
  hash = (hash ^ (hash >> 13)) * k3;
  return hash ^ (hash >> 16);
}

}  // namespace kanal::records
