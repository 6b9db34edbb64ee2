// What a client may ask of a topic, checked as Kafka 4.4's controller does on a cluster of one
// broker. Pure functions: any thread. Error::detail is worded for the client.
#pragma once

#include "kanal/coordinator/catalog.hpp"

namespace kanal::coordinator {

/// The number of partitions a new topic gets.
[[nodiscard]] Result<std::int32_t> partitions_of(const CreateTopic& command,
                                                 const BrokerConfig& broker);
/// Whether a topic of `current` partitions may grow as asked.
[[nodiscard]] Result<void> check_growth(const CreatePartitions& command, std::int32_t current,
                                        const BrokerConfig& broker);
/// The overlay the settings make; the last of a name twice counts.
[[nodiscard]] Result<ConfigMap> checked_overlay(const std::vector<ConfigSetting>& settings,
                                                const BrokerConfig& broker);

}  // namespace kanal::coordinator
