// Finding a record inside one stored batch by time (ListOffsets). Pure functions over a whole
// batch's bytes, compressed ones are inflated through the Scratch: any thread with its own Scratch,
// outside the partition's lock. In a LogAppendTime batch every record has the batch's max
// timestamp.
#pragma once

#include "kanal/base/bytes.hpp"
#include "kanal/base/error.hpp"
#include "kanal/base/ids.hpp"
#include "kanal/records/batch.hpp"
#include "kanal/records/compress.hpp"

#include <optional>

namespace kanal::records {

struct TimedOffset {
  Timestamp timestamp;
  Offset offset;
  friend bool operator==(const TimedOffset&, const TimedOffset&) = default;
};

/// The first record with a timestamp >= `at_least` and an offset >= `from`; nothing if the batch
/// has none.
[[nodiscard]] Result<std::optional<TimedOffset>> find_by_time(Bytes batch, Timestamp at_least,
                                                              Offset from, Scratch& scratch);

/// The first record with the largest timestamp of those with an offset >= `from`; nothing if the
/// batch has none (ListOffsets -3, KIP-734).
[[nodiscard]] Result<std::optional<TimedOffset>> find_max_timestamp(Bytes batch, Offset from,
                                                                    Scratch& scratch);

}  // namespace kanal::records
