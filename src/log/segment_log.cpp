#include "segment_log.hpp"

#include "blob.hpp"
#include "scan.hpp"

#include "kanal/base/check.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>

namespace kanal::log {
namespace {

constexpr std::uint64_t kFirstStep = 64 << 10;
constexpr std::uint64_t kLargestStep = 32 << 20;
constexpr std::int64_t kLargestSegment = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kLongestDelay = 10'000LL * 24 * 3600 * 1000;  // ms, fits the clock
constexpr std::size_t kIndexWorthKeeping =
    64;  // blocks; fewer are made again as fast as they are read

bool is_full(const Error& error) {
  return error.os_error == ENOSPC || error.os_error == EDQUOT;
}

/// Spreads the rolls of channels made together; any fixed mixing of the numbers will do.
std::int64_t jitter(const LogOptions& options, ChannelHandle handle, Sequence base) {
  if (options.segment_jitter_ms <= 0) return 0;
  std::uint64_t mixed = handle.value() * 0x9E37'79B9'7F4A'7C15ULL +
                        static_cast<std::uint64_t>(base.value()) * 0xC2B2'AE3D'27D4'EB4FULL;
  mixed ^= mixed >> 31;
  return static_cast<std::int64_t>(
      mixed % static_cast<std::uint64_t>(std::min(options.segment_jitter_ms, options.segment_ms)));
}

}  // namespace

SegmentLog::SegmentLog(std::shared_ptr<Core> core, const LogOptions& options, LogState state)
    : core_(std::move(core)),
      options_(options),
      segments_(std::move(state.segments)),
      start_(state.start),
      end_(state.end),
      generation_(state.generation),
      last_epoch_(state.last_epoch),
      created_(state.created) {
  for (const Segment& segment : segments_) {
    bytes_ += segment.size;
    segment.file->written = segment.size;
    if (!segment.file->dirty) segment.file->durable = segment.size;
  }
  core_->staged_end = end_.value();
  core_->synced_end = end_.value();
  configure(options);
}

SegmentLog::~SegmentLog() {
  if (segments_.empty() || !core_->owns_files()) return;
  const Segment& tail = segments_.back();
  if (tail.index != nullptr && tail.indexed_from == 0 && tail.index->size() >= kIndexWorthKeeping) {
    const IndexFile index{tail.base(),        tail.end, tail.size,  tail.first_timestamp,
                          tail.max_timestamp, false,    *tail.index};
    write_index(core_->store().files, core_->path(index_name(tail.base())), index, false);
  }
  // Freeing blocks can take a millisecond: not for a few pages, and not when thousands close.
  StoreContext& store = core_->store();
  if (tail.allocated <= tail.size + kFirstStep || store.clock.now() > store.tidy_until.load())
    return;
  if (auto file = core_->open(*tail.file)) (void)(*file)->truncate(tail.size);
}

Result<Appended> SegmentLog::append(Extent extent, Timestamp max_timestamp,
                                    std::span<const Bytes> batches) {
  CHECK(extent.first == end_ && extent.last >= extent.first, "appends continue the log");
  if (auto ready = core_->usable(); !ready) return std::unexpected(std::move(ready.error()));
  std::uint64_t bytes = 0;
  for (const Bytes& batch : batches) bytes += batch.size();
  if (bytes > static_cast<std::uint64_t>(kLargestSegment)) {
    return storage_error("One append is larger than a segment can be.");
  }
  if (!segments_.empty() && !segments_.back().checked) {
    if (auto tail = open_segment(segments_.back()); !tail) {
      return std::unexpected(std::move(tail.error()));
    }
  }
  if (segments_.empty() || must_roll(extent, max_timestamp, bytes)) {
    if (auto done = roll(extent.first); !done) return std::unexpected(std::move(done.error()));
  }
  auto file = open_segment(segments_.back());
  if (!file) return std::unexpected(std::move(file.error()));
  Segment& tail = segments_.back();
  reserve(**file, tail, bytes);
  if (auto done = (*file)->write_at(tail.size, batches); !done) {
    return std::unexpected(undo_write(**file, tail, std::move(done.error())));
  }
  core_->mark_dirty(tail.file);  // after the write: a sync running meanwhile clears earlier marks
  note_append(tail, extent, batches);
  return Appended{extent.last, committed()};
}

Result<void> SegmentLog::make_directory() {
  StoreContext& store = core_->store();
  if (auto done = store.files.create_directories(core_->directory()); !done) return done;
  const ChannelState state{core_->id().topic_id, core_->id().partition, start_, generation_ + 1};
  if (auto done = create_channel_file(store.files, core_->path(kChannelFile), state); !done) {
    return done;
  }
  ++generation_;
  created_ = true;
  core_->channel_dirty = true;
  core_->names_dirty = true;
  return {};
}

bool SegmentLog::must_roll(Extent extent, Timestamp max_timestamp, std::uint64_t bytes) const {
  const Segment& tail = segments_.back();
  if (tail.size == 0) return false;
  const auto limit = static_cast<std::uint64_t>(
      std::clamp<std::int64_t>(options_.segment_bytes, 1, kLargestSegment));
  if (tail.size + bytes > limit) return true;
  if (extent.last - tail.base() > std::numeric_limits<std::int32_t>::max()) return true;
  // Kafka's rule: by record time where the first batch has one, else by the wall clock. A negative
  // time is as old as 0.
  const std::int64_t waited = tail.first_timestamp.value() >= 0
                                  ? std::max(max_timestamp, Timestamp(0)) - tail.first_timestamp
                                  : core_->store().clock.wall() - tail.created;
  return waited > options_.segment_ms - jitter(options_, core_->handle(), tail.base());
}

Result<void> SegmentLog::roll(Sequence base) {
  if (!created_) {
    if (auto done = make_directory(); !done) return done;
  }
  auto file = core_->make_file(base);
  auto opened = core_->open(*file, OpenMode::kCreate);
  auto size = opened ? (*opened)->size() : std::unexpected(opened.error());
  if (size && *size > 0) {  // somebody put it there since the log was opened
    size = storage_error("'" + core_->path(segment_name(file->id())) +
                         "' is in the way: it holds records that the log does not know. Restart, "
                         "so that they are read, or move the file away.");
  }
  if (!size) {
    core_->drop_file(file);
    return std::unexpected(std::move(size.error()));
  }
  core_->names_dirty = true;
  if (!segments_.empty() && segments_.back().size > 0) {
    Segment& full = segments_.back();
    keep_index(full.ordinal());
    IndexFile index{full.base(),        full.end, full.size, full.first_timestamp,
                    full.max_timestamp, true,     {}};
    core_->add_seal({full.file, std::move(index), full.index});
    core_->store().helpers.post([core = core_] { core->run_seals(); });
  }
  Segment& tail = segments_.emplace_back();
  tail.file = std::move(file);
  tail.end = base;
  tail.created = core_->store().clock.wall();
  tail.index = std::make_shared<Index>();
  return {};
}

Result<std::shared_ptr<File>> SegmentLog::open_segment(const Segment& segment) const {
  auto file = core_->open(*segment.file);
  if (file && segment.checked) return file;
  // After a clean stop nobody looks at the files until they are used. One that is gone or has
  // another size took records with it: that is told, and nothing is appended behind them.
  if (!file) {
    if (file.error().os_error != ENOENT || core_->removed()) return file;
    return std::unexpected(core_->fail_for_good(std::move(file.error())));
  }
  const auto size = (*file)->size();
  if (!size) return std::unexpected(size.error());
  if (*size != segment.size) {
    return std::unexpected(core_->fail_for_good(
        {ErrorCode::KAFKA_STORAGE_ERROR,
         "'" + core_->path(segment_name(segment.id())) + "' has " + std::to_string(*size) +
             " bytes where the last shutdown left " + std::to_string(segment.size) + "."}));
  }
  segment.checked = true;
  return file;
}

void SegmentLog::reserve(File& file, Segment& tail, std::uint64_t bytes) {
  const std::uint64_t wanted = tail.size + bytes;
  if (wanted <= tail.allocated) return;
  const std::uint64_t from = std::max(tail.allocated, tail.size);
  const std::uint64_t limit = std::max(
      wanted, static_cast<std::uint64_t>(std::max<std::int64_t>(options_.segment_bytes, 0)));
  const std::uint64_t step = std::clamp(from, kFirstStep, kLargestStep);
  const std::uint64_t upto = std::min(std::max(from + step, wanted), limit);
  // Only speed is lost without it; a full disk shows itself at the write.
  (void)file.allocate(from, upto - from);
  tail.allocated = upto;
}

Error SegmentLog::undo_write(File& file, const Segment& tail, Error why) {
  why.code = ErrorCode::KAFKA_STORAGE_ERROR;
  if (!is_full(why)) return core_->fail_for_good(std::move(why));
  if (auto cut = file.truncate(tail.size); !cut)
    return core_->fail_for_good(std::move(cut.error()));
  segments_.back().allocated = tail.size;
  return why;
}

void SegmentLog::note_append(Segment& tail, Extent extent, std::span<const Bytes> batches) {
  const auto interval =
      static_cast<std::uint64_t>(std::max<std::int64_t>(options_.index_interval_bytes, 1));
  if (tail.index == nullptr) tail.index = std::make_shared<Index>();
  std::uint64_t position = tail.size;
  for (const Bytes& piece : batches) {
    for (std::size_t at = 0; at < piece.size();) {
      const records::BatchHeader header = records::read_header(piece.data() + at);
      const auto first = static_cast<std::uint32_t>(to_sequence(header.base_offset) - tail.base());
      note(*tail.index, {first, position, header.max_timestamp}, interval);
      if (position == 0) tail.first_timestamp = header.max_timestamp;
      tail.max_timestamp = std::max(tail.max_timestamp, header.max_timestamp);
      last_epoch_ = header.leader_epoch;
      position += header.size();
      at += header.size();
    }
  }
  const std::uint64_t bytes = position - tail.size;
  if (tail.written_at == 0) tail.written_from = tail.size;
  tail.written_at = core_->store().written.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (options_.ack_after_sync) {  // readers end at one of the last few appends
    ReadState& state = reads();
    state.appends[state.next_append++ % state.appends.size()] = {tail.ordinal(),
                                                                 {tail.size, extent.first}};
  }
  tail.file->written = position;
  tail.size = position;
  tail.end = end_ = extent.last + 1;
  if (tail.max_timestamp.value() < 0) tail.written = core_->store().clock.wall();
  bytes_ += bytes;
  core_->appended.fetch_add(bytes, std::memory_order_relaxed);
  core_->staged_end = end_.value();
}

bool SegmentLog::committed() const noexcept {
  return !options_.ack_after_sync && core_->synced_end.load() >= hold_until_.value();
}

Result<Appended> SegmentLog::trim(Sequence new_start) {
  if (auto ready = core_->usable(); !ready) return std::unexpected(std::move(ready.error()));
  new_start = std::clamp(new_start, start_, end_);
  if (new_start == start_) return Appended{end_ - 1, true};
  const ChannelState state{core_->id().topic_id, core_->id().partition, new_start, generation_ + 1};
  if (auto done = update_channel_file(core_->store().files, core_->path(kChannelFile), state);
      !done) {
    // The older slot still says where the log starts; an unfinished write to the other one is told
    // by its checksum.
    return is_full(done.error()) || is_out_of_handles(done.error())
               ? std::unexpected(std::move(done.error()))
               : std::unexpected(core_->fail_for_good(std::move(done.error())));
  }
  ++generation_;
  start_ = new_start;
  core_->channel_dirty = true;
  core_->store().channels.with([&](OpenChannels& channels) {
    // What stop() is to write has the old start: the next one has to look at the files.
    if (const auto kept = channels.kept.find(core_->id().name); kept != channels.kept.end())
      kept->second.clean = false;
  });
  std::vector<std::shared_ptr<SegmentFile>> gone;
  // Not an empty one: its file is the next append's, which must not be removed from under it.
  while (!segments_.empty() && segments_.front().end <= start_ && segments_.front().size > 0) {
    gone.push_back(drop_segment(segments_.front()));
    segments_.erase(segments_.begin());
  }
  if (!gone.empty()) {
    core_->store().helpers.post([core = core_, files = std::move(gone), delay = delete_delay()] {
      core->remove_files(files, delay);
    });
  }
  return Appended{end_ - 1, !options_.ack_after_sync};
}

std::chrono::milliseconds SegmentLog::delete_delay() const {
  return std::chrono::milliseconds(std::min(options_.file_delete_delay_ms, kLongestDelay));
}

std::shared_ptr<SegmentFile> SegmentLog::drop_segment(Segment& segment) {
  bytes_ -= segment.size;
  core_->drop_file(segment.file);
  return std::move(segment.file);
}

void SegmentLog::configure(const LogOptions& options) {
  if (options_.ack_after_sync && !options.ack_after_sync) hold_until_ = end_;
  if (!options_.ack_after_sync && options.ack_after_sync) committed_floor_ = end_;
  options_ = options;
  core_->ack_after_sync = options.ack_after_sync;
  core_->index_interval = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(options.index_interval_bytes, 1, 1 << 30));
}

