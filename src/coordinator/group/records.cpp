#include "records.hpp"

#include "stored_record.hpp"

#include <set>

namespace kanal::coordinator {
namespace {

bool offers(const wire::GroupRecord::Member& member, const std::string& protocol) {
  return std::ranges::any_of(member.protocols,
                             [&](const auto& offered) { return offered.name == protocol; });
}

Result<void> check(const wire::GroupRecord& record) {
  if (record.generation < 0) return corrupt("a group with a negative generation");
  if (record.members.empty()) return {};
  if (record.protocol_type.empty() || !record.protocol_name) {
    return corrupt("a group with members needs a protocol");
  }
  std::set<std::string_view> ids, instances;
  for (const auto& member : record.members) {
    if (member.member_id.empty() || !ids.insert(member.member_id).second) {
      return corrupt("a member id is empty or there twice");
    }
    if (member.instance_id && !instances.insert(*member.instance_id).second) {
      return corrupt("an instance id is there twice");
    }
    if (!offers(member, *record.protocol_name)) {
      return corrupt("a member does not support the group's protocol");
    }
  }
  if (record.leader && !ids.contains(*record.leader)) return corrupt("the leader is no member");
  return {};
}

}  // namespace

Buffer encode_group(const wire::GroupRecord& record) {
  return encode_record(record);
}

namespace {

// What a committed offset and a pending one are stored with.
template <class Record>
Record record_of(const PartitionRef& partition, const CommittedOffset& offset) {
  Record record;
  record.topic = partition.topic;
  record.topic_id = offset.topic_id;
  record.partition = partition.partition;
  record.offset = offset.offset;
  record.leader_epoch = offset.leader_epoch;
  record.metadata = offset.metadata;
  record.committed = offset.committed;
  return record;
}
template <class Record>
CommittedOffset offset_of(Record& record) {
  CommittedOffset offset;
  offset.topic_id = record.topic_id;
  offset.offset = record.offset;
  offset.leader_epoch = record.leader_epoch;
  offset.metadata = std::move(record.metadata);
  offset.committed = record.committed;
  return offset;
}

}  // namespace

Buffer encode_commit(const PartitionRef& partition, const CommittedOffset& offset) {
  auto record = record_of<wire::OffsetCommitRecord>(partition, offset);
  record.expires = offset.expires.value_or(kNoTimestamp);
  return encode_record(record);
}

Buffer encode_tombstone(const PartitionRef& partition, const Uuid& topic_id) {
  wire::OffsetTombstoneRecord record;
  record.topic = partition.topic;
  record.partition = partition.partition;
  record.topic_id = topic_id;
  return encode_record(record);
}

Buffer encode_pending(ProducerId producer_id, ProducerEpoch producer_epoch,
                      const PartitionRef& partition, const CommittedOffset& offset) {
  auto record = record_of<wire::PendingOffsetRecord>(partition, offset);
  record.producer_id = producer_id;
  record.producer_epoch = producer_epoch;
  return encode_record(record);
}

Buffer encode_end(const EndOffsetsCommand& end) {
  wire::PendingOffsetsEndRecord record;
  record.producer_id = end.producer_id;
  record.producer_epoch = end.producer_epoch;
  record.committed = end.commit;
  return encode_record(record);
}

Result<wire::StoredRecord> decode_group_record(Bytes body) {
  auto record = wire::decode_stored(body);
  if (!record) return record;
  if (const auto* group = std::get_if<wire::GroupRecord>(&*record)) {
    if (auto checked = check(*group); !checked) return std::unexpected(checked.error());
    return record;
  }
  if (std::holds_alternative<wire::OffsetCommitRecord>(*record) ||
      std::holds_alternative<wire::OffsetTombstoneRecord>(*record) ||
      std::holds_alternative<wire::PendingOffsetRecord>(*record) ||
      std::holds_alternative<wire::PendingOffsetsEndRecord>(*record)) {
    return record;
  }
  return of_another_channel();
}

CommittedOffset committed_offset(wire::OffsetCommitRecord& record) {
  CommittedOffset offset = offset_of(record);
  if (record.expires != kNoTimestamp) offset.expires = record.expires;
  return offset;
}

CommittedOffset pending_offset(wire::PendingOffsetRecord& record) {
  return offset_of(record);
}

}  // namespace kanal::coordinator
