// What recovery takes out of a log: torn tails, what a power cut left behind them, and with
// log.recovery=truncate everything behind damage.
#include "recovery_steps.hpp"

#include "kanal/base/logging.hpp"

namespace kanal::log {

Result<void> Recovery::cut(Segment& segment, File& file, std::uint64_t size,
                           const std::string& why) {
  const std::uint64_t bytes = size - segment.size;
  const auto zeros = all_zero(file, segment.size, size);
  if (!zeros) return std::unexpected(zeros.error());
  if (auto done = file.truncate(segment.size); !done) return done;
  if (auto done = file.sync(); !done) return done;
  (void)files_.remove(core_.path(index_name(segment.base())));  // it may cover what was cut
  result_.report.cut_bytes += bytes;
  report("Cut " + std::to_string(bytes) + (*zeros ? " zero" : " torn") + " bytes off the end of " +
         name_of(segment.base()) + " at position " + std::to_string(segment.size) + ": " + why +
         ".");
  return {};
}

/// Before the log loses anything: they may hold it, and no later start would know of that.
Result<void> Recovery::keep_unlisted() {
  if (unlisted_.empty()) return {};
  for (const SegmentId& id : std::exchange(unlisted_, {})) {
    const std::string path = core_.path(segment_name(id));
    const auto aside = name_aside(files_, path);
    if (!aside) return std::unexpected(aside.error());
    if (auto done = files_.rename(path, *aside); !done) return done;
  }
  return files_.sync_directory(core_.directory());
}

/// Segments behind the place where a power cut left the log: kept under another name, not part of
/// it any more.
Result<void> Recovery::set_aside(const std::vector<Sequence>& bases, std::size_t from) {
  for (std::size_t i = from; i < bases.size() && !cutting_; ++i) {
    if (record_.find(bases[i]) == nullptr) continue;
    return damaged(bases[from - 1], result_.state.segments.back().size,
                   "it ends too soon, and what lay behind it was compacted");
  }
  if (auto done = keep_unlisted(); !done) return done;
  for (std::size_t i = bases.size(); i-- > from;) {  // the last first: the log never has a hole
    const std::string name = segment_name(id_of(bases[i]));
    if (auto file = files_.open(core_.path(name), OpenMode::kRead)) {
      std::uint64_t& bytes = cutting_ ? result_.report.set_aside_bytes : result_.report.cut_bytes;
      if (const auto size = (*file)->size()) bytes += *size;
    }
    const auto aside = name_aside(files_, core_.path(name));
    if (!aside) return std::unexpected(aside.error());
    if (auto done = files_.rename(core_.path(name), *aside); !done) return done;
    (void)files_.remove(core_.path(index_name(id_of(bases[i]))));
    if (cutting_) {
      report_loss("Set aside " + name_of(bases[i]) + " as '" + *aside + "'");
    } else {
      report("Set aside " + name_of(bases[i]) + " as .cut: what lay before it was lost unsynced.");
    }
  }
  return files_.sync_directory(core_.directory());
}

/// Files at the front of the log are gone: it starts behind them.
Result<void> Recovery::go_on_from(Sequence start, std::string why) {
  LogState& state = result_.state;
  state.start = state.end = start;
  report_loss(std::move(why));
  if (auto done = keep_unlisted(); !done) return done;
  return rewrite_channel("The log starts at offset " + std::to_string(to_offset(start).value()) +
                         " now.");
}

/// Once more from the first byte, vouched for by nothing: the log ends before the first damage.
Result<void> Recovery::cut_damage(const std::vector<Sequence>& bases) {
  LogState& state = result_.state;
  report_loss(damage_);
  if (auto done = keep_unlisted(); !done) return done;
  for (const Segment& segment : state.segments) core_.drop_file(segment.file);
  state.segments.clear();
  state.end = state.start;
  state.last_epoch = LeaderEpoch(-1);
  layout_.segments.clear();
  beyond_ = std::exchange(result_.checkpoint, std::nullopt);
  cutting_ = true;
  if (auto done = recover_segments(bases); !done) return done;
  if (auto done = void_checkpoints_above(state.end); !done) return done;
  result_.checkpoint = std::move(beyond_);
  return end_compacted_log();
}

/// Of a segment that compaction wrote the sound batches before the damage stay. One whose batches
/// are sound and yet not those that compaction wrote goes as a whole.
Result<bool> Recovery::cut_compacted(CompactedSegment found, std::uint64_t size,
                                     std::optional<Sequence> next) {
  LogState& state = result_.state;
  Segment& segment = state.segments.back();
  auto file = core_.open(*segment.file);
  if (!file) return std::unexpected(std::move(file.error()));
  const auto scanned = scan(**file, std::min(size, found.size), {0, found.id.base, kNoLeaderEpoch},
                            {found.id.base, interval_, nullptr, found.end});
  if (!scanned) return std::unexpected(scanned.error());
  const bool whole = scanned->valid_end == found.size;
  if (whole && (scanned->batches != found.batches || scanned->crc != found.crc))
    return end_before_compacted("it is not what compaction wrote");
  if (scanned->valid_end == 0) return end_before_compacted(scanned->stopped);
  if (!whole) {
    found = {found.id,     scanned->next,  scanned->valid_end,       scanned->batches,
             scanned->crc, scanned->epoch, scanned->first_timestamp, scanned->max_timestamp,
             found.newest};
    segment.size = segment.indexed_from = found.size;
    segment.end = found.end;
    segment.max_timestamp = found.max_timestamp;
    std::ranges::replace_if(
        record_.segments, [&](const CompactedSegment& each) { return each.id == found.id; }, found);
    record_changed_ = true;
  }
  state.last_epoch = std::max(state.last_epoch, found.last_epoch);
  state.end = found.end;
  if (auto done =
          cut_off(segment, size, whole ? "bytes follow what compaction wrote" : scanned->stopped);
      !done) {
    return std::unexpected(std::move(done.error()));
  }
  return whole && next && *next == found.end;
}

Result<bool> Recovery::end_before_compacted(std::string why) {
  LogState& state = result_.state;
  const Segment& segment = state.segments.back();
  report_loss(name_of(segment.base()) + " is left out: " + why);
  state.end = segment.base();
  core_.drop_file(segment.file);
  core_.store().cache.drop(segment.file->slot);
  state.segments.pop_back();
  ends_before_ = true;
  return false;
}

/// After a cut: what it took is not listed any more, and appends never go to a segment that
/// compaction wrote.
Result<void> Recovery::end_compacted_log() {
  LogState& state = result_.state;
  const auto behind = [&](const CompactedSegment& segment) { return segment.id.base >= state.end; };
  record_changed_ |= std::erase_if(record_.segments, behind) > 0;
  if (record_changed_ || record_.first_dirty > state.end) {
    record_.first_dirty = std::min(record_.first_dirty, state.end);
    if (auto done = write_compaction(files_, core_.directory(), record_).done; !done) return done;
  }
  if (state.segments.empty() || state.segments.back().id().generation == 0) return {};
  const SegmentId active{state.end, 0};
  (void)files_.remove(core_.path(index_name(active)));
  auto made = files_.open(core_.path(segment_name(active)), OpenMode::kCreate);
  if (!made) return std::unexpected(std::move(made.error()));
  if (auto done = (*made)->truncate(0); !done) return done;
  add_segment(state.end).index = std::make_shared<Index>();
  return files_.sync_directory(core_.directory());
}

/// While cutting: before the log loses what a checkpoint vouches for.
Result<void> Recovery::void_checkpoints_above(Sequence end) {
  if (!beyond_ || beyond_->upto <= end) return {};
  beyond_.reset();
  return void_checkpoints(files_, core_.directory(), core_.epoch());
}

Result<void> Recovery::cut_off(Segment& segment, std::uint64_t size, const std::string& why) {
  if (auto done = void_checkpoints_above(segment.end); !done) return done;
  if (size == segment.size) return {};
  core_.store().cache.drop(segment.file->slot);
  auto aside = cut_aside(files_, core_.path(segment_name(segment.id())), segment.size);
  if (!aside) return std::unexpected(std::move(aside.error()));
  (void)files_.remove(core_.path(index_name(segment.id())));  // it may cover what was cut
  result_.report.set_aside_bytes += size - segment.size;
  report_loss("Cut " + name_of(segment.base()) + " at position " + std::to_string(segment.size) +
              ", " + why + "; its last " + std::to_string(size - segment.size) + " bytes are in '" +
              *aside + "'");
  return {};
}

/// What log.recovery=truncate took out of the log.
void Recovery::report_loss(std::string sentence) {
  if (!sentence.ends_with('.')) sentence += '.';
  logger("log").error("{} log.recovery=truncate channel={}", sentence, core_.id().name);
  result_.report.damage_cut = true;
  std::string& detail = result_.report.detail;
  if (!detail.empty()) detail += ' ';
  detail += sentence;
}

}  // namespace kanal::log
