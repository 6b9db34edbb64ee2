// Commits and fetches a group's offsets for one client and tells the ledger. By name where a name
// means one topic for good, else by id (v10). Used by one actor at a time; lives with it.
#pragma once

#include "client.hpp"
#include "group_ledger.hpp"
#include "kanal/wire/messages/offset_fetch.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kanal::sim {

class OffsetClient {
 public:
  OffsetClient(World& world, Dice dice, Link& link, std::string group)
      : world_(world), dice_(dice), link_(link), group_(std::move(group)) {}

  /// The partitions that commit() and fetch_own() are about, as far as they exist.
  void own(const std::vector<std::pair<std::string, std::int32_t>>& partitions);
  /// The first error of membership or of the broker; NONE also where the connection broke.
  broker::Task<ErrorCode> commit(Who me, std::optional<std::string_view> instance);
  broker::Task<void> fetch_own();
  /// OffsetFetch of all topics.
  broker::Task<void> fetch_all();

 private:
  struct Owned {
    Directory::Entry topic;
    std::int32_t index = 0;
    std::int64_t position = 0;
  };
  struct Attempt {
    OffsetLedger::Key key;
    OffsetLedger::Moment begun = 0;
    std::int32_t index = 0;
  };
  void take_partition(const OffsetLedger::Key& key, OffsetLedger::Moment begun,
                      const wire::OffsetFetchResponse::Group::Topic::Partition& partition,
                      bool has_epoch);

  World& world_;
  Dice dice_;
  Link& link_;
  const std::string group_;
  std::vector<Owned> owned_;
};

}  // namespace kanal::sim
