// The aborted transactions of one partition in the order of their markers: what a read_committed
// Fetch and compaction ask by offsets (KIP-98). Under the partition's lock. Kept in chunks of
// differences, about 8 bytes a transaction, so that a long list stays small; whole chunks go with
// the log's start. Invariant: markers rise, last stable offsets never fall.
#pragma once

#include "blob.hpp"

#include "kanal/log/compaction.hpp"

#include <cstdint>
#include <vector>

namespace kanal::log {

class AbortedTransactions {
 public:
  static constexpr std::uint32_t kChunk = 128;  // transactions

  void add(const AbortedTransaction& transaction);
  /// Those with offsets in [from, upto), from their first record to their marker.
  void find(Offset from, Offset upto, std::vector<AbortedTransaction>& out) const;
  void trim(Offset start);
  [[nodiscard]] Offset start() const noexcept { return start_; }
  [[nodiscard]] bool empty() const noexcept { return chunks_.empty(); }
  /// Of those whose marker is in [from, below) only the ones whose marker is in `markers`, which
  /// rise, stay. How many went.
  std::size_t keep(Offset from, Offset below, const std::vector<Offset>& markers);
  [[nodiscard]] std::size_t bytes() const noexcept;  // of the chunks

  void encode(BlobWriter& writer) const;
  /// Everything is checked; `below` is where the log ended then.
  Result<void> decode(BlobReader& reader, Offset below);

 private:
  struct Chunk {
    Offset first_marker, last_marker;
    Offset lowest;  // of the first offsets
    AbortedTransaction last;
    std::uint32_t count = 0;
    Buffer bytes;
  };
  class Walk;
  static Result<Chunk> decode_chunk(BlobReader& reader);

  std::vector<Chunk> chunks_;
  Offset start_{0};
};

}  // namespace kanal::log
