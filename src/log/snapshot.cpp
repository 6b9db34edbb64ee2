#include "kanal/log/snapshot.hpp"

#include "blob.hpp"
#include "checkpoint.hpp"
#include "compaction_record.hpp"
#include "core.hpp"
#include "segment_log.hpp"

#include "kanal/base/file_copies.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

namespace kanal::log {
namespace {

constexpr std::string_view kGrows = ".grows";  // the link of a file that is still written to

/// Missing is fine.
Result<void> link_if_there(const std::string& from, const std::string& to) {
  auto done = link_file(from, to);
  if (!done && done.error().os_error == ENOENT) return {};
  return done;
}

}  // namespace

std::optional<std::string> index_of_segment(std::string_view name) {
  const auto id = parse_segment(name);
  return id ? std::optional(index_name(*id)) : std::nullopt;
}

Result<Checkpoint> SegmentLog::link_into(const std::string& directory,
                                         const std::function<Result<Checkpoint>()>& moment) const {
  return core_->in_turn([&]() -> Result<Checkpoint> {
    auto checkpoint = moment();
    if (!checkpoint) return checkpoint;
    const auto layout = decode_layout(checkpoint->layout);
    if (!layout) return std::unexpected(layout.error());
    if (!layout->created) return checkpoint;
    if (auto done = kanal::make_directory(directory); !done)
      return std::unexpected(std::move(done.error()));
    for (const SegmentLayout& segment : layout->segments) {
      const bool last = &segment == &layout->segments.back();
      const SegmentId id{segment.base, segment.generation};
      const std::string name = segment_name(id), index = index_name(id);
      std::string to = directory + "/" + name;
      if (last) to += kGrows;
      auto done = link_file(core_->path(name), to);
      if (done && !last) {
        to = directory + "/" + index;
        done = link_if_there(core_->path(index), to.append(kGrows));
      }
      if (!done) return std::unexpected(std::move(done.error()));
    }
    std::string to = directory + "/" + std::string(kCompactionFile);
    if (auto done = link_if_there(core_->path(kCompactionFile), to.append(kGrows)); !done)
      return std::unexpected(std::move(done.error()));
    return checkpoint;
  });
}

struct LogSnapshot::State {
  FileSystem& files;
  const std::string links, target;
  std::vector<SavedChannel> channels;
  SnapshotFigures figures;
  std::function<bool()> cancelled = {};

