// Encoding of the catalog's, the producer ids' and the cluster's stored records, which are laid
// down in src/wire/schema/stored.yaml (int16 type, int16 version, body). Decoding errors are
// KAFKA_STORAGE_ERROR and say what is wrong; the caller names the channel. Plain functions.
#pragma once

#include "kanal/coordinator/catalog_snapshot.hpp"
#include "kanal/coordinator/cluster_state.hpp"

#include <variant>

namespace kanal::coordinator {

[[nodiscard]] Buffer encode_topic(const TopicEntry& topic);
/// All but `config`, which depends on the broker.
[[nodiscard]] Result<TopicEntry> decode_topic(Bytes body);

[[nodiscard]] Buffer encode_next_producer_id(ProducerId next);
[[nodiscard]] Result<ProducerId> decode_next_producer_id(Bytes body);

[[nodiscard]] Buffer encode_cluster(const ClusterFacts& facts);
/// Facts, or the configs of one resource.
struct StoredConfigs {
  ConfigResourceType type = ConfigResourceType::kUnknown;
  std::string name;  // of a broker: empty for the cluster default, else not looked at
  ConfigMap overlay;
};
[[nodiscard]] Buffer encode_configs(const StoredConfigs& configs);
[[nodiscard]] Result<std::variant<ClusterFacts, StoredConfigs>> decode_cluster_record(Bytes body);

}  // namespace kanal::coordinator
