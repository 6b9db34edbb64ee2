// Reading by sequence: find the batch, find where whole batches end, hand out file slices of warm
// pages.
#include "segment_log.hpp"

#include "header_walk.hpp"

#include <algorithm>

namespace kanal::log {
namespace {

constexpr std::uint64_t kSlice = 1 << 20;
constexpr std::uint64_t kLoad = 2 << 20;     // read ahead for one Miss
constexpr std::uint64_t kHotTail = 4 << 20;  // this much of a segment's end …
constexpr std::uint64_t kHotWrites =
    256 << 20;  // … counts as warm until the store took as much as this

std::unexpected<std::variant<Miss, Error>> failed(Error error) {
  return std::unexpected(std::variant<Miss, Error>(std::move(error)));
}

}  // namespace

std::uint32_t length_of(const Slice& slice) noexcept {
  if (const auto* file = std::get_if<FileSlice>(&slice.where)) return file->length;
  return static_cast<std::uint32_t>(std::get<MemorySlice>(slice.where).bytes.size());
}

Maybe<Sequence> SegmentLog::read(const ReadRequest& request, std::vector<Slice>& out) const {
  if (core_->has_loaded.load(std::memory_order_relaxed)) take_loaded();
  ReadRequest left = request;
  left.below = std::min(left.below, end_);
  // A reader at the end comes back for what is appended there.
  if (left.from == end_ && !segments_.empty()) {
    remember(segments_.back(), {segments_.back().size, end_});
  }
  const std::size_t slices = out.size();
  for (std::size_t i = segment_of(left.from); i < segments_.size() && left.from < left.below; ++i) {
    const Segment& segment = segments_[i];
    const std::size_t before = out.size();
    const auto reached = read_segment(segment, left, out);
    if (!reached) {
      // What was found in earlier segments is an answer; the next request meets the rest.
      if (before == slices) return std::unexpected(reached.error());
      break;
    }
    std::uint64_t bytes = 0;
    for (std::size_t at = before; at < out.size(); ++at) bytes += length_of(out[at]);
    left.from = std::max(left.from, reached->base);
    // Over the gap that compaction left at its end.
    if (reached->position == segment.size) {
      left.from = std::max(left.from, std::min(segment.end, left.below));
    }
    left.max_bytes -= static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, left.max_bytes));
    if (out.size() > slices) left.at_least_one_batch = false;
    if (reached->position < segment.size || left.max_bytes == 0) break;
  }
  if (left.from == request.from && left.from < left.below &&
      (request.at_least_one_batch || out.size() > slices)) {
    // Never an empty answer where there are records: a reader would ask for ever.
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(slices), out.end());
    return failed({ErrorCode::KAFKA_STORAGE_ERROR,
                   "'" + core_->directory() + "' has no sound batch with offset " +
                       std::to_string(to_offset(left.from).value()) + "."});
  }
  return left.from;
}

Maybe<SegmentLog::Place> SegmentLog::read_segment(const Segment& segment,
                                                  const ReadRequest& request,
                                                  std::vector<Slice>& out) const {
  auto file = open_for_read(segment);
  if (!file) return std::unexpected(file.error());
  const auto from = locate(segment, **file, request.from);
  if (!from) return from;
  const auto end = read_end(segment, **file, *from, request);
  if (!end) return end;
  for (std::uint64_t at = from->position; at < end->position; at += kSlice) {
    const std::uint64_t length = std::min(kSlice, end->position - at);
    out.push_back({FileSlice{file->get(), at, static_cast<std::uint32_t>(length)}, *file});
  }
  if (end->position > from->position) remember(segment, *end);
  return end;
}

/// Where the answer ends: at a batch boundary below request.below, within max_bytes and what is
/// warm.
Maybe<SegmentLog::Place> SegmentLog::read_end(const Segment& segment, const File& file, Place from,
                                              const ReadRequest& request) const {
  Place last{segment.size, segment.end};
  if (request.below < segment.end) {
    const auto below = locate(segment, file, request.below);
    if (!below) return below;
    last = *below;
  }
  if (last.position <= from.position) return from;
  const std::uint64_t wanted = std::min(last.position, from.position + request.max_bytes);
  const std::uint64_t warm = warm_end(segment, file, from.position, wanted);
  if (warm == from.position && wanted > warm) {
    return std::unexpected(miss_pages(segment, warm, std::max(wanted - warm, kSlice)));
  }
  if (warm == last.position) return last;
  const auto end = boundary_before(segment, file, from, warm);
  if (!end || end->position > from.position) return end;
  return first_batch(segment, file, from, request.at_least_one_batch ? last.position : wanted);
}

