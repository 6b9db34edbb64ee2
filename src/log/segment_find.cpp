// Finding by time, exact to the batch: blocks whose max timestamp is too small are skipped, the
// rest is walked by header.
#include "segment_log.hpp"

#include "header_walk.hpp"

#include <algorithm>

namespace kanal::log {
namespace {

constexpr std::uint64_t kLoad = 1 << 20;

}  // namespace

Timestamp SegmentLog::max_timestamp() const noexcept {
  Timestamp largest = kNoTimestamp;
  for (const Segment& segment : segments_) largest = std::max(largest, segment.max_timestamp);
  return largest;
}

Maybe<std::optional<TimePosition>> SegmentLog::find(Timestamp timestamp) const {
  if (core_->has_loaded.load(std::memory_order_relaxed)) take_loaded();
  for (const Segment& segment : segments_) {
    if (segment.max_timestamp < timestamp || segment.end <= start_) continue;
    auto found = find_in(segment, {start_, end_}, timestamp);
    if (!found || *found) return found;
  }
  return std::nullopt;
}

Maybe<std::optional<TimePosition>> SegmentLog::find_max(Sequence below) const {
  if (core_->has_loaded.load(std::memory_order_relaxed)) take_loaded();
  const Span span{start_, std::min(below, end_)};
  const Segment* best = nullptr;
  Timestamp largest = kNoTimestamp;
  for (const Segment& segment : segments_) {
    if (segment.end <= span.from || segment.base() >= span.below) continue;
    if (segment.max_timestamp <= largest) continue;
    const auto max = max_in(segment, span);
    if (!max) return std::unexpected(max.error());
    if (*max > largest) {
      largest = *max;
      best = &segment;
    }
  }
  if (best == nullptr) return std::nullopt;
  return find_in(*best, span, largest);
}

Maybe<Timestamp> SegmentLog::max_in(const Segment& segment, Span span) const {
  if (segment.base() >= span.from && segment.end <= span.below) return segment.max_timestamp;
  if (segment.indexed_from != 0) return std::unexpected(miss_index(segment));
  if (segment.index == nullptr) return kNoTimestamp;
  const Index& index = *segment.index;
  Timestamp largest = kNoTimestamp;
  for (std::size_t i = 0; i < index.size(); ++i) {
    const Sequence first = segment.base() + index[i].first;
    const Sequence next = i + 1 < index.size() ? segment.base() + index[i + 1].first : segment.end;
    if (first >= span.below) break;
    if (next <= span.from || index[i].max_timestamp <= largest) continue;
    if (first >= span.from && next <= span.below) {
      largest = index[i].max_timestamp;
      continue;
    }
    const auto walked = walk_block(segment, i, [&](const records::BatchHeader& header) {
      if (to_sequence(header.base_offset) >= span.below) return false;
      if (to_sequence(header.next_offset()) > span.from) {
        largest = std::max(largest, time_of(header));
      }
      return true;
    });
    if (!walked) return std::unexpected(walked.error());
  }
  return largest;
}

Maybe<std::optional<TimePosition>> SegmentLog::find_in(const Segment& segment, Span span,
                                                       Timestamp at_least) const {
  if (segment.indexed_from != 0) return std::unexpected(miss_index(segment));
  if (segment.index == nullptr) return std::nullopt;
  const Index& index = *segment.index;
  std::optional<TimePosition> found;
  for (std::size_t i = 0; i < index.size() && !found; ++i) {
    if (segment.base() + index[i].first >= span.below) break;
    if (index[i].max_timestamp < at_least) continue;
    if (i + 1 < index.size() && segment.base() + index[i + 1].first <= span.from) continue;
    const auto walked = walk_block(segment, i, [&](const records::BatchHeader& header) {
      const Sequence base = to_sequence(header.base_offset);
      if (base >= span.below) return false;
      if (time_of(header) < at_least || to_sequence(header.next_offset()) <= span.from) {
        return true;
      }
      found = TimePosition{header.max_timestamp, base};
      return false;
    });
    if (!walked) return std::unexpected(walked.error());
  }
  return found;
}

template <class Visit>
Maybe<bool> SegmentLog::walk_block(const Segment& segment, std::size_t block, Visit&& visit) const {
  auto file = open_for_read(segment);
  if (!file) return std::unexpected(file.error());
  const Index& index = *segment.index;
  const std::uint64_t end = block + 1 < index.size() ? index[block + 1].position : segment.size;
  HeaderWalk walk(**file, segment.size);
  for (std::uint64_t at = index[block].position; at < end;) {
    if (!walk.holds(at) && !is_warm(segment, **file, at, walk.reach(at))) {
      return std::unexpected(miss_pages(segment, at, kLoad));
    }
    const auto header = walk.at(at);
    if (!header) return damaged(segment, header.error());
    if (!visit(*header)) return false;
    at += header->size();
  }
  return true;
}

}  // namespace kanal::log
