#include "stored.hpp"

#include "kanal/wire/reader.hpp"
#include "kanal/wire/writer.hpp"

namespace kanal::coordinator {
namespace {

enum class Type : std::int16_t { kTopic = 1, kProducerIds = 2, kCluster = 3 };
constexpr std::int16_t kVersion = 0;
constexpr bool kCompact = true;

void begin(wire::Writer& writer, Type type) {
  writer.int16(static_cast<std::int16_t>(type));
  writer.int16(kVersion);
}

Buffer finish(wire::Writer& writer) {
  writer.uvarint(0);  // tagged fields
  const Bytes bytes = writer.bytes();
  return {bytes.begin(), bytes.end()};
}

std::unexpected<Error> corrupt(std::string detail) {
  return fail(ErrorCode::KAFKA_STORAGE_ERROR, std::move(detail));
}

Result<void> check_header(wire::Reader& reader, Type type) {
  const std::int16_t found = reader.int16("type");
  const std::int16_t version = reader.int16("version");
  if (reader.failed()) return std::unexpected(reader.error("stored record", 0));
  if (found != static_cast<std::int16_t>(type)) {
    return corrupt("record type " + std::to_string(found) + " does not belong here");
  }
  if (version != kVersion) {
    return corrupt("record version " + std::to_string(version) +
                   " is newer than this kanald reads");
  }
  return {};
}

Result<void> check_end(wire::Reader& reader, std::string_view record) {
  reader.skip_tags();
  if (reader.failed()) {
    return std::unexpected(reader.error(record, kVersion, ErrorCode::KAFKA_STORAGE_ERROR));
  }
  if (reader.remaining() != 0) {
    return corrupt(std::to_string(reader.remaining()) + " bytes after the record");
  }
  return {};
}

}  // namespace

Buffer encode_topic(const TopicEntry& topic) {
  wire::Writer writer;
  begin(writer, Type::kTopic);
  writer.text(kCompact, topic.name);
  writer.uuid(topic.id);
  writer.int32(topic.partition_count);
  writer.int64(topic.created.value());
  writer.array_size(kCompact, topic.overlay.size());
  for (const auto& [name, value] : topic.overlay) {
    writer.text(kCompact, name);
    writer.text(kCompact, value);
    writer.uvarint(0);
  }
  return finish(writer);
}

Result<TopicEntry> decode_topic(Bytes body) {
  auto reader = wire::Reader::read_only(body);
  if (auto header = check_header(reader, Type::kTopic); !header) {
    return std::unexpected(header.error());
  }
  TopicEntry topic;
  topic.name = reader.text(kCompact, "topic");
  topic.id = reader.uuid("topic_id");
  topic.partition_count = reader.int32("partition_count");
  topic.created = Timestamp(reader.int64("created"));
  const std::size_t configs = reader.array_size(kCompact, {3, 64}, "configs");
  for (std::size_t i = 0; i < configs && !reader.failed(); ++i) {
    std::string name(reader.text(kCompact, "name"));
    topic.overlay.insert_or_assign(std::move(name), std::string(reader.text(kCompact, "value")));
    reader.skip_tags();
  }
  if (auto end = check_end(reader, "TopicRecord"); !end) return std::unexpected(end.error());
  if (topic.name.empty() || topic.id.is_zero() || topic.partition_count < 1) {
    return corrupt("a topic needs a name, an id and at least one partition");
  }
  return topic;
}

Buffer encode_next_producer_id(ProducerId next) {
  wire::Writer writer;
  begin(writer, Type::kProducerIds);
  writer.int64(next.value());
  return finish(writer);
}

Result<ProducerId> decode_next_producer_id(Bytes body) {
  auto reader = wire::Reader::read_only(body);
  if (auto header = check_header(reader, Type::kProducerIds); !header) {
    return std::unexpected(header.error());
  }
  const ProducerId next(reader.int64("next_block_start"));
  if (auto end = check_end(reader, "ProducerIdBlockRecord"); !end) {
    return std::unexpected(end.error());
  }
  return next;
}

Buffer encode_cluster(const ClusterFacts& facts) {
  wire::Writer writer;
  begin(writer, Type::kCluster);
  writer.uuid(facts.cluster_id);
  writer.int32(facts.node.value());
  writer.int32(facts.leader_epoch.value());
  return finish(writer);
}

Result<ClusterFacts> decode_cluster(Bytes body) {
  auto reader = wire::Reader::read_only(body);
  if (auto header = check_header(reader, Type::kCluster); !header) {
    return std::unexpected(header.error());
  }
  ClusterFacts facts;
  facts.cluster_id = reader.uuid("cluster_id");
  facts.node = NodeId(reader.int32("node_id"));
  facts.leader_epoch = LeaderEpoch(reader.int32("leader_epoch"));
  if (auto end = check_end(reader, "ClusterRecord"); !end) return std::unexpected(end.error());
  if (facts.cluster_id.is_zero() || facts.leader_epoch < LeaderEpoch(0)) {
    return corrupt("a cluster needs an id and a leader epoch");
  }
  return facts;
}

Error damaged(std::string_view channel, const Error& cause) {
  return {.code = ErrorCode::KAFKA_STORAGE_ERROR,
          .detail = std::string(channel) + ": " + cause.detail,
          .os_error = cause.os_error};
}

}  // namespace kanal::coordinator
