#include "kanal/records/record.hpp"

#include <bit>

namespace kanal::records {
namespace {

std::uint32_t zigzag(std::int32_t value) noexcept {
  return (static_cast<std::uint32_t>(value) << 1) ^ static_cast<std::uint32_t>(value >> 31);
}

std::uint64_t zigzag(std::int64_t value) noexcept {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}

template <class Unsigned>
std::size_t write_unsigned(std::byte* to, Unsigned value) noexcept {
  std::size_t size = 0;
  while (value >= 0x80) {
    to[size++] = static_cast<std::byte>((value & 0x7F) | 0x80);
    value >>= 7;
  }
  to[size++] = static_cast<std::byte>(value);
  return size;
}

constexpr const char* kCut = "a record ends inside a field";

/// Reads a length and steps over that many bytes; `out` is null for a negative length.
const char* take_bytes(const std::byte*& at, const std::byte* end, std::int32_t& size,
                       std::optional<Bytes>& out) noexcept {
  if (!read_varint(at, end, size)) return kCut;
  if (size < 0) {
    out.reset();
    return nullptr;
  }
  if (size > end - at) return kCut;
  out.emplace(at, static_cast<std::size_t>(size));
  at += size;
  return nullptr;
}

const char* skip_header(const std::byte*& at, const std::byte* end) noexcept {
  std::int32_t size = 0;
  if (!read_varint(at, end, size)) return kCut;
  if (size < 0) return "a record header has no key";
  if (size > end - at) return kCut;
  at += size;
  if (!read_varint(at, end, size)) return kCut;
  if (size <= 0) return nullptr;
  if (size > end - at) return kCut;
  at += size;
  return nullptr;
}

}  // namespace

std::size_t write_varint(std::byte* to, std::int32_t value) noexcept {
  return write_unsigned(to, zigzag(value));
}
std::size_t write_varlong(std::byte* to, std::int64_t value) noexcept {
  return write_unsigned(to, zigzag(value));
}
std::size_t varint_size(std::int32_t value) noexcept {
  return static_cast<std::size_t>((std::bit_width(zigzag(value) | 1U) + 6) / 7);
}
std::size_t varlong_size(std::int64_t value) noexcept {
  return static_cast<std::size_t>((std::bit_width(zigzag(value) | 1U) + 6) / 7);
}

const char* parse_body(const std::byte* at, const std::byte* end, RecordView& out) noexcept {
  if (at == end) return kCut;
  out.attributes = static_cast<std::int8_t>(*at++);
  if (!read_varlong(at, end, out.timestamp_delta) || !read_varint(at, end, out.offset_delta)) {
    return kCut;
  }
  out.tail = Bytes(at, end);
  if (const char* why = take_bytes(at, end, out.key_size, out.key)) return why;
  if (const char* why = take_bytes(at, end, out.value_size, out.value)) return why;
  if (!read_varint(at, end, out.header_count)) return kCut;
  if (out.header_count < 0) return "a record has a negative number of headers";
  if (out.header_count > end - at) return "a record has more headers than bytes";
  out.headers = Bytes(at, end);
  for (std::int32_t i = 0; i < out.header_count; ++i) {
    if (const char* why = skip_header(at, end)) return why;
  }
  return at == end ? nullptr : "a record is longer than its fields";
}

std::optional<RecordHeader> HeaderCursor::next() noexcept {
  if (left_ <= 0) return std::nullopt;
  --left_;
  RecordHeader header;
  std::int32_t size = 0;
  std::optional<Bytes> key;
  if (take_bytes(at_, end_, size, key) != nullptr || !key) return std::nullopt;
  header.key = *key;
  if (take_bytes(at_, end_, size, header.value) != nullptr) return std::nullopt;
  return header;
}

}  // namespace kanal::records
