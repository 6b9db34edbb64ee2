// What the node knows about its cluster: cluster id, its own node id, and the leader epoch, which
// is 0 at the first start and goes up by one at every start (synced before anything is served; it
// is the epoch of every batch, of Metadata and of OffsetForLeaderEpoch, KIP-320); and what is set
// while running: configs of the broker, of groups and of client-metrics subscriptions, one record a
// resource, the last one counts. Channel _KAFKA_CLUSTER_; users, ACLs and quotas join it later as
// records of their own. Under its driver's lock.
#pragma once

#include "kanal/base/ids.hpp"
#include "kanal/coordinator/dynamic_config.hpp"
#include "kanal/coordinator/machine.hpp"

#include <memory>
#include <optional>
#include <variant>

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

/// One resource: kBroker (name empty: the cluster default), kGroup or kClientMetrics.
struct AlterConfigs {
  ConfigResourceType type = ConfigResourceType::kUnknown;
  std::string name;
  std::vector<ConfigAlteration> changes;
  bool replace = false;  // what is not named goes (AlterConfigs; the changes are all kSet)
  bool validate_only = false;
  std::shared_ptr<const BrokerConfig> running;  // what is in force now
};
using ClusterCommand = std::variant<StartNode, AlterConfigs>;

class ClusterState {
 public:
  using Command = ClusterCommand;
  using Effects = coordinator::Effects<Result<ClusterFacts>, NoAction>;
  static constexpr bool kSynced = true;

  /// StartNode: another node id than the stored one is refused (INVALID_CONFIG): the data is
  /// another node's. AlterConfigs: checked as Kafka does; nothing is stored where nothing changes.
  [[nodiscard]] Effects step(Time now, const ClusterCommand& command) const;
  Result<void> apply(const Record& record);
  [[nodiscard]] std::vector<Buffer> snapshot(std::string_view key) const;
  [[nodiscard]] std::uint64_t live_records() const noexcept;
  /// Nothing before the first start.
  [[nodiscard]] const std::optional<ClusterFacts>& facts() const noexcept { return facts_; }
  [[nodiscard]] const DynamicConfigs& configs() const noexcept { return configs_; }

 private:
  [[nodiscard]] Effects start(const StartNode& command) const;
  [[nodiscard]] Effects alter(const AlterConfigs& command) const;
  Result<void> take_facts(const ClusterFacts& next);

  std::optional<ClusterFacts> facts_;
  DynamicConfigs configs_;
};
static_assert(Machine<ClusterState>);

}  // namespace kanal::coordinator