Bounds SegmentLog::bounds() const noexcept {
  const Sequence synced(core_->synced_end.load());
  return {start_, committed() ? end_ : std::max(synced, committed_floor_), end_, bytes_};
}

void SegmentLog::segments(std::vector<SegmentFacts>& out) const {
  for (const Segment& segment : segments_) {
    const Timestamp newest = segment.max_timestamp.value() >= 0
                                 ? segment.max_timestamp
                                 : std::max(segment.created, segment.written);
    out.push_back({segment.base(), segment.end, segment.size, newest, segment.first_timestamp});
  }
}

std::uint64_t SegmentLog::bytes_since_checkpoint() const noexcept {
  return core_->appended.load(std::memory_order_relaxed) - core_->checkpointed.load();
}

std::vector<std::byte> SegmentLog::layout() const {
  Layout layout{start_, end_, generation_, created_, last_epoch_, core_->appended.load(), {}};
  layout.segments.reserve(segments_.size());
  for (const Segment& segment : segments_) {
    layout.segments.push_back({segment.base(), segment.end, segment.file->generation, segment.size,
                               segment.first_timestamp, segment.max_timestamp});
  }
  return encode_layout(layout);
}

Result<void> SegmentLog::checkpoint(const Checkpoint& checkpoint) {
  const auto layout = decode_layout(checkpoint.layout);
  CHECK(layout && layout->end == checkpoint.upto, "a checkpoint carries the layout of its moment");
  StoreContext& store = core_->store();
  const bool kept = store.channels.with([&](OpenChannels& channels) {
    if (!channels.stopping) return false;
    const bool clean = layout->generation == generation_;  // else trimmed meanwhile
    channels.kept.insert_or_assign(core_->id().name, SavedChannel{core_->id(), clean, checkpoint});
    return true;
  });
  if (kept) return core_->usable();  // stop() syncs all channels together
  if (auto synced = core_->sync(); !synced) return std::unexpected(std::move(synced.error()));
  if (layout->created) {
    const Buffer file = encode_checkpoint({core_->id(), false, checkpoint});
    if (auto done = core_->write_checkpoint(checkpoint.upto, file); !done) return done;
  }
  core_->checkpointed = layout->appended;
  return {};
}

