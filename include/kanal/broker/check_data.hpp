// `kanald --check-data`: looks over a whole data directory that no daemon uses, without writing a
// byte: meta and lock, the reserved channels and whether their machines can replay them, every
// channel against the catalog. Calling thread; reads everything once.
#pragma once

#include "kanal/base/error.hpp"
#include "kanal/base/file_system.hpp"
#include "kanal/base/finding.hpp"
#include "kanal/log/check.hpp"
#include "kanal/reserved/check.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <string>

namespace kanal::broker {

struct DataReport {
  std::string cluster_id;  // empty where it cannot be read
  NodeId node{-1};
  LeaderEpoch leader_epoch{-1};  // of the last start
  bool clean = false;            // the last stop left its mark
  std::size_t topics = 0, partitions = 0, groups = 0, committed_offsets = 0;
  std::size_t transactional_ids = 0;
  reserved::ReservedFigures reserved;
  log::ChannelFigures logs;
  std::array<std::size_t, 4> findings{};  // by Finding::Weight
  [[nodiscard]] std::size_t count(Finding::Weight weight) const {
    return findings[static_cast<std::size_t>(weight)];
  }
  [[nodiscard]] bool sound() const {
    return count(Finding::Weight::kDamage) == 0 && count(Finding::Weight::kRepairable) == 0;
  }
};
struct DataCheck {
  std::string directory;
  FindingSink found;
  std::function<void(const log::ChannelFigures&)> progress;  // may be empty
};
/// An error where it cannot be looked at: there is no data directory, or a daemon uses it.
[[nodiscard]] Result<DataReport> check_data(FileSystem& files, const DataCheck& check);

}  // namespace kanal::broker
