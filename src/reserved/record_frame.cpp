#include "record_frame.hpp"

#include <array>

namespace kanal::reserved {
namespace {

constexpr std::byte kVersion{1};
constexpr std::uint32_t kPolynomial = 0x82F63B78U;  // reflected

// A byte at a time is enough here: records are small and rare next to record batches.
constexpr std::array<std::uint32_t, 256> kTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1U) ? kPolynomial : 0U);
    table[i] = value;
  }
  return table;
}();

std::uint32_t checksum(std::string_view key, Bytes record) {
  std::uint32_t crc = crc32c(0, Bytes(&kVersion, 1));
  crc = crc32c(crc, as_bytes(key));
  return crc32c(crc, record);
}

}  // namespace

std::uint32_t crc32c(std::uint32_t crc, Bytes bytes) noexcept {
  crc = ~crc;
  for (const std::byte byte : bytes) {
    crc = kTable[(crc ^ static_cast<std::uint32_t>(byte)) & 0xFFU] ^ (crc >> 8);
  }
  return ~crc;
}

std::string frame(std::string_view key, Bytes record) {
  std::string value(kFrameHeader, '\0');
  value[0] = static_cast<char>(kVersion);
  store_be(reinterpret_cast<std::byte*>(value.data() + 1), checksum(key, record));
  value.append(as_text(record));
  return value;
}

Result<Bytes> unframe(std::string_view key, Bytes value) {
  const auto damaged = [](std::string what) {
    return fail(ErrorCode::KAFKA_STORAGE_ERROR, std::move(what));
  };
  if (value.size() < kFrameHeader) return damaged("the record is cut short");
  if (value[0] != kVersion) {
    return damaged("record format " + std::to_string(static_cast<int>(value[0])) + " is not known");
  }
  const Bytes record = value.subspan(kFrameHeader);
  if (load_be<std::uint32_t>(value.data() + 1) != checksum(key, record)) {
    return damaged("the record's checksum does not fit");
  }
  return record;
}

}  // namespace kanal::reserved
