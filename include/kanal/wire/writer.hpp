// Appends Kafka's primitives to a buffer that is reused from frame to frame (reset() keeps its
// memory). Record bytes that live in files are not copied: a Gap marks where the connection sends
// them from. Local to one thread. A frame goes out as buffer bytes with the gaps' bytes in between;
// its size prefix counts both.
#pragma once

#include "kanal/base/bytes.hpp"
#include "kanal/base/ids.hpp"
#include "kanal/wire/external.hpp"

#include <bit>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace kanal::wire {

class Writer {
 public:
  /// Forgets the content, keeps the memory.
  void reset() noexcept {
    size_ = 0;
    gaps_.clear();
    gap_bytes_ = 0;
  }
  /// Forgets both.
  void release() noexcept;
  [[nodiscard]] std::size_t capacity() const noexcept { return storage_.size(); }

  [[nodiscard]] Bytes bytes() const noexcept { return {storage_.data(), size_}; }
  [[nodiscard]] std::span<const Gap> gaps() const noexcept { return gaps_; }
  /// Bytes on the wire: the buffer and all gaps.
  [[nodiscard]] std::uint64_t total_bytes() const noexcept { return size_ + gap_bytes_; }

  // A frame: begin_frame() leaves room for the size, end_frame() fills it in; discard() takes back
  // everything since.
  struct Mark {
    std::size_t position;
    std::uint64_t gap_bytes;
    std::size_t gap_count;
  };
  [[nodiscard]] Mark begin_frame();
  void end_frame(Mark frame);
  void discard(Mark frame);

  void boolean(bool value) { number<std::int8_t>(value ? 1 : 0); }
  void int8(std::int8_t value) { number(value); }
  void int16(std::int16_t value) { number(value); }
  void int32(std::int32_t value) { number(value); }
  void int64(std::int64_t value) { number(value); }
  void uint16(std::uint16_t value) { number(value); }
  void uint32(std::uint32_t value) { number(value); }
  void float64(double value) { number(std::bit_cast<std::int64_t>(value)); }
  /// As int32; a longer time is written as the longest.
  void milliseconds(std::chrono::milliseconds value);
  void uuid(const Uuid& value) { raw(std::as_bytes(std::span(value.bytes))); }
  void uvarint(std::uint32_t value) {
    std::byte* at = room(5);
    const std::byte* start = at;
    for (; value >= 0x80U; value >>= 7) *at++ = static_cast<std::byte>(value | 0x80U);
    *at++ = static_cast<std::byte>(value);
    size_ += static_cast<std::size_t>(at - start);
  }
  void raw(Bytes bytes) {
    if (bytes.empty()) return;
    std::memcpy(room(bytes.size()), bytes.data(), bytes.size());
    size_ += bytes.size();
  }

  /// A string over 32,767 bytes (a message that quotes a client's) is cut there: the protocol has
  /// no longer ones.
  void text(bool flexible, std::string_view value);
  void nullable_text(bool flexible, std::optional<std::string_view> value);
  void blob(bool flexible, Bytes value);
  void nullable_blob(bool flexible, std::optional<Bytes> value);
  void array_size(bool flexible, std::size_t count) { long_length(flexible, count); }
  void null_array(bool flexible) { null_length(flexible); }
  void records(bool flexible, const ExternalRecords& value);

  // Tagged fields: begin_tag, the value, end_tag; the size in between is filled in by end_tag.
  [[nodiscard]] std::size_t begin_tag(std::uint32_t id) {
    uvarint(id);
    return size_;
  }
  void end_tag(std::size_t begin);

 private:
  template <class T>
  void number(T value) {
    store_be(room(sizeof(T)), value);
    size_ += sizeof(T);
  }
  /// A place for `bytes` more octets; the caller counts them into size_.
  std::byte* room(std::size_t bytes) {
    if (storage_.size() - size_ < bytes) [[unlikely]]
      grow(bytes);
    return storage_.data() + size_;
  }
  void long_length(bool flexible, std::size_t length) {
    flexible ? uvarint(static_cast<std::uint32_t>(length + 1))
             : int32(static_cast<std::int32_t>(length));
  }
  void null_length(bool flexible) { flexible ? uvarint(0) : int32(-1); }
  void grow(std::size_t bytes);

  Buffer storage_;  // its size is the capacity; size_ octets of it are written
  std::size_t size_ = 0;
  std::vector<Gap> gaps_;
  std::uint64_t gap_bytes_ = 0;
};

}  // namespace kanal::wire
