#include "stored.hpp"

#include "kanal/base/check.hpp"
#include "stored_record.hpp"

namespace kanal::coordinator {
namespace {

template <class StoredType>
Result<StoredType> decoded(Bytes body) {
  auto record = wire::decode_stored(body);
  if (!record) return std::unexpected(record.error());
  if (auto* expected = std::get_if<StoredType>(&*record)) return std::move(*expected);
  return of_another_channel();
}

template <class Configs>
ConfigMap overlay_of(Configs& configs) {
  ConfigMap overlay;
  for (auto& [name, value] : configs) overlay.insert_or_assign(std::move(name), std::move(value));
  return overlay;
}

}  // namespace

Buffer encode_topic(const TopicEntry& topic) {
  wire::TopicRecord record;
  record.topic = topic.name;
  record.topic_id = topic.id;
  record.partition_count = topic.partition_count;
  record.created = topic.created;
  record.configs.reserve(topic.overlay.size());
  for (const auto& [name, value] : topic.overlay) record.configs.push_back({name, value});
  return encode_record(record);
}

Result<TopicEntry> decode_topic(Bytes body) {
  auto record = decoded<wire::TopicRecord>(body);
  if (!record) return std::unexpected(record.error());
  if (record->topic.empty() || record->topic_id.is_zero() || record->partition_count < 1) {
    return corrupt("a topic needs a name, an id and at least one partition");
  }
  TopicEntry topic;
  topic.name = std::move(record->topic);
  topic.id = record->topic_id;
  topic.partition_count = record->partition_count;
  topic.created = record->created;
  topic.overlay = overlay_of(record->configs);
  return topic;
}

Buffer encode_next_producer_id(ProducerId next) {
  wire::ProducerIdBlockRecord record;
  record.next_block_start = next;
  return encode_record(record);
}

Result<ProducerId> decode_next_producer_id(Bytes body) {
  const auto record = decoded<wire::ProducerIdBlockRecord>(body);
  if (!record) return std::unexpected(record.error());
  return record->next_block_start;
}

Buffer encode_cluster(const ClusterFacts& facts) {
  wire::ClusterRecord record;
  record.cluster_id = facts.cluster_id;
  record.node_id = facts.node;
  record.leader_epoch = facts.leader_epoch;
  return encode_record(record);
}

Buffer encode_configs(const StoredConfigs& configs) {
  const auto fill = [&](auto record) {
    record.configs.reserve(configs.overlay.size());
    for (const auto& [name, value] : configs.overlay) record.configs.push_back({name, value});
    return encode_record(record);
  };
  if (configs.type == ConfigResourceType::kBroker) {
    wire::BrokerConfigRecord record;
    record.cluster_default = configs.name.empty();
    return fill(std::move(record));
  }
  if (configs.type == ConfigResourceType::kGroup) {
    wire::GroupConfigRecord record;
    record.group = configs.name;
    return fill(std::move(record));
  }
  CHECK(configs.type == ConfigResourceType::kClientMetrics, "its configs are stored elsewhere");
  wire::ClientMetricsRecord record;
  record.subscription = configs.name;
  return fill(std::move(record));
}

Result<std::variant<ClusterFacts, StoredConfigs>> decode_cluster_record(Bytes body) {
  auto record = wire::decode_stored(body);
  if (!record) return std::unexpected(record.error());
  if (const auto* cluster = std::get_if<wire::ClusterRecord>(&*record)) {
    if (cluster->cluster_id.is_zero() || cluster->leader_epoch < LeaderEpoch(0)) {
      return corrupt("a cluster needs an id and a leader epoch");
    }
    return ClusterFacts{cluster->cluster_id, cluster->node_id, cluster->leader_epoch};
  }
  if (auto* broker = std::get_if<wire::BrokerConfigRecord>(&*record)) {
    return StoredConfigs{ConfigResourceType::kBroker, broker->cluster_default ? "" : "this",
                         overlay_of(broker->configs)};
  }
  if (auto* group = std::get_if<wire::GroupConfigRecord>(&*record)) {
    if (group->group.empty()) return corrupt("configs of a group without a name");
    return StoredConfigs{ConfigResourceType::kGroup, std::move(group->group),
                         overlay_of(group->configs)};
  }
  if (auto* metrics = std::get_if<wire::ClientMetricsRecord>(&*record)) {
    if (metrics->subscription.empty())
      return corrupt("a client-metrics subscription without a name");
    return StoredConfigs{ConfigResourceType::kClientMetrics, std::move(metrics->subscription),
                         overlay_of(metrics->configs)};
  }
  return of_another_channel();
}

}  // namespace kanal::coordinator
