// The reserved channels of a data directory that nobody uses: looked over and read without a write
// (check), copied while the store is in use (copy). Calling thread; both may wait for the disk.
#pragma once

#include "kanal/base/finding.hpp"
#include "kanal/reserved/store.hpp"

#include <cstdint>
#include <string>

namespace kanal::reserved {

struct ReservedFigures {
  std::uint64_t channels = 0, records = 0, bytes = 0;
  std::uint64_t journal_position = 0;  // Store's
  bool readable = false;  // false: what the visitor saw is not all there is
};
/// Every block, every value's frame, generations and record numbers. `visitor` gets each sound live
/// record, channel by channel; its error is a finding and ends that channel.
[[nodiscard]] ReservedFigures check_rocks_store(const std::string& directory,
                                                const Session::Visitor& visitor,
                                                const FindingSink& found);

/// `directory`, which is not there yet, becomes the store of this moment: tables are links where
/// that is possible. Other kinds of stores refuse.
[[nodiscard]] Result<void> copy_rocks_store(Store& store, const std::string& directory);

}  // namespace kanal::reserved
