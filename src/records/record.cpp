#include "kanal/records/record.hpp"

#include <bit>
#include <type_traits>

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

/// Reads a length and steps over that many bytes.
[[gnu::always_inline]] inline const char* skip_bytes(const std::byte*& at, const std::byte* end,
                                                     std::int32_t& size) noexcept {
  if (!read_varint(at, end, size)) return kCut;
  if (size <= 0) return nullptr;
  if (size > end - at) return kCut;
  at += size;
  return nullptr;
}

/// The bytes that skip_bytes stepped over; null for a negative length.
std::optional<Bytes> field_before(const std::byte* at, std::int32_t size) noexcept {
  if (size < 0) return std::nullopt;
  return Bytes(at - size, static_cast<std::size_t>(size));
}

const char* skip_header(const std::byte*& at, const std::byte* end) noexcept {
  std::int32_t size = 0;
  if (const char* why = skip_bytes(at, end, size)) return why;
  if (size < 0) return "a record header has no key";
  return skip_bytes(at, end, size);
}

template <class Record>
const char* parse(const std::byte* at, const std::byte* end, Record& out) noexcept {
  constexpr bool kViews = std::is_same_v<Record, RecordView>;
  if (at == end) return kCut;
  out.attributes = static_cast<std::int8_t>(*at++);
  if (!read_varlong(at, end, out.timestamp_delta) || !read_varint(at, end, out.offset_delta)) {
    return kCut;
  }
  if constexpr (kViews) out.tail = Bytes(at, end);
  if (const char* why = skip_bytes(at, end, out.key_size)) return why;
  if constexpr (kViews) out.key = field_before(at, out.key_size);
  if (const char* why = skip_bytes(at, end, out.value_size)) return why;
  if constexpr (kViews) out.value = field_before(at, out.value_size);
  if (!read_varint(at, end, out.header_count)) return kCut;
  if (out.header_count < 0) return "a record has a negative number of headers";
  if (out.header_count > end - at) return "a record has more headers than bytes";
  if constexpr (kViews) out.headers = Bytes(at, end);
  for (std::int32_t i = 0; i < out.header_count; ++i) {
    if (const char* why = skip_header(at, end)) return why;
  }
  return at == end ? nullptr : "a record is longer than its fields";
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

bool read_long_varint(const std::byte*& at, const std::byte* end, std::int32_t& out) noexcept {
  std::uint32_t value = 0;
  for (int shift = 0; shift <= 28; shift += 7) {
    if (at == end) return false;
    const auto byte = static_cast<std::uint32_t>(*at++);
    value |= (byte & 0x7F) << shift;
    if (byte < 0x80) {
      out = unzigzag(value);
      return true;
    }
  }
  return false;
}

bool read_long_varlong(const std::byte*& at, const std::byte* end, std::int64_t& out) noexcept {
  std::uint64_t value = 0;
  for (int shift = 0; shift <= 63; shift += 7) {
    if (at == end) return false;
    const auto byte = static_cast<std::uint64_t>(*at++);
    value |= (byte & 0x7F) << shift;
    if (byte < 0x80) {
      out = static_cast<std::int64_t>((value >> 1) ^ (0U - (value & 1)));
      return true;
    }
  }
  return false;
}

const char* parse_body(const std::byte* at, const std::byte* end, RecordFields& out) noexcept {
  return parse(at, end, out);
}

const char* parse_body(const std::byte* at, const std::byte* end, RecordView& out) noexcept {
  return parse(at, end, out);
}

std::optional<RecordHeader> HeaderCursor::next() noexcept {
  if (left_ <= 0) return std::nullopt;
  --left_;
  std::int32_t size = 0;
  if (skip_bytes(at_, end_, size) != nullptr || size < 0) return std::nullopt;
  RecordHeader header{*field_before(at_, size), std::nullopt};
  if (skip_bytes(at_, end_, size) != nullptr) return std::nullopt;
  header.value = field_before(at_, size);
  return header;
}

}  // namespace kanal::records
