// Broker configs of topics and what requests may ask: name, type, default, valid values, what this
// broker makes of them.
#include "broker_rows.hpp"

namespace kanal::coordinator {
namespace {

using enum ConfigType;
using enum Treatment;

constexpr ConfigRow kRows[] = {
    {"alter.config.policy.class.name", kClass, std::nullopt, "", kRefused, kNoteJvm,
     "Plug-in that judges config changes."},
    {"auto.create.topics.enable", kBoolean, "true", "", kActs, "",
     "Whether asking for the metadata of a missing topic makes it."},
    {"auto.leader.rebalance.enable", kBoolean, "true", "", kFulfilled, "",
     "Whether leadership is moved back to preferred replicas; one node always leads everything."},
    {"background.threads", kInt, "10", "[1,...]", kOwnKey, "threads.helpers",
     "Threads for housekeeping."},
    {"broker.id", kInt, "-1", "", kOwnKey, "node.id", "Number of this node, older name."},
    {"broker.rack", kString, std::nullopt, "", kOwnKey, "node.rack", "Rack this node stands in."},
    {"compression.gzip.level", kInt, "-1", "[1,...,9] or -1", kActs, "",
     "Level used where topics are compressed with gzip; -1 is gzip's own default."},
    {"compression.lz4.level", kInt, "9", "[1,...,17]", kActs, "",
     "Level used where topics are compressed with lz4."},
    {"compression.type", kString, "producer", "[uncompressed, zstd, lz4, snappy, gzip, producer]",
     kActs, "", "Codec topics are stored in; producer keeps every batch as it came."},
    {"compression.zstd.level", kInt, "3", "[-131072,...,22]", kActs, "",
     "Level used where topics are compressed with zstd."},
    {"config.providers", kList, "", "", kRefused, kNoteJvm,
     "Plug-ins that fill in values from elsewhere."},
    {"cordoned.log.dirs", kList, "", "", kRefused, kNoteDirs,
     "Log directories that take no new partitions."},
    {"create.topic.policy.class.name", kClass, std::nullopt, "", kRefused, kNoteJvm,
     "Plug-in that judges topic creation."},
    {"default.replication.factor", kInt, "1", "", kActs, "",
     "Replicas of a topic made without saying how many; one node can hold only one."},
    {"delete.records.purgatory.purge.interval.requests", kInt, "1", "", kRefused, kNotePurg,
     "How often finished DeleteRecords requests are cleared away."},
    {"delete.topic.enable", kBoolean, "true", "", kActs, "", "Whether topics may be deleted."},
    {"errors.deadletterqueue.auto.create.topics.enable", kBoolean, "false", "", kStored, kNoteShare,
     "Whether missing dead letter topics of share groups are made."},
    {"errors.deadletterqueue.topic.name.prefix", kString, "dlq.", "", kStored, kNoteShare,
     "How names of dead letter topics begin."},
    {"fetch.max.bytes", kInt, "57671680", "[1024,...]", kActs, "",
     "Most record bytes in one Fetch answer, whatever the client allows."},
    {"fetch.purgatory.purge.interval.requests", kInt, "1000", "", kRefused, kNotePurg,
     "How often finished Fetch requests are cleared away."},
    {"max.decompressed.message.bytes", kInt, "2147483639", "[1,...,2147483639]", kActs, "",
     "Most bytes a compressed batch may inflate to."},
    {"max.incremental.fetch.session.cache.slots", kInt, "1000", "[0,...]", kActs, "",
     "Incremental fetch sessions kept; the oldest idle ones make room."},
    {"max.request.partition.size.limit", kInt, "2000", "[1,...]", kActs, "",
     "Most partitions in one answer of DescribeTopicPartitions."},
    {"message.max.bytes", kInt, "1048588", "[0,...]", kActs, "",
     "Largest record batch a topic takes, as sent."},
    {"min.insync.replicas", kInt, "1", "[1,...]", kFulfilled, "",
     "Replicas that must have a record before acks=all is answered; one node is always enough."},
    {"num.partitions", kInt, "1", "[1,...]", kActs, "",
     "Partitions of a topic made without saying how many."},
    {"num.recovery.threads.per.data.dir", kInt, "2", "[1,...]", kOwnKey, "threads.helpers",
     "Threads that open and recover logs."},
    {"num.replica.alter.log.dirs.threads", kInt, std::nullopt, "", kRefused, kNoteDirs,
     "Threads that move partitions between log directories."},
    {"producer.purgatory.purge.interval.requests", kInt, "1000", "", kRefused, kNotePurg,
     "How often finished Produce requests are cleared away."},
    {"unclean.leader.election.enable", kBoolean, "false", "", kFulfilled, "",
     "Whether a replica that lags may lead; one node never lags behind itself."},
};

}  // namespace

std::span<const ConfigRow> topics_rows() noexcept {
  return kRows;
}

}  // namespace kanal::coordinator
