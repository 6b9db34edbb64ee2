#include "kanal/log/compaction.hpp"

#include "key_map.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace kanal::log {
namespace {

Timestamp saturated_sum(Timestamp time, std::int64_t ms) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(time.value(), ms, &sum)) {
    return Timestamp(std::numeric_limits<std::int64_t>::max());
  }
  return Timestamp(sum);
}

}  // namespace

struct Compaction::State {
  enum class Phase { kStart, kIndex, kClean, kSettle, kDone };

  State(CompactionInput from, const CompactionOptions& with)
      : input(std::move(from)), options(with), transactions(input.aborted) {}

  void start();
  Result<void> index_one();
  Result<bool> index_batch(const records::BatchHeader& header, Bytes batch);
  void end_index();
  void begin_group();
  Result<void> clean_one();
  Result<void> clean_batch(const records::BatchHeader& header, Bytes batch);
  Result<BatchVerdict> verdict(const records::BatchHeader& header, Bytes batch);
  struct Kept {
    std::size_t count = 0;
    bool tombstones = false;
  };
  Result<Kept> choose(const records::BatchHeader& header, Bytes batch);
  [[nodiscard]] bool retain(const records::BatchHeader& header, const records::KeyedRecord& record);
  Result<Step> end_group();
  void tell_aborted(Offset below);
  [[nodiscard]] std::size_t group_end() const { return group_first + groups[group]; }

  CompactionInput input;
  const CompactionOptions options;
  CompactionStats stats;
  records::Scratch scratch;
  std::optional<KeyMap> map;
  Offset mapped_end{0};  // records below it are in the map, or older than what the last pass mapped
  Phase phase = Phase::kStart;
  std::size_t source = 0;  // the one being read
  bool opened = false;
  CleanedTransactions transactions;
  std::vector<std::size_t> groups;
  std::size_t group = 0, group_first = 0;
  std::size_t told = 0;                            // of transactions.kept()
  std::optional<records::BatchHeader> last_batch;  // of the group
  std::vector<bool> keep;
};

void Compaction::State::start() {
  const auto most = static_cast<std::uint64_t>(
      std::max<std::int64_t>(input.range.end - input.range.first_dirty, 1));
  map.emplace(KeyMap::Limits{options.map_bytes, options.map_load, most});
  stats.first_dirty = input.range.first_dirty;
  mapped_end = to_offset(input.range.first_dirty);
  const auto sources = input.log->sources();
  while (source < sources.size() && sources[source].end <= input.range.first_dirty) ++source;
  phase = Phase::kIndex;
  if (source == sources.size()) end_index();
}

/// One batch into the map.
Result<void> Compaction::State::index_one() {
  const auto sources = input.log->sources();
  if (!std::exchange(opened, true)) {
    if (auto done = input.log->open(source, input.range.first_dirty); !done) return done;
  }
  const auto batch = input.log->next();
  if (!batch) return std::unexpected(batch.error());
  if (batch->empty()) {
    mapped_end = to_offset(sources[source].end);  // over a gap too
    opened = false;
    if (++source == sources.size()) end_index();
    return {};
  }
  stats.bytes_indexed += batch->size();
  const auto more = index_batch(records::read_header(batch->data()), *batch);
  if (!more) return std::unexpected(more.error());
  if (!*more) end_index();
  return {};
}

/// False: the map is full, and `mapped_end` says how far it reaches.
Result<bool> Compaction::State::index_batch(const records::BatchHeader& header, Bytes batch) {
  const Offset from = to_offset(input.range.first_dirty);
  bool full = false;
  if (header.is_control()) {
    const auto marker = records::parse_marker(batch);
    if (!marker) return std::unexpected(marker.error());
    (void)transactions.on_control(header, *marker);
  } else if (!transactions.on_batch(header)) {
    const auto walked = records::visit_keys(batch, options.secret, scratch,
                                            [&](const records::KeyedRecord& record) {
                                              if (record.has_key && record.offset >= from)
                                                full = !map->put(record.key, record.offset);
                                              if (full)
                                                mapped_end = std::max(mapped_end, record.offset);
                                              return !full;
                                            });
    if (!walked) return std::unexpected(walked.error());
  }
  if (!full) mapped_end = std::max(mapped_end, header.next_offset());
  return !full;
}

