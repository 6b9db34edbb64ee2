#include "catalog_checks.hpp"

#include <algorithm>
#include <set>

namespace kanal::coordinator {
namespace {

constexpr std::int64_t kMaxPartitionsOfRequest = 10'000;
constexpr std::size_t kMaxConfigValue = 32'767;  // Kafka's limit, and what a stored string holds

Result<std::int32_t> check_cap(std::int32_t count, const BrokerConfig& broker) {
  if (count <= broker.node.max_partitions_per_topic) return count;
  return fail(ErrorCode::INVALID_PARTITIONS,
              "A topic may have at most " + std::to_string(broker.node.max_partitions_per_topic) +
                  " partitions here (max.partitions.per.topic); " + std::to_string(count) +
                  " were asked for.");
}

Result<void> check_nodes(const std::vector<NodeId>& nodes, const BrokerConfig& broker) {
  if (nodes.empty()) {
    return fail(ErrorCode::INVALID_REPLICA_ASSIGNMENT,
                "An assignment has an empty list of brokers.");
  }
  for (const NodeId node : nodes) {
    if (node == broker.node.id) continue;
    return fail(ErrorCode::INVALID_REPLICA_ASSIGNMENT,
                "An assignment names broker " + std::to_string(node.value()) +
                    ", which is not registered; the only one is " +
                    std::to_string(broker.node.id.value()) + ".");
  }
  if (nodes.size() > 1) {
    return fail(ErrorCode::INVALID_REPLICA_ASSIGNMENT, "An assignment names broker " +
                                                           std::to_string(broker.node.id.value()) +
                                                           " more than once.");
  }
  return {};
}

Result<std::int32_t> assigned_partitions(const CreateTopic& command, const BrokerConfig& broker) {
  if (command.replication_factor != -1) {
    return fail(ErrorCode::INVALID_REQUEST,
                "With partition assignments the replication factor must be -1.");
  }
  if (command.partitions != -1) {
    return fail(ErrorCode::INVALID_REQUEST,
                "With partition assignments the number of partitions must be -1.");
  }
  std::set<PartitionIndex> seen;
  for (const PartitionAssignment& assignment : command.assignments) {
    if (!seen.insert(assignment.partition).second) {
      return fail(ErrorCode::INVALID_REPLICA_ASSIGNMENT,
                  "Partition " + std::to_string(assignment.partition.value()) +
                      " is assigned more than once.");
    }
    if (const auto nodes = check_nodes(assignment.nodes, broker); !nodes) {
      return std::unexpected(nodes.error());
    }
  }
  const auto count = static_cast<std::int32_t>(seen.size());
  if (*seen.begin() != PartitionIndex(0) || *seen.rbegin() != PartitionIndex(count - 1)) {
    return fail(ErrorCode::INVALID_REPLICA_ASSIGNMENT,
                "The assigned partitions must be numbered from 0 without a gap.");
  }
  return check_cap(count, broker);
}

}  // namespace

Result<void> check_partitions_of_request(std::span<const CreateTopic> topics,
                                         const BrokerConfig& broker) {
  std::int64_t total = 0;
  for (const CreateTopic& topic : topics) {
    if (!topic.assignments.empty()) {
      total += static_cast<std::int64_t>(topic.assignments.size());
    } else {
      total += topic.partitions == -1 ? broker.num_partitions : std::max(topic.partitions, 0);
    }
  }
  if (total <= kMaxPartitionsOfRequest) return {};
  return fail(ErrorCode::POLICY_VIOLATION,
              "One request may create at most " + std::to_string(kMaxPartitionsOfRequest) +
                  " partitions; this one asks for " + std::to_string(total) + ".");
}

Result<std::int32_t> partitions_of(const CreateTopic& command, const BrokerConfig& broker) {
  if (!command.assignments.empty()) return assigned_partitions(command, broker);
  if (command.replication_factor < -1 || command.replication_factor == 0) {
    return fail(ErrorCode::INVALID_REPLICATION_FACTOR,
                "The replication factor is " + std::to_string(command.replication_factor) +
                    "; it must be positive, or -1 for the default.");
  }
  if (command.partitions < -1 || command.partitions == 0) {
    return fail(ErrorCode::INVALID_PARTITIONS, "The number of partitions is " +
                                                   std::to_string(command.partitions) +
                                                   "; it must be positive, or -1 for the default.");
  }
  const std::int16_t replication = command.replication_factor == -1
                                       ? broker.default_replication_factor
                                       : command.replication_factor;
  if (replication != 1) {
    return fail(ErrorCode::INVALID_REPLICATION_FACTOR,
                "A replication factor of " + std::to_string(replication) +
                    " cannot be reached: this cluster is one broker.");
  }
  return check_cap(command.partitions == -1 ? broker.num_partitions : command.partitions, broker);
}

Result<void> check_growth(const CreatePartitions& command, std::int32_t current,
                          const BrokerConfig& broker) {
  if (command.total_count == current) {
    return fail(ErrorCode::INVALID_PARTITIONS,
                "The topic already has " + std::to_string(current) + " partition(s).");
  }
  if (command.total_count < current) {
    return fail(ErrorCode::INVALID_PARTITIONS,
                "The topic has " + std::to_string(current) + " partition(s); " +
                    std::to_string(command.total_count) + " is not more, and topics only grow.");
  }
  if (const auto cap = check_cap(command.total_count, broker); !cap) {
    return std::unexpected(cap.error());
  }
  if (!command.assignments) return {};
  const auto added = static_cast<std::size_t>(command.total_count - current);
  if (command.assignments->size() != added) {
    return fail(ErrorCode::INVALID_REPLICA_ASSIGNMENT,
                std::to_string(added) + " partition(s) would be added, but there are " +
                    std::to_string(command.assignments->size()) + " assignment(s).");
  }
  for (const auto& nodes : *command.assignments) {
    if (auto checked = check_nodes(nodes, broker); !checked) return checked;
  }
  return {};
}

Result<ConfigMap> checked_overlay(const std::vector<ConfigSetting>& settings,
                                  const BrokerConfig& broker) {
  ConfigMap overlay;
  std::string without_value;
  for (const ConfigSetting& setting : settings) {
    if (setting.value) {
      overlay.insert_or_assign(setting.name, *setting.value);
    } else {
      without_value += (without_value.empty() ? "" : ", ") + setting.name;
    }
  }
  if (!without_value.empty()) {
    return fail(ErrorCode::INVALID_CONFIG,
                "Topic configs need a value, not null: " + without_value);
  }
  for (const auto& [name, value] : overlay) {
    if (value.size() <= kMaxConfigValue) continue;
    return fail(ErrorCode::INVALID_CONFIG, "The value of " + name + " is longer than " +
                                               std::to_string(kMaxConfigValue) + " bytes.");
  }
  if (const auto valid = check_topic_configs(broker, overlay); !valid) {
    return std::unexpected(valid.error());
  }
  return overlay;
}

}  // namespace kanal::coordinator
