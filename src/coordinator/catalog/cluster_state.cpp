#include "kanal/coordinator/cluster_state.hpp"

#include "kanal/base/check.hpp"
#include "stored.hpp"

#include <limits>

namespace kanal::coordinator {

ClusterState::Effects ClusterState::step(Time, const StartNode& command) const {
  Effects effects;
  ClusterFacts next{command.fresh_cluster_id, command.node, LeaderEpoch(0)};
  if (facts_) {
    if (facts_->node != command.node) {
      effects.replies.emplace_back(
          fail(ErrorCode::INVALID_CONFIG,
               "The data belongs to node " + std::to_string(facts_->node.value()) +
                   ", but this node is " + std::to_string(command.node.value()) + " (node.id)."));
      return effects;
    }
    if (facts_->leader_epoch.value() == std::numeric_limits<std::int32_t>::max()) {
      effects.replies.emplace_back(
          fail(ErrorCode::UNKNOWN_SERVER_ERROR, "The leader epoch cannot go up any further."));
      return effects;
    }
    next = *facts_;
    ++next.leader_epoch;
  }
  CHECK(!next.cluster_id.is_zero(), "the command brings a fresh cluster id");
  effects.records.push_back({"", encode_cluster(next)});
  effects.replies.emplace_back(next);
  return effects;
}

Result<void> ClusterState::apply(const Record& record) {
  if (record.ends_channel()) {
    facts_.reset();
    return {};
  }
  const auto next = decode_cluster(record.body);
  if (!next) return std::unexpected(damaged("_KAFKA_CLUSTER_", next.error()));
  if (facts_ && (next->cluster_id != facts_->cluster_id || next->node != facts_->node ||
                 next->leader_epoch < facts_->leader_epoch)) {
    const Error cause{.detail = "the cluster's identity changes or its leader epoch goes back"};
    return std::unexpected(damaged("_KAFKA_CLUSTER_", cause));
  }
  facts_ = *next;
  return {};
}

std::vector<Buffer> ClusterState::snapshot(std::string_view) const {
  if (!facts_) return {};
  return {encode_cluster(*facts_)};
}

}  // namespace kanal::coordinator
