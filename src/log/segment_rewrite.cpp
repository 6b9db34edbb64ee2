#include "segment_rewrite.hpp"

#include "blob.hpp"

#include "kanal/base/check.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace kanal::log {
namespace {

constexpr std::size_t kWrite = 256 << 10;
constexpr std::uint64_t kCopy = 1 << 20;
constexpr std::uint64_t kSync = 32 << 20;
constexpr std::uint64_t kLargestSegment = std::numeric_limits<std::int32_t>::max();

}  // namespace

SegmentRewrite::SegmentRewrite(std::shared_ptr<Core> core, std::vector<Source> sources,
                               std::vector<SegmentFacts> facts)
    : core_(std::move(core)), sources_(std::move(sources)), facts_(std::move(facts)) {}

SegmentRewrite::~SegmentRewrite() {
  forget_outputs(false);
}

std::unexpected<Error> SegmentRewrite::damaged(std::string_view why) const {
  return storage_error("'" + core_->path(segment_name(sources_[source_].file->id())) +
                       "' is damaged at position " + std::to_string(position_) + ": " +
                       std::string(why) + ".");
}

/// In the turn: the name is this log's only while it was not removed.
Result<std::shared_ptr<File>> SegmentRewrite::handle_of(const Source& source) {
  return core_->in_turn([&]() -> Result<std::shared_ptr<File>> {
    if (auto ready = core_->usable(); !ready) return std::unexpected(std::move(ready.error()));
    return core_->open(*source.file);
  });
}

Result<void> SegmentRewrite::open(std::size_t source, Sequence from) {
  source_ = source;
  position_ = 0;
  expected_ = facts_[source].base;
  batch_ = {};
  auto file = handle_of(sources_[source]);
  if (!file) return std::unexpected(std::move(file.error()));
  file_ = std::move(*file);
  reader_.emplace(*file_, sources_[source].size);
  if (from > expected_) position_ = indexed_position(from);
  while (position_ < sources_[source].size) {
    const auto head = reader_->bytes(position_, records::kHeaderSize);
    if (!head) return std::unexpected(head.error());
    const auto header = records::parse_header(*head);
    if (!header || header->last_offset_delta < 0) return damaged("there is no batch");
    if (to_sequence(header->next_offset()) > from) break;
    expected_ = to_sequence(header->next_offset());
    position_ += header->size();
  }
  return {};
}

/// Where to look for the batch that holds `from`: with a sound index not from the first byte on.
std::uint64_t SegmentRewrite::indexed_position(Sequence from) const {
  const Source& source = sources_[source_];
  const auto index = core_->in_turn([&]() -> Result<IndexFile> {
    if (auto ready = core_->usable(); !ready) return std::unexpected(std::move(ready.error()));
    return read_index(core_->store().files, core_->path(index_name(source.file->id())));
  });
  if (!index || index->base != source.file->base || index->size != source.size) return 0;
  const Block* block =
      block_of(index->blocks, static_cast<std::uint32_t>(from - source.file->base));
  return block != nullptr ? block->position : 0;
}

Result<Bytes> SegmentRewrite::next() {
  batch_ = {};
  const std::uint64_t end = sources_[source_].size;
  if (position_ >= end) return batch_;
  const auto head = reader_->bytes(position_, records::kHeaderSize);
  if (!head) return std::unexpected(head.error());
  const auto header = records::parse_header(*head);
  if (!header) return damaged(header.error().detail);
  if (header->size() > end - position_) return damaged("the file ends inside a batch");
  const auto batch = reader_->bytes(position_, header->size());
  if (!batch) return std::unexpected(batch.error());
  if (!records::verify_crc(*batch)) return damaged("its checksum does not match");
  const Sequence next = to_sequence(header->next_offset());
  if (to_sequence(header->base_offset) < expected_ || header->last_offset_delta < 0 ||
      next > facts_[source_].end) {
    return damaged("its offsets are not those of its place");
  }
  expected_ = next;
  position_ += header->size();
  io_ += header->size();
  batch_ = *batch;
  return batch_;
}

void SegmentRewrite::begin(std::size_t first_source, std::size_t count) {
  forget_outputs(false);
  first_ = first_source;
  count_ = count;
  same_ = count == 1;
  prefix_ = copied_ = batches_ = 0;
  generation_ = 0;
}

