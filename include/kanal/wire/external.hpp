// Record data on its way out. A response does not hold record bytes itself: it names file slices
// that the connection sends (sendfile) after the header bytes, or views bytes that somebody else
// keeps alive. Plain data: any thread.
#pragma once

#include "kanal/base/bytes.hpp"

#include <algorithm>
#include <cstdint>

namespace kanal::wire {

/// A field of type `records` in a response. Either `inline_bytes` (copied into the frame; also what
/// decoding a response gives), or `bytes` octets that `slice_count` slices from `first_slice` on
/// deliver (Writer::gaps()). Empty is written as length 0, never as null.
struct ExternalRecords {
  std::uint32_t bytes = 0;
  std::uint32_t first_slice = 0;
  std::uint32_t slice_count = 0;
  Bytes inline_bytes;

  [[nodiscard]] bool is_inline() const noexcept { return !inline_bytes.empty(); }
  friend bool operator==(const ExternalRecords& a, const ExternalRecords& b) {
    return a.bytes == b.bytes && a.first_slice == b.first_slice && a.slice_count == b.slice_count &&
           std::ranges::equal(a.inline_bytes, b.inline_bytes);
  }
};

/// A place in a Writer's buffer where bytes from outside come.
struct Gap {
  std::size_t position = 0;  // bytes of the buffer that go out before it
  std::uint32_t bytes = 0;
  std::uint32_t first_slice = 0;
  std::uint32_t slice_count = 0;
  friend bool operator==(const Gap&, const Gap&) = default;
};

}  // namespace kanal::wire
