// What compaction needs of the owner of a log: the segments as they are, and taking over new ones.
#include "segment_log.hpp"

#include "segment_rewrite.hpp"

#include <algorithm>
#include <utility>

namespace kanal::log {

std::unique_ptr<Rewrite> SegmentLog::rewrite(Sequence below) {
  std::vector<SegmentFacts> facts;
  segments(facts);
  std::vector<SegmentRewrite::Source> sources;
  for (const Segment& segment : segments_) {
    if (segment.end > below || &segment == &segments_.back()) break;
    sources.push_back({segment.file, segment.size});
  }
  facts.resize(sources.size());
  return std::make_unique<SegmentRewrite>(core_, std::move(sources), std::move(facts));
}

Result<Sequence> SegmentLog::first_dirty() {
  if (const std::int64_t known = core_->first_dirty.load(); known != 0) return Sequence(known);
  return core_->in_turn([&]() -> Result<Sequence> {
    if (auto ready = core_->usable(); !ready) return std::unexpected(std::move(ready.error()));
    const auto record = core_->compaction_record();
    if (!record) return std::unexpected(record.error());
    return (*record)->first_dirty;
  });
}

void SegmentLog::adopt() {
  auto swaps = core_->swaps.with([](auto& waiting) { return std::exchange(waiting, {}); });
  for (Core::Swap& swap : swaps) adopt(swap);
}

void SegmentLog::adopt(Core::Swap& swap) {
  std::vector<std::shared_ptr<SegmentFile>> gone;
  // Some may have been trimmed since the swap was decided.
  for (auto at = segments_.begin(); at != segments_.end();) {
    if (std::ranges::find(swap.gone, at->file) == swap.gone.end()) {
      ++at;
    } else {
      gone.push_back(drop_segment(*at));
      at = segments_.erase(at);
    }
  }
  for (Core::Swap::Fresh& fresh : swap.fresh) {
    Segment segment;
    segment.file = std::move(fresh.file);
    segment.end = fresh.facts.end;
    segment.size = segment.allocated = segment.indexed_from = fresh.facts.size;
    segment.first_timestamp = fresh.facts.first_timestamp;
    segment.max_timestamp = fresh.facts.max_timestamp;
    segment.created = fresh.facts.newest;
    bytes_ += segment.size;
    if (segment.end <= start_) {
      gone.push_back(drop_segment(segment));
      continue;
    }
    const auto behind = std::ranges::find_if(
        segments_, [&](const Segment& other) { return other.base() > segment.base(); });
    segments_.insert(behind, std::move(segment));
  }
  core_->store().helpers.post([core = core_, files = std::move(gone), delay = delete_delay()] {
    core->remove_files(files, delay);
  });
}

}  // namespace kanal::log
