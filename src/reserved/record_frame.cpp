#include "record_frame.hpp"

#include <isa-l/crc.h>

#include <algorithm>

namespace kanal::reserved {
namespace {

constexpr std::byte kVersion{1};

std::uint32_t checksum(std::string_view key, Bytes record) {
  std::uint32_t crc = crc32c(0, Bytes(&kVersion, 1));
  crc = crc32c(crc, as_bytes(key));
  return crc32c(crc, record);
}

}  // namespace

std::uint32_t crc32c(std::uint32_t crc, Bytes bytes) noexcept {
  // As in the records layer: ISA-L only reads, leaves both inversions to the caller, and takes an
  // int length, so longer input goes in pieces.
  constexpr std::size_t kPiece = std::size_t{1} << 30;
  std::uint32_t state = ~crc;
  while (!bytes.empty()) {
    const Bytes piece = bytes.first(std::min(bytes.size(), kPiece));
    auto* data = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(piece.data()));
    state = crc32_iscsi(data, static_cast<int>(piece.size()), state);
    bytes = bytes.subspan(piece.size());
  }
  return ~state;
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
