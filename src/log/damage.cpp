#include "damage.hpp"

#include "blob.hpp"
#include "core.hpp"
#include "journal.hpp"
#include "segment_log.hpp"

#include "kanal/base/logging.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <utility>

namespace kanal::log {
namespace {

constexpr std::string_view kRescanMagic = "KNLR";
constexpr std::uint16_t kRescanVersion = 1;
constexpr std::uint64_t kChunk = 1 << 20;

/// Bytes [from, end) of one file become those of another one, synced.
Result<void> copy_bytes(FileSystem& files, const File& source, std::uint64_t from,
                        std::uint64_t end, const std::string& path) {
  auto target = files.open(path, OpenMode::kCreate);
  if (!target) return std::unexpected(std::move(target.error()));
  if (auto done = (*target)->truncate(0); !done) return done;
  Buffer chunk(static_cast<std::size_t>(std::min(kChunk, end - from)));
  for (std::uint64_t at = from; at < end;) {
    const MutableBytes part =
        MutableBytes(chunk).first(static_cast<std::size_t>(std::min(kChunk, end - at)));
    const auto got = source.read_at(at, part);
    if (!got) return std::unexpected(got.error());
    if (*got < part.size()) return storage_error("a file became shorter while it was copied");
    const std::array pieces{Bytes(part)};
    if (auto done = (*target)->write_at(at - from, pieces); !done) return done;
    at += part.size();
  }
  return (*target)->sync();
}

}  // namespace

Result<void> void_checkpoints(FileSystem& files, const std::string& directory, LeaderEpoch before) {
  BlobWriter writer;
  writer.id(before);
  return replace_file(files, directory + "/" + std::string(kRescanFile),
                      writer.seal(kRescanMagic, kRescanVersion));
}

LeaderEpoch checkpoints_count_from(FileSystem& files, const std::string& directory) {
  const auto bytes = read_file(files, directory + "/" + std::string(kRescanFile), 4096);
  if (!bytes && bytes.error().os_error == ENOENT) return LeaderEpoch(-1);
  constexpr LeaderEpoch kNever(std::numeric_limits<LeaderEpoch::rep>::max());
  if (!bytes) return kNever;
  const auto payload = open_blob(*bytes, kRescanMagic, kRescanVersion);
  if (!payload) return kNever;
  BlobReader reader(*payload);
  const auto epoch = reader.id<LeaderEpoch>();
  return reader.done() ? epoch : kNever;
}

Result<std::string> name_aside(FileSystem& files, const std::string& path,
                               std::string_view suffix) {
  for (int i = 1;; ++i) {
    std::string name = path + std::string(suffix);
    if (i > 1) name += "-" + std::to_string(i);
    const auto taken = files.exists(name);
    if (!taken) return std::unexpected(taken.error());
    if (!*taken) return name;
  }
}

Result<std::string> cut_aside(FileSystem& files, const std::string& path, std::uint64_t keep) {
  auto source = files.open(path, OpenMode::kRead);
  if (!source) return std::unexpected(std::move(source.error()));
  const auto size = (*source)->size();
  if (!size) return std::unexpected(size.error());
  auto aside = name_aside(files, path);
  if (!aside) return aside;
  const std::string unfinished = *aside + ".tmp", shorter = path + ".tmp";
  if (auto done = copy_bytes(files, **source, keep, *size, unfinished); !done)
    return std::unexpected(std::move(done.error()));
  if (auto done = copy_bytes(files, **source, 0, keep, shorter); !done)
    return std::unexpected(std::move(done.error()));
  if (auto done = files.rename(unfinished, *aside); !done)
    return std::unexpected(std::move(done.error()));
  // What is kept has its name before the log loses it.
  if (auto done = files.sync_directory(directory_of(path)); !done)
    return std::unexpected(std::move(done.error()));
  if (auto done = files.rename(shorter, path); !done)
    return std::unexpected(std::move(done.error()));
  if (auto done = files.sync_directory(directory_of(path)); !done)
    return std::unexpected(std::move(done.error()));
  return aside;
}

std::string what_to_do(const StoreContext& store) {
  std::string text =
      " Put a sound copy of the file in its place, or start once with log.recovery=truncate: the "
      "log is then cut there, and what lies behind is kept beside it.";
  if (!store.journal->complete()) {
    text += " But no log is cut as long as the shared journal cannot be written to all logs: first "
            "see to those that the errors of this start name.";
  }
  return text;
}

Error Core::damaged(SegmentId segment, Error why) {
  if (why.os_error != 0) return why;  // the disk did not let us look
  std::string detail = std::move(why.detail);
  if (detail.ends_with('.')) detail.pop_back();
  why = {ErrorCode::KAFKA_STORAGE_ERROR, "'" + path(segment_name(segment)) + "' is damaged: " +
                                             detail + "." + what_to_do(store())};
  if (!owns_files()) return why;
  fail_for_good(why);
  store().helpers.post([core = shared_from_this()] {
    core->sync_turn_.with([&] {
      if (core->removed()) return;
      auto done = void_checkpoints(core->store().files, core->directory(), core->epoch() + 1);
      if (done) return;
      logger("log").error("The next start may not look for the damage. channel={} why=\"{}\"",
                          core->id().name, done.error().detail);
    });
  });
  return why;
}

std::unexpected<std::variant<Miss, Error>> SegmentLog::damaged(const Segment& segment,
                                                               Error why) const {
  return std::unexpected(std::variant<Miss, Error>(core_->damaged(segment.id(), std::move(why))));
}

}  // namespace kanal::log