/// The first batch alone, if it ends at or before `limit`: all of it has to be warm.
Maybe<SegmentLog::Place> SegmentLog::first_batch(const Segment& segment, const File& file,
                                                 Place from, std::uint64_t limit) const {
  HeaderWalk walk(file, segment.size);
  if (!is_warm(segment, file, from.position, walk.reach(from.position))) {
    return std::unexpected(miss_pages(segment, from.position, kSlice));
  }
  const auto header = walk.at(from.position);
  if (!header) return damaged(segment, header.error());
  const std::uint64_t end = from.position + header->size();
  if (end > limit) return from;
  const std::uint64_t warm = warm_end(segment, file, from.position, end);
  if (warm < end) return std::unexpected(miss_pages(segment, warm, end - warm));
  return Place{end, to_sequence(header->next_offset())};
}

std::uint64_t SegmentLog::warm_end(const Segment& segment, const File& file, std::uint64_t begin,
                                   std::uint64_t end) const {
  std::uint64_t at = begin;
  while (at < end && is_warm(segment, file, at, std::min(kSlice, end - at))) at += kSlice;
  return std::min(at, end);
}

/// The batch that holds `sequence`, or the first behind it where it lies in a gap; the end of the
/// segment for its end.
Maybe<SegmentLog::Place> SegmentLog::locate(const Segment& segment, const File& file,
                                            Sequence sequence) const {
  if (sequence >= segment.end) return Place{segment.size, segment.end};
  if (const Place* place = hinted(segment, sequence)) return *place;
  const auto relative = static_cast<std::uint32_t>(sequence - segment.base());
  const Block* block = segment.index != nullptr ? block_of(*segment.index, relative) : nullptr;
  if (block == nullptr) {
    if (relative == 0) return Place{0, segment.base()};
    return std::unexpected(miss_index(segment));
  }
  Place place{block->position, segment.base() + block->first};
  HeaderWalk walk(file, segment.size);
  while (place.position < segment.size && place.base < sequence) {
    if (!walk.holds(place.position) &&
        !is_warm(segment, file, place.position, walk.reach(place.position))) {
      return std::unexpected(miss_pages(segment, place.position, kSlice));
    }
    const auto header = walk.at(place.position);
    if (!header) return damaged(segment, header.error());
    const Sequence next = to_sequence(header->next_offset());
    if (next <= place.base) break;  // not what the index says; read() tells
    if (next > sequence) break;
    place = {place.position + header->size(), next};
  }
  return place;
}

/// The last batch boundary at or before `limit`, not before `from`; all of that is warm.
Maybe<SegmentLog::Place> SegmentLog::boundary_before(const Segment& segment, const File& file,
                                                     Place from, std::uint64_t limit) const {
  Place place = from;
  const Block* block = segment.index != nullptr ? block_at(*segment.index, limit) : nullptr;
  if (block == nullptr && segment.indexed_from > from.position + kSlice) {
    return std::unexpected(miss_index(segment));
  }
  if (block != nullptr && block->position > from.position) {
    place = {block->position, segment.base() + block->first};
  }
  HeaderWalk walk(file, segment.size, limit);
  while (place.position + records::kHeaderSize <= std::min(limit, segment.size)) {
    const auto header = walk.at(place.position);
    if (!header) return damaged(segment, header.error());
    if (place.position + header->size() > limit) break;
    place = {place.position + header->size(), to_sequence(header->next_offset())};
  }
  return place;
}

Maybe<std::shared_ptr<File>> SegmentLog::open_for_read(const Segment& segment) const {
  auto file = open_segment(segment);
  if (!file) return failed(std::move(file.error()));
  return std::move(*file);
}

