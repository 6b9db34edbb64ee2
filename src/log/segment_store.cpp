// The LogStore over segment files: opens and removes channels, runs loads on helpers, and writes
// and consumes the file of the clean shutdown. Its state is in StoreContext, behind leaf locks: any
// thread.
#include "checkpoint.hpp"
#include "core.hpp"
#include "journal.hpp"
#include "recovery.hpp"
#include "segment_log.hpp"

#include "kanal/base/logging.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

namespace kanal::log {
namespace {

constexpr std::size_t kSyncEach = 32;    // dirty channels; more are synced by one call for all
constexpr std::size_t kUnlinkEach = 16;  // files a call of tidy() removes
constexpr std::uint64_t kSmallestHalf = 4 * kJournalBlock;  // the header, and room for an entry
constexpr std::uint64_t kMaxCleanFile = std::uint64_t{4} << 30;

using SavedChannels = std::unordered_map<std::string, SavedChannel>;

class SegmentStore final : public LogStore {
 public:
  SegmentStore(FileSystem& files, Executor& helpers, const Clock& clock,
               const SegmentStoreOptions& options)
      : context_(std::make_shared<StoreContext>(files, helpers, clock, options.directory,
                                                options.max_open_files)) {
    context_->journal = std::make_shared<Journal>(
        Journal::Base{files, helpers, clock},
        Journal::Options{options.directory,
                         std::max(whole_blocks(options.journal_bytes / 2), kSmallestHalf),
                         options.journal_id});
    context_->cut_damage = options.cut_damage;
  }

  void start(CommitSink& sink) override;
  Result<Opened> open(const ChannelId& id, ChannelHandle handle, LeaderEpoch epoch,
                      const LogOptions& options) override;
  void all_opened() noexcept override { only_new_ = true; }
  Result<void> remove(const ChannelId& id) override;
  void load(Miss miss, std::move_only_function<void(Result<void>)> done) override;
  bool tidy(bool full) override;
  void sync(std::span<ChannelLog* const> logs, const OnSynced& on_synced) override;
  void flush() noexcept override {}
  [[nodiscard]] std::size_t room() const noexcept override { return SIZE_MAX; }
  void prepare_stop() noexcept override;
  Result<void> stop(Deadline deadline) override;

 private:
  [[nodiscard]] std::string path(std::string_view name) const {
    return context_->directory + "/" + std::string(name);
  }
  void make_directory();
  void sync_names(const std::string& directory);
  void read_saved();
  void replay_journal();
  std::optional<SavedChannels> read_saved_file(std::string_view name);
  std::optional<SavedChannel> take_saved(const ChannelId& id);
  Result<Opened> open_channel(const ChannelId& id, ChannelHandle handle, LeaderEpoch epoch,
                              const LogOptions& options);
  Result<void> move_away(const ChannelId& id, std::string_view where, const std::string& as);
  Result<std::string> check_identity(const ChannelId& id);
  Result<void> sync_moved(const ChannelId& id);
  std::shared_ptr<Core> add(const ChannelId& id, ChannelHandle handle, LeaderEpoch epoch);
  void sync_open(const std::vector<std::shared_ptr<Core>>& cores, Deadline deadline);
  void tell_sink(const std::vector<std::shared_ptr<Core>>& cores,
                 const std::vector<std::int64_t>& synced_before);
  std::vector<SavedChannel> take_kept(const std::vector<std::shared_ptr<Core>>& cores);
  void keep_older(std::vector<SavedChannel>& kept);

