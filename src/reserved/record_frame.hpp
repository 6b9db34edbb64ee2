// How a record lies in the store: version (1 byte) | CRC32C (4 bytes, big endian) over version, key
// and record | record. The key is covered so that a value in the wrong place is noticed too; the
// store's own block checksums guard the disk, this one guards everything else. Pure functions: any
// thread.
#pragma once

#include "kanal/base/bytes.hpp"
#include "kanal/base/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace kanal::reserved {

inline constexpr std::size_t kFrameHeader = 5;

[[nodiscard]] std::string frame(std::string_view key, Bytes record);
/// A view into `value`; KAFKA_STORAGE_ERROR with what is wrong (the caller names the channel).
[[nodiscard]] Result<Bytes> unframe(std::string_view key, Bytes value);

/// CRC-32C (Castagnoli) of `bytes`, going on from `crc` (0 at first).
[[nodiscard]] std::uint32_t crc32c(std::uint32_t crc, Bytes bytes) noexcept;

}  // namespace kanal::reserved
