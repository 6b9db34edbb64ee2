#include "check_channel.hpp"
#include "scan.hpp"
#include "segment.hpp"

#include <algorithm>
#include <utility>

namespace kanal::log {
namespace {

constexpr std::uint64_t kProgressEvery = 16 << 20;

/// Follows a walk over the batches with the index and the checkpoints that cover them.
class Along {
 public:
  Along(const SegmentCheck& segment, const ChannelCheck& check) : segment_(segment), check_(check) {
    if (segment.index != nullptr) blocks_ = segment.index->blocks;
  }
  void batch(std::uint64_t position, const records::BatchHeader& header);
  /// All batches below `position` were seen, the next one is `next`.
  void at(std::uint64_t position, Sequence next);
  void end(const SegmentFound& found);

 private:
  void tell_index(std::uint64_t position, std::string what);
  void close_block();

  const SegmentCheck& segment_;
  const ChannelCheck& check_;
  std::span<const Block> blocks_;
  std::size_t block_ = 0;  // the next one to begin
  std::optional<Timestamp> largest_;
  std::size_t vouched_ = 0;
  bool index_told_ = false;
};

void Along::tell_index(std::uint64_t position, std::string what) {
  if (std::exchange(index_told_, true)) return;
  check_.found({Weight::kRepairable, segment_.index_path, std::nullopt,
                "it does not fit its segment: " + what + " at the segment's position " +
                    std::to_string(position) + "; remove it, it is made again"});
}

void Along::close_block() {
  if (!largest_) return;
  const Block& block = blocks_[block_ - 1];
  if (block.max_timestamp != *largest_) tell_index(block.position, "another largest timestamp");
  largest_.reset();
}

void Along::batch(std::uint64_t position, const records::BatchHeader& header) {
  if (segment_.index == nullptr || position >= segment_.index->size) return close_block();
  if (block_ < blocks_.size() && position >= blocks_[block_].position) {
    close_block();
    const Block& block = blocks_[block_++];
    const std::int64_t first = to_sequence(header.base_offset) - segment_.base;
    if (position != block.position) return tell_index(block.position, "no batch begins");
    // In front of a batch that compaction left there may be a gap.
    const bool fits = segment_.compacted != nullptr ? block.first <= first : block.first == first;
    if (!fits) return tell_index(block.position, "another offset");
    largest_ = time_of(header);
  } else if (largest_) {
    largest_ = std::max(*largest_, time_of(header));
  }
}

void Along::at(std::uint64_t position, Sequence next) {
  for (; vouched_ < segment_.vouched.size(); ++vouched_) {
    const Vouched& place = segment_.vouched[vouched_];
    if (place.position > position) return;
    if (place.position == position && place.end == next) continue;
    check_.found({Weight::kDamage, *place.by, std::nullopt,
                  "it says that '" + segment_.path + "' had whole batches up to offset " +
                      std::to_string(to_offset(place.end).value()) + " at position " +
                      std::to_string(place.position) +
                      ", where there is none; checkpoint and segment are not of one log"});
  }
}

void Along::end(const SegmentFound& found) {
  if (!found.damage.empty()) return;
  close_block();
  const IndexFile* index = segment_.index;
  if (index == nullptr) return;
  if (index->size > found.size || index->end > found.next) {
    tell_index(found.size, "it covers more than there is");
  } else if (block_ < blocks_.size()) {
    tell_index(blocks_[block_].position, "no batch begins");
  }
}

class SegmentWalk {
 public:
  SegmentWalk(const File& file, const SegmentCheck& segment, const ChannelCheck& check,
              ChannelFigures& figures)
      : file_(file), segment_(segment), check_(check), figures_(figures), along_(segment, check) {}
  Result<SegmentFound> run(std::uint64_t size);

 private:
  /// What is wrong with the batch at `at_`, or nothing.
  Result<std::string> step();
  std::string wrong_with(const records::BatchHeader& header, Bytes batch);
  [[nodiscard]] std::optional<LeaderEpoch> vouched_epoch(Offset offset) const;
  Result<bool> skip(const std::string& damage);
  void count(const records::BatchHeader& header);

