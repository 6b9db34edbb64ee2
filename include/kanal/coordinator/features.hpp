// The features of a cluster (KIP-584): what this build can do and what is switched on, as
// ApiVersions reports it and UpdateFeatures checks it. Constants: any thread.
// metadata.version stands for Kafka's release; nothing here depends on it, but clients and
// operators read from it what a cluster speaks. A feature joins the table with the code that serves
// it (Kafka, too, leaves out one whose highest level is 0): transaction.version with transactions,
// group.version with the consumer protocol of KIP-848, share.version and streams.version likewise.
// kraft.version and eligible.leader.replicas.version need a quorum and replicas: never.
// The first feature whose level can really change needs its level stored (_KAFKA_CLUSTER_).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace kanal::coordinator {

struct Feature {
  std::string_view name;
  std::int16_t lowest = 0, highest = 0;  // supported
  std::int16_t finalized = 0;            // switched on
  /// Lower levels than the finalized one that hold all of its metadata: none, so that a downgrade
  /// would lose some.
  std::int16_t lowest_safe = 0;
};

inline constexpr std::string_view kMetadataVersion = "metadata.version";
inline constexpr std::array kFeatures = {
    Feature{kMetadataVersion, 7, 33, 33, 33},  // 3.3-IV3 to 4.4-IV2
};

/// Null for a feature that this build does not have.
[[nodiscard]] constexpr const Feature* find_feature(std::string_view name) noexcept {
  const auto* found = std::ranges::find(kFeatures, name, &Feature::name);
  return found == kFeatures.end() ? nullptr : found;
}

}  // namespace kanal::coordinator
