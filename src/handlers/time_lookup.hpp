// Looking up records by time in one partition, exact to the record, for ListOffsets. Batches are
// read from memory or loaded on a helper thread, and walked outside the partition's lock. One
// request, its I/O thread.
#pragma once

#include <optional>

#include "kanal/broker/broker.hpp"
#include "kanal/records/lookup.hpp"

namespace kanal::handlers {

/// What the look-up of one request sees of the partition.
struct Marks {
  log::Watermarks marks;
  LeaderEpoch current, at_start;
  Offset end;  // of what may be told: the high watermark, or for read committed what is stable
};

/// The first record with a timestamp of at least `timestamp`, at or after the log start; nothing if
/// there is none.
broker::Task<Result<std::optional<records::TimedOffset>>> find_record(broker::Context& context,
                                                                      broker::Partition& partition,
                                                                      Timestamp timestamp,
                                                                      const Marks& seen);

/// The first record with the largest timestamp of those that can be fetched; nothing in an empty
/// log.
broker::Task<Result<std::optional<records::TimedOffset>>> find_largest(broker::Context& context,
                                                                       broker::Partition& partition,
                                                                       const Marks& seen);

}  // namespace kanal::handlers
