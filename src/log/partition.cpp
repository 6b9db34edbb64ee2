#include "kanal/log/partition.hpp"

#include "blob.hpp"
#include "epochs.hpp"
#include "transactions.hpp"

#include "kanal/base/logging.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

namespace kanal::log {
namespace {

constexpr std::uint16_t kStateVersion = 2;  // 1 has no transactions

std::unexpected<std::variant<Miss, Error>> failed(ErrorCode code, std::string detail) {
  return std::unexpected(std::variant<Miss, Error>(Error{code, std::move(detail)}));
}

}  // namespace

struct Partition::State {
  std::unique_ptr<ChannelLog> log;
  ChannelHandle handle;
  LeaderEpoch epoch;
  Sequence high_watermark{1};
  Sequence checkpointed{1};  // what the newest checkpoint covers ends here
  std::int64_t segment_bytes = 0;
  bool log_append_time = false;
  std::unique_ptr<Error> lost;
  Epochs epochs;
  ProducerState producers;
  std::unique_ptr<Transactions> transactions;  // null: there was none; most logs never have one
  Sequence pruned{0};  // where the log ended when aborted transactions were last taken off the list
  std::shared_ptr<CleanedAborted> cleaned;  // of the last pass

  Result<void> restore(Bytes state, Sequence upto);
  Result<void> restore(const Checkpoint& checkpoint, Sequence start);
  Result<void> rebuild(Sequence from);
  Result<void> apply(Bytes batch);
  Result<AppendResult> stage(MutableBytes batch, const records::BatchHeader& header);
  void end(const EndMarker& marker, Offset offset, Timestamp now);
  void moved(const AppendResult& result);
  void begin_if_new(const records::BatchHeader& header, Offset base);
  void log_starts();
  [[nodiscard]] Transactions& following();
  [[nodiscard]] Offset last_stable() const noexcept;
};

Partition::Partition() : state_(std::make_unique<State>()) {}
Partition::~Partition() = default;

Result<std::unique_ptr<Partition>> Partition::open(LogStore& store, const Opening& opening,
                                                   RecoveryReport* report) {
  const auto& [id, handle, epoch, options] = opening;
  auto opened = store.open(id, handle, epoch, options);
  if (!opened) return std::unexpected(std::move(opened.error()));
  if (report != nullptr) *report = opened->report;
  std::unique_ptr<Partition> partition(new Partition);
  State& state = *partition->state_;
  state.log = std::move(opened->log);
  state.handle = handle;
  state.epoch = epoch;
  state.segment_bytes = options.segment_bytes;
  state.log_append_time = options.log_append_time;
  const Bounds bounds = state.log->bounds();
  state.high_watermark = bounds.staged_end;
  Sequence from = bounds.start;
  if (opened->checkpoint) {
    if (const auto restored = state.restore(*opened->checkpoint, bounds.start)) {
      from = state.checkpointed = opened->checkpoint->upto;
    } else {
      logger("log").warn("A checkpoint's state is not used. channel={} why=\"{}\"", id.name,
                         restored.error().detail);
      state.epochs = {};
      state.producers = {};
      state.transactions.reset();
      state.pruned = bounds.staged_end;  // another start may be able to use it
    }
  }
  if (from < bounds.staged_end) {
    if (auto done = state.rebuild(from); !done) return std::unexpected(std::move(done.error()));
  }
  state.log_starts();
  if (state.transactions != nullptr) {
    state.transactions->committed(to_offset(state.high_watermark));
    if (state.transactions->idle()) state.transactions.reset();
  }
  if (auto done = check_not_later(id, state.epochs.latest(), epoch); !done) {
    return std::unexpected(std::move(done.error()));
  }
  return partition;
}

Result<void> Partition::State::restore(Bytes state, Sequence upto) {
  BlobReader reader(state);
  const auto version = reader.number<std::uint16_t>();
  if (version == 0 || version > kStateVersion) return storage_error("It has another version.");
  if (auto done = epochs.decode(reader); !done) return done;
  Bytes rest = reader.rest();
  if (auto done = producers.decode(rest); !done) return done;
  if (auto done = following().restore_open(producers, to_offset(upto)); !done) return done;
  if (version > 1) {
    BlobReader aborted(rest);
    if (auto done = transactions->aborted().decode(aborted, to_offset(upto)); !done) return done;
    rest = aborted.rest();
  }
  return rest.empty() ? Result<void>{} : storage_error("Bytes are left after it.");
}

Result<void> Partition::State::restore(const Checkpoint& checkpoint, Sequence start) {
  if (auto done = restore(checkpoint.state, checkpoint.upto); !done) return done;
  // Records that were trimmed away are back, without what was known of aborted transactions there.
  if (transactions->aborted().start() > to_offset(start))
    return storage_error("It is of a log that began later.");
  return {};
}

Result<std::vector<EpochEntry>> Partition::check_state(Bytes state, Sequence upto) {
  State scratch;
  if (auto done = scratch.restore(state, upto); !done)
    return std::unexpected(std::move(done.error()));
  return scratch.epochs.entries();
}

Result<void> Partition::State::rebuild(Sequence from) {
  return log->replay(from, [this](Bytes batch) { return apply(batch); });
}

Result<void> Partition::State::apply(Bytes batch) {
  const records::BatchHeader header = records::read_header(batch.data());
  epochs.note(header.leader_epoch, header.base_offset);
  if (!header.has_producer_id()) return {};
  if (!header.is_control()) {
    producers.update(header, header.base_offset, kNoTimestamp);
    begin_if_new(header, header.base_offset);
    return {};
  }
  const auto marker = records::parse_marker(batch);
  if (!marker) {
    return storage_error("The control batch at offset " +
                         std::to_string(header.base_offset.value()) + ": " + marker.error().detail +
                         ".");
  }
  if (*marker) {
    end({header.producer_id, header.producer_epoch, (*marker)->type, (*marker)->coordinator_epoch},
        header.base_offset, header.max_timestamp);  // the broker's own clock
  } else if (header.record_count == 0) {
    // Nothing is left of what it ended, be it a commit or an abort.
    const Offset first =
        producers.note_epoch(header.producer_id, header.producer_epoch, kNoTimestamp);
    if (first != kNoOffset) following().ended(header.producer_id, first, header.base_offset, false);
  }
  return {};
}

Transactions& Partition::State::following() {
  if (transactions == nullptr) transactions = std::make_unique<Transactions>();
  return *transactions;
}

/// A batch is written, and the producers know it.
void Partition::State::begin_if_new(const records::BatchHeader& header, Offset base) {
  if (header.is_transactional() && producers.begin(header.producer_id, base))
    following().began(base);
}

void Partition::State::log_starts() {
  const Offset start = to_offset(log->bounds().start);
  epochs.trim(start);
  if (transactions != nullptr) transactions->trim(start);
}

/// A marker is written.
void Partition::State::end(const EndMarker& marker, Offset offset, Timestamp now) {
  const Offset first = producers.end(marker.producer, marker.epoch, marker.coordinator_epoch, now);
  if (first == kNoOffset) return;
  const bool aborted = marker.type == records::ControlType::kAbort;
  following().ended(marker.producer, first, offset, aborted);
}

void Partition::State::moved(const AppendResult& result) {
  if (!result.committed) return;
  high_watermark = result.last + 1;
  if (transactions != nullptr) transactions->committed(to_offset(high_watermark));
}

Offset Partition::State::last_stable() const noexcept {
  const Offset high = to_offset(high_watermark);
  if (transactions == nullptr) return high;
  const auto unstable = transactions->first_unstable();
  if (!unstable) return high;
  return std::min(std::max(*unstable, to_offset(log->bounds().start)), high);
}

Result<AppendResult> Partition::append(MutableBytes batch, const records::BatchHeader& header,
                                       Timestamp now, const AppendTerms& terms) {
  State& state = *state_;
  if (state.lost != nullptr) return std::unexpected(*state.lost);
  if (std::cmp_greater(batch.size(), state.segment_bytes)) {
    return fail(ErrorCode::RECORD_LIST_TOO_LARGE, "The batch has " + std::to_string(batch.size()) +
                                                      " bytes, a segment holds " +
                                                      std::to_string(state.segment_bytes) + ".");
  }
  const bool tracked = header.has_producer_id() && !header.is_control();
  if (tracked) {
    const auto seen = state.producers.check(header);
    if (!seen) return std::unexpected(seen.error());
    if (*seen) {
      const Sequence last = to_sequence((*seen)->last_offset);
      return AppendResult{(*seen)->base_offset,        last,
                          last < state.high_watermark, true,
                          (*seen)->timestamp,          to_offset(state.log->bounds().start)};
    }
    if (terms.from_zero && header.base_sequence != 0 &&
        !state.producers.producers().contains(header.producer_id)) {
      return fail(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER,
                  "Nothing is known of producer " + std::to_string(header.producer_id.value()) +
                      ", its first sequence number has to be 0 and is " +
                      std::to_string(header.base_sequence) + ".");
    }
    if (auto done = check_transaction(state.producers, header); !done) {
      return std::unexpected(std::move(done.error()));
    }
  }
  const auto staged = state.stage(batch, header);
  if (!staged) return staged;
  if (tracked) {
    state.producers.update(header, staged->base_offset, now);
    state.begin_if_new(header, staged->base_offset);
  }
  state.moved(*staged);
  return staged;
}

Result<AppendResult> Partition::append_marker(const EndMarker& marker, Timestamp now) {
  State& state = *state_;
  if (state.lost != nullptr) return std::unexpected(*state.lost);
  if (auto done = check_marker(state.producers, marker); !done) {
    return std::unexpected(std::move(done.error()));
  }
  records::MarkerOptions options;
  options.producer_id = marker.producer;
  options.producer_epoch = marker.epoch;
  options.timestamp = now;
  options.log_append_time = state.log_append_time;
  Buffer batch = records::build_marker({marker.type, marker.coordinator_epoch}, options);
  const auto staged = state.stage(batch, records::read_header(batch.data()));
  if (!staged) return staged;
  state.end(marker, staged->base_offset, now);
  state.moved(*staged);
  return staged;
}

/// Assigns offsets and writes; what is known of producers, and what readers see, is the caller's.
Result<AppendResult> Partition::State::stage(MutableBytes batch,
                                             const records::BatchHeader& header) {
  const Bounds bounds = log->bounds();
  const Sequence first = bounds.staged_end;
  if (first.value() > std::numeric_limits<std::int64_t>::max() - 2 - header.last_offset_delta) {
    return fail(ErrorCode::INVALID_RECORD, "The partition has no offsets left.");
  }
  const Extent extent{first, first + header.last_offset_delta};
  const Offset base = to_offset(first);
  records::set_base_offset(batch, base);
  records::set_leader_epoch(batch, epoch);
  const std::array pieces{Bytes(batch)};
  const auto appended = log->append(extent, header.max_timestamp, pieces);
  if (!appended) return std::unexpected(appended.error());
  epochs.note(epoch, base);
  return AppendResult{base,
                      extent.last,
                      appended->committed,
                      false,
                      header.log_append_time() ? header.max_timestamp : kNoTimestamp,
                      to_offset(bounds.start)};
}

bool Partition::in_transaction(ProducerId producer, ProducerEpoch epoch) const noexcept {
  const auto& producers = state_->producers.producers();
  const auto found = producers.find(producer);
  return found != producers.end() && found->second.in_transaction() && found->second.epoch == epoch;
}

Maybe<FetchedRecords> Partition::read(Offset from, const FetchLimits& limits,
                                      std::vector<Slice>& out) const {
  const State& state = *state_;
  const Bounds bounds = state.log->bounds();
  const Sequence sequence = to_sequence(from);
  if (from.value() < 0 || sequence < bounds.start || sequence > bounds.staged_end) {
    return failed(ErrorCode::OFFSET_OUT_OF_RANGE,
                  "The offset " + std::to_string(from.value()) + " is outside the log, which has " +
                      std::to_string(to_offset(bounds.start).value()) + " to " +
                      std::to_string(to_offset(bounds.staged_end).value()) + ".");
  }
  FetchedRecords fetched{from, 0};
  const Sequence below =
      limits.read_committed ? to_sequence(state.last_stable()) : state.high_watermark;
  if (sequence > below) return fetched;
  const std::size_t before = out.size();
  const auto next =
      state.log->read({sequence, below, limits.max_bytes, limits.at_least_one_batch}, out);
  if (!next) return std::unexpected(next.error());
  fetched.next = to_offset(*next);
  for (std::size_t i = before; i < out.size(); ++i) fetched.bytes += length_of(out[i]);
  return fetched;
}

void Partition::aborted(Offset from, Offset upto, std::vector<AbortedTransaction>& out) const {
  if (state_->transactions != nullptr) state_->transactions->aborted().find(from, upto, out);
}

Watermarks Partition::watermarks() const noexcept {
  const Bounds bounds = state_->log->bounds();
  return {to_offset(bounds.start), to_offset(state_->high_watermark), state_->last_stable(),
          to_offset(bounds.staged_end)};
}

LeaderEpoch Partition::leader_epoch() const noexcept {
  return state_->epoch;
}

LeaderEpoch Partition::epoch_at(Offset offset) const noexcept {
  const State& state = *state_;
  if (to_sequence(offset) >= state.log->bounds().staged_end) return state.epoch;
  return state.epochs.at(offset);
}

EpochEnd Partition::end_of_epoch(LeaderEpoch epoch) const noexcept {
  const State& state = *state_;
  return state.epochs.end_of(epoch, state.epoch, to_offset(state.high_watermark));
}

Maybe<std::optional<TimePosition>> Partition::find(Timestamp timestamp) const {
  auto found = state_->log->find(timestamp);
  if (found && *found && (*found)->sequence >= state_->high_watermark) return std::nullopt;
  return found;
}

Maybe<std::optional<TimePosition>> Partition::find_max() const {
  return state_->log->find_max(state_->high_watermark);
}

Timestamp Partition::max_timestamp() const noexcept {
  return state_->log->max_timestamp();
}

Result<void> Partition::trim(Offset new_start) {
  State& state = *state_;
  if (state.lost != nullptr) return std::unexpected(*state.lost);
  if (new_start.value() < 0 || to_sequence(new_start) > state.high_watermark) {
    return fail(ErrorCode::OFFSET_OUT_OF_RANGE,
                "The log cannot start at offset " + std::to_string(new_start.value()) +
                    ", it ends at " + std::to_string(to_offset(state.high_watermark).value()) +
                    ".");
  }
  if (auto done = state.log->trim(to_sequence(new_start)); !done) {
    return std::unexpected(std::move(done.error()));
  }
  state.log_starts();
  return {};
}

Expired Partition::expired(const RetentionRules& rules, Timestamp now) const {
  std::vector<SegmentFacts> segments;
  state_->log->segments(segments);
  return log::expired(segments, rules, now, to_sequence(state_->last_stable()));
}

LogFacts Partition::facts() const {
  LogFacts facts;
  state_->log->segments(facts.segments);
  facts.kept_from = to_sequence(state_->last_stable());
  return facts;
}

Offset Partition::covered_start(Offset new_start) const {
  const Sequence start = to_sequence(new_start);
  if (start <= state_->checkpointed) return new_start;
  std::vector<SegmentFacts> segments;
  state_->log->segments(segments);
  for (const SegmentFacts& segment : segments) {
    if (segment.end > start) break;
    if (segment.end > state_->checkpointed) return to_offset(segment.base);
  }
  return new_start;
}

Cleanable Partition::cleanable(Sequence first_dirty, const CompactionRules& rules,
                               Timestamp now) const {
  CompactionFacts facts;
  state_->log->segments(facts.segments);
  facts.start = state_->log->bounds().start;
  facts.first_dirty = first_dirty;
  facts.stable_end = to_sequence(watermarks().last_stable);
  return log::cleanable(facts, rules, now);
}

std::unique_ptr<Compaction> Partition::compact(const Cleanable& range,
                                               CompactionOptions options) const {
  State& state = *state_;
  CompactionInput input;
  input.log = state.log->rewrite(range.end);
  input.range = range;
  input.high_watermark = to_offset(state.high_watermark);
  for (const auto& [id, producer] : state.producers.producers()) {
    LastOfProducer& last = input.producers[id];
    last.epoch = producer.epoch;
    if (producer.count > 0) last.last_offset = producer.batches[producer.count - 1].last_offset;
  }
  aborted(Offset(0), to_offset(range.end), input.aborted);
  // The checkpoint that a crash would go back to has to be from after the list lost them.
  input.markers_stay = state.checkpointed <= state.pruned;
  if (state.checkpointed > Sequence(1)) input.checkpointed = to_offset(state.checkpointed);
  input.cleaned = state.cleaned = std::make_shared<CleanedAborted>();
  options.segment_bytes =
      static_cast<std::uint64_t>(std::max<std::int64_t>(state.segment_bytes, 1));
  return std::make_unique<Compaction>(std::move(input), options);
}

void Partition::adopt_rewritten() {
  State& state = *state_;
  state.log->adopt();
  if (state.cleaned == nullptr || state.transactions == nullptr) return;
  CleanedAborted& cleaned = *state.cleaned;
  if (state.transactions->aborted().keep(cleaned.from, cleaned.below, cleaned.markers) > 0)
    state.pruned = state.log->bounds().staged_end;
  cleaned.from = cleaned.below;
  cleaned.markers.clear();
}

void Partition::note_checkpoint(Sequence upto) noexcept {
  state_->checkpointed = std::max(state_->checkpointed, upto);
}

void Partition::configure(const LogOptions& options) {
  state_->segment_bytes = options.segment_bytes;
  state_->log_append_time = options.log_append_time;
  state_->log->configure(options);
}

bool Partition::commit(Sequence committed_end) noexcept {
  State& state = *state_;
  const Sequence end = std::min(committed_end, state.log->bounds().staged_end);
  if (state.lost != nullptr || end <= state.high_watermark) return false;
  state.high_watermark = end;
  if (state.transactions != nullptr) state.transactions->committed(to_offset(end));
  return true;
}

void Partition::lost(const Error& why) {
  if (state_->lost != nullptr) return;
  state_->lost = std::make_unique<Error>(why);
  if (why.code != ErrorCode::KAFKA_STORAGE_ERROR) {
    state_->lost->code = ErrorCode::NOT_LEADER_OR_FOLLOWER;
  }
}

std::uint64_t Partition::bytes() const noexcept {
  return state_->log->bounds().bytes;
}
std::uint64_t Partition::bytes_since_checkpoint() const noexcept {
  return state_->log->bytes_since_checkpoint();
}

Checkpoint Partition::checkpoint() const {
  const State& state = *state_;
  BlobWriter writer;
  writer.number(kStateVersion);
  state.epochs.encode(writer);
  Checkpoint checkpoint;
  checkpoint.upto = state.log->bounds().staged_end;
  checkpoint.state = writer.take();
  state.producers.encode(checkpoint.state);
  BlobWriter aborted;
  if (state.transactions != nullptr) {
    state.transactions->aborted().encode(aborted);
  } else {
    AbortedTransactions().encode(aborted);
  }
  kanal::append(checkpoint.state, aborted.take());
  checkpoint.layout = state.log->layout();
  return checkpoint;
}

ChannelLog& Partition::log() noexcept {
  return *state_->log;
}
ProducerState& Partition::producers() noexcept {
  return state_->producers;
}

std::size_t Partition::expire_producers(Timestamp now, std::int64_t expiration_ms) {
  return state_->producers.expire(now, expiration_ms);
}

}  // namespace kanal::log
