// Which of a log's oldest segments have to go (Kafka's retention.ms and retention.bytes, and a
// limit for all logs together). Pure functions over facts, any thread: the broker asks under the
// partition's lock and trims afterwards. A segment's age is its largest record timestamp's, as in
// Kafka: a timestamp in the future keeps it, and everything behind it, until the clock has passed.
#pragma once

#include "kanal/log/channel_log.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kanal::log {

struct RetentionRules {
  std::int64_t ms = -1;     // negative: for ever
  std::int64_t bytes = -1;  // negative: no limit
};

struct Expired {
  std::size_t count = 0;     // of the oldest segments
  std::size_t by_size = 0;   // the first of them; the others by time
  std::uint64_t bytes = 0;   // of all of them
  Sequence start{1};         // base of the first that stays; of an empty log 1
  bool from_future = false;  // the first that stays has a timestamp the clock has not reached
};

/// `segments` from the oldest to the one being written, which may go too. Nothing at or beyond
/// `kept_from` goes: what is not committed, and what is of an open transaction (Kafka removes that
/// too; a reader of committed records would never see it).
[[nodiscard]] Expired expired(std::span<const SegmentFacts> segments, const RetentionRules& rules,
                              Timestamp now, Sequence kept_from);

/// One log among all.
struct LogFacts {
  std::size_t topic = 0;  // any number; the logs of a topic share it
  std::vector<SegmentFacts> segments;
  Sequence kept_from{1};
};

/// How many of each log's oldest segments have to go so that all of `logs` have at most `limit`
/// bytes: one after the other the oldest segment of the topic that has most. Segments being written
/// stay, so that it may not suffice.
[[nodiscard]] std::vector<std::size_t> over_limit(std::span<const LogFacts> logs,
                                                  std::uint64_t limit);

}  // namespace kanal::log
