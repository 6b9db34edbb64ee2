// Broker configs of the log: name, type, default, valid values, what this broker makes of them.
#include "broker_rows.hpp"

namespace kanal::coordinator {
namespace {

using enum ConfigType;
using enum Treatment;

constexpr ConfigRow kRows[] = {
    {"log.cleaner.backoff.ms", kLong, "15000", "[0,...]", kActs, "",
     "Pause of the compactor when nothing needs it."},
    {"log.cleaner.dedupe.buffer.size", kLong, "134217728", "", kActs, "",
     "Memory for the compactor's key map."},
    {"log.cleaner.delete.retention.ms", kLong, "86400000", "[0,...]", kActs, "",
     "How long tombstones stay in compacted topics."},
    {"log.cleaner.enable", kBoolean, "true", "", kActs, "",
     "Whether topics are compacted at all."},
    {"log.cleaner.io.buffer.load.factor", kDouble, "0.9", "", kActs, "",
     "How full the compactor's key map may get."},
    {"log.cleaner.io.buffer.size", kInt, "524288", "[0,...]", kStored,
     "The buffers have a size of their own",
     "Buffer of the compactor for reading and writing."},
    {"log.cleaner.io.max.bytes.per.second", kDouble, "1.7976931348623157E308", "", kActs,
     "", "Bytes the compactor may read and write in a second."},
    {"log.cleaner.max.compaction.lag.ms", kLong, "9223372036854775807", "[1,...]", kActs, "",
     "Longest time a record of a compacted topic may stay out of compaction; bounds the age of its "
     "active segment."},
    {"log.cleaner.min.cleanable.ratio", kDouble, "0.5", "[0,...,1]", kActs, "",
     "Share of a log not yet compacted that makes compaction worth while."},
    {"log.cleaner.min.compaction.lag.ms", kLong, "0", "[0,...]", kActs, "",
     "Shortest time a record stays before it may be compacted away."},
    {"log.cleaner.threads", kInt, "1", "[0,...]", kActs, "", "Threads that compact."},
    {"log.cleanup.policy", kList, "delete", "[compact, delete]", kActs, "",
     "What happens to old segments: delete, compact, both, or neither; compact refuses records "
     "without a key."},
    {"log.dir", kList, "/tmp/kafka-logs", "", kOwnKey, "data_dir", "Directory of the logs."},
    {"log.dir.failure.timeout.ms", kLong, "30000", "[1,...]", kRefused,
     "A failed disk stops the node at once",
     "How long a broker with failed log directories waits for its controller."},
    {"log.dirs", kList, std::nullopt, "", kOwnKey, "data_dir", "Directories of the logs."},
    {"log.flush.interval.messages", kLong, "9223372036854775807", "[1,...]", kActs, "",
     "Records appended to a partition before they are synced; 1 answers a producer after the "
     "sync."},
    {"log.flush.interval.ms", kLong, std::nullopt, "", kActs, "",
     "Longest time a record waits for a sync in the background, which comes every second anyway."},
    {"log.flush.offset.checkpoint.interval.ms", kInt, "60000", "[0,...]", kRefused, kNoteCkpt,
     "How often recovery points are written."},
    {"log.flush.scheduler.interval.ms", kLong, "9223372036854775807", "", kActs, "",
     "Counts as log.flush.interval.ms where that is not set."},
    {"log.flush.start.offset.checkpoint.interval.ms", kInt, "60000", "[0,...]", kRefused, kNoteCkpt,
     "How often log start offsets are written."},
    {"log.index.interval.bytes", kInt, "4096", "[0,...]", kActs, "",
     "Bytes of log between two entries of the offset index."},
    {"log.index.size.max.bytes", kInt, "10485760", "[4,...]", kFulfilled, "",
     "Largest offset index file; indexes here take what they need."},
    {"log.local.retention.bytes", kLong, "-2", "[-2,...]", kStored, kNoteRem,
     "Bytes of a partition kept on local disk where older ones are in remote storage; -2 takes "
     "log.retention.bytes."},
    {"log.local.retention.ms", kLong, "-2", "[-2,...]", kStored, kNoteRem,
     "How long segments stay on local disk where they are in remote storage; -2 takes "
     "log.retention.ms."},
    {"log.message.timestamp.after.max.ms", kLong, "3600000", "[0,...]", kActs, "",
     "How far ahead of the broker's clock a record's timestamp may be."},
    {"log.message.timestamp.before.max.ms", kLong, "9223372036854775807", "[0,...]", kActs, "",
     "How far behind the broker's clock a record's timestamp may be."},
    {"log.message.timestamp.type", kString, "CreateTime", "[CreateTime, LogAppendTime]", kActs, "",
     "Whether records keep the producer's time or get the time of the append."},
    {"log.preallocate", kBoolean, "false", "", kFulfilled, "",
     "Whether new segment files get their full size at once; space is always reserved ahead in "
     "steps."},
    {"log.remote.copy.lag.bytes", kLong, "-1", "[-1,...]", kStored, kNoteRem,
     "Bytes a segment may wait before it is copied to remote storage."},
    {"log.remote.copy.lag.ms", kLong, "0", "[-1,...]", kStored, kNoteRem,
     "How long a segment may wait before it is copied to remote storage."},
    {"log.retention.bytes", kLong, "-1", "", kActs, "",
     "Bytes kept for each partition before old segments are deleted; -1 is no limit."},
    {"log.retention.check.interval.ms", kLong, "300000", "[1,...]", kActs, "",
     "How often old segments are looked for."},
    {"log.retention.hours", kInt, "168", "", kActs, "",
     "How long segments are kept, in hours; used where the finer settings are not set."},
    {"log.retention.minutes", kInt, std::nullopt, "", kActs, "",
     "How long segments are kept, in minutes; used where log.retention.ms is not set."},
    {"log.retention.ms", kLong, std::nullopt, "", kActs, "",
     "How long segments are kept; -1 keeps them for ever."},
    {"log.roll.hours", kInt, "168", "[1,...]", kActs, "",
     "Longest time a segment is written to, in hours; used where log.roll.ms is not set."},
    {"log.roll.jitter.hours", kInt, "0", "[0,...]", kActs, "",
     "Random time taken off log.roll.hours, in hours; used where log.roll.jitter.ms is not set."},
    {"log.roll.jitter.ms", kLong, std::nullopt, "", kActs, "",
     "Random time taken off log.roll.ms, so that segments do not all roll together."},
    {"log.roll.ms", kLong, std::nullopt, "", kActs, "",
     "Longest time a segment is written to before a new one is begun."},
    {"log.segment.bytes", kInt, "1073741824", "[1048576,...]", kActs, "",
     "Size at which a new segment is begun."},
    {"log.segment.delete.delay.ms", kLong, "60000", "[0,...]", kActs, "",
     "How long a deleted segment's file is kept; files in use stay readable until they are let "
     "go."},
};

}  // namespace

std::span<const ConfigRow> log_rows() noexcept {
  return kRows;
}

}  // namespace kanal::coordinator
