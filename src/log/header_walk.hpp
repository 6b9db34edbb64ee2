// Batch headers of a segment through a small buffer on the stack: for walks under the partition's
// lock, a block at most. The caller has made sure that the pages are warm (`holds`, `reach`). One
// thread.
#pragma once

#include "blob.hpp"

#include "kanal/base/file_system.hpp"
#include "kanal/records/batch.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

namespace kanal::log {

class HeaderWalk {
 public:
  /// Batches end at `end` at the latest; nothing from `read_limit` on is read.
  HeaderWalk(const File& file, std::uint64_t end, std::uint64_t read_limit = UINT64_MAX)
      : file_(file), end_(end), read_limit_(std::min(end, read_limit)) {}

  [[nodiscard]] bool holds(std::uint64_t position) const {
    return position >= start_ && position + records::kHeaderSize <= start_ + held_;
  }
  /// Bytes that at() will read: many headers at once while batches are small, one by one else.
  [[nodiscard]] std::uint64_t reach(std::uint64_t position) const {
    return std::min<std::uint64_t>(chunk_, read_limit_ - position);
  }
  Result<records::BatchHeader> at(std::uint64_t position) {
    if (!holds(position)) {
      const auto got = file_.read_at(
          position, MutableBytes(buffer_).first(static_cast<std::size_t>(reach(position))));
      if (!got) return std::unexpected(got.error());
      start_ = position;
      held_ = *got;
    }
    const auto skip = static_cast<std::size_t>(position - start_);
    auto header = records::parse_header(Bytes(buffer_).subspan(skip, held_ - skip));
    if (!header || header->size() > end_ - position || header->last_offset_delta < 0) {
      return storage_error("A segment has no sound batch at position " + std::to_string(position) +
                           ".");
    }
    chunk_ = header->size() > buffer_.size() / 4 ? records::kHeaderSize : buffer_.size();
    return header;
  }

 private:
  static constexpr std::size_t kFirstChunk = 2048;

  const File& file_;
  const std::uint64_t end_;
  const std::uint64_t read_limit_;
  std::uint64_t start_ = 0;
  std::size_t held_ = 0;
  std::size_t chunk_ = kFirstChunk;
  std::array<std::byte, 16384> buffer_;
};

}  // namespace kanal::log
