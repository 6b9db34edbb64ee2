#include "check_channel.hpp"

#include "blob.hpp"
#include "channel_file.hpp"
#include "damage.hpp"
#include "segment.hpp"

#include "kanal/log/partition.hpp"

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

namespace kanal::log {
namespace {

constexpr std::uint64_t kMaxSmallFile = std::uint64_t{1} << 30;

/// A checkpoint that says something about this channel.
struct Statement {
  std::string file;
  Layout layout;
  Sequence upto{1};
  bool trusted = false;
  std::vector<EpochEntry> epochs;
};

class ChannelWalk {
 public:
  ChannelWalk(FileSystem& files, const ChannelId& id, const ChannelCheck& check,
              ChannelFigures& figures)
      : files_(files),
        id_(id),
        check_(check),
        figures_(figures),
        directory_(check.directory + "/" + directory_name(id)) {}
  Result<LogBounds> run(const SavedFile& saved);

 private:
  [[nodiscard]] std::string path(std::string_view name) const {
    return directory_ + "/" + std::string(name);
  }
  [[nodiscard]] SegmentId id_of(Sequence base) const { return record_.file_of(base); }
  void tell(Weight weight, const std::string& file, std::string text) {
    check_.found({weight, file, std::nullopt, std::move(text)});
  }
  Result<void> list();
  Result<void> choose_segments(std::vector<SegmentId> found);
  Result<void> read_checkpoint();
  void add_statement(const std::string& file, const SavedChannel& saved, bool trusted);
  Result<void> read_channel();
  Result<void> check_segments();
  void check_gap_before(Sequence base, Sequence expected);
  void judge_end(const SegmentFound& found, const SegmentCheck& segment, bool last);
  /// Nothing where it is missing or damaged, which is told once.
  std::optional<IndexFile> read_index(Sequence base, bool tells);
  /// What the checkpoints say of the segment.
  void vouch(SegmentCheck& check) const;
  void check_statements();
  void check_trusted(const Statement& statement);
  /// The next start takes bytes of this segment behind `position` for granted.
  [[nodiscard]] const Statement* vouching(Sequence end) const;

