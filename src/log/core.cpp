#include "core.hpp"

#include "blob.hpp"
#include "scan.hpp"

#include "kanal/base/logging.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace kanal::log {
namespace {

constexpr std::uint64_t kMaxLoad = 2 << 20;
constexpr std::uint64_t kMaxIndexFile = 64 << 20;
constexpr std::size_t kMaxLoaded = 16;  // not yet seen by the owner; older ones are asked for again

}  // namespace

template <class T>
void raise(std::atomic<T>& to, T value) {
  for (T seen = to.load(); seen < value && !to.compare_exchange_weak(seen, value);) {
  }
}

bool is_out_of_handles(const Error& error) {
  return error.os_error == EMFILE || error.os_error == ENFILE;
}

Core::Core(std::shared_ptr<StoreContext> context, ChannelId id, ChannelHandle handle,
           LeaderEpoch epoch)
    : context_(std::move(context)), id_(std::move(id)), handle_(handle), epoch_(epoch) {}

Core::~Core() {
  const bool unsynced = needs_sync();
  context_->channels.with([&](OpenChannels& channels) {
    const auto found = channels.by_name.find(id_.name);
    if (found != channels.by_name.end() && found->second == this) {
      channels.by_name.erase(found);
      const auto kept = channels.kept.find(id_.name);
      if (kept != channels.kept.end() && staged_end != kept->second.checkpoint.upto.value()) {
        kept->second.clean = false;
      }
      // Nobody can sync it any more.
      if (kept != channels.kept.end() && unsynced) channels.kept.erase(kept);
    }
    auto& slots = channels.by_handle;
    if (handle_.value() < slots.size() && slots[handle_.value()].expired()) {
      slots[handle_.value()].reset();
    }
  });
}

std::string Core::directory() const {
  return context_->directory + "/" + directory_name(id_);
}

std::string Core::path(std::string_view name) const {
  return directory().append("/").append(name);
}

std::shared_ptr<SegmentFile> Core::make_file(SegmentId id) {
  return shared_.with([&](Shared& shared) {
    auto file = std::make_shared<SegmentFile>(context_->cache, id, shared.next_ordinal++);
    shared.files.push_back(file);
    return file;
  });
}

void Core::drop_file(const std::shared_ptr<SegmentFile>& file) {
  shared_.with([&](Shared& shared) {
    std::erase(shared.files, file);
    std::erase(shared.dirty, file);
    std::erase_if(shared.seals, [&](const Seal& seal) { return seal.file == file; });
  });
}

Result<std::shared_ptr<File>> Core::open(SegmentFile& file, OpenMode mode) {
  return context_->cache.open(file.slot, mode, [&] { return path(segment_name(file.id())); });
}

void Core::mark_dirty(const std::shared_ptr<SegmentFile>& file) {
  if (file->dirty.load()) return;
  if (!file->dirty.exchange(true)) {
    shared_.with([&](Shared& shared) { shared.dirty.push_back(file); });
  }
}

Error Core::fail_for_good(Error why) {
  why.code = ErrorCode::KAFKA_STORAGE_ERROR;
  const bool first = shared_.with([&](Shared& shared) {
    if (failed_.exchange(true)) return false;
    shared.why = why;
    return true;
  });
  if (first) {
    logger("log").error("A log failed and takes no more records. channel={} why=\"{}\"", id_.name,
                        why.detail);
  }
  return why;
}

Result<void> Core::usable() {
  if (removed_) return storage_error("The channel was removed.");
  if (closed_) return storage_error("The log is closed.");
  if (!failed_) return {};
  return std::unexpected(shared_.with([](Shared& shared) { return shared.why; }));
}

Result<Sequence> Core::sync() {
  return sync_turn_.with([&] { return sync_in_turn(); });
}

