// Looks over a RocksDB journal (its write-ahead log) before RocksDB replays it, for the two cases
// that RocksDB takes for a harmless torn tail or skips in silence, and in which it would drop
// records that were stored: a damaged length near the end, and a hole of zeros. Pure function: any
// thread.
#pragma once

#include "kanal/base/bytes.hpp"

#include <cstddef>

namespace kanal::reserved {

struct JournalState {
  enum class What {
    kWhole,    // to its end, or but for a torn last record; RocksDB checks the checksums
    kHole,     // zeros where a power cut lost pages that were not synced: valid up to `at`
    kDamaged,  // bytes at `at` are wrong, though records follow
  };
  What what = What::kWhole;
  std::size_t at = 0;
};

[[nodiscard]] JournalState check_journal(Bytes journal);

}  // namespace kanal::reserved