Result<void> SegmentRewrite::keep() {
  return put(batch_, records::read_header(batch_.data()));
}

Result<void> SegmentRewrite::replace(Bytes batch) {
  same_ = false;
  return put(batch, records::read_header(batch.data()));
}

void SegmentRewrite::drop() {
  same_ = false;
}

Result<void> SegmentRewrite::put(Bytes batch, const records::BatchHeader& header) {
  const Sequence base = to_sequence(header.base_offset);
  const bool full =
      !outputs_.empty() && (outputs_.back().facts.size + batch.size() > kLargestSegment ||
                            to_sequence(header.next_offset()) - outputs_.back().facts.id.base >
                                std::numeric_limits<std::int32_t>::max());
  if (outputs_.empty() || full) {
    CompactedSegment facts;
    facts.id.base = outputs_.empty() ? facts_[first_].base : base;
    if (!outputs_.empty()) outputs_.back().facts.end = base;
    outputs_.emplace_back().facts = facts;
  }
  Output& output = outputs_.back();
  CompactedSegment& facts = output.facts;
  note(output.index,
       {static_cast<std::uint32_t>(base - facts.id.base), facts.size, time_of(header)},
       core_->index_interval.load());
  if (facts.batches++ == 0) facts.first_timestamp = header.max_timestamp;
  facts.max_timestamp = std::max(facts.max_timestamp, time_of(header));
  facts.last_epoch = header.leader_epoch;
  facts.crc = records::crc32c(batch, facts.crc);
  facts.size += batch.size();
  ++batches_;
  if (same_) {
    prefix_ = position_;
    output.flushed = position_;
    return {};
  }
  append(output.buffer, batch);
  return output.buffer.size() < kWrite ? Result<void>{} : flush(output);
}

Result<void> SegmentRewrite::make_file(Output& output) {
  return core_->in_turn([&]() -> Result<void> {
    if (auto ready = core_->usable(); !ready) return ready;
    auto record = core_->compaction_record();
    if (!record) return std::unexpected(std::move(record.error()));
    output.facts.id.generation = (*record)->next_generation;
    auto file =
        core_->store().files.open(core_->path(segment_name(output.facts.id)), OpenMode::kCreate);
    if (!file) return std::unexpected(std::move(file.error()));
    output.file = std::move(*file);
    return output.file->truncate(0);  // what an earlier attempt left
  });
}

Result<void> SegmentRewrite::flush(Output& output) {
  if (output.file == nullptr) {
    if (auto done = make_file(output); !done) return done;
  }
  if (output.buffer.empty()) return {};
  const std::array pieces{Bytes(output.buffer)};
  if (auto done = output.file->write_at(output.flushed, pieces); !done) return done;
  output.flushed += output.buffer.size();
  io_ += output.buffer.size();
  output.unsynced += output.buffer.size();
  output.buffer.clear();
  return sync_part(output);
}

/// Now and then, so that the sync before the commit does not hold up a helper for long.
Result<void> SegmentRewrite::sync_part(Output& output) {
  if (output.unsynced < kSync) return {};
  output.unsynced = 0;
  return output.file->sync();
}

/// Copies what stays in front of the first change.
Result<bool> SegmentRewrite::settle(std::uint64_t bytes) {
  if (same_ || copied_ == prefix_) return true;
  Output& output = outputs_.front();
  if (output.file == nullptr) {
    if (auto done = make_file(output); !done) return std::unexpected(std::move(done.error()));
  }
  auto source = handle_of(sources_[first_]);
  if (!source) return std::unexpected(std::move(source.error()));
  Buffer piece;
  for (const std::uint64_t until = copied_ + std::max<std::uint64_t>(bytes, 1);
       copied_ < std::min(until, prefix_);) {
    piece.resize(static_cast<std::size_t>(std::min(kCopy, prefix_ - copied_)));
    const auto got = (*source)->read_at(copied_, piece);
    if (!got) return std::unexpected(got.error());
    if (*got < piece.size()) return damaged("it became shorter");
    const std::array pieces{Bytes(piece)};
    if (auto done = output.file->write_at(copied_, pieces); !done) {
      return std::unexpected(std::move(done.error()));
    }
    copied_ += piece.size();
    io_ += 2 * piece.size();
    output.unsynced += piece.size();
    if (auto done = sync_part(output); !done) return std::unexpected(std::move(done.error()));
  }
  return copied_ == prefix_;
}