Result<Sequence> Core::sync_in_turn() {
  if (auto ready = usable(); !ready) return std::unexpected(std::move(ready.error()));
  const Sequence end(staged_end.load());
  std::vector<std::shared_ptr<SegmentFile>> dirty;
  shared_.with([&](Shared& shared) { dirty.swap(shared.dirty); });
  const auto failed = [&](Error& why) -> Result<Sequence> {
    if (removed_) return storage_error("The channel was removed.");
    if (!is_out_of_handles(why)) {
      return std::unexpected(fail_for_good(std::move(why)));
    }
    // Nothing reached the disk yet and nothing is lost: the next sync does it all.
    channel_dirty = true;
    names_dirty = true;
    for (const std::shared_ptr<SegmentFile>& file : dirty) {
      file->dirty = false;
      mark_dirty(file);
    }
    return std::unexpected(std::move(why));
  };
  if (auto done = sync_channel_file(); !done) return failed(done.error());
  remove_condemned();
  if (auto done = seal_pending(); !done) return failed(done.error());
  for (const std::shared_ptr<SegmentFile>& file : dirty) {
    // Before the sync: a write from here on makes the segment dirty again.
    if (is_dropped(*file)) continue;
    file->dirty = false;
    auto opened = open(*file);
    if (!opened) return failed(opened.error());
    const std::uint64_t written = file->written.load();
    if (auto done = (*opened)->sync(); !done) return failed(done.error());
    raise(file->durable, written);
  }
  if (names_dirty.exchange(false)) {
    if (auto done = store().files.sync_directory(directory()); !done) return failed(done.error());
    if (auto done = store().files.sync_directory(store().directory); !done) {
      return failed(done.error());
    }
  }
  raise(synced_end, end.value());
  return end;
}

std::optional<Core::Unsynced> Core::unsynced(std::uint64_t limit) {
  return sync_turn_.try_with([&]() -> std::optional<Unsynced> {
    if (!usable()) return std::nullopt;
    Unsynced found;
    found.end = Sequence(staged_end.load());
    if (names_dirty || channel_dirty) return std::nullopt;
    if (synced_end.load() >= found.end.value()) return found;
    // All below `end` is in files marked before: in this one, if it is the only one.
    shared_.with([&](Shared& shared) {
      if (shared.dirty.size() == 1 && shared.seals.empty()) found.file = shared.dirty.front();
    });
    // What compaction wrote is found by another name than a replay looks for.
    if (found.file == nullptr || found.file->generation != 0) return std::nullopt;
    found.from = found.file->durable.load();
    found.upto = found.file->written.load();
    if (found.upto <= found.from || found.upto - found.from > limit) return std::nullopt;
    auto handle = open(*found.file);
    if (!handle) return std::nullopt;
    found.handle = std::move(*handle);
    return found;
  });
}

void Core::note_durable(const Unsynced& unsynced) {
  raise(unsynced.file->durable, unsynced.upto);
  raise(synced_end, unsynced.end.value());
}

bool Core::needs_sync() {
  return names_dirty || channel_dirty || shared_.with([](Shared& shared) {
    return !shared.dirty.empty() || !shared.seals.empty();
  });
}

void Core::note_synced(Sequence end) {
  sync_turn_.with([&] {
    names_dirty = channel_dirty = false;
    std::vector<std::shared_ptr<SegmentFile>> dirty;
    shared_.with([&](Shared& shared) {
      dirty.swap(shared.dirty);
      shared.seals.clear();  // the checkpoint that follows vouches for them
    });
    for (const auto& file : dirty) {
      file->dirty = false;
      raise(file->durable, file->written.load());
    }
    raise(synced_end, end.value());
    if (owns_files()) remove_condemned();
  });
}

bool Core::is_dropped(const SegmentFile& file) {
  return shared_.with([&](Shared& shared) {
    return std::ranges::none_of(shared.files,
                                [&](const auto& held) { return held.get() == &file; });
  });
}

Result<void> Core::sync_channel_file() {
  if (!channel_dirty.exchange(false)) return {};
  auto file = store().files.open(path(kChannelFile), OpenMode::kReadWrite);
  if (!file) return std::unexpected(std::move(file.error()));
  return (*file)->sync();
}

