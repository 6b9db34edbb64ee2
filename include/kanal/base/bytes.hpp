// Views of raw bytes. Non-owning: whoever holds a Bytes keeps its buffer alive. Any thread.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace kanal {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;
using Buffer = std::vector<std::byte>;

[[nodiscard]] inline Bytes as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
[[nodiscard]] inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline void append(Buffer& to, Bytes bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

/// Big-endian loads and stores, Kafka's byte order. The caller has checked the bounds.
template <class T>
[[nodiscard]] T load_be(const std::byte* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  if constexpr (sizeof(T) == 2)
    return static_cast<T>(__builtin_bswap16(static_cast<unsigned short>(value)));
  else if constexpr (sizeof(T) == 4)
    return static_cast<T>(__builtin_bswap32(static_cast<unsigned>(value)));
  else if constexpr (sizeof(T) == 8)
    return static_cast<T>(__builtin_bswap64(static_cast<unsigned long>(value)));
  else
    return value;
}
template <class T>
void store_be(std::byte* at, T value) noexcept {
  if constexpr (sizeof(T) == 2)
    value = static_cast<T>(__builtin_bswap16(static_cast<unsigned short>(value)));
  else if constexpr (sizeof(T) == 4)
    value = static_cast<T>(__builtin_bswap32(static_cast<unsigned>(value)));
  else if constexpr (sizeof(T) == 8)
    value = static_cast<T>(__builtin_bswap64(static_cast<unsigned long>(value)));
  std::memcpy(at, &value, sizeof value);
}

}  // namespace kanal
