// What the node knows about its cluster: cluster id, its own node id, and the leader epoch, which
// is 0 at the first start and goes up by one at every start (synced before anything is served; it
// is the epoch of every batch, of Metadata and of OffsetForLeaderEpoch, KIP-320). Channel
// _KAFKA_CLUSTER_; dynamic broker configs, users, ACLs and quotas join it later as records of their
// own. Used by one thread during the start, read-only afterwards.
#pragma once

#include "kanal/base/ids.hpp"
#include "kanal/coordinator/machine.hpp"

#include <optional>

namespace kanal::coordinator {

struct ClusterFacts {
  Uuid cluster_id;  // clients see to_string() of it
  NodeId node{0};
  LeaderEpoch leader_epoch{0};
  friend bool operator==(const ClusterFacts&, const ClusterFacts&) = default;
};

struct StartNode {
  Uuid fresh_cluster_id;  // used at the first start only
  NodeId node{0};
};

class ClusterState {
 public:
  using Command = StartNode;
  using Effects = coordinator::Effects<Result<ClusterFacts>, NoAction>;
  static constexpr bool kSynced = true;

  /// Another node id than the stored one is refused (INVALID_CONFIG): the data is another node's.
  [[nodiscard]] Effects step(Time now, const StartNode& command) const;
  Result<void> apply(const Record& record);
  [[nodiscard]] std::vector<Buffer> snapshot(std::string_view key) const;
  [[nodiscard]] std::uint64_t live_records() const noexcept { return facts_ ? 1 : 0; }
  /// Nothing before the first start.
  [[nodiscard]] const std::optional<ClusterFacts>& facts() const noexcept { return facts_; }

 private:
  std::optional<ClusterFacts> facts_;
};
static_assert(Machine<ClusterState>);

}  // namespace kanal::coordinator
