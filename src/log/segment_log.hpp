// ChannelLog over segment files. Under the partition's lock but for checkpoint and sync, which work
// on the Core alone. Invariants: segments are contiguous (one's end is the next one's base) and
// only the last one grows; size counts whole batches; the first segment holds `start` or is the
// only one. Nothing is made on disk before the first append. Reads never wait for the disk: what
// may be cold is answered with a Miss that Core::load brings in.
#pragma once

#include "core.hpp"
#include "segment.hpp"

#include "kanal/log/channel_log.hpp"
#include "kanal/records/batch.hpp"

#include <atomic>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace kanal::log {

/// What opening found; see recovery.hpp.
struct LogState {
  std::vector<Segment> segments;
  Sequence start{1}, end{1};
  LeaderEpoch last_epoch{-1};
  std::uint64_t generation = 0;  // of the channel file
  bool created = false;          // the directory and the channel file exist
};

class SegmentLog final : public ChannelLog {
 public:
  SegmentLog(std::shared_ptr<Core> core, const LogOptions& options, LogState state);
  ~SegmentLog() override;

  Result<Appended> append(Extent extent, Timestamp max_timestamp,
                          std::span<const Bytes> batches) override;
  Maybe<Sequence> read(const ReadRequest& request, std::vector<Slice>& out) const override;
  Maybe<std::optional<TimePosition>> find(Timestamp timestamp) const override;
  Maybe<std::optional<TimePosition>> find_max(Sequence below) const override;
  [[nodiscard]] Timestamp max_timestamp() const noexcept override;
  Result<Appended> trim(Sequence new_start) override;
  void configure(const LogOptions& options) override;
  [[nodiscard]] Bounds bounds() const noexcept override;
  void segments(std::vector<SegmentFacts>& out) const override;
  [[nodiscard]] std::uint64_t bytes_since_checkpoint() const noexcept override;
  [[nodiscard]] std::vector<std::byte> layout() const override;
  Result<void> checkpoint(const Checkpoint& checkpoint) override;
  Result<Sequence> sync() override;
  Result<Checkpoint> link_into(const std::string& directory,
                               const std::function<Result<Checkpoint>()>& moment) const override;
  Result<void> replay(Sequence from, const BatchVisitor& visit) const override;
  [[nodiscard]] std::unique_ptr<Rewrite> rewrite(Sequence below) override;
  void adopt() override;
  Result<Sequence> first_dirty() override;

  [[nodiscard]] const std::shared_ptr<Core>& core() const noexcept { return core_; }

 private:
  struct Place {  // a batch boundary
    std::uint64_t position = 0;
    Sequence base{1};  // of the batch that begins there
  };
  struct Hint {                          // a boundary that a sequential reader will ask for
    std::uint32_t ordinal = UINT32_MAX;  // none
    Place place;
  };
  struct WarmRange {                     // loaded for a reader not long ago
    std::uint32_t ordinal = UINT32_MAX;  // none
    std::uint64_t begin = 0, end = 0;
  };
  struct ReadState {
    std::array<Hint, 8> hints;
    std::array<Hint, 4> appends;
    std::array<WarmRange, 4> warm;
    std::array<std::uint32_t, 4> indexes{};  // segments whose index is kept in memory, plus one
    std::uint8_t next_hint = 0, next_append = 0, next_warm = 0, next_index = 0;
  };

  // segment_log.cpp
  Result<void> make_directory();
  [[nodiscard]] bool must_roll(Extent extent, Timestamp max_timestamp, std::uint64_t bytes) const;
  Result<void> roll(Sequence base);
  Result<std::shared_ptr<File>> open_segment(const Segment& segment) const;
  void reserve(File& file, Segment& tail, std::uint64_t bytes);
  Error undo_write(File& file, const Segment& tail, Error why);
  void note_append(Segment& tail, Extent extent, std::span<const Bytes> batches);
  [[nodiscard]] bool committed() const noexcept;
  std::shared_ptr<SegmentFile> drop_segment(Segment& segment);
  [[nodiscard]] std::chrono::milliseconds delete_delay() const;

  // segment_compact.cpp
  void adopt(Core::Swap& swap);

  // segment_read.cpp
  void take_loaded() const;
  void install_index(const Core::Loaded& loaded) const;
  void keep_index(std::uint32_t ordinal) const;
  [[nodiscard]] ReadState& reads() const;
  [[nodiscard]] std::size_t segment_of(Sequence sequence) const;
  [[nodiscard]] bool is_warm(const Segment& segment, const File& file, std::uint64_t position,
                             std::uint64_t size) const;
  [[nodiscard]] std::variant<Miss, Error> miss_pages(const Segment& segment, std::uint64_t position,
                                                     std::uint64_t size) const;
  [[nodiscard]] std::variant<Miss, Error> miss_index(const Segment& segment) const;
  Maybe<std::shared_ptr<File>> open_for_read(const Segment& segment) const;
  [[nodiscard]] std::unexpected<std::variant<Miss, Error>> damaged(const Segment& segment,
                                                                   Error why) const;
  Maybe<Place> locate(const Segment& segment, const File& file, Sequence sequence) const;
  Maybe<Place> boundary_before(const Segment& segment, const File& file, Place from,
                               std::uint64_t limit) const;
  Maybe<Place> read_end(const Segment& segment, const File& file, Place from,
                        const ReadRequest& request) const;
  Maybe<Place> first_batch(const Segment& segment, const File& file, Place from,
                           std::uint64_t limit) const;
  [[nodiscard]] std::uint64_t warm_end(const Segment& segment, const File& file,
                                       std::uint64_t begin, std::uint64_t end) const;
  Maybe<Place> read_segment(const Segment& segment, const ReadRequest& request,
                            std::vector<Slice>& out) const;
  void remember(const Segment& segment, Place place) const;
  [[nodiscard]] const Place* hinted(const Segment& segment, Sequence sequence) const;

  // segment_find.cpp
  struct Span {  // batches that hold records of [from, below)
    Sequence from, below;
  };
  Maybe<std::optional<TimePosition>> find_in(const Segment& segment, Span span,
                                             Timestamp at_least) const;
  Maybe<Timestamp> max_in(const Segment& segment, Span span) const;
  template <class Visit>  // bool visit(header): go on
  Maybe<bool> walk_block(const Segment& segment, std::size_t block, Visit&& visit) const;

  const std::shared_ptr<Core> core_;
  LogOptions options_;
  mutable std::vector<Segment> segments_;  // const reads install loaded indexes
  mutable std::unique_ptr<ReadState> reads_;
  Sequence start_{1}, end_{1};
  Sequence hold_until_{1};       // staged for a sync before configure() asked for none
  Sequence committed_floor_{1};  // committed without a sync before configure() asked for one
  std::uint64_t bytes_ = 0;
  std::atomic<std::uint64_t> generation_ = 0;  // changed under the lock, read without
  LeaderEpoch last_epoch_{-1};
  bool created_ = false;
};

}  // namespace kanal::log
