// Who may do what. Handlers ask from the first day; until there are ACLs everything is allowed, and
// the authorized-operations fields say so. Operation numbers are Kafka's AclOperation codes.
#pragma once

#include "kanal/broker/context.hpp"

#include <cstdint>
#include <string_view>

namespace kanal::handlers {

enum class Operation : std::int8_t {
  kRead = 3,
  kWrite = 4,
  kCreate = 5,
  kDelete = 6,
  kAlter = 7,
  kDescribe = 8,
  kClusterAction = 9,
  kDescribeConfigs = 10,
  kAlterConfigs = 11,
  kIdempotentWrite = 12,
};
enum class ResourceType : std::int8_t {
  kTopic = 2,
  kGroup = 3,
  kCluster = 4,
  kTransactionalId = 5
};

/// The one cluster there is, as ACLs call it.
inline constexpr std::string_view kClusterName = "kafka-cluster";

[[nodiscard]] inline bool authorize(const broker::Context&, Operation, ResourceType,
                                    std::string_view) noexcept {
  return true;
}

constexpr std::int32_t bits(std::initializer_list<Operation> operations) {
  std::int32_t set = 0;
  for (const Operation operation : operations) set |= 1 << static_cast<int>(operation);
  return set;
}
/// KIP-430: what an allowed client may do with a topic, a group, and the cluster.
inline constexpr std::int32_t kTopicOperations = bits(
    {Operation::kRead, Operation::kWrite, Operation::kCreate, Operation::kDelete, Operation::kAlter,
     Operation::kDescribe, Operation::kDescribeConfigs, Operation::kAlterConfigs});
inline constexpr std::int32_t kGroupOperations =
    bits({Operation::kRead, Operation::kDelete, Operation::kDescribe, Operation::kDescribeConfigs,
          Operation::kAlterConfigs});
inline constexpr std::int32_t kClusterOperations =
    bits({Operation::kCreate, Operation::kAlter, Operation::kDescribe, Operation::kClusterAction,
          Operation::kDescribeConfigs, Operation::kAlterConfigs, Operation::kIdempotentWrite});

}  // namespace kanal::handlers
