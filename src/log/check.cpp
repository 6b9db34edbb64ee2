#include "kanal/log/check.hpp"

#include "channel_file.hpp"
#include "check_channel.hpp"
#include "check_overlay.hpp"
#include "journal.hpp"

#include <algorithm>
#include <cerrno>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace kanal::log {
namespace {

constexpr std::uint64_t kMaxSavedFile = std::uint64_t{4} << 30;
using SavedChannels = std::unordered_map<std::string, SavedChannel>;

class Idle final : public Executor {
 public:
  void post(std::move_only_function<void()>) override {}
};
class StoppedClock final : public Clock {
 public:
  [[nodiscard]] Time now() const noexcept override { return {}; }
  [[nodiscard]] Timestamp wall() const noexcept override { return Timestamp(0); }
};

class DirectoryWalk {
 public:
  DirectoryWalk(FileSystem& files, const ChannelCheck& check)
      : below_(files), files_(files), check_(check) {}
  Result<ChannelFigures> run();

 private:
  [[nodiscard]] std::string path(std::string_view name) const {
    return check_.directory + "/" + std::string(name);
  }
  void tell(Weight weight, const std::string& file, std::string text) {
    check_.found({weight, file, std::nullopt, std::move(text)});
  }
  Result<void> replay_journal();
  void tell_replayed(const std::string& file, const OverlayFiles::Written& written);
  std::optional<SavedChannels> read_saved(std::string_view name);
  Result<void> choose_saved();
  std::vector<ChannelId> channels(const std::vector<DirectoryEntry>& entries);
  std::optional<ChannelId> identify(const std::string& name);
  void look_over(const std::vector<DirectoryEntry>& entries,
                 const std::unordered_set<std::string>& expected);
  void tell_left_over(const std::string& directory, std::string what);
  void check_unknown_names(const std::vector<ChannelId>& all);