void Compaction::State::end_index() {
  stats.keys = map->size();
  stats.first_dirty = to_sequence(mapped_end);
  stats.all = stats.first_dirty >= input.range.end;
  transactions = CleanedTransactions(input.aborted);
  auto sources = input.log->sources();
  const auto beyond = std::ranges::find_if(
      sources, [&](const SegmentFacts& facts) { return to_offset(facts.base) >= mapped_end; });
  groups = group_segments(sources.first(static_cast<std::size_t>(beyond - sources.begin())),
                          options.segment_bytes);
  source = 0;
  opened = false;
  phase = groups.empty() ? Phase::kDone : Phase::kClean;
  if (!groups.empty()) begin_group();
}

void Compaction::State::begin_group() {
  last_batch.reset();
  input.log->begin(group_first, groups[group]);
}

/// One batch of the group, or its end.
Result<void> Compaction::State::clean_one() {
  const auto sources = input.log->sources();
  if (!std::exchange(opened, true)) {
    if (auto done = input.log->open(source, sources[source].base); !done) return done;
  }
  const auto batch = input.log->next();
  if (!batch) return std::unexpected(batch.error());
  if (!batch->empty()) {
    stats.bytes_read += batch->size();
    last_batch = records::read_header(batch->data());
    return clean_batch(*last_batch, *batch);
  }
  opened = false;
  if (++source < group_end()) return {};
  if (!input.log->has_batches() && last_batch) {
    // A segment is never empty but the active one: a reader in the gap finds its end.
    records::BatchHeader end = *last_batch;
    end.attributes = static_cast<std::int16_t>(end.attributes & records::kLogAppendTimeBit);
    end.producer_id = kNoProducerId;
    end.producer_epoch = kNoProducerEpoch;
    end.base_sequence = records::kNoSequence;
    if (auto done = input.log->replace(records::emptied(end)); !done) return done;
  }
  phase = Phase::kSettle;
  return {};
}

Result<BatchVerdict> Compaction::State::verdict(const records::BatchHeader& header, Bytes batch) {
  BatchSituation situation;
  if (header.is_control()) {
    const auto marker = records::parse_marker(batch);
    if (!marker) return std::unexpected(marker.error());
    bool listed = false;
    situation.discardable = transactions.on_control(header, *marker, &listed);
    situation.marker_stays = listed || input.markers_stay ||
                             (input.checkpointed && header.base_offset >= *input.checkpointed);
  } else {
    situation.discardable = transactions.on_batch(header);
  }
  situation.last_of_producer = is_last_of_producer(header, input.producers);
  situation.last_before_high_watermark = header.next_offset() == input.high_watermark;
  return judge(header, situation, options.now);
}

Result<void> Compaction::State::clean_batch(const records::BatchHeader& header, Bytes batch) {
  const auto judged = verdict(header, batch);
  if (!judged) return std::unexpected(judged.error());
  stats.records_read += static_cast<std::uint64_t>(std::max(header.record_count, 0));
  Kept kept;
  if (header.is_control() && !judged->discard) {
    keep.assign(static_cast<std::size_t>(std::max(header.record_count, 0)), true);
    kept.count = keep.size();
  } else if (!judged->discard) {
    const auto chosen = choose(header, batch);
    if (!chosen) return std::unexpected(chosen.error());
    kept = *chosen;
  }
  stats.records_kept += kept.count;
  if (kept.count == 0) {
    if (judged->empty == BatchVerdict::Empty::kDelete) {
      input.log->drop();
      return {};
    }
    if (header.record_count == 0) return input.log->keep();
    return input.log->replace(records::emptied(header));
  }
  const bool mark = (kept.tombstones || judged->idle_marker) && !header.has_delete_horizon();
  if (kept.count == keep.size() && !mark) {
    stats.bytes_written += batch.size();
    return input.log->keep();
  }
  std::optional<Timestamp> horizon;
  if (mark) {
    horizon = saturated_sum(options.now, options.delete_retention_ms);
  } else if (header.has_delete_horizon()) {
    horizon = header.base_timestamp;
  }
  const auto written = records::keep_records(batch, keep, horizon, scratch);
  if (!written) return std::unexpected(written.error());
  stats.bytes_written += written->size();
  return input.log->replace(*written);
}

