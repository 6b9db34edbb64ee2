// Reading a segment file batch by batch: recovery (every check) and walks over headers. Pure
// functions over a File: any thread; those that read through a Buffer may wait for the disk and
// belong to helper threads. A batch counts only if its CRC holds, its base offset is the expected
// next one and its leader epoch does not fall.
#pragma once

#include "index.hpp"

#include "kanal/base/file_system.hpp"
#include "kanal/records/batch.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace kanal::log {

/// Reads a file front to back through one buffer that grows to the largest batch.
class BatchReader {
 public:
  BatchReader(const File& file, std::uint64_t end) : file_(file), end_(end) {}
  /// `size` bytes at `position`, fewer only at the end; valid until the next call.
  Result<Bytes> bytes(std::uint64_t position, std::uint64_t size);

 private:
  const File& file_;
  const std::uint64_t end_;
  std::uint64_t start_ = 0;  // of what buffer_ holds
  Buffer buffer_;
};

struct ScanFrom {
  std::uint64_t position = 0;
  Sequence expected{1};
  LeaderEpoch epoch{-1};
};
struct Scanned {
  std::uint64_t valid_end = 0;  // position after the last good batch
  Sequence next{1};
  LeaderEpoch epoch{-1};
  Timestamp first_timestamp{-1};  // of the first batch seen
  Timestamp max_timestamp{-1};
  std::uint64_t batches = 0;
  std::uint32_t crc = 0;  // of their bytes
  std::string stopped;  // why it did not go on; empty at the end of the file
};
struct ScanOptions {
  Sequence base{1};            // of the segment, for the index
  std::uint64_t interval = 0;  // of the index
  Index* index = nullptr;
  /// Compacted: batches may be missing between those that are there; all are below this.
  std::optional<Sequence> gaps_below = std::nullopt;
};
/// Why the batch does not count behind what was found, or nothing.
[[nodiscard]] std::string refuse(const records::BatchHeader& header, Bytes batch,
                                 const Scanned& found, std::optional<Sequence> gaps_below);
/// All good batches of [from.position, end).
Result<Scanned> scan(const File& file, std::uint64_t end, const ScanFrom& from,
                     const ScanOptions& options);

/// After the scan stopped: the position of a sound batch of this log further on, which makes the
/// damage one in the middle rather than a torn tail. Batches that never went through a broker (no
/// leader epoch) are not of this log.
Result<std::optional<std::uint64_t>> find_batch_behind(const File& file, std::uint64_t end,
                                                       const Scanned& scanned);

/// Whether [begin, end) holds nothing but zeros.
Result<bool> all_zero(const File& file, std::uint64_t begin, std::uint64_t end);

/// The index of [0, end) from the headers alone; an error where they do not chain.
Result<IndexFile> rebuild_index(const File& file, std::uint64_t end, Sequence base,
                                std::uint64_t interval);

}  // namespace kanal::log
