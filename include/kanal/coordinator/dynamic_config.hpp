// What is set while the broker runs (KIP-226): configs of this broker, of every broker, of groups
// and of client-metrics subscriptions, as they are stored; and the broker's configs that follow
// from them. Plain values and pure functions: any thread.
#pragma once

#include "kanal/coordinator/broker_config.hpp"
#include "kanal/coordinator/config_change.hpp"

namespace kanal::coordinator {

struct DynamicConfigs {
  using ByName = std::map<std::string, ConfigMap, std::less<>>;

  ConfigMap broker;           // this one
  ConfigMap cluster_default;  // every broker
  ByName groups;              // none of these overlays is empty
  ByName client_metrics;

  /// The overlay of a resource; an empty one where nothing is set. Name "" of a broker is the
  /// cluster default.
  [[nodiscard]] const ConfigMap& of(ConfigResourceType type, std::string_view name) const;
};

/// The broker's configs with what is stored put over `base` (its dynamic layers are not looked at).
/// What cannot be in force, such as a value that the start-up file now contradicts, is left out and
/// named in `ignored`.
struct InForce {
  BrokerConfig config;
  struct Ignored {
    std::string name;
    std::string reason;
  };
  std::vector<Ignored> ignored;
};
[[nodiscard]] InForce in_force(const BrokerConfig& base, const DynamicConfigs& stored);

/// The row of a config that a broker takes while running: those of find_broker_config, and the
/// replication rates that no start-up file has.
[[nodiscard]] const ConfigRow* find_dynamic_config(std::string_view name) noexcept;

/// Whether the broker may go over to `wanted` as its own overlay, or as the cluster's default;
/// INVALID_REQUEST for whatever is wrong, as Kafka has it (KAFKA-13609). Names that Kafka does not
/// know are taken, as its plug-ins need them.
[[nodiscard]] Result<void> check_broker_change(const BrokerConfig& running, const ConfigMap& wanted,
                                               bool per_broker);
/// `altered` for a broker; INVALID_CONFIG has the texts Kafka uses there.
[[nodiscard]] Result<ConfigMap> altered_broker(ConfigMap overlay,
                                               std::span<const ConfigAlteration> changes);

}  // namespace kanal::coordinator