  Result<void> finish(const SavedChannel& channel);
  Result<void> finish_segment(const std::string& name, const SegmentLayout& segment, bool last);
  Result<void> take_copy(const std::string& name, std::uint64_t bytes);
  Result<void> finish_compaction(const std::string& directory, const Layout& layout);
};

LogSnapshot::LogSnapshot(FileSystem& files, std::string links, std::string target)
    : state_(new State{files, std::move(links), std::move(target), {}, {}, {}}) {}
LogSnapshot::~LogSnapshot() = default;

Result<void> LogSnapshot::add(const ChannelId& id, ChannelLog& log,
                              const std::function<Result<Checkpoint>()>& moment) {
  auto checkpoint = log.link_into(state_->links + "/" + directory_name(id), moment);
  if (!checkpoint) return std::unexpected(std::move(checkpoint.error()));
  state_->channels.push_back({id, true, std::move(*checkpoint)});
  return {};
}

Result<SnapshotFigures> LogSnapshot::finish(const std::function<bool()>& cancelled) {
  state_->cancelled = cancelled;
  for (const SavedChannel& channel : state_->channels) {
    if (cancelled()) return storage_error("The snapshot was cancelled.");
    if (auto done = state_->finish(channel); !done) return std::unexpected(std::move(done.error()));
  }
  if (cancelled()) return storage_error("The snapshot was cancelled.");
  const Buffer file = encode_all(state_->channels);
  const std::string path = state_->target + "/" + std::string(kCleanFile);
  if (auto done = replace_file(state_->files, path, file); !done)
    return std::unexpected(std::move(done.error()));
  return state_->figures;
}

Result<void> LogSnapshot::State::finish(const SavedChannel& channel) {
  const auto layout = decode_layout(channel.checkpoint.layout);
  if (!layout) return std::unexpected(layout.error());
  if (!layout->created) return {};
  const std::string directory = directory_name(channel.id);
  if (links != target) {
    if (auto done = make_directory(target + "/" + directory); !done) return done;
  }
  const ChannelState state{channel.id.topic_id, channel.id.partition, layout->start,
                           layout->generation};
  if (auto done = create_channel_file(
          files, target + "/" + directory + "/" + std::string(kChannelFile), state);
      !done) {
    return done;
  }
  ++figures.channels;
  for (const SegmentLayout& segment : layout->segments) {
    const bool last = &segment == &layout->segments.back();
    if (auto done = finish_segment(
            directory + "/" + segment_name(SegmentId{segment.base, segment.generation}), segment,
            last);
        !done) {
      return done;
    }
    if (last) break;
    const std::string index =
        directory + "/" + index_name(SegmentId{segment.base, segment.generation});
    const auto size = file_size(links + "/" + index + std::string(kGrows));
    if (!size && size.error().os_error == ENOENT) continue;
    if (!size) return std::unexpected(size.error());
    if (auto done = take_copy(index, *size); !done) return done;
  }
  return finish_compaction(directory, *layout);
}

/// What the layout has; a swap may have been decided that the log had not gone over to.
Result<void> LogSnapshot::State::finish_compaction(const std::string& directory,
                                                   const Layout& layout) {
  const std::string link =
      links + "/" + directory + "/" + std::string(kCompactionFile) + std::string(kGrows);
  auto stored = read_compaction(files, link);
  if (!stored) return std::unexpected(std::move(stored.error()));
  if (stored->condition == StoredCompaction::Condition::kMissing) return {};
  CompactionRecord record = std::move(stored->record);
  std::erase_if(record.segments, [&](const CompactedSegment& segment) {
    const auto has = std::ranges::find(layout.segments, segment.id.base, &SegmentLayout::base);
    if (has != layout.segments.end() && has->generation == segment.id.generation) return false;
    if (segment.end > layout.start) {  // else it was trimmed away
      record.first_dirty = std::min(record.first_dirty, segment.id.base);
    }
    return true;
  });
  for (const SegmentLayout& segment : layout.segments) {
    if (segment.generation != 0 && record.find(segment.base) == nullptr)
      return storage_error("'" + link + "' does not list all segments that compaction wrote.");
  }
  auto written = write_compaction(files, target + "/" + directory, record);
  return written.done ? files.remove(link) : written.done;
}

Result<void> LogSnapshot::State::finish_segment(const std::string& name,
                                                const SegmentLayout& segment, bool last) {
  ++figures.segments;
  if (last) return take_copy(name, segment.size);
  const auto size = file_size(links + "/" + name);
  if (!size) return std::unexpected(size.error());
  if (*size < segment.size) {
    return storage_error("'" + links + "/" + name + "' is shorter than its records.");
  }
  if (links != target) {
    figures.copied_bytes += segment.size;
    return copy_file(links + "/" + name, target + "/" + name, segment.size, cancelled);
  }
  if (*size == segment.size) {
    figures.linked_bytes += segment.size;
    return {};
  }
  // Bytes behind its records: reserved ones that were not given back. A copy has none.
  if (auto done = files.rename(target + "/" + name, target + "/" + name + std::string(kGrows));
      !done) {
    return done;
  }
  return take_copy(name, segment.size);
}

/// A file of its own in place of a link.
Result<void> LogSnapshot::State::take_copy(const std::string& name, std::uint64_t bytes) {
  const std::string from = links + "/" + name + std::string(kGrows);
  figures.copied_bytes += bytes;
  if (auto done = copy_file(from, target + "/" + name, bytes, cancelled); !done) return done;
  return files.remove(from);
}

}  // namespace kanal::log