  const File& file_;
  const SegmentCheck& segment_;
  const ChannelCheck& check_;
  ChannelFigures& figures_;
  Along along_;
  std::optional<BatchReader> reader_;
  SegmentFound found_;
  std::uint64_t at_ = 0;
  Sequence next_{1};
  std::uint64_t told_ = 0;  // progress
  std::uint64_t batches_ = 0;
  std::uint32_t crc_ = 0;
};

Result<SegmentFound> SegmentWalk::run(std::uint64_t size) {
  found_.size = size;
  found_.next = next_ = segment_.base;
  found_.epoch = segment_.epoch;
  reader_.emplace(file_, size);
  along_.at(0, next_);
  while (at_ < size) {
    const auto wrong = step();
    if (!wrong) return std::unexpected(wrong.error());
    if (wrong->empty()) continue;
    const bool first = found_.damage.empty();
    if (first) {
      found_.sound = at_;
      found_.next = next_;
      found_.damage = *wrong;
    }
    const auto more = skip(*wrong);
    if (!more) return std::unexpected(more.error());
    if (first) found_.behind = *more;
    if (!*more) break;
  }
  if (found_.damage.empty()) {
    found_.sound = at_;
    found_.next = next_;
    const CompactedSegment* compacted = segment_.compacted;
    if (compacted != nullptr &&
        (size != compacted->size || batches_ != compacted->batches || crc_ != compacted->crc)) {
      check_.found({Weight::kDamage, segment_.path, std::nullopt,
                    "it is not what compaction wrote: the partition does not open"});
    }
  }
  along_.end(found_);
  return std::move(found_);
}

Result<std::string> SegmentWalk::step() {
  const auto head = reader_->bytes(at_, records::kHeaderSize);
  if (!head) return std::unexpected(head.error());
  const auto header = records::parse_header(*head);
  if (!header) return header.error().detail;
  if (header->size() > found_.size - at_) return std::string("the file ends inside a batch");
  const auto batch = reader_->bytes(at_, header->size());
  if (!batch) return std::unexpected(batch.error());
  if (std::string why = wrong_with(*header, *batch); !why.empty()) return why;
  if (check_.newest.value() >= 0 && header->leader_epoch > check_.newest) {
    check_.found({Weight::kDamage, segment_.path, at_,
                  "its leader epoch " + std::to_string(header->leader_epoch.value()) +
                      " is above that of the last start, " + std::to_string(check_.newest.value()) +
                      ": log and reserved channels are not of one copy"});
  }
  along_.batch(at_, *header);
  count(*header);
  found_.epoch = header->leader_epoch;
  next_ = to_sequence(header->next_offset());
  if (segment_.compacted != nullptr) {
    ++batches_;
    crc_ = records::crc32c(*batch, crc_);
    if (at_ + header->size() == segment_.compacted->size) next_ = segment_.compacted->end;
  }
  at_ += header->size();
  if (found_.damage.empty()) along_.at(at_, next_);
  return std::string();
}

std::string SegmentWalk::wrong_with(const records::BatchHeader& header, Bytes batch) {
  Scanned before;
  before.next = next_;
  before.epoch = found_.epoch;
  const CompactedSegment* compacted = segment_.compacted;
  std::string why = refuse(header, batch, before,
                           compacted != nullptr ? std::optional(compacted->end) : std::nullopt);
  if (!why.empty()) return why;
  if (const auto epoch = vouched_epoch(header.base_offset);
      epoch && *epoch != header.leader_epoch) {
    return "its leader epoch is " + std::to_string(header.leader_epoch.value()) +
           ", a checkpoint has " + std::to_string(epoch->value());
  }
  return {};
}

std::optional<LeaderEpoch> SegmentWalk::vouched_epoch(Offset offset) const {
  if (to_sequence(offset) >= segment_.epochs_upto) return std::nullopt;
  const auto after =
      std::ranges::upper_bound(segment_.epochs, offset, {}, &EpochEntry::first_offset);
  if (after == segment_.epochs.begin()) return std::nullopt;  // trimmed away
  return (after - 1)->epoch;
}

/// Over damage to the next sound batch, if there is one.
Result<bool> SegmentWalk::skip(const std::string& damage) {
  Scanned scanned;
  scanned.valid_end = at_;
  scanned.next = next_;
  const auto behind = find_batch_behind(file_, found_.size, scanned);
  if (!behind) return std::unexpected(behind.error());
  if (!*behind) return false;
  const auto head = reader_->bytes(**behind, records::kHeaderSize);
  if (!head) return std::unexpected(head.error());
  const auto header = records::parse_header(*head);
  if (!header) return std::unexpected(header.error());
  const bool here = **behind == at_;  // all that its checksum covers is right
  const std::string follows = here ? "though its checksum matches"
                                   : "the next sound batch is at position " +
                                         std::to_string(**behind) + " with offset " +
                                         std::to_string(header->base_offset.value());
  check_.found({Weight::kDamage, segment_.path, at_,
                damage + "; " + follows +
                    ". A start that looks here does not open the partition (log.recovery=truncate "
                    "cuts it)"});
  at_ = **behind;
  if (here) {
    count(*header);
    at_ += header->size();
    next_ = next_ + header->last_offset_delta + 1;
    return true;
  }
  next_ = to_sequence(header->base_offset);
  found_.epoch = header->leader_epoch;
  return true;
}

void SegmentWalk::count(const records::BatchHeader& header) {
  ++figures_.batches;
  figures_.records += static_cast<std::uint64_t>(std::max(header.record_count, 0));
  figures_.bytes += header.size();
  if (check_.progress && at_ - told_ >= kProgressEvery) {
    told_ = at_;
    check_.progress(figures_);
  }
}

}  // namespace

Result<SegmentFound> check_segment(FileSystem& files, const SegmentCheck& segment,
                                   const ChannelCheck& check, ChannelFigures& figures) {
  auto file = files.open(segment.path, OpenMode::kRead);
  if (!file) return std::unexpected(std::move(file.error()));
  const auto size = (*file)->size();
  if (!size) return std::unexpected(size.error());
  ++figures.segments;
  return SegmentWalk(**file, segment, check, figures).run(*size);
}

}  // namespace kanal::log