Result<Sequence> SegmentLog::sync() {
  return core_->sync();
}

Result<void> SegmentLog::replay(Sequence from, const BatchVisitor& visit) const {
  for (const Segment& segment : segments_) {
    if (segment.end <= from) continue;
    auto file = open_segment(segment);
    if (!file) return std::unexpected(std::move(file.error()));
    const auto bad = [&](std::uint64_t position) {
      return storage_error("'" + core_->path(segment_name(segment.id())) +
                           "' has no sound batch at position " + std::to_string(position) + ".");
    };
    BatchReader reader(**file, segment.size);
    const Block* block =
        segment.index != nullptr && from > segment.base()
            ? block_of(*segment.index, static_cast<std::uint32_t>(from - segment.base()))
            : nullptr;
    for (std::uint64_t at = block != nullptr ? block->position : 0; at < segment.size;) {
      const auto head = reader.bytes(at, records::kHeaderSize);
      if (!head) return std::unexpected(head.error());
      const auto header = records::parse_header(*head);
      if (!header || header->size() > segment.size - at) return bad(at);
      if (to_sequence(header->next_offset()) > from) {
        const auto batch = reader.bytes(at, header->size());
        if (!batch) return std::unexpected(batch.error());
        if (auto done = visit(*batch); !done) return done;
      }
      at += header->size();
    }
  }
  return {};
}

}  // namespace kanal::log
