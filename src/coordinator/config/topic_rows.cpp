// Topic configs: name, type, default, valid values, what this broker makes of them.
#include "broker_rows.hpp"
#include "kanal/coordinator/topic_config.hpp"

namespace kanal::coordinator {
namespace {

using enum ConfigType;
using enum Treatment;

constexpr ConfigRow kRows[] = {
    {"cleanup.policy", kList, "delete", "[compact, delete]", kActs, "",
     "What happens to old segments: delete, compact, both, or neither; compact refuses records "
     "without a key."},
    {"compression.gzip.level", kInt, "-1", "[1,...,9] or -1", kActs, "",
     "Level used where compression.type is gzip; -1 is gzip's own default."},
    {"compression.lz4.level", kInt, "9", "[1,...,17]", kActs, "",
     "Level used where compression.type is lz4."},
    {"compression.type", kString, "producer", "[uncompressed, zstd, lz4, snappy, gzip, producer]",
     kActs, "", "Codec the topic is stored in; producer keeps every batch as it came."},
    {"compression.zstd.level", kInt, "3", "[-131072,...,22]", kActs, "",
     "Level used where compression.type is zstd."},
    {"delete.retention.ms", kLong, "86400000", "[0,...]", kActs, "",
     "How long tombstones stay in a compacted topic."},
    {"errors.deadletterqueue.group.enable", kBoolean, "false", "", kStored, kNoteShare,
     "Whether share groups may use this topic for records they gave up."},
    {"file.delete.delay.ms", kLong, "60000", "[0,...]", kActs, "",
     "How long a deleted segment's file is kept; files in use stay readable until they are let "
     "go."},
    {"flush.messages", kLong, "9223372036854775807", "[1,...]", kActs, "",
     "Records appended before they are synced; 1 answers the producer after the sync."},
    {"flush.ms", kLong, "9223372036854775807", "[0,...]", kActs, "",
     "Longest time a record waits for a sync in the background, which comes every second anyway."},
    {"follower.replication.throttled.replicas", kList, "",
     "[partitionId]:[brokerId],[partitionId]:[brokerId],...", kFulfilled, "",
     "Replicas whose fetching is throttled, as partition:broker pairs or *; one node fetches from "
     "nobody."},
    {"index.interval.bytes", kInt, "4096", "[0,...]", kActs, "",
     "Bytes of log between two entries of the offset index."},
    {"leader.replication.throttled.replicas", kList, "",
     "[partitionId]:[brokerId],[partitionId]:[brokerId],...", kFulfilled, "",
     "Replicas whose serving of followers is throttled, as partition:broker pairs or *; one node "
     "has no followers."},
    {"local.retention.bytes", kLong, "-2", "[-2,...]", kStored, kNoteRem,
     "Bytes of a partition kept on local disk where older ones are in remote storage; -2 takes "
     "retention.bytes."},
    {"local.retention.ms", kLong, "-2", "[-2,...]", kStored, kNoteRem,
     "How long segments stay on local disk where they are in remote storage; -2 takes "
     "retention.ms."},
    {"max.compaction.lag.ms", kLong, "9223372036854775807", "[1,...]", kActs, "",
     "Longest time a record of a compacted topic may stay out of compaction; bounds the age of its "
     "active segment."},
    {"max.decompressed.message.bytes", kInt, "2147483639", "[1,...,2147483639]", kActs, "",
     "Most bytes a compressed batch may inflate to."},
    {"max.message.bytes", kInt, "1048588", "[0,...]", kActs, "",
     "Largest record batch that is taken, as sent."},
    {"message.timestamp.after.max.ms", kLong, "3600000", "[0,...]", kActs, "",
     "How far ahead of the broker's clock a record's timestamp may be."},
    {"message.timestamp.before.max.ms", kLong, "9223372036854775807", "[0,...]", kActs, "",
     "How far behind the broker's clock a record's timestamp may be."},
    {"message.timestamp.type", kString, "CreateTime", "[CreateTime, LogAppendTime]", kActs, "",
     "Whether records keep the producer's time or get the time of the append."},
    {"min.cleanable.dirty.ratio", kDouble, "0.5", "[0,...,1]", kActs, "",
     "Share of a log not yet compacted that makes compaction worth while."},
    {"min.compaction.lag.ms", kLong, "0", "[0,...]", kActs, "",
     "Shortest time a record stays before it may be compacted away."},
    {"min.insync.replicas", kInt, "1", "[1,...]", kFulfilled, "",
     "Replicas that must have a record before acks=all is answered; one node is always enough."},
    {"preallocate", kBoolean, "false", "", kFulfilled, "",
     "Whether new segment files get their full size at once; space is always reserved ahead in "
     "steps."},
    {"remote.copy.lag.bytes", kLong, "-1", "[-1,...]", kStored, kNoteRem,
     "Bytes a segment may wait before it is copied to remote storage."},
    {"remote.copy.lag.ms", kLong, "0", "[-1,...]", kStored, kNoteRem,
     "How long a segment may wait before it is copied to remote storage."},
    {"remote.log.copy.disable", kBoolean, "false", "", kStored, kNoteRem,
     "Whether copying to remote storage is stopped."},
    {"remote.log.delete.on.disable", kBoolean, "false", "", kStored, kNoteRem,
     "Whether remote data is deleted when remote storage is switched off."},
    {"remote.storage.enable", kBoolean, "false", "", kStored, kNoteRem,
     "Whether old segments go to remote storage; only false is taken."},
    {"retention.bytes", kLong, "-1", "", kActs, "",
     "Bytes kept for each partition before old segments are deleted; -1 is no limit."},
    {"retention.ms", kLong, "604800000", "[-1,...]", kActs, "",
     "How long segments are kept; -1 keeps them for ever."},
    {"segment.bytes", kInt, "1073741824", "[1048576,...]", kActs, "",
     "Size at which a new segment is begun."},
    {"segment.index.bytes", kInt, "10485760", "[4,...]", kFulfilled, "",
     "Largest offset index file; indexes here take what they need."},
    {"segment.jitter.ms", kLong, "0", "[0,...]", kActs, "",
     "Random time taken off segment.ms, so that segments do not all roll together."},
    {"segment.ms", kLong, "604800000", "[1,...]", kActs, "",
     "Longest time a segment is written to before a new one is begun."},
    {"unclean.leader.election.enable", kBoolean, "false", "", kFulfilled, "",
     "Whether a replica that lags may lead; one node never lags behind itself."},
};

}  // namespace

std::span<const ConfigRow> topic_config_rows() noexcept {
  return kRows;
}

}  // namespace kanal::coordinator