  const std::shared_ptr<StoreContext> context_;
  CommitSink* sink_ = nullptr;
  std::optional<Error> broken_;  // set by start
  Leaf<SavedChannels> saved_;    // of the last run, until each is opened
  std::atomic<bool> only_new_ = false;           // no channel is opened that existed before
  Leaf<std::unordered_set<std::string>> moved_;  // names moved away and not synced since
  Leaf<std::unordered_set<Uuid>> removed_;       // topics
};

void SegmentStore::start(CommitSink& sink) {
  sink_ = &sink;
  make_directory();
  if (!broken_) read_saved();
  if (!broken_) replay_journal();
  // Names that a killed process had moved away must not come back under a topic made anew.
  if (!broken_) sync_names(context_->directory);
  context_->helpers.post([context = context_] {
    const std::string removed = context->directory + "/" + std::string(kRemovedDirectory);
    if (auto done = context->files.remove_all(removed); !done) {
      logger("log").warn("Could not remove deleted channels. why=\"{}\"", done.error().detail);
    }
  });
}

/// Nothing else syncs its name: without it a power cut would take all channels.
void SegmentStore::make_directory() {
  const std::string& directory = context_->directory;
  if (auto done = context_->files.create_directories(directory); !done) {
    logger("log").error(
        "No channel is opened: the directory of the channels cannot be made. why=\"{}\"",
        done.error().detail);
    broken_ = std::move(done.error());
    return;
  }
  sync_names(directory_of(directory));
}

void SegmentStore::sync_names(const std::string& directory) {
  auto done = context_->files.sync_directory(directory);
  if (done) return;
  logger("log").error("No channel is opened: a directory cannot be synced. why=\"{}\"",
                      done.error().detail);
  broken_ = std::move(done.error());
}

std::optional<SavedChannels> SegmentStore::read_saved_file(std::string_view name) {
  const auto bytes = read_file(context_->files, path(name), kMaxCleanFile);
  if (!bytes) {
    if (bytes.error().os_error != ENOENT) {
      logger("log").warn("Recovery points are not used. why=\"{}\"", bytes.error().detail);
    }
    return std::nullopt;
  }
  auto channels = decode_all(*bytes);
  if (!channels) {
    logger("log").warn("Recovery points are not used. file=\"{}\" why=\"{}\"", path(name),
                       channels.error().detail);
    return std::nullopt;
  }
  return std::move(*channels);
}

/// The mark of the clean shutdown counts once: before anything is written it becomes a mere set of
/// recovery points.
void SegmentStore::read_saved() {
  FileSystem& files = context_->files;
  auto clean = read_saved_file(kCleanFile);
  const auto left = files.exists(path(kCleanFile));
  auto consumed = left ? Result<void>{} : std::unexpected(left.error());
  if (left && *left) {
    consumed = files.rename(path(kCleanFile), path(kPointsFile));
    if (consumed) consumed = files.sync_directory(context_->directory);
  }
  if (!consumed) {
    // Writing with the mark in place would let the start after a crash trust what is no longer
    // true.
    logger("log").error(
        "No channel is opened: the mark of the clean shutdown cannot be taken away. why=\"{}\"",
        consumed.error().detail);
    broken_ = std::move(consumed.error());
    return;
  }
  const bool trusted = *left;
  if (!clean) clean = read_saved_file(kPointsFile);
  if (!clean) return;
  for (auto& [name, channel] : *clean) channel.clean = channel.clean && trusted;
  saved_.with([&](SavedChannels& saved) { saved = std::move(*clean); });
}

void SegmentStore::replay_journal() {
  auto done = context_->journal->replay();
  if (done && context_->cut_damage && !context_->journal->complete()) {
    // The next start writes what the journal has over what would be appended behind a cut.
    logger("log").warn("No log is cut at this start: the shared journal is kept for the next one.");
    context_->cut_damage = false;
  }
  if (done) return;
  logger("log").error("No channel is opened: the shared journal cannot be read. why=\"{}\"",
                      done.error().detail);
  broken_ = std::move(done.error());
}

void SegmentStore::sync(std::span<ChannelLog* const> logs, const OnSynced& on_synced) {
  std::vector<std::shared_ptr<Core>> cores;
  cores.reserve(logs.size());
  for (ChannelLog* log : logs) cores.push_back(static_cast<SegmentLog*>(log)->core());
  context_->journal->commit(cores, on_synced);
}

std::optional<SavedChannel> SegmentStore::take_saved(const ChannelId& id) {
  auto node = saved_.with([&](SavedChannels& saved) { return saved.extract(id.name); });
  if (node.empty()) return std::nullopt;
  SavedChannel& channel = node.mapped();
  if (channel.id.topic_id != id.topic_id || channel.id.partition != id.partition)
    return std::nullopt;
  return std::move(channel);
}

std::shared_ptr<Core> SegmentStore::add(const ChannelId& id, ChannelHandle handle,
                                        LeaderEpoch epoch) {
  auto core = std::make_shared<Core>(context_, id, handle, epoch);
  std::shared_ptr<Core> before;
  context_->channels.with([&](OpenChannels& channels) {
    if (const auto old = channels.by_name.find(id.name); old != channels.by_name.end()) {
      old->second->mark_removed();  // its owner was lost; it must not touch the files again
      before = old->second->weak_from_this().lock();
      channels.by_name.erase(old);
    }
    channels.by_name.emplace(core->id().name, core.get());
    auto& slots = channels.by_handle;
    if (slots.size() <= handle.value()) slots.resize(handle.value() + 1);
    slots[handle.value()] = core;
  });
  if (before != nullptr) before->wait_for_helpers();
  return core;
}

Result<Opened> SegmentStore::open(const ChannelId& id, ChannelHandle handle, LeaderEpoch epoch,
                                  const LogOptions& options) {
  if (broken_) return std::unexpected(*broken_);
  auto opened = open_channel(id, handle, epoch, options);
  if (!opened) {
    logger("log").error("A channel could not be opened. channel={} why=\"{}\"", id.name,
                        opened.error().detail);
  }
  return opened;
}

Result<Opened> SegmentStore::open_channel(const ChannelId& id, ChannelHandle handle,
                                          LeaderEpoch epoch, const LogOptions& options) {
  auto saved = take_saved(id);
  if (auto known = context_->journal->replayed(directory_name(id)); !known)
    return std::unexpected(std::move(known.error()));
  if (auto gone = sync_moved(id); !gone) return std::unexpected(std::move(gone.error()));
  auto core = add(id, handle, epoch);
  Opened opened;
  const bool clean = saved && saved->clean;
  if (!clean) {
    auto stray = check_identity(id);
    if (!stray) return std::unexpected(std::move(stray.error()));
    opened.report.detail = std::move(*stray);
  }
  auto recovered = recover(*core, options, std::move(saved));
  if (!recovered) return std::unexpected(std::move(recovered.error()));
  if (recovered->report.scanned && options.ack_after_sync && !clean) {
    // What a killed process had not synced becomes durable before it is shown.
    core->staged_end = recovered->state.end.value();
    if (auto synced = core->sync(); !synced) return std::unexpected(std::move(synced.error()));
  }
  if (core->needs_sync()) {
    context_->helpers.post([core] { core->run_seals(); });
  }
  std::string detail = std::move(opened.report.detail);
  opened.report = std::move(recovered->report);
  opened.report.detail = std::move(detail) + opened.report.detail;
  opened.checkpoint = std::move(recovered->checkpoint);
  opened.log = std::make_unique<SegmentLog>(std::move(core), options, std::move(recovered->state));
  return opened;
}

/// A topic made again under its name: the old one's directory has to be gone for good first, or a
/// power cut would bring it back under the new one, whose identity may not be synced yet.
Result<void> SegmentStore::sync_moved(const ChannelId& id) {
  if (!moved_.with([&](auto& moved) { return moved.contains(id.name); })) return {};
  if (auto done = context_->files.sync_directory(context_->directory); !done) return done;
  moved_.with([&](auto& moved) { moved.erase(id.name); });
  return {};
}

/// Renames a directory away that belongs to another incarnation; what was done, or nothing.
Result<std::string> SegmentStore::check_identity(const ChannelId& id) {
  const std::string directory = path(directory_name(id));
  const auto exists = context_->files.exists(directory);
  if (!exists) return std::unexpected(exists.error());
  if (!*exists) return std::string();
  const auto channel =
      read_channel_file(context_->files, directory + "/" + std::string(kChannelFile));
  if (!channel) return std::unexpected(channel.error());
  const bool known = channel->condition != ChannelFile::Condition::kUnwritten &&
                     channel->condition != ChannelFile::Condition::kDamaged;
  const bool same =
      channel->state.topic_id == id.topic_id && channel->state.partition == id.partition;
  if (known ? same : !only_new_) return std::string();
  const std::string name = unique_name(*context_, id);
  if (auto done = move_away(id, kStrayDirectory, name); !done)
    return std::unexpected(std::move(done.error()));
  std::string detail = "'" + directory + "' belonged to topic id " +
                       (known ? to_string(channel->state.topic_id) : std::string("?")) +
                       " and was moved to '" +
                       path(kStrayDirectory) + "/" + name + "'. ";
  logger("log").warn("A foreign channel directory was moved away. {}channel={}", detail, id.name);
  return detail;
}

Result<void> SegmentStore::move_away(const ChannelId& id, std::string_view where,
                                     const std::string& as) {
  FileSystem& files = context_->files;
  if (auto done = files.create_directories(path(where)); !done) return done;
  if (auto done = files.rename(path(directory_name(id)), path(where) + "/" + as); !done)
    return done;
  // A removed channel need not be gone for good before its topic is: nothing opens its directory
  // but a topic made again, see sync_moved().
  if (where == kRemovedDirectory) return {};
  if (auto done = files.sync_directory(path(where)); !done) return done;
  return files.sync_directory(context_->directory);
}

Result<void> SegmentStore::remove(const ChannelId& id) {
  const auto core = context_->channels.with([&](OpenChannels& channels) -> std::shared_ptr<Core> {
    const auto found = channels.by_name.find(id.name);
    if (found == channels.by_name.end() || found->second->id().topic_id != id.topic_id)
      return nullptr;
    found->second->mark_removed();
    return found->second->weak_from_this().lock();
  });
  if (core != nullptr) core->wait_for_helpers();
  (void)take_saved(id);
  removed_.with([&](auto& topics) { topics.insert(id.topic_id); });
  const auto exists = context_->files.exists(path(directory_name(id)));
  if (!exists) return std::unexpected(exists.error());
  if (!*exists) return {};
  const std::string name = unique_name(*context_, id);
  if (auto done = move_away(id, kRemovedDirectory, name); !done) return done;
  moved_.with([&](auto& moved) { moved.insert(id.name); });
  context_->helpers.post([context = context_, where = path(kRemovedDirectory) + "/" + name] {
    if (auto done = context->files.remove_all(where); !done) {
      logger("log").warn("Could not remove a deleted channel. why=\"{}\"", done.error().detail);
    }
  });
  return {};
}

void SegmentStore::load(Miss miss, std::move_only_function<void(Result<void>)> done) {
  auto core = context_->channels.with([&](OpenChannels& channels) -> std::shared_ptr<Core> {
    const auto& slots = channels.by_handle;
    return miss.channel.value() < slots.size() ? slots[miss.channel.value()].lock() : nullptr;
  });
  context_->helpers.post([core = std::move(core), miss, done = std::move(done)]() mutable {
    done(core != nullptr ? core->load(miss) : Result<void>{});  // gone: asking again tells
  });
}

bool SegmentStore::tidy(bool full) {
  // What is not due at a stop, the sweep of the next start removes.
  const Time now = context_->clock.now();
  bool more = false;
  std::vector<std::string> due;
  context_->to_remove.with([&](auto& waiting) {
    std::erase_if(waiting, [&](auto& file) {
      if (file.due > now && !full) return false;
      more = due.size() == kUnlinkEach;
      if (!more) due.push_back(std::move(file.path));
      return !more;
    });
  });
  for (const std::string& file : due) {
    if (auto done = context_->files.remove(file); !done) {
      logger("log").warn("Could not remove a trimmed segment. why=\"{}\"", done.error().detail);
    }
  }
  return more;
}

void SegmentStore::prepare_stop() noexcept {
  context_->channels.with([](OpenChannels& channels) { channels.stopping = true; });
}

/// Makes what was written durable, as far as the deadline allows.
void SegmentStore::sync_open(const std::vector<std::shared_ptr<Core>>& cores, Deadline deadline) {
  std::vector<std::pair<Core*, Sequence>> dirty;
  for (const auto& core : cores) {
    if (core->owns_files() && core->needs_sync()) {
      dirty.emplace_back(core.get(), Sequence(core->staged_end.load()));
    }
  }
  if (dirty.size() <= kSyncEach) {
    for (const auto& [core, end] : dirty) {
      if (context_->clock.now() > deadline) return;
      (void)core->sync();
    }
    return;
  }
  if (auto done = context_->files.sync_all(context_->directory); !done) {
    logger("log").error("The last sync failed. why=\"{}\"", done.error().detail);
    for (const auto& [core, end] : dirty) core->fail_for_good(done.error());
    return;
  }
  for (const auto& [core, end] : dirty) core->note_synced(end);
}

/// What the sink has not heard of yet.
void SegmentStore::tell_sink(const std::vector<std::shared_ptr<Core>>& cores,
                             const std::vector<std::int64_t>& synced_before) {
  if (sink_ == nullptr) return;
  for (std::size_t i = 0; i < cores.size(); ++i) {
    Core& core = *cores[i];
    if (!core.ack_after_sync || core.removed() || synced_before[i] >= core.staged_end) continue;
    if (core.synced_end >= core.staged_end) {
      const Progress progress{core.handle(), core.epoch(), Sequence(core.synced_end.load())};
      sink_->committed({&progress, 1});
    } else {
      const auto why = core.usable();
      const Loss loss{
          core.handle(), core.epoch(),
          why ? Error{ErrorCode::KAFKA_STORAGE_ERROR, "There was no time to sync."} : why.error()};
      sink_->lost({&loss, 1});
    }
  }
}

/// What was checkpointed since prepare_stop and is synced; a channel that took records after it is
/// no longer clean. Closes all logs.
std::vector<SavedChannel> SegmentStore::take_kept(const std::vector<std::shared_ptr<Core>>& cores) {
  std::unordered_set<const Core*> unsynced;
  for (const auto& core : cores) {
    core->close();
    if (core->needs_sync()) unsynced.insert(core.get());
  }
  return context_->channels.with([&](OpenChannels& channels) {
    std::vector<SavedChannel> kept;
    kept.reserve(channels.kept.size());
    for (auto& [name, channel] : channels.kept) {
      if (const auto found = channels.by_name.find(name); found != channels.by_name.end()) {
        const Core& core = *found->second;
        const std::int64_t upto = channel.checkpoint.upto.value();
        if (core.removed() || core.id().topic_id != channel.id.topic_id ||
            core.synced_end < upto) {
          continue;
        }
        // Of a log that failed it tells what has to be there, no more.
        channel.clean = channel.clean && core.owns_files() && core.staged_end == upto &&
                        !unsynced.contains(&core);
      }
      kept.push_back(std::move(channel));
    }
    channels.kept.clear();
    return kept;
  });
}

/// Or a clean stop would forget what has to be there, and the next start would not miss it. Where a
/// channel was not opened, or has nothing newer that is synced, what the last run left counts, as
/// after a kill.
void SegmentStore::keep_older(std::vector<SavedChannel>& kept) {
  saved_.with([&](SavedChannels& untouched) {
    for (auto& [name, channel] : untouched) kept.push_back(std::move(channel));
    untouched.clear();
  });
  std::unordered_set<std::string> newer;
  for (const SavedChannel& channel : kept) newer.insert(channel.id.name);
  auto older = read_saved_file(kPointsFile);
  if (!older) return;
  removed_.with([&](const auto& topics) {
    for (auto& [name, channel] : *older) {
      if (newer.contains(name) || topics.contains(channel.id.topic_id)) continue;
      channel.clean = false;
      kept.push_back(std::move(channel));
    }
  });
}

Result<void> SegmentStore::stop(Deadline deadline) {
  if (broken_) return std::unexpected(*broken_);
  context_->tidy_until = context_->clock.now() + std::chrono::seconds(1);
  std::vector<std::shared_ptr<Core>> cores;
  context_->channels.with([&](OpenChannels& channels) {
    for (const auto& slot : channels.by_handle) {
      if (auto core = slot.lock()) cores.push_back(std::move(core));
    }
  });
  std::vector<std::int64_t> synced_before;
  for (const auto& core : cores) synced_before.push_back(core->synced_end);
  sync_open(cores, deadline);
  tell_sink(cores, synced_before);
  context_->journal->close();
  std::vector<SavedChannel> kept = take_kept(cores);
  keep_older(kept);
  const Buffer file = encode_all(kept);
  if (auto done = replace_file(context_->files, path(kCleanFile), file); !done) return done;
  return context_->files.remove(path(kPointsFile));
}

}  // namespace

std::unique_ptr<LogStore> make_segment_store(FileSystem& files, Executor& helpers,
                                             const Clock& clock,
                                             const SegmentStoreOptions& options) {
  return std::make_unique<SegmentStore>(files, helpers, clock, options);
}

}  // namespace kanal::log
