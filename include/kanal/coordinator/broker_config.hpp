// Kafka's broker configs (all of 4.4's): their table, the layers a value can come from (KIP-226),
// and the typed values the broker works with. A BrokerConfig is immutable once made and shared; a
// change makes a new one. Units are in the names; -1 keeps Kafka's meaning ("off", "no limit").
#pragma once

#include "kanal/base/ids.hpp"
#include "kanal/coordinator/config_table.hpp"

#include <memory>

namespace kanal::coordinator {

/// Every broker config, sorted by name.
[[nodiscard]] std::span<const ConfigRow> broker_config_rows() noexcept;
/// The row of a broker config, those included that DescribeConfigs does not show; null if unknown.
[[nodiscard]] const ConfigRow* find_broker_config(std::string_view name) noexcept;
/// Whether a client may change it while the broker runs, and whether for one broker only (KIP-226).
[[nodiscard]] bool is_dynamic(std::string_view name) noexcept;
[[nodiscard]] bool is_per_broker(std::string_view name) noexcept;

/// Where values come from, the first that has one wins, then Kafka's default.
struct ConfigLayers {
  ConfigMap broker;           // dynamic, this broker
  ConfigMap cluster_default;  // dynamic, all brokers
  ConfigMap
      fixed;  // start-up file, environment, command line, and facts such as node.id and listeners
};

/// Our own options that layers below the server need; fixed for the life of the process.
struct NodeOptions {
  NodeId id{1};
  std::optional<std::string> rack;
  std::int32_t max_partitions_per_topic = 10'000;
  std::uint64_t retention_total_bytes = 0;  // of all logs together; 0: no limit
};

struct BrokerConfig {
  ConfigLayers layers;
  NodeOptions node;

  // Topics
  std::int32_t num_partitions = 1;
  std::int16_t default_replication_factor = 1;
  bool auto_create_topics = true;
  bool delete_topic = true;
  std::int32_t max_request_partition_size_limit = 2'000;
  // Sockets and requests
  std::int32_t socket_request_max_bytes = 104'857'600;
  std::int32_t socket_receive_buffer_bytes = 102'400;  // -1: the system's
  std::int32_t socket_send_buffer_bytes = 102'400;     // -1: the system's
  std::int32_t socket_listen_backlog = 50;
  std::int32_t max_connections = 2'147'483'647;
  std::int32_t max_connections_per_ip = 2'147'483'647;
  std::map<std::string, std::int32_t, std::less<>> max_connections_per_ip_overrides;
  std::int32_t max_connection_creation_rate = 2'147'483'647;
  std::int64_t connections_max_idle_ms = 600'000;
  std::int64_t queued_max_request_bytes = -1;
  // Fetch
  std::int32_t fetch_max_bytes = 57'671'680;
  std::int32_t fetch_session_slots = 1'000;  // max.incremental.fetch.session.cache.slots
  // Producers
  std::int32_t producer_id_expiration_ms = 86'400'000;
  std::int32_t producer_id_expiration_check_interval_ms = 600'000;
  // Log
  std::int64_t log_retention_check_interval_ms = 300'000;
  bool log_cleaner_enable = true;
  std::int32_t log_cleaner_threads = 1;
  std::int64_t log_cleaner_backoff_ms = 15'000;
  std::int64_t log_cleaner_dedupe_buffer_size = 134'217'728;  // of all threads together
  double log_cleaner_io_buffer_load_factor = 0.9;
  double log_cleaner_io_max_bytes_per_second = 1.7976931348623157E308;
  // Groups and transactions
  std::int32_t offset_metadata_max_bytes = 4'096;
  std::int32_t offsets_retention_minutes = 10'080;
  std::int64_t offsets_retention_check_interval_ms = 600'000;
  std::int32_t group_min_session_timeout_ms = 6'000;
  std::int32_t group_max_session_timeout_ms = 1'800'000;
  std::int32_t group_initial_rebalance_delay_ms = 3'000;
  std::int32_t group_max_size = 2'147'483'647;
  std::int32_t transaction_max_timeout_ms = 900'000;
  std::int32_t transactional_id_expiration_ms = 604'800'000;
  std::int32_t transaction_expired_cleanup_interval_ms = 3'600'000;
};

/// Values that are each fine and do not go together, or that one node cannot fulfil.
struct ConfigConflict {
  std::string_view name;
  std::string text;
};
/// `layers` holds known names with checked values only.
[[nodiscard]] std::vector<ConfigConflict> broker_config_conflicts(const ConfigLayers& layers);

/// Checks every value of every layer (INVALID_CONFIG) and fills the typed fields.
[[nodiscard]] Result<BrokerConfig> make_broker_config(ConfigLayers layers, NodeOptions node);

/// The value in force, Kafka's text; nullopt for null and for names that do not exist. Secrets
/// included: not for answers.
[[nodiscard]] std::optional<std::string> effective_value(const BrokerConfig& config,
                                                         std::string_view name);

/// DescribeConfigs of BROKER "<node>": every config, in Kafka's names and sources.
[[nodiscard]] std::vector<ConfigEntry> describe_broker_configs(const BrokerConfig& config);
/// DescribeConfigs of BROKER "": what is set for all brokers while running, nothing else.
[[nodiscard]] std::vector<ConfigEntry> describe_cluster_default_configs(const BrokerConfig& config);

}  // namespace kanal::coordinator
