// Holds a history against what the broker promises to processes that are killed, and to disks that
// fill up or fail and are well again: nothing acknowledged or shown is lost, moved, doubled (for
// idempotent producers and those that never repeat) or reordered; offsets are dense; ends, starts,
// committed offsets, topics and configs never go back. Calls that overlap may come in any order.
//
// Topics: "plain" keep everything; "trimmed" lose old records (DeleteRecords, retention);
// "compacted" keep the last record of each key; "settling" are as plain, but a record that waited
// for a sync that failed may come to life after a kill although it was refused, and then a producer
// that took the refusal for final (librdkafka numbers such records anew) has it twice. Producers:
// "idempotent"; "once" (never repeat); "repeating" (one request at a time, repeated until it is
// answered); "eventual" (repeating where records are refused: librdkafka sends later ones while it
// waits to repeat those, so in any order).
#pragma once

#include "history.hpp"

#include <string>
#include <vector>

namespace kanal::e2e {

struct Violation {
  std::string rule;  // lost, doubled, reordered, moved, changed, ghost, gap, end, start, commit, …
  std::string text;
};

/// All there are, up to a hundred of each rule.
std::vector<Violation> check(const Events& events);

}  // namespace kanal::e2e