void Core::add_seal(Seal seal) {
  shared_.with([&](Shared& shared) { shared.seals.push_back(std::move(seal)); });
}

void Core::run_seals() {
  sync_turn_.with([&] {
    if (!owns_files()) return;
    auto done = seal_pending();
    if (!done && !removed_ && !is_out_of_handles(done.error()))
      fail_for_good(std::move(done.error()));
  });
}

Result<void> Core::seal_pending() {
  std::vector<Seal> seals;
  shared_.with([&](Shared& shared) { seals.swap(shared.seals); });
  for (auto next = seals.begin(); next != seals.end(); ++next) {
    if (auto done = seal(*next); !done) {
      for (; next != seals.end(); ++next) add_seal(std::move(*next));
      return done;
    }
  }
  return {};
}

Result<void> Core::seal(Seal& seal) {
  if (is_dropped(*seal.file)) return {};
  IndexFile& index = seal.index;
  auto opened = open(*seal.file);
  if (!opened) return std::unexpected(std::move(opened.error()));
  if (auto done = (*opened)->truncate(index.size); !done) {
    logger("log").warn("Could not free what was reserved behind a segment. why=\"{}\"",
                       done.error().detail);
  }
  if (auto done = (*opened)->sync(); !done) return done;
  index.sealed = true;
  if (seal.blocks != nullptr) index.blocks = *seal.blocks;
  if (index.blocks.empty() || index.blocks.front().position != 0) {
    auto rebuilt = rebuild_index(**opened, index.size, index.base, index_interval);
    if (!rebuilt) return {};  // whoever reads there is told
    index.blocks = std::move(rebuilt->blocks);
  }
  write_index(store().files, path(index_name(seal.file->id())), index, true);
  names_dirty = true;
  return {};
}

void Core::remove_files(const std::vector<std::shared_ptr<SegmentFile>>& files,
                        std::chrono::milliseconds delay) {
  sync_turn_.with([&] {
    if (!owns_files()) return;  // a failed sync is final: a second one would only pretend
    for (const auto& file : files) condemned_.push_back({file->id(), delay});
    // The start first: a power cut must never leave a log that begins before its first file.
    channel_dirty = true;
    if (auto synced = sync_channel_file(); !synced) {
      if (removed_) return;
      if (!is_out_of_handles(synced.error())) {
        fail_for_good(std::move(synced.error()));
        return;
      }
      channel_dirty = true;  // they go with the next sync or trim
      return;
    }
    remove_condemned();
  });
}

void Core::remove_condemned() {
  for (const Condemned& segment : std::exchange(condemned_, {})) {
    if (segment.delay.count() > 0) {
      remove_later(segment_name(segment.id), store().clock.now() + segment.delay);
    }
    for (const std::string& name : {segment_name(segment.id), index_name(segment.id)}) {
      if (auto gone = store().files.remove(path(name)); !gone) {
        logger("log").warn("Could not remove a trimmed segment. why=\"{}\"", gone.error().detail);
      }
    }
  }
}

/// Renames the file out of the channel's directory, whose names are soon somebody else's when a
/// topic is made again; if it cannot, the caller removes it at once.
void Core::remove_later(const std::string& name, Time due) {
  const std::string directory = store().directory + "/" + std::string(kRemovedDirectory);
  std::string aside = directory + "/" + unique_name(store(), id_) + ".log";
  auto done = store().files.create_directories(directory);
  if (done) done = store().files.rename(path(name), aside);
  if (!done) return;
  store().to_remove.with([&](auto& waiting) { waiting.push_back({due, std::move(aside)}); });
}

Result<void> Core::load(const Miss& miss) {
  const auto ordinal = static_cast<std::uint32_t>(miss.block >> 32);
  const std::uint64_t position = miss.block & 0xFFFF'FFFF;
  const auto file = shared_.with([&](Shared& shared) -> std::shared_ptr<SegmentFile> {
    const auto found = std::ranges::find(shared.files, ordinal, &SegmentFile::ordinal);
    return found == shared.files.end() ? nullptr : *found;
  });
  if (file == nullptr) return {};  // trimmed meanwhile: asking again tells
  auto done =
      miss.bytes == 0 ? load_index(file, position) : load_pages(file, position, miss.bytes);
  if (!done && (removed_ || is_dropped(*file))) return {};  // the same, a moment later
  return done;
}

