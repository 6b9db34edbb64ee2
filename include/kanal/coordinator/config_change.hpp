// What a client asks of one resource's configs: AlterConfigs and IncrementalAlterConfigs (KIP-339).
// Plain values and pure functions: any thread. Checks, codes and texts are Kafka 4.4's;
// Error::detail is the client's error_message.
#pragma once

#include "kanal/coordinator/config_table.hpp"

namespace kanal::coordinator {

/// Kafka's ConfigResource types.
enum class ConfigResourceType : std::int8_t {
  kUnknown = 0,
  kTopic = 2,
  kBroker = 4,
  kBrokerLogger = 8,
  kClientMetrics = 16,
  kGroup = 32,
};
/// kUnknown for a number that is none of them.
[[nodiscard]] ConfigResourceType resource_type(std::int8_t number) noexcept;

enum class ConfigOperation : std::int8_t { kSet = 0, kDelete = 1, kAppend = 2, kSubtract = 3 };
[[nodiscard]] constexpr bool is_known(ConfigOperation operation) noexcept {
  return operation >= ConfigOperation::kSet && operation <= ConfigOperation::kSubtract;
}

struct ConfigAlteration {
  std::string name;
  ConfigOperation operation = ConfigOperation::kSet;
  std::optional<std::string> value;  // there unless deleted
};

using FindConfig = const ConfigRow* (*)(std::string_view) noexcept;

/// The overlay after the changes, none of whose operations is unknown. Appending and subtracting
/// start from the table's default where nothing is set. INVALID_CONFIG for those on anything but a
/// list, and for a value that is too long to be stored.
[[nodiscard]] Result<ConfigMap> altered(ConfigMap overlay,
                                        std::span<const ConfigAlteration> changes, FindConfig find);

}  // namespace kanal::coordinator
