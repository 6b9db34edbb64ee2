// Kafka's rules of compaction: pure functions over facts.
#include "kanal/log/compaction.hpp"

#include <algorithm>
#include <limits>

namespace kanal::log {
namespace {

/// The segments from the one that holds `from` on, without the active one; all where none begins so
/// early.
std::span<const SegmentFacts> inactive_from(std::span<const SegmentFacts> segments, Sequence from) {
  if (from >= segments.back().base) return {};
  const auto inactive = segments.first(segments.size() - 1);
  const auto after = std::ranges::upper_bound(inactive, from, {}, &SegmentFacts::base);
  const auto first = after == inactive.begin() ? after : after - 1;
  return inactive.subspan(static_cast<std::size_t>(first - inactive.begin()));
}

Sequence first_within_lag(std::span<const SegmentFacts> dirty, std::int64_t lag_ms, Timestamp now,
                          Sequence otherwise) {
  if (lag_ms <= 0) return otherwise;
  const auto young = std::ranges::find_if(
      dirty, [&](const SegmentFacts& segment) { return segment.newest > now - lag_ms; });
  return young == dirty.end() ? otherwise : young->base;
}

bool is_overdue(std::span<const SegmentFacts> dirty, std::int64_t lag_ms, Timestamp now) {
  Timestamp oldest{std::numeric_limits<std::int64_t>::max()};
  for (const SegmentFacts& segment : dirty) {
    if (segment.first.value() > 0) oldest = std::min(oldest, segment.first);
  }
  return oldest < now - std::max<std::int64_t>(lag_ms, 0);
}

}  // namespace

Cleanable cleanable(const CompactionFacts& facts, const CompactionRules& rules, Timestamp now) {
  Cleanable result;
  result.first_dirty = result.end = facts.start;
  const std::span<const SegmentFacts> segments(facts.segments);
  if (segments.empty()) return result;
  if (facts.first_dirty >= facts.start && facts.first_dirty <= segments.back().end) {
    result.first_dirty = facts.first_dirty;
  }
  const auto dirty = inactive_from(segments, result.first_dirty);
  const Sequence active = segments.back().base;
  Sequence stop = std::min(facts.stable_end, active);
  stop = std::min(stop, first_within_lag(dirty, rules.min_lag_ms, now, active));
  stop = std::max(stop, result.first_dirty);
  const auto uncleanable = inactive_from(segments, stop);
  result.end = uncleanable.empty() ? active : uncleanable.front().base;
  result.overdue = is_overdue(dirty, rules.max_lag_ms, now);
  for (const SegmentFacts& segment : segments) {
    if (segment.base < result.first_dirty) result.clean_bytes += segment.bytes;
    // A segment that is only dirty in part counts as both, as in Kafka.
    if (segment.end > result.first_dirty && segment.base < result.end) {
      result.dirty_bytes += segment.bytes;
    }
  }
  return result;
}

std::vector<std::size_t> group_segments(std::span<const SegmentFacts> segments,
                                        std::uint64_t segment_bytes) {
  std::vector<std::size_t> groups;
  std::uint64_t bytes = 0;
  Sequence base{1};
  for (const SegmentFacts& segment : segments) {
    const bool fits = !groups.empty() && bytes + segment.bytes <= segment_bytes &&
                      segment.end - 1 - base <= std::numeric_limits<std::int32_t>::max();
    if (fits) {
      ++groups.back();
      bytes += segment.bytes;
    } else {
      groups.push_back(1);
      bytes = segment.bytes;
      base = segment.base;
    }
  }
  return groups;
}

CleanedTransactions::CleanedTransactions(std::vector<AbortedTransaction> aborted)
    : waiting_(std::move(aborted)) {
  std::ranges::sort(waiting_, std::ranges::greater{}, &AbortedTransaction::first);
}

void CleanedTransactions::begin_until(const records::BatchHeader& header) {
  const Offset upto = header.last_offset();
  for (; !waiting_.empty() && waiting_.back().first <= upto; waiting_.pop_back()) {
    // Over before what passes by began: the next one of its producer may be another's.
    if (waiting_.back().last < header.base_offset) continue;
    aborted_.insert_or_assign(waiting_.back().producer, Aborted{waiting_.back()});
  }
}

bool CleanedTransactions::on_batch(const records::BatchHeader& header) {
  begin_until(header);
  if (!header.is_transactional()) return false;
  if (const auto found = aborted_.find(header.producer_id); found != aborted_.end()) {
    found->second.seen = true;
    return true;
  }
  committed_[header.producer_id] = true;
  return false;
}

bool CleanedTransactions::on_control(const records::BatchHeader& header,
                                     const std::optional<records::Marker>& marker, bool* listed) {
  begin_until(header);
  if (header.record_count == 0) return true;  // cleaned before
  if (!marker) return false;                  // of another kind: nothing is known of it
  if (marker->type == records::ControlType::kCommit) {
    return committed_.erase(header.producer_id) == 0;
  }
  const auto node = aborted_.extract(header.producer_id);
  if (listed != nullptr) *listed = !node.empty();
  if (node.empty() || !node.mapped().seen) return true;
  kept_.push_back(node.mapped().transaction);
  return false;
}

BatchVerdict judge(const records::BatchHeader& header, const BatchSituation& situation,
                   Timestamp now) {
  BatchVerdict verdict;
  verdict.discard = situation.discardable;
  if (header.is_control()) {
    // Readers below the marker need it as long as a tombstone: its own horizon decides.
    verdict.discard = situation.discardable && !situation.marker_stays &&
                      header.has_delete_horizon() && header.base_timestamp <= now;
    verdict.idle_marker = situation.discardable;
  }
  if ((header.has_producer_id() && situation.last_of_producer) ||
      situation.last_before_high_watermark) {
    verdict.empty = BatchVerdict::Empty::kKeep;
  }
  return verdict;
}

bool is_last_of_producer(const records::BatchHeader& header,
                         const std::unordered_map<ProducerId, LastOfProducer>& producers) {
  const auto found = producers.find(header.producer_id);
  if (found == producers.end()) return false;
  if (found->second.last_offset.value() >= 0) {
    return header.last_offset() == found->second.last_offset;
  }
  return header.is_control() && header.producer_epoch == found->second.epoch;
}

}  // namespace kanal::log