Result<void> SegmentRewrite::sync_outputs() {
  for (Output& output : outputs_) {
    if (auto done = flush(output); !done) return done;
    if (auto done = output.file->sync(); !done) return done;
  }
  return {};
}

void SegmentRewrite::end_outputs() {
  outputs_.back().facts.end = facts_[first_ + count_ - 1].end;
  Timestamp newest{-1};
  for (std::size_t i = first_; i < first_ + count_; ++i) {
    newest = std::max(newest, facts_[i].newest);
  }
  for (Output& output : outputs_) output.facts.newest = newest;
}

Result<Rewrite::Outcome> SegmentRewrite::commit(Sequence first_dirty) {
  if (same_) {
    outputs_.clear();
    return Outcome::kUnchanged;
  }
  CHECK(copied_ == prefix_ && !outputs_.empty(), "a group is settled and never empty");
  end_outputs();
  if (auto done = sync_outputs(); !done) return std::unexpected(std::move(done.error()));
  // All below must not be younger on the disk than what replaces it; and the new names are synced.
  core_->names_dirty = true;
  if (auto done = core_->sync(); !done) return std::unexpected(std::move(done.error()));
  return core_->in_turn([&] { return decide(first_dirty); });
}

Result<Rewrite::Outcome> SegmentRewrite::decide(Sequence first_dirty) {
  if (auto ready = core_->usable(); !ready) return std::unexpected(std::move(ready.error()));
  for (std::size_t i = first_; i < first_ + count_; ++i) {
    if (core_->is_dropped(*sources_[i].file)) return Outcome::kTrimmed;
  }
  auto known = core_->compaction_record();
  if (!known) return std::unexpected(std::move(known.error()));
  CompactionRecord record = **known;
  std::vector<CompactedSegment> fresh;
  for (const Output& output : outputs_) fresh.push_back(output.facts);
  record.replace(facts_[first_].base, facts_[first_ + count_ - 1].end, fresh);
  record.drop_below(facts_.front().base);
  record.first_dirty = first_dirty;
  record.next_generation = fresh.front().id.generation + 1;
  for (const Output& output : outputs_) {
    const CompactedSegment& facts = output.facts;
    write_index(core_->store().files, core_->path(index_name(facts.id)),
                {facts.id.base, facts.end, facts.size, facts.first_timestamp, facts.max_timestamp,
                 true, output.index},
                false);
  }
  auto written = write_compaction(core_->store().files, core_->directory(), record);
  if (!written.done) {
    if (!written.in_doubt) return std::unexpected(std::move(written.done.error()));
    forget_outputs(true);
    return std::unexpected(core_->fail_for_good(std::move(written.done.error())));
  }
  core_->set_compaction_record(std::move(record));
  Core::Swap swap;
  for (std::size_t i = first_; i < first_ + count_; ++i) swap.gone.push_back(sources_[i].file);
  for (Output& output : outputs_) {
    swap.fresh.push_back({core_->make_file(output.facts.id), output.facts});
  }
  core_->swaps.with([&](auto& swaps) { swaps.push_back(std::move(swap)); });
  outputs_.clear();
  return Outcome::kCommitted;
}

Result<void> SegmentRewrite::note_clean(Sequence first_dirty) {
  return core_->in_turn([&]() -> Result<void> {
    if (auto ready = core_->usable(); !ready) return ready;
    auto known = core_->compaction_record();
    if (!known) return std::unexpected(std::move(known.error()));
    CompactionRecord record = **known;
    record.first_dirty = first_dirty;
    auto written = write_compaction(core_->store().files, core_->directory(), record);
    if (!written.done) {
      if (!written.in_doubt) return written.done;
      return std::unexpected(core_->fail_for_good(std::move(written.done.error())));
    }
    core_->set_compaction_record(std::move(record));
    return {};
  });
}

/// Files that nothing lists. In doubt they stay: the next start knows whether they are listed.
void SegmentRewrite::forget_outputs(bool in_doubt) {
  if (!in_doubt) {
    core_->in_turn([&] {
      for (const Output& output : outputs_) {
        if (output.file == nullptr || core_->removed()) continue;
        (void)core_->store().files.remove(core_->path(segment_name(output.facts.id)));
        (void)core_->store().files.remove(core_->path(index_name(output.facts.id)));
      }
    });
  }
  outputs_.clear();
}

}  // namespace kanal::log
