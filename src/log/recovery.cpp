#include "recovery.hpp"

#include "blob.hpp"
#include "epochs.hpp"
#include "recovery_steps.hpp"

#include "kanal/base/logging.hpp"

#include <cerrno>

namespace kanal::log {

Result<Recovered> Recovery::run() {
  const auto exists = files_.exists(core_.directory());
  if (!exists) return std::unexpected(exists.error());
  if (!*exists) {
    use_saved("The recovery points");
    if (!layout_.created) return std::move(result_);
    if (!core_.store().cut_damage) {
      return damaged("The directory '" + core_.directory() + "' is missing.");
    }
    report_loss("The directory '" + core_.directory() + "' is missing: all its records are lost");
    result_.state.start = result_.state.end = layout_.end;
    result_.state.generation = layout_.generation;
    result_.state.last_epoch = layout_.last_epoch;
    return std::move(result_);
  }
  result_.report.scanned = true;
  core_.names_dirty = true;
  checkpoints_from_ = checkpoints_count_from(files_, core_.directory());
  choose_checkpoint();
  auto bases = list_segments();
  if (!bases) return std::unexpected(std::move(bases.error()));
  if (auto done = read_channel(*bases); !done) return std::unexpected(std::move(done.error()));
  if (auto done = remove_trimmed(*bases); !done) return std::unexpected(std::move(done.error()));
  result_.state.created = true;
  result_.state.end = result_.state.start;
  result_.state.last_epoch = layout_.last_epoch;
  auto recovered = recover_segments(*bases);
  if (!recovered && !damage_.empty() && core_.store().cut_damage) recovered = cut_damage(*bases);
  if (!recovered) return std::unexpected(std::move(recovered.error()));
  if (auto done = drop_trimmed(); !done) return std::unexpected(std::move(done.error()));
  if (auto done = remove_unlisted(); !done) return std::unexpected(std::move(done.error()));
  core_.in_turn([&] { core_.set_compaction_record(std::move(record_)); });
  return std::move(result_);
}

/// The newer of what the last shutdown and the last running checkpoint left.
void Recovery::choose_checkpoint() {
  if (saved_ && is_void(*saved_)) saved_.reset();
  const std::string path = core_.path(kCheckpointFile);
  auto own = read_checkpoint(files_, path);
  if (!own) {
    if (own.error().os_error != ENOENT)
      report("The checkpoint '" + path + "' is not used: " + own.error().detail + ".");
  } else if (own->id.topic_id == core_.id().topic_id && own->id.partition == core_.id().partition &&
             !is_void(*own) && (!saved_ || own->checkpoint.upto >= saved_->checkpoint.upto)) {
    saved_ = std::move(*own);
  }
  use_saved("'" + path + "'");
}

/// It was made before the log was cut, or vouches for what turned out to be damaged.
bool Recovery::is_void(const SavedChannel& saved) const {
  if (checkpoints_from_.value() < 0) return false;
  const auto layout = decode_layout(saved.checkpoint.layout);
  return !layout || layout->last_epoch < checkpoints_from_;
}

void Recovery::use_saved(const std::string& name) {
  if (!saved_) return;
  auto layout = decode_layout(saved_->checkpoint.layout);
  if (layout && layout->end != saved_->checkpoint.upto) {
    layout = storage_error("its layout and its state are of different moments");
  }
  if (layout) {
    layout_ = std::move(*layout);
    result_.checkpoint = std::move(saved_->checkpoint);
  } else {
    report(name + " cannot be used: " + layout.error().detail + ".");
  }
  saved_.reset();
}

Result<void> Recovery::read_channel(const std::vector<Sequence>& bases) {
  const std::string path = core_.path(kChannelFile);
  auto channel = read_channel_file(files_, path);
  if (!channel) return std::unexpected(std::move(channel.error()));
  LogState& state = result_.state;
  using Condition = ChannelFile::Condition;
  if (channel->condition == Condition::kSound || channel->condition == Condition::kRepaired) {
    state.start = channel->state.start;
    state.generation = channel->state.generation;
    if (result_.checkpoint && layout_.created && state.start < layout_.start) {
      // The files below it count as removed.
      state.start = layout_.start;
      state.generation = std::max(state.generation, layout_.generation);
      return rewrite_channel("'" + path +
                             "' has an older start than the checkpoint, the sync of the last one "
                             "failed; it was written again.");
    }
    if (channel->condition == Condition::kSound) return {};
    return rewrite_channel("'" + path + "' had a damaged half and was written again.");
  }
  if (result_.checkpoint && layout_.created) {
    state.start = layout_.start;
    state.generation = layout_.generation;
    return rewrite_channel("'" + path +
                           "' was missing or damaged and was made again from the checkpoint.");
  }
  if (channel->condition == Condition::kDamaged) {
    return storage_error("'" + path +
                         "' is damaged: its checksums do not match. If the directory is this "
                         "topic's, remove the file: the log then starts at its first segment.");
  }
  // Never completely written: the process or the machine stopped while the directory was being
  // made. Or somebody removed it: then what was trimmed inside the first segment comes back, which
  // the report tells.
  state.start = bases.empty() ? Sequence(1) : bases.front();
  return rewrite_channel("'" + path + "' was incomplete and was made again.");
}

Result<void> Recovery::rewrite_channel(std::string why) {
  LogState& state = result_.state;
  ++state.generation;
  const ChannelState channel{core_.id().topic_id, core_.id().partition, state.start,
                             state.generation};
  core_.channel_dirty = true;
  core_.names_dirty = true;
  if (auto done = create_channel_file(files_, core_.path(kChannelFile), channel); !done)
    return done;
  report(std::move(why));
  return core_.sync_channel_file();
}

Result<std::vector<Sequence>> Recovery::list_segments() {
  auto entries = files_.list(core_.directory());
  if (!entries) return std::unexpected(std::move(entries.error()));
  std::vector<SegmentId> found;
  for (const DirectoryEntry& entry : *entries) {
    if (entry.is_directory) continue;
    if (const auto id = parse_segment(entry.name)) found.push_back(*id);
    if (entry.name.ends_with(".tmp")) (void)files_.remove(core_.path(entry.name));
  }
  const bool any_compacted =
      std::ranges::any_of(found, [](const SegmentId& id) { return id.generation != 0; });
  if (auto done = read_compaction_record(any_compacted); !done) {
    return std::unexpected(std::move(done.error()));
  }
  std::vector<Sequence> bases;
  for (const SegmentId& id : found) {
    if (record_.counts(id)) {
      bases.push_back(id.base);
      live_.push_back(id);
    } else {
      unlisted_.push_back(id);
    }
  }
  std::ranges::sort(bases);
  return bases;
}

Result<void> Recovery::read_compaction_record(bool any_compacted) {
  const std::string path = core_.path(kCompactionFile);
  auto stored = read_compaction(files_, path);
  if (!stored) return std::unexpected(std::move(stored.error()));
  using Condition = StoredCompaction::Condition;
  if (stored->condition == Condition::kDamaged) {
    if (any_compacted) {
      return storage_error("'" + path + "' is damaged: " + stored->why +
                           ". It says which segment files count.");
    }
    report("'" + path + "' is not used: " + stored->why + ".");
    return {};
  }
  record_ = std::move(stored->record);
  if (stored->condition != Condition::kRepaired) return {};
  report("One of the two copies in '" + path + "' was damaged; it was written again.");
  return write_compaction(files_, core_.directory(), record_).done;
}

/// Once the log is sound without them.
Result<void> Recovery::remove_unlisted() {
  for (const SegmentId& id : std::exchange(unlisted_, {})) {
    if (auto done = remove_segment(id); !done) return done;
  }
  return {};
}

/// Files that a trim before the stop had dropped but not removed yet.
Result<void> Recovery::remove_trimmed(std::vector<Sequence>& bases) {
  std::size_t gone = 0;
  while (gone < bases.size()) {
    const bool below = gone + 1 < bases.size() && bases[gone + 1] <= result_.state.start;
    const bool dropped =
        layout_.created && known(bases[gone]) == nullptr && bases[gone] < layout_.end &&
        record_.find(bases[gone]) == nullptr;
    if (!below && !dropped) break;
    if (gone == 0) {
      if (auto done = secure_start(); !done) return done;
    }
    if (auto done = remove_segment(id_of(bases[gone])); !done) return done;
    ++gone;
  }
  bases.erase(bases.begin(), bases.begin() + static_cast<std::ptrdiff_t>(gone));
  return {};
}

/// Before a file below the start goes: the start may only lie in the page cache of a process that
/// was killed, and a power cut must not bring the old one back. It is written anew: where a sync of
/// that process failed, another one would find nothing to write.
Result<void> Recovery::secure_start() {
  LogState& state = result_.state;
  const ChannelState channel{core_.id().topic_id, core_.id().partition, state.start,
                             ++state.generation};
  core_.channel_dirty = true;
  if (auto done = update_channel_file(files_, core_.path(kChannelFile), channel); !done) {
    return done;
  }
  return core_.sync_channel_file();
}

Result<void> Recovery::remove_segment(SegmentId id) {
  if (auto done = files_.remove(core_.path(segment_name(id))); !done) return done;
  return files_.remove(core_.path(index_name(id)));
}

/// What compaction has listed was synced before.
Result<void> Recovery::check_listed() {
  for (const CompactedSegment& segment : record_.segments) {
    if (segment.end <= result_.state.start) continue;
    if (std::ranges::find(live_, segment.id) != live_.end()) continue;
    return damaged("'" + core_.path(segment_name(segment.id)) + "' is missing.");
  }
  return {};
}

Result<void> Recovery::recover_segments(const std::vector<Sequence>& bases) {
  LogState& state = result_.state;
  if (auto done = check_ends(bases); !done) return done;
  if (auto done = cutting_ ? Result<void>{} : check_listed(); !done) return done;
  if (bases.empty()) return {};
  state.end = bases.front();
  for (std::size_t i = 0; i < bases.size(); ++i) {
    const bool last = i + 1 == bases.size();
    const auto more = recover_segment(bases[i], last ? std::nullopt : std::optional(bases[i + 1]));
    if (!more) return std::unexpected(more.error());
    if (*more || (last && !ends_before_)) continue;
    if (auto done = void_checkpoints_above(state.end); !done) return done;
    if (auto done = set_aside(bases, ends_before_ ? i : i + 1); !done) return done;
    break;
  }
  if (result_.checkpoint && state.end < result_.checkpoint->upto &&
      state.start < result_.checkpoint->upto) {
    return damaged(state.segments.back().base(), state.segments.back().size,
                   "records before the last checkpoint are missing");
  }
  return {};
}

/// The first file must reach down to the log start; files that a checkpoint names must be there.
Result<void> Recovery::check_ends(const std::vector<Sequence>& bases) {
  LogState& state = result_.state;
  const Sequence upto = result_.checkpoint ? result_.checkpoint->upto : Sequence(1);
  if (bases.empty()) {
    if (upto <= state.start) return {};
    const std::string why = "All segment files of '" + core_.directory() + "' are missing";
    return core_.store().cut_damage ? go_on_from(upto, why) : damaged(why + ".");
  }
  if (bases.front() <= state.start) return {};
  const std::string why = "The log in '" + core_.directory() + "' starts at offset " +
                          std::to_string(to_offset(state.start).value()) +
                          " but its first file is " + name_of(bases.front());
  return core_.store().cut_damage ? go_on_from(bases.front(), why) : damaged(why + ".");
}

Result<bool> Recovery::recover_segment(Sequence base, std::optional<Sequence> next) {
  LogState& state = result_.state;
  if (const CompactedSegment* compacted = record_.find(base)) {
    return recover_compacted(*compacted, next);
  }
  Segment& segment = add_segment(base);
  auto file = core_.open(*segment.file);
  if (!file) return std::unexpected(std::move(file.error()));
  const auto size = (*file)->size();
  if (!size) return std::unexpected(size.error());
  ScanFrom from{0, base, state.last_epoch};
  if (const SegmentLayout* layout = known(base)) {
    if (*size < layout->size)
      return damaged(base, *size, "it is shorter than at the last checkpoint");
    segment.size = segment.indexed_from = layout->size;
    segment.end = layout->end;
    segment.first_timestamp = layout->first_timestamp;
    segment.max_timestamp = layout->max_timestamp;
    if (next && layout->end == *next && *size == layout->size) {  // complete below the checkpoint
      state.end = segment.end;
      return true;
    }
    from = {layout->size, layout->end, state.last_epoch};
  }
  segment.index = std::make_shared<Index>();
  const auto scanned = scan(**file, *size, from, {base, interval_, segment.index.get()});
  if (!scanned) return std::unexpected(scanned.error());
  result_.report.scanned_bytes += *size - from.position;
  if (from.position == 0) segment.first_timestamp = scanned->first_timestamp;
  segment.max_timestamp = std::max(segment.max_timestamp, scanned->max_timestamp);
  segment.size = scanned->valid_end;
  segment.end = state.end = scanned->next;
  state.last_epoch = scanned->epoch;
  if (scanned->batches > 0) core_.mark_dirty(segment.file);  // perhaps never synced
  return judge_tail(segment, **file, *size, *scanned, next);
}

/// All of it was synced before it was listed, so that anything else than that is damage.
Result<bool> Recovery::recover_compacted(const CompactedSegment& found,
                                         std::optional<Sequence> next) {
  LogState& state = result_.state;
  const Sequence base = found.id.base;
  Segment& segment = add_segment(base);
  segment.size = segment.indexed_from = found.size;
  segment.end = found.end;
  segment.first_timestamp = found.first_timestamp;
  segment.max_timestamp = found.max_timestamp;
  segment.created = found.newest;
  auto file = core_.open(*segment.file);
  if (!file) return std::unexpected(std::move(file.error()));
  const auto size = (*file)->size();
  if (!size) return std::unexpected(size.error());
  if (cutting_) return cut_compacted(found, *size, next);
  if (*size != found.size) {
    return damaged(base, std::min(*size, found.size), "compaction left it with another size");
  }
  const bool vouched = result_.checkpoint && found.end <= result_.checkpoint->upto;
  if (!vouched) {
    if (auto done = scan_compacted(found, **file); !done) {
      return std::unexpected(std::move(done.error()));
    }
  }
  state.last_epoch = std::max(state.last_epoch, found.last_epoch);
  state.end = found.end;
  // The active segment is never compacted, and was there before this one.
  if (next ? *next != found.end : found.end > state.start) {
    return damaged(base, found.size, "the segment behind it is missing");
  }
  return true;
}

Result<void> Recovery::scan_compacted(const CompactedSegment& found, const File& file) {
  const auto scanned = scan(file, found.size, {0, found.id.base, kNoLeaderEpoch},
                            {found.id.base, interval_, nullptr, found.end});
  if (!scanned) return std::unexpected(scanned.error());
  result_.report.scanned_bytes += found.size;
  if (scanned->valid_end < found.size) {
    return damaged(found.id.base, scanned->valid_end, scanned->stopped);
  }
  if (scanned->batches == found.batches && scanned->crc == found.crc) return {};
  return damaged(found.id.base, 0, "it is not what compaction wrote");
}

Result<bool> Recovery::judge_tail(Segment& segment, File& file, std::uint64_t size,
                                  const Scanned& scanned, std::optional<Sequence> next) {
  if (!next) drop_stale_index(segment);
  const bool whole = scanned.valid_end == size;
  if (whole && (!next || scanned.next == *next)) {
    if (next) keep_index(segment);
    return true;
  }
  const std::string why = whole ? "batches are missing at its end" : scanned.stopped;
  if (cutting_) {
    if (auto done = cut_off(segment, size, why); !done)
      return std::unexpected(std::move(done.error()));
    return next && scanned.next == *next;
  }
  const auto behind = find_batch_behind(file, size, scanned);
  if (!behind) return std::unexpected(behind.error());
  if (*behind) {
    return damaged(segment.base(), scanned.valid_end,
                   why + ", and a sound batch follows at position " + std::to_string(**behind));
  }
  if (result_.checkpoint && result_.checkpoint->upto > scanned.next) {
    return damaged(segment.base(), scanned.valid_end, why + ", below the last checkpoint");
  }
  // In an earlier segment a missing tail is what a power cut right after a roll leaves. Nothing
  // behind it was promised: whatever makes later segments durable seals this one first.
  const bool joins = next && scanned.next == *next;
  if (next && !joins && was_sealed(segment)) {
    return damaged(segment.base(), scanned.valid_end, why + ", and later segments follow");
  }
  if (!whole) {
    if (auto done = cut(segment, file, size, why); !done)
      return std::unexpected(std::move(done.error()));
  }
  return joins;
}

/// Whether all of it had been synced after the roll.
bool Recovery::was_sealed(const Segment& segment) {
  const auto index = read_index(files_, core_.path(index_name(segment.base())));
  return index && index->sealed && index->base == segment.base();
}

/// The last segment's index file, where there is one, may cover records that a power cut took.
void Recovery::drop_stale_index(const Segment& segment) {
  const std::string path = core_.path(index_name(segment.base()));
  const auto index = read_index(files_, path);
  if (!index && index.error().os_error != 0) return;
  const SegmentLayout* vouched = known(segment.base());
  if (index && vouched != nullptr && index->size == vouched->size && index->end == vouched->end)
    return;
  (void)files_.remove(path);
}

/// A complete segment without a sound index file, or not known to be synced.
void Recovery::keep_index(const Segment& segment) {
  const auto stored = read_index(files_, core_.path(index_name(segment.base())));
  if (stored && stored->sealed && stored->base == segment.base() && stored->end == segment.end &&
      stored->size == segment.size) {
    return;
  }
  core_.add_seal({segment.file,
                  {segment.base(),
                   segment.end,
                   segment.size,
                   segment.first_timestamp,
                   segment.max_timestamp,
                   true,
                   {}},
                  segment.indexed_from == 0 ? segment.index : nullptr});
}

/// Segments wholly below the start.
Result<void> Recovery::drop_trimmed() {
  LogState& state = result_.state;
  // Records below the start may be lost with an unsynced tail; their numbers are not given out
  // again.
  state.end = std::max(state.end, state.start);
  std::size_t gone = 0;
  while (gone < state.segments.size() && state.segments[gone].end <= state.start) {
    if (gone == 0) {
      if (auto done = secure_start(); !done) return done;
    }
    Segment& segment = state.segments[gone++];
    core_.drop_file(segment.file);
    if (auto done = remove_segment(segment.id()); !done) return done;
  }
  state.segments.erase(state.segments.begin(),
                       state.segments.begin() + static_cast<std::ptrdiff_t>(gone));
  return {};
}

Segment& Recovery::add_segment(Sequence base) {
  Segment& segment = result_.state.segments.emplace_back();
  segment.file = core_.make_file(id_of(base));
  segment.end = base;
  segment.created = core_.store().clock.wall();
  return segment;
}

const SegmentLayout* Recovery::known(Sequence base) const {
  const auto found = std::ranges::find(layout_.segments, base, &SegmentLayout::base);
  if (found == layout_.segments.end() || found->generation != id_of(base).generation) {
    return nullptr;
  }
  return &*found;
}

std::unexpected<Error> Recovery::damaged(Sequence base, std::uint64_t position,
                                         std::string_view why) {
  return damaged(name_of(base) + " is damaged at position " + std::to_string(position) + ": " +
                std::string(why) + ".");
}

std::unexpected<Error> Recovery::damaged(std::string what) {
  damage_ = std::move(what);
  return storage_error(damage_ + what_to_do(core_.store()));
}

void Recovery::report(std::string sentence) {
  logger("log").warn("{} channel={}", sentence, core_.id().name);
  std::string& detail = result_.report.detail;
  if (!detail.empty()) detail += ' ';
  detail += sentence;
}

namespace {

/// The clean checkpoint says it all.
std::optional<Recovered> trust_clean(Core& core, SavedChannel& saved) {
  auto layout = decode_layout(saved.checkpoint.layout);
  if (!layout || layout->end != saved.checkpoint.upto) return std::nullopt;
  Recovered result;
  LogState& state = result.state;
  state.start = layout->start;
  state.end = layout->end;
  state.last_epoch = layout->last_epoch;
  state.generation = layout->generation;
  state.created = layout->created;
  state.segments.reserve(layout->segments.size());
  const Timestamp now = core.store().clock.wall();
  for (const SegmentLayout& known : layout->segments) {
    Segment& segment = state.segments.emplace_back();
    segment.file = core.make_file(SegmentId{known.base, known.generation});
    segment.end = known.end;
    segment.size = segment.indexed_from = known.size;
    segment.first_timestamp = known.first_timestamp;
    segment.max_timestamp = known.max_timestamp;
    segment.created = now;
    segment.checked = false;
  }
  result.checkpoint = std::move(saved.checkpoint);
  return result;
}

/// A layout may name an epoch that no batch behind it shows.
Result<Recovered> checked(const Core& core, Recovered recovered) {
  auto done = check_not_later(core.id(), recovered.state.last_epoch, core.epoch());
  if (!done) return std::unexpected(std::move(done.error()));
  return recovered;
}

}  // namespace

Result<Recovered> recover(Core& core, const LogOptions& options,
                          std::optional<SavedChannel> saved) {
  if (saved && saved->clean) {
    if (auto trusted = trust_clean(core, *saved)) return checked(core, std::move(*trusted));
  }
  auto recovered = Recovery(core, options, std::move(saved)).run();
  return recovered ? checked(core, std::move(*recovered)) : std::move(recovered);
}

}  // namespace kanal::log