  FileSystem& below_;
  OverlayFiles files_;  // as a start would have them once it has replayed the journal
  const ChannelCheck& check_;
  SavedChannels saved_;
  std::string saved_file_;
  bool trusted_ = false;
};

Result<ChannelFigures> DirectoryWalk::run() {
  ChannelFigures figures;
  const auto exists = files_.exists(check_.directory);
  if (!exists) return std::unexpected(exists.error());
  if (!*exists) {
    if (check_.channels && !check_.channels->empty()) {
      tell(Weight::kDamage, check_.directory,
           "the directory is missing: all topics come back without records");
    }
    return figures;
  }
  if (auto done = replay_journal(); !done) return std::unexpected(std::move(done.error()));
  if (auto done = choose_saved(); !done) return std::unexpected(std::move(done.error()));
  auto entries = files_.list(check_.directory);
  if (!entries) return std::unexpected(std::move(entries.error()));
  std::ranges::sort(*entries, {}, &DirectoryEntry::name);
  const std::vector<ChannelId> all = channels(*entries);
  std::unordered_set<std::string> expected;
  for (const ChannelId& id : all) expected.insert(directory_name(id));
  look_over(*entries, expected);
  check_unknown_names(all);
  for (const ChannelId& id : all) {
    const auto known = saved_.find(id.name);
    const bool ours = known != saved_.end() && known->second.id.topic_id == id.topic_id &&
                      known->second.id.partition == id.partition;
    const SavedFile saved{saved_file_, ours ? &known->second : nullptr,
                          ours && trusted_ && known->second.clean};
    const auto bounds = check_channel(files_, id, saved, check_, figures);
    if (!bounds) {
      tell(Weight::kDamage, check_.directory + "/" + directory_name(id),
           "it cannot be looked at: " + bounds.error().detail);
      continue;
    }
    if (check_.bounds) check_.bounds(id, to_offset(bounds->start), to_offset(bounds->end));
    if (check_.progress) check_.progress(figures);
  }
  return figures;
}

Result<void> DirectoryWalk::replay_journal() {
  const std::string file = path(kJournalFile);
  auto journal = below_.open(file, OpenMode::kRead);
  if (!journal && journal.error().os_error == ENOENT) return {};
  const auto size = journal ? (*journal)->size() : std::unexpected(journal.error());
  if (!size) {
    tell(Weight::kDamage, file, "it cannot be read: " + size.error().detail);
    return {};
  }
  Idle helpers;
  const StoppedClock clock;
  const auto replay = std::make_shared<Journal>(Journal::Base{files_, helpers, clock},
                                                Journal::Options{check_.directory, *size / 2, 0});
  if (auto done = replay->replay(); !done) {
    tell(Weight::kDamage, file, done.error().detail + " No partition opens");
    return {};
  }
  if (!replay->damage().empty()) {
    tell(Weight::kDamage, file,
         "it is damaged: records that were acknowledged after a sync may be missing." +
             replay->damage());
  }
  for (const auto& [name, written] : files_.written()) {
    if (name != file) tell_replayed(name, *written);
  }
  return {};
}

/// What the journal has and the segment lacks.
void DirectoryWalk::tell_replayed(const std::string& file, const OverlayFiles::Written& written) {
  auto segment = below_.open(file, OpenMode::kRead);
  if (!segment) return;
  std::uint64_t bytes = 0;
  for (const auto& piece : written.pieces) {
    Buffer there(piece.bytes.size());
    const auto got = (*segment)->read_at(piece.position, there);
    if (!got || *got < there.size() || there != piece.bytes) bytes += piece.bytes.size();
  }
  if (bytes == 0) return;
  tell(Weight::kRecoverable, file,
       "the journal has " + std::to_string(bytes) +
           " bytes that are not in it: a start writes them there");
}

std::optional<SavedChannels> DirectoryWalk::read_saved(std::string_view name) {
  const auto bytes = read_file(files_, path(name), kMaxSavedFile);
  if (!bytes) {
    if (bytes.error().os_error != ENOENT) {
      tell(Weight::kDamage, path(name), "it cannot be read: " + bytes.error().detail);
    }
    return std::nullopt;
  }
  auto channels = decode_all(*bytes);
  if (channels) return std::move(*channels);
  tell(Weight::kRepairable, path(name),
       "it is damaged: " + channels.error().detail +
           "; logs are scanned from their checkpoints or their first byte instead");
  return std::nullopt;
}

Result<void> DirectoryWalk::choose_saved() {
  const auto clean = files_.exists(path(kCleanFile));
  if (!clean) return std::unexpected(clean.error());
  auto mark = read_saved(kCleanFile);
  auto points = read_saved(kPointsFile);
  trusted_ = *clean && mark.has_value();
  saved_file_ = path(trusted_ ? kCleanFile : kPointsFile);
  if (mark) {
    saved_ = std::move(*mark);
  } else if (points) {
    saved_ = std::move(*points);
  }
  return {};
}

/// Those of the catalog; without one, what the directories say of themselves.
std::vector<ChannelId> DirectoryWalk::channels(const std::vector<DirectoryEntry>& entries) {
  if (check_.channels) return *check_.channels;
  std::vector<ChannelId> all;
  for (const DirectoryEntry& entry : entries) {
    if (!entry.is_directory || entry.name.starts_with('.')) continue;
    if (auto id = identify(entry.name)) all.push_back(std::move(*id));
  }
  return all;
}

std::optional<ChannelId> DirectoryWalk::identify(const std::string& name) {
  const auto parsed = parse_channel_name(name);
  if (!parsed) return std::nullopt;  // of long names the directory has only a part
  ChannelId id{name, {}, parsed->partition};
  const auto channel = read_channel_file(files_, path(name) + "/" + std::string(kChannelFile));
  if (channel) id.topic_id = channel->state.topic_id;
  return id;
}

void DirectoryWalk::look_over(const std::vector<DirectoryEntry>& entries,
                              const std::unordered_set<std::string>& expected) {
  for (const DirectoryEntry& entry : entries) {
    const std::string& name = entry.name;
    if (expected.contains(name) && entry.is_directory) continue;
    if (name == kCleanFile || name == kPointsFile || name == kJournalFile) continue;
    if (name == kRemovedDirectory) {
      tell_left_over(path(name), "deleted channels and segments, removed at a start");
    } else if (name == kStrayDirectory) {
      tell_left_over(path(name), "channels that belonged to no topic, kept for you");
    } else if (entry.is_directory && name.starts_with("kafka.")) {
      tell(check_.channels ? Weight::kNote : Weight::kDamage, path(name),
           check_.channels
               ? "a channel of no topic: of one that was deleted, or copied here; it is "
                 "left alone, and moved to .stray if a topic of that name is made"
               : "without the catalog nobody knows whose it is");
    } else if (name.starts_with(std::string(kJournalFile) + std::string(kDamagedSuffix))) {
      tell(Weight::kNote, path(name), "a damaged journal that a start kept for you");
    } else if (name.ends_with(".tmp")) {
      tell(Weight::kNote, path(name), "the unfinished beginning of a file");
    } else {
      tell(Weight::kNote, path(name), "not a file of kanald");
    }
  }
}

void DirectoryWalk::tell_left_over(const std::string& directory, std::string what) {
  const auto entries = files_.list(directory);
  if (!entries) return tell(Weight::kDamage, directory, "it cannot be listed");
  if (entries->empty()) return;
  tell(Weight::kNote, directory, std::to_string(entries->size()) + " " + what);
}

/// What the last stop knew and the catalog does not.
void DirectoryWalk::check_unknown_names(const std::vector<ChannelId>& all) {
  if (!check_.channels) return;
  std::unordered_set<std::string_view> names;
  for (const ChannelId& id : all) names.insert(id.name);
  std::size_t unknown = 0;
  for (const auto& [name, channel] : saved_) unknown += names.contains(name) ? 0 : 1;
  if (unknown == 0) return;
  tell(Weight::kNote, saved_file_,
       "it knows " + std::to_string(unknown) + " channels of topics that were deleted since");
}

}  // namespace

Result<ChannelFigures> check_channels(FileSystem& files, const ChannelCheck& check) {
  return DirectoryWalk(files, check).run();
}

}  // namespace kanal::log
