// The parts of a log that go as a whole, and the part of the storage seam that compaction uses: one
// pass over the segments a log had when it was made, without the active one. Their batches are read
// in order and written anew, group by group; each group is swapped in atomically. A Rewrite is made
// under the partition's lock and used by helper threads, one at a time, holding no lock; it may
// block. Dropped without commit(): nothing happened.
#pragma once

#include "kanal/base/bytes.hpp"
#include "kanal/base/error.hpp"
#include "kanal/base/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace kanal::log {

/// A part of a log that goes as a whole when the log is trimmed; the last one is being written.
struct SegmentFacts {
  Sequence base, end;
  std::uint64_t bytes = 0;
  Timestamp newest;     // largest timestamp of its records; where none has one, of the last append
  Timestamp first{-1};  // largest timestamp of its first batch
};

class Rewrite {
 public:
  virtual ~Rewrite() = default;
  [[nodiscard]] virtual std::span<const SegmentFacts> sources() const noexcept = 0;
  /// What comes next are the batches of that source, from the one that holds `from` on.
  virtual Result<void> open(std::size_t source, Sequence from) = 0;
  /// The next batch, its CRC checked, valid until the next call; empty at the source's end.
  virtual Result<Bytes> next() = 0;
  /// What is kept and replaced from here on takes the place of these sources.
  virtual void begin(std::size_t first_source, std::size_t count) = 0;
  virtual Result<void> keep() = 0;                // the batch next() gave, as it is
  virtual Result<void> replace(Bytes batch) = 0;  // this one in its place
  virtual void drop() = 0;
  /// Whether something was kept or replaced since begin().
  [[nodiscard]] virtual bool has_batches() const noexcept = 0;
  /// Work that has to be done before commit(), about `bytes` of it; whether that was all.
  virtual Result<bool> settle(std::uint64_t bytes) = 0;
  enum class Outcome { kUnchanged, kCommitted, kTrimmed };
  /// Decided and durable, with where the next pass begins; ChannelLog::adopt makes it seen.
  /// kUnchanged: nothing was replaced or dropped, nothing is done. kTrimmed: some of it was trimmed
  /// away meanwhile, so that nothing is done either.
  virtual Result<Outcome> commit(Sequence first_dirty) = 0;
  virtual Result<void> note_clean(Sequence first_dirty) = 0;  // without a swap
  /// Bytes read and written since the last call.
  virtual std::uint64_t take_io() noexcept = 0;
};

}  // namespace kanal::log
