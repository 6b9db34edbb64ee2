#include "journal_check.hpp"

#include "record_frame.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace kanal::reserved {
namespace {

// RocksDB's journal format: blocks of 32 KiB; a record is checksum (4) | length (2) | type (1) |
// payload, little endian, and does not cross a block; up to six zeros fill a block's end.
constexpr std::size_t kBlock = 32 << 10;
constexpr std::size_t kHeader = 7;
constexpr std::uint8_t kLastType = 4;  // whole, first, middle, last piece of a write

template <class T>
T load_le(const std::byte* at) {
  static_assert(std::endian::native == std::endian::little);
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

struct Header {
  std::uint32_t checksum;
  std::uint16_t length;
  std::uint8_t type;
};
Header header_at(Bytes journal, std::size_t at) {
  const std::byte* bytes = journal.data() + at;
  return {load_le<std::uint32_t>(bytes), load_le<std::uint16_t>(bytes + 4),
          static_cast<std::uint8_t>(bytes[6])};
}

std::uint32_t masked(std::uint32_t crc) {
  return std::rotr(crc, 15) + 0xA282EAD8U;
}

std::size_t block_end(std::size_t at) {
  return (at / kBlock + 1) * kBlock;
}

bool valid_record_at(Bytes journal, std::size_t at) {
  if (at + kHeader > std::min(journal.size(), block_end(at))) return false;
  const Header header = header_at(journal, at);
  if (header.type == 0 || header.type > kLastType) return false;
  if (at + kHeader + header.length > std::min(journal.size(), block_end(at))) return false;
  return masked(crc32c(0, journal.subspan(at + kHeader - 1, header.length + 1U))) ==
         header.checksum;
}

bool record_follows(Bytes journal, std::size_t at) {
  while (++at + kHeader <= journal.size()) {
    if (valid_record_at(journal, at)) return true;
  }
  return false;
}

}  // namespace

JournalState check_journal(Bytes journal) {
  using enum JournalState::What;
  std::size_t at = 0;
  while (at + kHeader <= journal.size()) {
    if (at + kHeader > block_end(at)) {
      at = block_end(at);
      continue;
    }
    const Header header = header_at(journal, at);
    if (header.type == 0 && header.length == 0) {
      const bool only_zeros = std::ranges::all_of(
          journal.subspan(at), [](std::byte byte) { return byte == std::byte{0}; });
      return {only_zeros ? kWhole : kHole, at};
    }
    // Types of a journal written over an old one, which ours never is: RocksDB would take the
    // record for an old one's and end there in silence.
    if (header.type > kLastType) return {kDamaged, at};
    const std::size_t end = at + kHeader + header.length;
    if (end > journal.size()) return {record_follows(journal, at) ? kDamaged : kWhole, at};
    if (end > block_end(at)) return {kDamaged, at};
    at = end;
  }
  return {kWhole, at};
}

}  // namespace kanal::reserved
