// Encoding and checks of a group's stored records, which are laid down in src/wire/schema/
// stored.yaml. Decoding errors are KAFKA_STORAGE_ERROR and say what is wrong; the caller names the
// channel. Plain functions.
#pragma once

#include "kanal/coordinator/group.hpp"
#include "kanal/wire/stored.hpp"
#include "offsets.hpp"

namespace kanal::coordinator {

[[nodiscard]] Buffer encode_group(const wire::GroupRecord& record);
[[nodiscard]] Buffer encode_commit(const PartitionRef& partition, const CommittedOffset& offset);
/// Of a zero topic id: whatever is there.
[[nodiscard]] Buffer encode_tombstone(const PartitionRef& partition, const Uuid& topic_id = {});
[[nodiscard]] Buffer encode_pending(ProducerId producer_id, ProducerEpoch producer_epoch,
                                    const PartitionRef& partition, const CommittedOffset& offset);
[[nodiscard]] Buffer encode_end(const EndOffsetsCommand& end);

/// One of the five types that a group's channel may hold, with values that go together.
[[nodiscard]] Result<wire::StoredRecord> decode_group_record(Bytes body);
[[nodiscard]] CommittedOffset committed_offset(wire::OffsetCommitRecord& record);
[[nodiscard]] CommittedOffset pending_offset(wire::PendingOffsetRecord& record);

}  // namespace kanal::coordinator
