// One channel's recovery, step by step: recovery.cpp has the way through, recovery_cut.cpp what is
// taken out of the log. An object serves one open(), on a helper thread. `cutting_`: the log is
// damaged in the middle and log.recovery=truncate; it is scanned once more from its first byte and
// ends before the damage.
#pragma once

#include "compaction_record.hpp"
#include "damage.hpp"
#include "recovery.hpp"
#include "scan.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kanal::log {

class Recovery {
 public:
  Recovery(Core& core, const LogOptions& options, std::optional<SavedChannel> saved)
      : core_(core),
        files_(core.store().files),
        interval_(
            static_cast<std::uint64_t>(std::max<std::int64_t>(options.index_interval_bytes, 1))),
        saved_(std::move(saved)) {}

  Result<Recovered> run();

 private:
  Result<void> read_channel(const std::vector<Sequence>& bases);
  void choose_checkpoint();
  void use_saved(const std::string& name);
  [[nodiscard]] bool is_void(const SavedChannel& saved) const;
  Result<std::vector<Sequence>> list_segments();
  Result<void> read_compaction_record(bool any_compacted);
  Result<void> remove_trimmed(std::vector<Sequence>& bases);
  Result<void> recover_segments(const std::vector<Sequence>& bases);
  Result<void> check_listed();
  Result<void> check_ends(const std::vector<Sequence>& bases);
  /// False: the log ends in this segment, the later ones are set aside.
  Result<bool> recover_segment(Sequence base, std::optional<Sequence> next);
  Result<bool> recover_compacted(const CompactedSegment& found, std::optional<Sequence> next);
  Result<void> scan_compacted(const CompactedSegment& found, const File& file);
  Result<bool> judge_tail(Segment& segment, File& file, std::uint64_t size, const Scanned& scanned,
                          std::optional<Sequence> next);
  [[nodiscard]] bool was_sealed(const Segment& segment);
  void keep_index(const Segment& segment);
  void drop_stale_index(const Segment& segment);
  Result<void> cut(Segment& segment, File& file, std::uint64_t size, const std::string& why);
  Result<void> set_aside(const std::vector<Sequence>& bases, std::size_t from);
  Result<void> go_on_from(Sequence start, std::string why);
  Result<void> cut_damage(const std::vector<Sequence>& bases);
  Result<void> cut_off(Segment& segment, std::uint64_t size, const std::string& why);
  Result<void> void_checkpoints_above(Sequence end);
  Result<bool> cut_compacted(CompactedSegment found, std::uint64_t size,
                             std::optional<Sequence> next);
  Result<bool> end_before_compacted(std::string why);
  Result<void> end_compacted_log();
  Result<void> drop_trimmed();
  Result<void> secure_start();
  Result<void> remove_segment(SegmentId id);
  Result<void> remove_unlisted();
  Result<void> keep_unlisted();
  Result<void> rewrite_channel(std::string why);
  Segment& add_segment(Sequence base);
  [[nodiscard]] const SegmentLayout* known(Sequence base) const;
  [[nodiscard]] SegmentId id_of(Sequence base) const { return record_.file_of(base); }
  [[nodiscard]] std::string name_of(Sequence base) const {
    return "'" + core_.path(segment_name(id_of(base))) + "'";
  }
  [[nodiscard]] std::unexpected<Error> damaged(Sequence base, std::uint64_t position,
                                               std::string_view why);
  [[nodiscard]] std::unexpected<Error> damaged(std::string what);
  void report(std::string sentence);
  void report_loss(std::string sentence);

  Core& core_;
  FileSystem& files_;
  const std::uint64_t interval_;
  std::optional<SavedChannel> saved_;
  Layout layout_;  // of the chosen checkpoint
  CompactionRecord record_;
  std::vector<SegmentId> live_;      // files that are there and count
  std::vector<SegmentId> unlisted_;  // files of swaps that were not decided, or are done
  LeaderEpoch checkpoints_from_{-1};
  std::string damage_;    // what log.recovery=truncate is asked for
  bool cutting_ = false;  // log.recovery=truncate at work
  bool record_changed_ = false;
  bool ends_before_ = false;          // the log ends before the segment just looked at
  std::optional<Checkpoint> beyond_;  // while cutting: it may lie behind the cut
  Recovered result_;
};

}  // namespace kanal::log
