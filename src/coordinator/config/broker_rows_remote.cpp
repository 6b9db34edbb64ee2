// Broker configs of remote storage: name, type, default, valid values, what this broker makes of
// them.
#include "broker_rows.hpp"

namespace kanal::coordinator {
namespace {

using enum ConfigType;
using enum Treatment;

constexpr ConfigRow kRows[] = {
    {"remote.fetch.max.wait.ms", kInt, "500", "[1,...]", kRefused, kNoteRem,
     "How long a fetch waits for remote storage."},
    {"remote.list.offsets.request.timeout.ms", kLong, "30000", "[1,...]", kRefused, kNoteRem,
     "How long ListOffsets waits for remote storage."},
    {"remote.log.index.file.cache.total.size.bytes", kLong, "1073741824", "[1,...]", kRefused,
     kNoteRem, "Disk space for index files fetched from remote storage."},
    {"remote.log.manager.copier.thread.pool.size", kInt, "10", "[1,...]", kRefused, kNoteRem,
     "Threads that copy segments to remote storage."},
    {"remote.log.manager.copy.max.bytes.per.second", kLong, "9223372036854775807", "[1,...]",
     kRefused, kNoteRem, "Bytes copied to remote storage in a second."},
    {"remote.log.manager.copy.quota.window.num", kInt, "11", "[1,...]", kRefused, kNoteRem,
     "Windows over which copying to remote storage is measured."},
    {"remote.log.manager.copy.quota.window.size.seconds", kInt, "1", "[1,...]", kRefused, kNoteRem,
     "Length of a window over which copying to remote storage is measured."},
    {"remote.log.manager.expiration.thread.pool.size", kInt, "10", "[1,...]", kRefused, kNoteRem,
     "Threads that delete expired segments from remote storage."},
    {"remote.log.manager.fetch.max.bytes.per.second", kLong, "9223372036854775807", "[1,...]",
     kRefused, kNoteRem, "Bytes fetched from remote storage in a second."},
    {"remote.log.manager.fetch.quota.window.num", kInt, "11", "[1,...]", kRefused, kNoteRem,
     "Windows over which fetching from remote storage is measured."},
    {"remote.log.manager.fetch.quota.window.size.seconds", kInt, "1", "[1,...]", kRefused, kNoteRem,
     "Length of a window over which fetching from remote storage is measured."},
    {"remote.log.manager.follower.thread.pool.size", kInt, "2", "[1,...]", kRefused, kNoteRem,
     "Threads of followers for remote storage."},
    {"remote.log.manager.task.interval.ms", kLong, "30000", "[1,...]", kRefused, kNoteRem,
     "How often the tasks of remote storage run."},
    {"remote.log.manager.thread.pool.size", kInt, "2", "[1,...]", kRefused, kNoteRem,
     "Threads that schedule the tasks of remote storage."},
    {"remote.log.metadata.custom.metadata.max.bytes", kInt, "128", "[0,...]", kRefused, kNoteRem,
     "Bytes of a storage plug-in's own data kept for a segment."},
    {"remote.log.metadata.manager.class.name", kString,
     "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
     "non-empty string", kRefused, kNoteRem, "Plug-in that keeps the metadata of remote segments."},
    {"remote.log.metadata.manager.class.path", kString, std::nullopt, "", kRefused, kNoteRem,
     "Where the metadata plug-in is loaded from."},
    {"remote.log.metadata.manager.impl.prefix", kString, "rlmm.config.", "non-empty string",
     kRefused, kNoteRem, "How settings handed to the metadata plug-in begin."},
    {"remote.log.metadata.manager.listener.name", kString, std::nullopt, "non-empty string",
     kRefused, kNoteRem, "Listener the metadata plug-in connects to."},
    {"remote.log.reader.max.pending.tasks", kInt, "100", "[1,...]", kRefused, kNoteRem,
     "Reads from remote storage that may wait."},
    {"remote.log.reader.threads", kInt, "10", "[1,...]", kRefused, kNoteRem,
     "Threads that read from remote storage."},
    {"remote.log.storage.manager.class.name", kString, std::nullopt, "non-empty string", kRefused,
     kNoteRem, "Plug-in that stores remote segments."},
    {"remote.log.storage.manager.class.path", kString, std::nullopt, "", kRefused, kNoteRem,
     "Where the storage plug-in is loaded from."},
    {"remote.log.storage.manager.impl.prefix", kString, "rsm.config.", "non-empty string", kRefused,
     kNoteRem, "How settings handed to the storage plug-in begin."},
    {"remote.log.storage.system.enable", kBoolean, "false", "", kRefused, kNoteRem,
     "Whether remote storage is switched on."},
};

}  // namespace

std::span<const ConfigRow> remote_rows() noexcept {
  return kRows;
}

}  // namespace kanal::coordinator
