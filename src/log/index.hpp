// The sparse index of one segment: one 16-byte Block for about every index interval of bytes, so
// that a read by sequence, position or time looks at the batch headers of one block only. In memory
// it is a plain vector (no mmap, nothing preallocated); a sealed segment's is also in
// <base>.kindex, checksummed, and rebuilt from the headers where it is missing. A block's max
// timestamp is that of its own batches, so that timestamps out of order and a trimmed start stay
// exact.
#pragma once

#include "kanal/base/bytes.hpp"
#include "kanal/base/error.hpp"
#include "kanal/base/ids.hpp"
#include "kanal/records/batch.hpp"

#include <cstdint>
#include <vector>

namespace kanal::log {

struct Block {
  std::uint32_t first = 0;     // sequence of its first batch, relative to the segment's base
  std::uint32_t position = 0;  // of its first batch in the file
  Timestamp max_timestamp{-1};
};
static_assert(sizeof(Block) == 16);
using Index = std::vector<Block>;

struct BatchMark {
  std::uint32_t first = 0;  // relative to the segment's base
  std::uint64_t position = 0;
  Timestamp max_timestamp;
};

/// What a batch counts as in look-ups by time; nothing where compaction took all its records.
[[nodiscard]] inline Timestamp time_of(const records::BatchHeader& header) noexcept {
  return header.record_count == 0 ? kNoTimestamp : header.max_timestamp;
}

/// Notes a batch behind all noted before.
void note(Index& index, const BatchMark& batch, std::uint64_t interval);

/// The last block that begins at or before; nullptr where the index begins later.
[[nodiscard]] const Block* block_of(const Index& index, std::uint32_t first) noexcept;
[[nodiscard]] const Block* block_at(const Index& index, std::uint64_t position) noexcept;

/// What a .kindex file says of its segment.
struct IndexFile {
  Sequence base{1}, end{1};
  std::uint64_t size = 0;         // bytes of the segment that it covers
  Timestamp first_timestamp{-1};  // of the first batch
  Timestamp max_timestamp{-1};
  bool sealed = false;  // the segment was complete and synced when this was written
  Index blocks;
};
[[nodiscard]] Buffer encode_index(const IndexFile& index);
[[nodiscard]] Result<IndexFile> decode_index(Bytes file);

}  // namespace kanal::log
