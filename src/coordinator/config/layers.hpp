// Looking values up through the layers of a broker's configs, and Kafka's synonyms between broker
// configs (KIP-226): shared by broker and topic configs. Pure functions: any thread.
#pragma once

#include "kanal/coordinator/broker_config.hpp"

namespace kanal::coordinator {

/// The value in force of one name, its own default included; nullopt for null.
[[nodiscard]] std::optional<std::string_view> value_in(const ConfigLayers& layers,
                                                       const ConfigRow& row);

/// Every name a value of `name` may come from, the first one wins; `name` alone for most.
[[nodiscard]] std::span<const std::string_view> broker_synonyms(const std::string_view& name);

/// The synonyms DescribeConfigs lists under the broker config `name`: all that are set, layer by
/// layer, then defaults; nothing before the first that is spelled `name`.
[[nodiscard]] std::vector<ConfigSynonym> listed_synonyms(const ConfigLayers& layers,
                                                         std::string_view name);

}  // namespace kanal::coordinator