bool SegmentLog::is_warm(const Segment& segment, const File& file, std::uint64_t position,
                         std::uint64_t size) const {
  if (segment.written_at != 0 && position >= segment.written_from &&
      position + kHotTail >= segment.size &&
      core_->store().written.load(std::memory_order_relaxed) - segment.written_at <= kHotWrites) {
    return true;
  }
  if (reads_ != nullptr) {
    for (const WarmRange& range : reads_->warm) {
      if (range.ordinal == segment.ordinal() && position >= range.begin &&
          position + size <= range.end) {
        return true;
      }
    }
  }
  return file.cached(position, size);
}

std::variant<Miss, Error> SegmentLog::miss_pages(const Segment& segment, std::uint64_t position,
                                                 std::uint64_t size) const {
  const std::uint64_t block = std::uint64_t{segment.ordinal()} << 32 | position;
  return Miss{core_->handle(), block,
              static_cast<std::uint32_t>(std::min({size, kLoad, segment.size - position}))};
}

std::variant<Miss, Error> SegmentLog::miss_index(const Segment& segment) const {
  return Miss{core_->handle(), std::uint64_t{segment.ordinal()} << 32 | segment.indexed_from, 0};
}

std::size_t SegmentLog::segment_of(Sequence sequence) const {
  // The last segment that begins at or before; most readers are in the last one.
  if (!segments_.empty() && segments_.back().base() <= sequence) return segments_.size() - 1;
  const auto after = std::ranges::upper_bound(
      segments_, sequence, {}, [](const Segment& segment) { return segment.base(); });
  return after == segments_.begin() ? 0 : static_cast<std::size_t>(after - segments_.begin()) - 1;
}

void SegmentLog::take_loaded() const {
  for (const Core::Loaded& loaded : core_->take_loaded()) {
    if (loaded.index != nullptr) {
      install_index(loaded);
    } else {
      ReadState& state = reads();
      state.warm[state.next_warm++ % state.warm.size()] = {loaded.ordinal, loaded.begin,
                                                           loaded.end};
    }
  }
}

void SegmentLog::install_index(const Core::Loaded& loaded) const {
  const auto segment = std::ranges::find(segments_, loaded.ordinal, &Segment::ordinal);
  if (segment == segments_.end() || segment->indexed_from != loaded.end) return;
  if (segment->index == nullptr || segment->index->empty()) {
    segment->index = loaded.index;
  } else {
    segment->index->insert(segment->index->begin(), loaded.index->begin(), loaded.index->end());
  }
  segment->indexed_from = 0;
  if (&*segment != &segments_.back()) keep_index(loaded.ordinal);
}

/// Sealed segments keep their index in memory while they are among the last few that were used.
void SegmentLog::keep_index(std::uint32_t ordinal) const {
  ReadState& state = reads();
  std::uint32_t& slot = state.indexes[state.next_index++ % state.indexes.size()];
  const std::uint32_t old = std::exchange(slot, ordinal + 1);
  if (old == 0) return;
  const auto segment = std::ranges::find(segments_, old - 1, &Segment::ordinal);
  if (segment == segments_.end() || &*segment == &segments_.back()) return;
  segment->index = nullptr;
  segment->indexed_from = segment->size;
}

SegmentLog::ReadState& SegmentLog::reads() const {
  if (reads_ == nullptr) reads_ = std::make_unique<ReadState>();
  return *reads_;
}

void SegmentLog::remember(const Segment& segment, Place place) const {
  if (hinted(segment, place.base) != nullptr) return;
  ReadState& state = reads();
  state.hints[state.next_hint++ % state.hints.size()] = {segment.ordinal(), place};
}

const SegmentLog::Place* SegmentLog::hinted(const Segment& segment, Sequence sequence) const {
  if (reads_ == nullptr) return nullptr;
  const auto in = [&](const auto& hints) -> const Place* {
    for (const Hint& hint : hints) {
      if (hint.ordinal == segment.ordinal() && hint.place.base == sequence) return &hint.place;
    }
    return nullptr;
  };
  const Place* place = in(reads_->hints);
  return place != nullptr ? place : in(reads_->appends);
}

}  // namespace kanal::log
