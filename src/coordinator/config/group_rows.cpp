// Group configs: name, type, default, valid values, what this broker makes of them.
#include "broker_rows.hpp"
#include "kanal/coordinator/resource_config.hpp"

namespace kanal::coordinator {
namespace {

using enum ConfigType;
using enum Treatment;

constexpr ConfigRow kRows[] = {
    {"consumer.assignment.interval.ms", kInt, "1000", "[0,...]", kStored, kNoteGroup,
     "Pause between two assignments of this group."},
    {"consumer.heartbeat.interval.ms", kInt, "5000", "[1,...]", kStored, kNoteGroup,
     "How often members of this group send heartbeats."},
    {"consumer.session.timeout.ms", kInt, "45000", "[1,...]", kStored, kNoteGroup,
     "A member that is silent this long is removed."},
    {"errors.deadletterqueue.copy.record.enable", kBoolean, "false", "", kStored, kNoteShare,
     "Whether a dead letter holds the record itself or only where it was."},
    {"errors.deadletterqueue.topic.name", kString, "", "", kStored, kNoteShare,
     "Topic that records which could not be processed go to; empty for none."},
    {"share.assignment.interval.ms", kInt, "1000", "[0,...]", kStored, kNoteShare,
     "Pause between two assignments of this share group."},
    {"share.auto.offset.reset", kString, "latest", "[latest, earliest, by_duration:PnDTnHnMn.nS]",
     kStored, kNoteShare, "Where a share group begins to read a partition."},
    {"share.delivery.count.limit", kInt, "5", "[2,...]", kStored, kNoteShare,
     "Deliveries of one record before it is given up."},
    {"share.heartbeat.interval.ms", kInt, "5000", "[1,...]", kStored, kNoteShare,
     "How often members of this share group send heartbeats."},
    {"share.isolation.level", kString, "read_uncommitted", "[read_committed, read_uncommitted]",
     kStored, kNoteShare, "Whether a share group sees records of transactions not committed."},
    {"share.partition.max.record.locks", kInt, "2000", "[100,...]", kStored, kNoteShare,
     "Records of a partition that may be locked at a time."},
    {"share.record.lock.duration.ms", kInt, "30000", "[1000,...]", kStored, kNoteShare,
     "How long a delivered record stays locked for its consumer."},
    {"share.renew.acknowledge.enable", kBoolean, "true", "", kStored, kNoteShare,
     "Whether consumers may prolong the lock of a record."},
    {"share.session.timeout.ms", kInt, "45000", "[1,...]", kStored, kNoteShare,
     "A member of this share group that is silent this long is removed."},
    {"streams.assignment.interval.ms", kInt, "1000", "[0,...]", kStored, kNoteStreams,
     "Pause between two assignments of this streams group."},
    {"streams.assignor.name", kString, std::nullopt, "", kStored, kNoteStreams,
     "Task assignor of this streams group, one of group.streams.assignors."},
    {"streams.heartbeat.interval.ms", kInt, "5000", "[1,...]", kStored, kNoteStreams,
     "How often members of this streams group send heartbeats."},
    {"streams.initial.rebalance.delay.ms", kInt, "3000", "[0,...]", kStored, kNoteStreams,
     "How long a new streams group waits for more members."},
    {"streams.num.standby.replicas", kInt, "0", "[0,...]", kStored, kNoteStreams,
     "Standby copies of each task."},
    {"streams.rack.aware.assignment.tags", kList, "", "", kStored, kNoteStreams,
     "Client tags over which standby copies are spread."},
    {"streams.session.timeout.ms", kInt, "45000", "[1,...]", kStored, kNoteStreams,
     "A member of this streams group that is silent this long is removed."},
};

}  // namespace

std::span<const ConfigRow> group_config_rows() noexcept {
  return kRows;
}

}  // namespace kanal::coordinator
