#include "stored.hpp"

#include "kanal/wire/stored.hpp"
#include "kanal/wire/writer.hpp"

namespace kanal::coordinator {
namespace {

template <class StoredType>
Buffer encoded(const StoredType& record) {
  wire::Writer writer;
  wire::encode_stored(writer, record);
  const Bytes bytes = writer.bytes();
  return {bytes.begin(), bytes.end()};
}

std::unexpected<Error> corrupt(std::string detail) {
  return fail(ErrorCode::KAFKA_STORAGE_ERROR, std::move(detail));
}

template <class StoredType>
Result<StoredType> decoded(Bytes body) {
  auto record = wire::decode_stored(body);
  if (!record) return std::unexpected(record.error());
  if (auto* expected = std::get_if<StoredType>(&*record)) return std::move(*expected);
  return corrupt("holds a record of another channel's type");
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
  return encoded(record);
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
  for (auto& [name, value] : record->configs) {
    topic.overlay.insert_or_assign(std::move(name), std::move(value));
  }
  return topic;
}

Buffer encode_next_producer_id(ProducerId next) {
  wire::ProducerIdBlockRecord record;
  record.next_block_start = next;
  return encoded(record);
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
  return encoded(record);
}

Result<ClusterFacts> decode_cluster(Bytes body) {
  const auto record = decoded<wire::ClusterRecord>(body);
  if (!record) return std::unexpected(record.error());
  if (record->cluster_id.is_zero() || record->leader_epoch < LeaderEpoch(0)) {
    return corrupt("a cluster needs an id and a leader epoch");
  }
  return ClusterFacts{record->cluster_id, record->node_id, record->leader_epoch};
}

Error damaged(std::string_view channel, const Error& cause) {
  return {.code = ErrorCode::KAFKA_STORAGE_ERROR,
          .detail = std::string(channel) + ": " + cause.detail,
          .os_error = cause.os_error};
}

}  // namespace kanal::coordinator
