#include "kanal/broker/partition.hpp"

#include <algorithm>
#include <optional>

namespace kanal::broker {
namespace {

constexpr std::uint64_t kCheckpointBytes = 64 << 20;

template <class T>
log::Maybe<T> failed(Error error) {
  return std::unexpected(std::variant<log::Miss, Error>(std::move(error)));
}

}  // namespace

Partition::Partition(ChannelId id, ChannelHandle handle, std::unique_ptr<log::Partition> log)
    : id_(std::move(id)), handle_(handle) {
  state_.with([&](State& state) { state.log = std::move(log); });
}

Partition::Partition(ChannelId id, ChannelHandle handle, Error broken)
    : id_(std::move(id)), handle_(handle) {
  state_.with([&](State& state) { state.broken = std::move(broken); });
}

Error Partition::unusable(const State& state) {
  if (state.deleted) return {ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, "The topic was deleted."};
  return state.broken;
}

Result<log::AppendResult> Partition::append(records::CheckedBatch& batch, Timestamp now,
                                            AppendNews& news, const log::AppendTerms& terms) {
  Woken woken;
  auto result = state_.with([&](State& state) -> Result<log::AppendResult> {
    if (state.log == nullptr || state.deleted) return std::unexpected(unusable(state));
    auto appended = state.log->append(batch.bytes, batch.header, now, terms);
    if (!appended || appended->duplicate) return appended;
    const Written written{batch.bytes.size(), batch.header.last_offset_delta + std::int64_t{1}};
    note(state, *appended, written, news);
    tell(state, *appended, written.bytes, woken);
    return appended;
  });
  FetchWait::wake(woken);
  return result;
}

Result<log::AppendResult> Partition::append_marker(const log::EndMarker& marker, Timestamp now,
                                                   AppendNews& news) {
  Woken woken;
  auto result = state_.with([&](State& state) -> Result<log::AppendResult> {
    if (state.log == nullptr || state.deleted) return std::unexpected(unusable(state));
    const std::uint64_t before = state.log->bytes();
    auto appended = state.log->append_marker(marker, now);
    if (!appended) return appended;
    const Written written{state.log->bytes() - before, 1};
    note(state, *appended, written, news);
    tell(state, *appended, written.bytes, woken);
    return appended;
  });
  FetchWait::wake(woken);
  return result;
}

/// What is asked of the broker behind something new in the log.
void Partition::note(State& state, const log::AppendResult& appended, const Written& written,
                     AppendNews& news) {
  news.bytes = written.bytes;
  news.became_dirty = !std::exchange(state.dirty, true);
  news.checkpoint_due =
      !state.checkpoint_queued && state.log->bytes_since_checkpoint() >= kCheckpointBytes;
  state.checkpoint_queued |= news.checkpoint_due;
  if (appended.committed) note_unsynced(state, written.records, news);
}

void Partition::tell(State& state, const log::AppendResult& appended, std::uint64_t bytes,
                     Woken& woken) {
  if (!appended.committed || state.watches.empty()) return;
  state.watches.on_bytes(bytes, woken);
  if (!state.watches.any_stable()) return;
  state.watches.on_stable({appended.base_offset, bytes, state.log->watermarks().last_stable},
                          woken);
}

void Partition::note_unsynced(State& state, std::int64_t records, AppendNews& news) {
  const std::int64_t before = state.unsynced;
  state.unsynced += records;
  news.became_unsynced = !std::exchange(state.sync_waits, true);
  news.sync_due = before < state.sync_rules.messages && state.unsynced >= state.sync_rules.messages;
  constexpr std::int64_t kDay = 24LL * 3600 * 1000;
  news.sync_within = std::chrono::milliseconds(std::min(state.sync_rules.ms, kDay));
}

void Partition::configure(const log::LogOptions& options, const SyncRules& rules) {
  state_.with([&](State& state) {
    state.sync_rules = rules;
    if (state.log != nullptr && !state.deleted) state.log->configure(options);
  });
}

log::Maybe<ReadOutcome> Partition::read(Offset from, const log::FetchLimits& limits,
                                        std::vector<log::Slice>& out, FetchWait* wait) {
  return state_.with([&](State& state) -> log::Maybe<ReadOutcome> {
    if (state.log == nullptr || state.deleted) return failed<ReadOutcome>(unusable(state));
    auto records = state.log->read(from, limits, out);
    if (!records) return std::unexpected(std::move(records.error()));
    ReadOutcome outcome{*records, state.log->watermarks(), {}};
    if (limits.read_committed && records->bytes > 0)
      state.log->aborted(from, records->next, outcome.aborted);
    if (wait != nullptr) {
      wait->found(records->bytes);
      WatchNode& node = wait->node(shared_from_this());
      if (limits.read_committed) node.stable = outcome.watermarks.last_stable;
      state.watches.add(node);
    }
    return outcome;
  });
}

Result<void> Partition::check_epoch(LeaderEpoch claimed) {
  if (claimed == kNoLeaderEpoch) return {};
  const auto current = with_log([](log::Partition& log) { return log.leader_epoch(); });
  if (!current) return std::unexpected(current.error());
  if (claimed < *current) return fail(ErrorCode::FENCED_LEADER_EPOCH);
  if (claimed > *current) return fail(ErrorCode::UNKNOWN_LEADER_EPOCH);
  return {};
}

Partition::Commit Partition::committed(Sequence last) {
  return state_.with([&](State& state) {
    if (state.log != nullptr && state.log->watermarks().high_watermark > to_offset(last))
      return Commit::kDone;
    if (state.deleted) return Commit::kDeleted;
    return state.log == nullptr || state.lost ? Commit::kLost : Commit::kPending;
  });
}

void Partition::commit(Sequence committed_end) {
  std::vector<std::shared_ptr<FetchWait>> woken;
  state_.with([&](State& state) {
    if (state.log == nullptr || !state.log->commit(committed_end)) return;
    if (!state.watches.empty()) state.watches.on_commit(state.log->watermarks().last_stable, woken);
  });
  FetchWait::wake(woken);
}

void Partition::lost(const Error& why) {
  std::vector<std::shared_ptr<FetchWait>> woken;
  state_.with([&](State& state) {
    state.lost = true;
    if (state.log != nullptr) state.log->lost(why);
    state.watches.wake_all(woken);
  });
  FetchWait::wake(woken);
}

void Partition::watch_commits(FetchWait& wait) {
  state_.with([&](State& state) { state.watches.add(wait.node(shared_from_this())); });
}

void Partition::unwatch(WatchNode& node) {
  state_.with([&](State& state) { state.watches.remove(node); });
}

Result<void> Partition::checkpoint() {
  log::ChannelLog* channel = nullptr;
  std::optional<log::Checkpoint> state;
  state_.with([&](State& held) {
    if (held.log == nullptr || held.deleted) return;  // never opened, or nothing of it is kept
    held.dirty = held.checkpoint_queued = false;
    channel = &held.log->log();
    state = held.log->checkpoint();
  });
  if (!state) return {};
  // Without the lock: this may wait for the disk. The log lives as long as this object.
  if (auto done = channel->checkpoint(*state); !done) return done;
  state_.with([&](State& held) {
    if (held.log != nullptr) held.log->note_checkpoint(state->upto);
  });
  return {};
}

Result<void> Partition::trim(Offset new_start) {
  const auto covered = with_log([&](log::Partition& log) { return log.covered_start(new_start); });
  if (!covered) return std::unexpected(covered.error());
  Result<void> ready;
  if (*covered < new_start) ready = checkpoint();
  std::vector<std::shared_ptr<FetchWait>> woken;
  auto done = state_.with([&](State& state) -> Result<void> {
    if (state.log == nullptr || state.deleted) return std::unexpected(unusable(state));
    const Offset before = state.log->watermarks().log_start;
    // Without room for a checkpoint what can go without one makes some.
    auto trimmed = state.log->trim(ready ? new_start : std::max(*covered, before));
    // A fetch that waits for more bytes below the new start is to be told.
    if (state.log->watermarks().log_start != before) state.watches.wake_all(woken);
    return trimmed;
  });
  FetchWait::wake(woken);
  return ready ? done : ready;
}

Result<Sequence> Partition::sync() {
  auto channel = with_log([](log::Partition& log) { return &log.log(); });
  if (!channel) return std::unexpected(channel.error());
  return (*channel)->sync();
}

Result<void> Partition::sync_background(bool timed) {
  const bool needed = state_.with([&](State& state) {
    if (timed) state.sync_waits = false;
    return std::exchange(state.unsynced, 0) > 0;
  });
  if (!needed) return {};
  const auto done = sync();
  return done ? Result<void>{} : std::unexpected(done.error());
}

bool Partition::sync_again() {
  return state_.with([](State& state) {
    state.unsynced = std::max<std::int64_t>(state.unsynced, 1);
    return !std::exchange(state.sync_waits, true);
  });
}

log::ChannelLog* Partition::channel() {
  const auto channel = with_log([](log::Partition& log) { return &log.log(); });
  return channel ? *channel : nullptr;
}

void Partition::mark_deleted() {
  std::vector<std::shared_ptr<FetchWait>> woken;
  state_.with([&](State& state) {
    state.deleted = true;
    state.watches.wake_all(woken);
  });
  FetchWait::wake(woken);
}

}  // namespace kanal::broker
