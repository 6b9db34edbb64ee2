// The configs of groups (KIP-848, 932, 1071) and of client-metrics subscriptions (KIP-714): their
// tables, checks and DescribeConfigs' answers. A group's defaults come from the broker's layers
// through the broker synonyms. They are validated, stored and shown; the newer group protocols will
// go by them. Constant data and pure functions: any thread.
#pragma once

#include "kanal/coordinator/broker_config.hpp"

namespace kanal::coordinator {

/// Every group config, sorted by name.
[[nodiscard]] std::span<const ConfigRow> group_config_rows() noexcept;
[[nodiscard]] const ConfigRow* find_group_config(std::string_view name) noexcept;
/// The broker config that holds the default of a group config; empty if there is none.
[[nodiscard]] std::string_view group_broker_name_of(std::string_view group_config) noexcept;
/// INVALID_CONFIG for unknown names, bad values, values outside the broker's bounds, and a session
/// timeout that is not above the heartbeat interval.
[[nodiscard]] Result<void> check_group_configs(const BrokerConfig& broker,
                                               const ConfigMap& overlay);
/// DescribeConfigs of GROUP; any group has an answer, also one that nobody ever saw.
[[nodiscard]] std::vector<ConfigEntry> describe_group_configs(const BrokerConfig& broker,
                                                              const ConfigMap& overlay);

/// Every config of a client-metrics subscription, sorted by name.
[[nodiscard]] std::span<const ConfigRow> client_metrics_rows() noexcept;
[[nodiscard]] const ConfigRow* find_client_metrics_config(std::string_view name) noexcept;
/// INVALID_REQUEST for unknown names and a push interval out of range, INVALID_CONFIG for the rest.
[[nodiscard]] Result<void> check_client_metrics_configs(const ConfigMap& overlay);
/// DescribeConfigs of CLIENT_METRICS; any name has an answer.
[[nodiscard]] std::vector<ConfigEntry> describe_client_metrics_configs(const ConfigMap& overlay);

}  // namespace kanal::coordinator
