// The features of a cluster (KIP-584): what this build can do and what is switched on, as
// ApiVersions reports it and UpdateFeatures checks it. Constants: any thread.
// metadata.version stands for Kafka's release; nothing here depends on it, but clients and
// operators read from it what a cluster speaks. A feature joins the table with the code that serves
// it (Kafka, too, leaves out one whose highest level is 0): group.version with the consumer
// protocol of KIP-848, share.version and streams.version likewise. transaction.version does not
// choose: clients of version 1 and of version 2 (KIP-890) are served side by side.
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
  /// The lowest level that can be gone back to from the finalized one: for metadata.version the one
  /// that still holds all of its metadata.
  std::int16_t lowest_safe = 0;
};

inline constexpr std::string_view kMetadataVersion = "metadata.version";
inline constexpr std::array kFeatures = {
    Feature{kMetadataVersion, 7, 33, 33, 33},  // 3.3-IV3 to 4.4-IV2
    Feature{"transaction.version", 0, 2, 2, 2},
};

/// Null for a feature that this build does not have.
[[nodiscard]] constexpr const Feature* find_feature(std::string_view name) noexcept {
  const auto* found = std::ranges::find(kFeatures, name, &Feature::name);
  return found == kFeatures.end() ? nullptr : found;
}

}  // namespace kanal::coordinator