/// Fills `keep`, one place a record.
Result<Compaction::State::Kept> Compaction::State::choose(const records::BatchHeader& header,
                                                          Bytes batch) {
  keep.clear();
  Kept kept;
  const auto walked =
      records::visit_keys(batch, options.secret, scratch, [&](const records::KeyedRecord& record) {
        const bool stays = retain(header, record);
        keep.push_back(stays);
        kept.count += stays ? 1 : 0;
        kept.tombstones = kept.tombstones || (stays && !record.has_value);
        return true;
      });
  if (!walked) return std::unexpected(walked.error());
  return kept;
}

bool Compaction::State::retain(const records::BatchHeader& header,
                               const records::KeyedRecord& record) {
  if (record.offset >= mapped_end) return true;
  if (!record.has_key) {  // from before the topic was compacted
    ++stats.keyless;
    return false;
  }
  const auto last = map->find(record.key);
  if (last && record.offset < *last) return false;
  return record.has_value || !header.has_delete_horizon() || options.now < header.base_timestamp;
}

void Compaction::State::tell_aborted(Offset below) {
  if (input.cleaned == nullptr) return;
  const std::vector<AbortedTransaction>& kept = transactions.kept();
  for (; told < kept.size(); ++told) input.cleaned->markers.push_back(kept[told].last);
  input.cleaned->below = below;
}

Result<Compaction::Step> Compaction::State::end_group() {
  const bool last = group + 1 == groups.size();
  const Sequence dirty = last ? stats.first_dirty : input.range.first_dirty;
  const Offset end = to_offset(input.log->sources()[group_end() - 1].end);
  const auto outcome = input.log->commit(dirty);
  if (!outcome) return std::unexpected(outcome.error());
  if (*outcome == Rewrite::Outcome::kCommitted) tell_aborted(end);
  if (*outcome == Rewrite::Outcome::kTrimmed) {
    stats.superseded = true;
    phase = Phase::kDone;
    return Step::kDone;
  }
  if (last && *outcome == Rewrite::Outcome::kUnchanged) {
    if (auto done = input.log->note_clean(dirty); !done) return std::unexpected(done.error());
  }
  if (last) {
    phase = Phase::kDone;
  } else {
    group_first = source = group_end();
    ++group;
    phase = Phase::kClean;
    begin_group();
  }
  return *outcome == Rewrite::Outcome::kCommitted ? Step::kAdopt : Step::kMore;
}

Compaction::Compaction(CompactionInput input, const CompactionOptions& options)
    : state_(std::make_unique<State>(std::move(input), options)) {}
Compaction::~Compaction() = default;

Result<Compaction::Step> Compaction::step(std::uint64_t bytes) {
  State& state = *state_;
  const auto io = [&] {
    return state.stats.bytes_indexed + state.stats.bytes_read + state.stats.bytes_written;
  };
  const std::uint64_t until = io() + bytes;
  while (io() < until) {
    switch (state.phase) {
      case State::Phase::kStart:
        state.start();
        break;
      case State::Phase::kIndex:
        if (auto done = state.index_one(); !done) return std::unexpected(std::move(done.error()));
        break;
      case State::Phase::kClean:
        if (auto done = state.clean_one(); !done) return std::unexpected(std::move(done.error()));
        break;
      case State::Phase::kSettle: {
        const auto settled = state.input.log->settle(bytes);
        if (!settled) return std::unexpected(settled.error());
        if (!*settled) return Step::kMore;
        auto ended = state.end_group();
        if (!ended || *ended != Step::kMore) return ended;
        break;
      }
      case State::Phase::kDone:
        return Step::kDone;
    }
  }
  return Step::kMore;
}

std::uint64_t Compaction::take_io() noexcept {
  return state_->input.log->take_io();
}

const CompactionStats& Compaction::stats() const noexcept {
  return state_->stats;
}

}  // namespace kanal::log
