#include "kanal/log/retention.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <utility>

namespace kanal::log {
namespace {

/// Segments that may go and hold something.
std::size_t removable(std::span<const SegmentFacts> segments, Sequence kept_from) {
  const auto stays = std::ranges::find_if(segments, [&](const SegmentFacts& segment) {
    return segment.end > kept_from || segment.bytes == 0;
  });
  return static_cast<std::size_t>(stays - segments.begin());
}

std::size_t count_by_size(std::span<const SegmentFacts> segments, std::size_t most,
                          std::int64_t limit) {
  if (limit < 0) return 0;
  std::uint64_t total = 0;
  for (const SegmentFacts& segment : segments) total += segment.bytes;
  std::size_t count = 0;
  // A segment goes only if what stays without it is still as much as the limit.
  while (count < most && total >= static_cast<std::uint64_t>(limit) + segments[count].bytes) {
    total -= segments[count++].bytes;
  }
  return count;
}

/// Takes segments one by one until all fit.
class Reducer {
 public:
  explicit Reducer(std::span<const LogFacts> logs) : logs_(logs), counts_(logs.size()) {
    for (std::size_t at = 0; at < logs.size(); ++at) {
      Topic& topic = topics_[logs[at].topic];
      for (const SegmentFacts& segment : logs[at].segments) topic.bytes += segment.bytes;
      offer(topic, at);
    }
  }

  std::vector<std::size_t> reduce_to(std::uint64_t limit) && {
    std::uint64_t total = 0;
    std::priority_queue<std::pair<std::uint64_t, Topic*>> fullest;
    for (auto& [number, topic] : topics_) {
      total += topic.bytes;
      if (!topic.oldest.empty()) fullest.emplace(topic.bytes, &topic);
    }
    while (total > limit && !fullest.empty()) {
      Topic& topic = *fullest.top().second;
      fullest.pop();
      const std::size_t at = topic.oldest.top().second;
      topic.oldest.pop();
      const std::uint64_t bytes = logs_[at].segments[counts_[at]++].bytes;
      total -= bytes;
      topic.bytes -= bytes;
      offer(topic, at);
      if (!topic.oldest.empty()) fullest.emplace(topic.bytes, &topic);
    }
    return std::move(counts_);
  }

 private:
  using Entry = std::pair<Timestamp, std::size_t>;  // of a log's first segment; which log
  struct Topic {
    std::uint64_t bytes = 0;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> oldest;
  };

  void offer(Topic& topic, std::size_t at) const {
    const LogFacts& log = logs_[at];
    const std::size_t count = counts_[at];
    if (count + 1 >= log.segments.size() || log.segments[count].end > log.kept_from) return;
    topic.oldest.emplace(log.segments[count].newest, at);
  }

  const std::span<const LogFacts> logs_;
  std::vector<std::size_t> counts_;
  std::map<std::size_t, Topic> topics_;
};

}  // namespace

Expired expired(std::span<const SegmentFacts> segments, const RetentionRules& rules, Timestamp now,
                Sequence kept_from) {
  Expired result;
  const std::size_t most = removable(segments, kept_from);
  result.count = result.by_size = count_by_size(segments, most, rules.bytes);
  if (rules.ms >= 0) {
    while (result.count < most && now - segments[result.count].newest > rules.ms) ++result.count;
    result.from_future = result.count < most && segments[result.count].newest > now;
  }
  for (const SegmentFacts& segment : segments.first(result.count)) result.bytes += segment.bytes;
  if (!segments.empty()) {
    result.start =
        result.count < segments.size() ? segments[result.count].base : segments.back().end;
  }
  return result;
}

std::vector<std::size_t> over_limit(std::span<const LogFacts> logs, std::uint64_t limit) {
  return Reducer(logs).reduce_to(limit);
}

}  // namespace kanal::log