Result<void> Core::load_pages(const std::shared_ptr<SegmentFile>& file, std::uint64_t position,
                              std::uint64_t size) {
  auto opened = open(*file);
  if (!opened) return std::unexpected(std::move(opened.error()));
  Buffer scratch(static_cast<std::size_t>(std::min(size, kMaxLoad)));
  const auto got = (*opened)->read_at(position, scratch);
  if (!got) return std::unexpected(got.error());
  if (*got < scratch.size()) {
    return storage_error("'" + path(segment_name(file->id())) + "' ends at position " +
                         std::to_string(position + *got) + ", before its records do.");
  }
  shared_.with([&](Shared& shared) {
    if (shared.loaded.size() == kMaxLoaded) shared.loaded.erase(shared.loaded.begin());
    shared.loaded.push_back({file->ordinal, position, position + scratch.size(), nullptr});
  });
  has_loaded = true;
  return {};
}

Result<void> Core::load_index(const std::shared_ptr<SegmentFile>& file, std::uint64_t end) {
  const std::string index_path = path(index_name(file->id()));
  auto index = std::make_shared<Index>();
  auto stored = read_index(store().files, index_path);
  if (!stored && stored.error().os_error == 0) {
    logger("log").warn("An index file is damaged and is made again. file=\"{}\" why=\"{}\"",
                       index_path, stored.error().detail);
  }
  if (stored && stored->base == file->base && stored->size == end) {
    *index = std::move(stored->blocks);
  } else {
    auto opened = open(*file);
    if (!opened) return std::unexpected(std::move(opened.error()));
    auto rebuilt = rebuild_index(**opened, end, file->base, index_interval);
    if (!rebuilt) return std::unexpected(damaged(file->id(), std::move(rebuilt.error())));
    *index = rebuilt->blocks;
    sync_turn_.with([&] {
      if (!removed_) write_index(store().files, index_path, *rebuilt, false);
    });
  }
  shared_.with([&](Shared& shared) {
    if (shared.loaded.size() == kMaxLoaded) shared.loaded.erase(shared.loaded.begin());
    shared.loaded.push_back({file->ordinal, 0, end, std::move(index)});
  });
  has_loaded = true;
  return {};
}

Result<void> Core::write_checkpoint(Sequence upto, Bytes file) {
  return sync_turn_.with([&]() -> Result<void> {
    if (auto ready = usable(); !ready) return ready;
    // Another thread was quicker, and what its covers may have been trimmed away since.
    if (upto < checkpoint_upto_) return {};
    if (auto done = replace_file(store().files, path(kCheckpointFile), file); !done) return done;
    checkpoint_upto_ = upto;
    return {};
  });
}

std::vector<Core::Loaded> Core::take_loaded() {
  has_loaded = false;
  return shared_.with([](Shared& shared) { return std::exchange(shared.loaded, {}); });
}

std::string unique_name(StoreContext& context, const ChannelId& id) {
  // Short, whatever the topic's name: topic id, partition, boot time and a counter.
  return to_string(id.topic_id) + "~" + std::to_string(id.partition.value()) + "~" +
         std::to_string(context.clock.wall().value()) + "~" + std::to_string(context.set_aside++);
}

Result<IndexFile> read_index(FileSystem& files, const std::string& path) {
  const auto bytes = read_file(files, path, kMaxIndexFile);
  return bytes ? decode_index(*bytes) : std::unexpected(bytes.error());
}

void write_index(FileSystem& files, const std::string& path, const IndexFile& index, bool sync) {
  if (auto done = write_file(files, path, encode_index(index), sync); !done) {
    logger("log").warn("Could not write an index file. why=\"{}\"", done.error().detail);
  }
}

}  // namespace kanal::log
