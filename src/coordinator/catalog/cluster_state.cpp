#include "kanal/coordinator/cluster_state.hpp"

#include "kanal/base/check.hpp"
#include "kanal/coordinator/resource_config.hpp"
#include "stored.hpp"
#include "stored_record.hpp"

#include <limits>

namespace kanal::coordinator {
namespace {

std::unexpected<Error> invalid_request(std::string text) {
  return fail(ErrorCode::INVALID_REQUEST, std::move(text));
}

const ConfigRow* no_row(std::string_view) noexcept {
  return nullptr;
}

Result<ConfigMap> altered_overlay(const AlterConfigs& command, const ConfigMap& before) {
  ConfigMap overlay = command.replace ? ConfigMap{} : before;
  switch (command.type) {
    case ConfigResourceType::kBroker:
      return altered_broker(std::move(overlay), command.changes);
    default:  // Kafka's controller knows of no lists there
      return altered(std::move(overlay), command.changes, &no_row);
  }
}

Result<void> check(const AlterConfigs& command, const ConfigMap& wanted) {
  switch (command.type) {
    case ConfigResourceType::kBroker:
      return check_broker_change(*command.running, wanted, !command.name.empty());
    case ConfigResourceType::kGroup:
      if (command.name.empty()) {
        return invalid_request("Default group resources are not allowed.");
      }
      return check_group_configs(*command.running, wanted);
    default:
      if (command.name.empty()) return invalid_request("Subscription name can't be empty");
      return check_client_metrics_configs(wanted);
  }
}

/// Settings that an earlier version stored and this one knows better must not keep others from
/// being changed: a broker's overlay is judged by what of it can be in force.
ConfigMap without_ignored(const AlterConfigs& command, const ConfigMap& before, ConfigMap wanted) {
  if (command.type != ConfigResourceType::kBroker) return wanted;
  const ConfigLayers& layers = command.running->layers;
  const ConfigMap& in_force = command.name.empty() ? layers.cluster_default : layers.broker;
  std::erase_if(wanted, [&](const auto& setting) {
    const auto stored = before.find(setting.first);
    return stored != before.end() && stored->second == setting.second &&
           !in_force.contains(setting.first);
  });
  return wanted;
}

Error damage(const Error& cause) {
  return damaged("_KAFKA_CLUSTER_", cause);
}

}  // namespace

ClusterState::Effects ClusterState::step(Time, const ClusterCommand& command) const {
  if (const auto* start_node = std::get_if<StartNode>(&command)) return start(*start_node);
  return alter(std::get<AlterConfigs>(command));
}

ClusterState::Effects ClusterState::start(const StartNode& command) const {
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

ClusterState::Effects ClusterState::alter(const AlterConfigs& command) const {
  CHECK(facts_ && command.running, "configs change once the node has started");
  Effects effects;
  const ConfigMap& before = configs_.of(command.type, command.name);
  auto wanted = altered_overlay(command, before);
  if (!wanted) {
    effects.replies.emplace_back(std::unexpected(wanted.error()));
    return effects;
  }
  if (auto fine = check(command, without_ignored(command, before, *wanted)); !fine) {
    effects.replies.emplace_back(std::unexpected(fine.error()));
    return effects;
  }
  if (!command.validate_only && *wanted != before) {
    effects.records.push_back(
        {"", encode_configs({command.type, command.name, *std::move(wanted)})});
  }
  effects.replies.emplace_back(*facts_);
  return effects;
}

Result<void> ClusterState::apply(const Record& record) {
  if (record.ends_channel()) {
    facts_.reset();
    configs_ = {};
    return {};
  }
  auto stored = decode_cluster_record(record.body);
  if (!stored) return std::unexpected(damage(stored.error()));
  if (const auto* facts = std::get_if<ClusterFacts>(&*stored)) return take_facts(*facts);
  if (!facts_) return std::unexpected(damage({.detail = "configs of a cluster without an id"}));
  auto& configs = std::get<StoredConfigs>(*stored);
  if (configs.type == ConfigResourceType::kBroker) {
    (configs.name.empty() ? configs_.cluster_default : configs_.broker) =
        std::move(configs.overlay);
    return {};
  }
  auto& all =
      configs.type == ConfigResourceType::kGroup ? configs_.groups : configs_.client_metrics;
  if (configs.overlay.empty()) {
    all.erase(configs.name);
  } else {
    all.insert_or_assign(std::move(configs.name), std::move(configs.overlay));
  }
  return {};
}

Result<void> ClusterState::take_facts(const ClusterFacts& next) {
  if (facts_ && (next.cluster_id != facts_->cluster_id || next.node != facts_->node ||
                 next.leader_epoch < facts_->leader_epoch)) {
    return std::unexpected(
        damage({.detail = "the cluster's identity changes or its leader epoch goes back"}));
  }
  facts_ = next;
  return {};
}

std::vector<Buffer> ClusterState::snapshot(std::string_view) const {
  std::vector<Buffer> records;
  if (!facts_) return records;
  records.push_back(encode_cluster(*facts_));
  const auto add = [&](ConfigResourceType type, const std::string& name, const ConfigMap& overlay) {
    if (!overlay.empty()) records.push_back(encode_configs({type, name, overlay}));
  };
  add(ConfigResourceType::kBroker, "", configs_.cluster_default);
  add(ConfigResourceType::kBroker, std::to_string(facts_->node.value()), configs_.broker);
  for (const auto& [name, overlay] : configs_.groups) {
    add(ConfigResourceType::kGroup, name, overlay);
  }
  for (const auto& [name, overlay] : configs_.client_metrics) {
    add(ConfigResourceType::kClientMetrics, name, overlay);
  }
  return records;
}

std::uint64_t ClusterState::live_records() const noexcept {
  if (!facts_) return 0;
  return 1 + (configs_.cluster_default.empty() ? 0 : 1) + (configs_.broker.empty() ? 0 : 1) +
         configs_.groups.size() + configs_.client_metrics.size();
}

}  // namespace kanal::coordinator