  FileSystem& files_;
  const ChannelId& id_;
  const ChannelCheck& check_;
  ChannelFigures& figures_;
  const std::string directory_;
  std::vector<Sequence> bases_;
  std::map<Sequence, std::uint64_t> sizes_;
  std::vector<SegmentId> indexes_;
  CompactionRecord record_;
  std::vector<Statement> statements_;
  LeaderEpoch checkpoints_from_{-1};
  std::optional<ChannelState> channel_;
  LeaderEpoch epoch_{-1};
  LogBounds bounds_;
  bool ended_ = false;  // damage was met: what follows is looked at, but is not part of the bounds
};

Result<LogBounds> ChannelWalk::run(const SavedFile& saved) {
  const auto exists = files_.exists(directory_);
  if (!exists) return std::unexpected(exists.error());
  if (*exists) checkpoints_from_ = checkpoints_count_from(files_, directory_);
  if (saved.channel != nullptr) add_statement(saved.path, *saved.channel, saved.trusted);
  if (!*exists) {
    for (const Statement& statement : statements_) {
      if (!statement.layout.created) continue;
      tell(Weight::kDamage, directory_,
           "the directory is missing, '" + statement.file +
               "' knows it: all records of the partition are lost, it does not open");
    }
    return bounds_;
  }
  ++figures_.channels;
  if (auto done = list(); !done) return std::unexpected(std::move(done.error()));
  if (auto done = read_checkpoint(); !done) return std::unexpected(std::move(done.error()));
  if (auto done = read_channel(); !done) return std::unexpected(std::move(done.error()));
  if (auto done = check_segments(); !done) return std::unexpected(std::move(done.error()));
  check_statements();
  return bounds_;
}

Result<void> ChannelWalk::list() {
  auto entries = files_.list(directory_);
  if (!entries) return std::unexpected(std::move(entries.error()));
  std::ranges::sort(*entries, {}, &DirectoryEntry::name);
  std::vector<SegmentId> segments;
  for (const DirectoryEntry& entry : *entries) {
    const std::string& name = entry.name;
    if (!entry.is_directory) {
      if (const auto id = parse_segment(name)) {
        segments.push_back(*id);
        continue;
      }
      if (const auto id = parse_index(name)) {
        indexes_.push_back(*id);
        continue;
      }
      if (name == kChannelFile || name == kCheckpointFile || name == kCompactionFile) continue;
    }
    if (name == kRescanFile) {
      tell(Weight::kNote, path(name),
           "the log was cut, or a reader met damage in it: checkpoints from before do not count");
    } else if (name.find(kAsideSuffix) != std::string::npos) {
      tell(Weight::kNote, path(name), "what recovery took out of the log and kept");
    } else if (name.ends_with(".tmp")) {
      tell(Weight::kNote, path(name), "the unfinished beginning of a file, removed at a start");
    } else {
      tell(Weight::kNote, path(name), "not a file of kanald");
    }
  }
  std::ranges::sort(indexes_);
  std::ranges::sort(segments);
  for (const SegmentId& id : indexes_) {
    if (std::ranges::binary_search(segments, id)) continue;
    tell(Weight::kNote, path(index_name(id)), "an index without its segment");
  }
  return choose_segments(std::move(segments));
}

/// As recovery does: of what compaction lists that counts, and nothing it took the place of.
Result<void> ChannelWalk::choose_segments(std::vector<SegmentId> found) {
  const std::string file = path(kCompactionFile);
  auto stored = read_compaction(files_, file);
  if (!stored) return std::unexpected(std::move(stored.error()));
  const bool any = std::ranges::any_of(found, [](SegmentId id) { return id.generation != 0; });
  using Condition = StoredCompaction::Condition;
  if (stored->condition == Condition::kRepaired) {
    tell(Weight::kRepairable, file, "one of its two copies is damaged; the other is used");
  } else if (stored->condition == Condition::kDamaged) {
    tell(any ? Weight::kDamage : Weight::kRepairable, file,
         "it is damaged: " + stored->why +
             (any ? ". Nobody knows which segments count, the partition does not open"
                  : "; the next pass of compaction begins at the start of the log"));
  }
  record_ = std::move(stored->record);
  for (const SegmentId& id : found) {
    if (record_.counts(id)) {
      bases_.push_back(id.base);
    } else {
      tell(Weight::kNote, path(segment_name(id)),
           "it is not part of the log: of a swap that was not decided, or is done");
    }
  }
  return {};
}

void ChannelWalk::add_statement(const std::string& file, const SavedChannel& saved, bool trusted) {
  auto layout = decode_layout(saved.checkpoint.layout);
  if (!layout) {
    return tell(Weight::kRepairable, file,
                "the layout of " + id_.name + " cannot be read: " + layout.error().detail +
                    "; the log is scanned from its first byte instead");
  }
  if (!trusted && layout->last_epoch < checkpoints_from_) return;
  if (layout->end != saved.checkpoint.upto && trusted) {
    tell(Weight::kRepairable, file, "what it says of " + id_.name + " does not agree in itself");
    trusted = false;
  }
  auto epochs = Partition::check_state(saved.checkpoint.state, saved.checkpoint.upto);
  if (!epochs) {
    tell(Weight::kRepairable, file,
         "the producers' state of " + id_.name + " cannot be read: " + epochs.error().detail +
             " It is made from the batches that are left");
    epochs.emplace();
  }
  statements_.push_back(
      {file, std::move(*layout), saved.checkpoint.upto, trusted, std::move(*epochs)});
}

Result<void> ChannelWalk::read_checkpoint() {
  const std::string file = path(kCheckpointFile);
  const auto own = log::read_checkpoint(files_, file);
  if (!own && own.error().os_error == ENOENT) return {};
  if (!own && own.error().os_error != 0) return std::unexpected(own.error());
  if (!own) {
    tell(Weight::kRepairable, file,
         "it is damaged: " + own.error().detail +
             "; the log is scanned from an older recovery point or its first byte instead");
    return {};
  }
  if (own->id.topic_id != id_.topic_id || own->id.partition != id_.partition) {
    tell(Weight::kRepairable, file, "it is another topic's, or another partition's: not used");
    return {};
  }
  add_statement(file, *own, false);
  return {};
}

Result<void> ChannelWalk::read_channel() {
  const std::string file = path(kChannelFile);
  const auto channel = read_channel_file(files_, file);
  if (!channel) {
    if (channel.error().os_error != 0) return std::unexpected(channel.error());
    tell(Weight::kDamage, file, channel.error().detail + ": the partition does not open");
    return {};
  }
  const bool known = std::ranges::any_of(
      statements_, [](const Statement& statement) { return statement.layout.created; });
  const bool trusted = std::ranges::any_of(statements_, &Statement::trusted);
  const std::string from_checkpoint = "; it is made again from the checkpoint";
  switch (channel->condition) {
    case ChannelFile::Condition::kRepaired:
      tell(trusted ? Weight::kRepairable : Weight::kRecoverable, file,
           "one of its two copies is damaged; the other is used");
      [[fallthrough]];
    case ChannelFile::Condition::kSound:
      channel_ = channel->state;
      break;
    case ChannelFile::Condition::kUnwritten:
      if (known) {
        tell(Weight::kRepairable, file, "it is missing or was never written" + from_checkpoint);
      } else {
        tell(Weight::kRecoverable, file,
             "it is missing or was never completely written; it is made again");
      }
      break;
    case ChannelFile::Condition::kDamaged:
      tell(known ? Weight::kRepairable : Weight::kDamage, file,
           "both of its copies are damaged" +
               (known ? from_checkpoint : ": the partition does not open"));
      break;
  }
  if (!channel_) return {};
  if (channel_->topic_id != id_.topic_id || channel_->partition != id_.partition) {
    tell(Weight::kDamage, file,
         "the directory belongs to topic id " + to_string(channel_->topic_id) + ", partition " +
             std::to_string(channel_->partition.value()) + ", the catalog has " +
             to_string(id_.topic_id) + ": a start moves it to .stray and begins an empty log");
  }
  return {};
}

Result<void> ChannelWalk::check_segments() {
  Sequence start = bases_.empty() ? Sequence(1) : bases_.front();
  if (channel_) {
    start = channel_->start;
  } else {
    for (const Statement& statement : statements_) start = statement.layout.start;
  }
  bounds_ = {start, start};
  for (const CompactedSegment& segment : record_.segments) {  // what was trimmed is still listed
    if (segment.end <= start || std::ranges::binary_search(bases_, segment.id.base)) continue;
    tell(Weight::kDamage, path(segment_name(segment.id)),
         "it is missing, compaction lists it: the partition does not open");
  }
  if (!bases_.empty() && bases_.front() > start) {
    tell(Weight::kDamage, path(segment_name(id_of(bases_.front()))),
         "the log starts at offset " + std::to_string(to_offset(start).value()) +
             " but this is its first file: segments are missing, the partition does not open");
  }
  Sequence expected = bases_.empty() ? start : bases_.front();
  for (std::size_t i = 0; i < bases_.size(); ++i) {
    const Sequence base = bases_[i];
    const bool last = i + 1 == bases_.size();
    if (base != expected) check_gap_before(base, expected);
    const auto index = read_index(base, true);
    SegmentCheck segment;
    segment.path = path(segment_name(id_of(base)));
    segment.base = base;
    segment.compacted = record_.find(base);
    if (segment.compacted == nullptr) segment.epoch = epoch_;
    if (index) segment.index = &*index;
    segment.index_path = path(index_name(id_of(base)));
    vouch(segment);
    const auto found = check_segment(files_, segment, check_, figures_);
    if (!found) {
      check_.found({Weight::kDamage, segment.path, std::nullopt,
                    "it cannot be read: " + found.error().detail});
      ended_ = true;
      continue;
    }
    sizes_[base] = found->size;
    epoch_ = std::max(epoch_, found->epoch);
    expected = found->next;
    if (!ended_) bounds_.end = std::max(start, found->next);
    if (!found->damage.empty()) judge_end(*found, segment, last);
    if (found->behind && !last) expected = bases_[i + 1];  // it was told
  }
  return {};
}

void ChannelWalk::check_gap_before(Sequence base, Sequence expected) {
  const bool first = !std::exchange(ended_, true);
  if (!first) return;
  const std::string text = "the segment before it ends at offset " +
                           std::to_string(to_offset(expected).value()) + ", this one begins at " +
                           std::to_string(to_offset(base).value());
  const bool sealed = [&] {
    const auto before = std::ranges::lower_bound(bases_, base);
    const auto index = before == bases_.begin() ? std::nullopt : read_index(*(before - 1), false);
    return index && index->sealed;
  }();
  if (sealed || vouching(expected) != nullptr) {
    tell(Weight::kDamage, path(segment_name(id_of(base))), text + ": the partition does not open");
  } else {
    tell(Weight::kRecoverable, path(segment_name(id_of(base))),
         text + ": a power cut right after that one was full; a start sets this one aside");
  }
}

/// Nothing sound follows the damage in this segment.
void ChannelWalk::judge_end(const SegmentFound& found, const SegmentCheck& segment, bool last) {
  const std::string& file = segment.path;
  if (found.behind) {
    ended_ = true;
    return;
  }
  const std::string where = std::to_string(found.size - found.sound) +
                            " bytes at its end are no batch (" + found.damage + ")";
  if (segment.compacted != nullptr) {
    ended_ = true;
    check_.found({Weight::kDamage, file, found.sound,
                  where + ", in a segment that compaction wrote: the partition does not open"});
    return;
  }
  if (const Statement* statement = vouching(found.next)) {
    ended_ = true;
    check_.found({Weight::kDamage, file, found.sound,
                  where + ", but '" + statement->file + "' vouches for offsets up to " +
                      std::to_string(to_offset(statement->upto).value()) +
                      ": the partition does not open"});
    return;
  }
  std::string does = last ? "; a start cuts them off: they are what a crash left of records that "
                            "were not acknowledged, or not synced"
                          : "; a start cuts them off";
  check_.found({Weight::kRecoverable, file, found.sound, where + does});
}

std::optional<IndexFile> ChannelWalk::read_index(Sequence base, bool tells) {
  if (!std::ranges::binary_search(indexes_, id_of(base))) return std::nullopt;
  const std::string file = path(index_name(id_of(base)));
  const auto bytes = read_file(files_, file, kMaxSmallFile);
  if (!bytes) {
    if (tells) tell(Weight::kRepairable, file, "it cannot be read: " + bytes.error().detail);
    return std::nullopt;
  }
  auto index = decode_index(*bytes);
  if (index && index->base == base) return std::move(*index);
  if (!tells) return std::nullopt;
  // Written behind the log's back and not always synced; but a clean stop has waited for it.
  const bool clean = std::ranges::any_of(statements_, &Statement::trusted);
  const bool torn = std::ranges::all_of(*bytes, [](std::byte b) { return b == std::byte{0}; }) ||
                    bytes->size() < blob_size(*bytes);
  tell(torn && !clean ? Weight::kRecoverable : Weight::kRepairable, file,
       "the index is damaged: " + (index ? "it is another segment's" : index.error().detail) +
           "; it is made again when it is needed");
  return std::nullopt;
}

void ChannelWalk::vouch(SegmentCheck& check) const {
  for (const Statement& statement : statements_) {
    for (const SegmentLayout& segment : statement.layout.segments) {
      if (SegmentId{segment.base, segment.generation} == id_of(check.base))
        check.vouched.push_back({segment.size, segment.end, &statement.file});
    }
    if (statement.upto <= check.epochs_upto || statement.epochs.empty()) continue;
    check.epochs = statement.epochs;
    check.epochs_upto = statement.upto;
  }
  std::ranges::sort(check.vouched, {}, &Vouched::position);
}

const Statement* ChannelWalk::vouching(Sequence end) const {
  for (const Statement& statement : statements_) {
    if (statement.upto > end) return &statement;
  }
  return nullptr;
}

void ChannelWalk::check_statements() {
  for (const Statement& statement : statements_) {
    if (statement.trusted) check_trusted(statement);
    if (ended_ || statement.upto <= bounds_.end) continue;
    tell(Weight::kDamage, bases_.empty() ? directory_ : path(segment_name(id_of(bases_.back()))),
         "the log ends at offset " + std::to_string(to_offset(bounds_.end).value()) + ", but '" +
             statement.file + "' vouches for offsets up to " +
             std::to_string(to_offset(statement.upto).value()) +
             ": records are missing, the partition does not open");
  }
}

/// The next start opens the log from this alone.
void ChannelWalk::check_trusted(const Statement& statement) {
  const Layout& layout = statement.layout;
  if (channel_ && channel_->start != layout.start) {
    tell(Weight::kDamage, path(kChannelFile),
         "it says that the log starts at offset " +
             std::to_string(to_offset(channel_->start).value()) + ", the last stop says " +
             std::to_string(to_offset(layout.start).value()));
  }
  for (const SegmentLayout& segment : layout.segments) {
    const SegmentId id{segment.base, segment.generation};
    const std::string file = path(segment_name(id));
    const auto size = sizes_.find(segment.base);
    if (id != id_of(segment.base) || size == sizes_.end()) {
      if (id != id_of(segment.base) || !std::ranges::binary_search(bases_, segment.base)) {
        tell(Weight::kDamage, file,
             "it is missing, or not part of the log any more; the last stop left it there");
      }
    } else if (size->second != segment.size) {
      tell(Weight::kDamage, file,
           "it has " + std::to_string(size->second) + " bytes, the last stop left " +
               std::to_string(segment.size));
    }
  }
  for (const Sequence base : bases_) {
    if (std::ranges::find(layout.segments, base, &SegmentLayout::base) == layout.segments.end()) {
      tell(Weight::kNote, path(segment_name(id_of(base))),
           "the last stop does not know it: trimmed away and not removed yet");
    }
  }
}

}  // namespace

Result<LogBounds> check_channel(FileSystem& files, const ChannelId& id, const SavedFile& saved,
                                const ChannelCheck& check, ChannelFigures& figures) {
  return ChannelWalk(files, id, check, figures).run(saved);
}

}  // namespace kanal::log
