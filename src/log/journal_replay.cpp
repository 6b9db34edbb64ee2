// What a start does with the journal that the last process left.
#include "journal.hpp"

#include "blob.hpp"
#include "channel_file.hpp"
#include "damage.hpp"

#include "kanal/base/logging.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <utility>

namespace kanal::log {

struct Journal::Found {
  std::uint64_t half_bytes = 0;
  std::vector<JournalRecord> records;  // in order
  std::uint64_t last_use = 0, last_number = 0;
  bool was_made = true;  // false: the process ended while it made the file
};

namespace {

bool is_zero(Bytes bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

using Pieces = std::vector<JournalPiece>;  // of one segment, in order

/// Whose a directory is. Where the file that says so is damaged, a checkpoint in the directory
/// does, as for recovery, which makes that file anew from it.
Result<ChannelFile> identify(FileSystem& files, const std::string& directory) {
  auto channel = read_channel_file(files, directory + "/" + std::string(kChannelFile));
  if (!channel || channel->condition != ChannelFile::Condition::kDamaged) return channel;
  const auto saved = read_checkpoint(files, directory + "/" + std::string(kCheckpointFile));
  if (!saved && saved.error().os_error != 0 && saved.error().os_error != ENOENT)
    return std::unexpected(saved.error());
  if (!saved) return channel;
  channel->condition = ChannelFile::Condition::kRepaired;
  channel->state.topic_id = saved->id.topic_id;
  channel->state.partition = saved->id.partition;
  return channel;
}

struct Tally {
  std::size_t pieces = 0, skipped = 0, files = 0;
  std::uint64_t bytes = 0;
};

/// Redoes the writes; what is there already stays as it is. False: the file ends before some.
Result<bool> write_pieces(FileSystem& files, const std::string& path, const Pieces& pieces,
                          Tally& tally, std::string& damage) {
  auto file = files.open(path, OpenMode::kReadWrite);
  if (!file && file.error().os_error == ENOENT) {  // trimmed away after it had been synced
    tally.skipped += pieces.size();
    return true;
  }
  if (!file) return std::unexpected(std::move(file.error()));
  const auto found = (*file)->size();
  if (!found) return std::unexpected(found.error());
  std::uint64_t size = *found;
  bool joins = true;
  for (const JournalPiece& piece : pieces) {
    if (piece.position > size) {
      ++tally.skipped;
      if (!std::exchange(joins, false)) continue;
      damage += " The journal has bytes of '" + path + "' from position " +
                std::to_string(piece.position) + " on, but the file ends at " +
                std::to_string(size) + ".";
      continue;
    }
    const std::array bytes{piece.bytes};
    if (auto done = (*file)->write_at(piece.position, bytes); !done)
      return std::unexpected(std::move(done.error()));
    size = std::max(size, piece.position + piece.bytes.size());
    tally.bytes += piece.bytes.size();
    ++tally.pieces;
  }
  ++tally.files;
  if (auto done = (*file)->sync(); !done) return std::unexpected(std::move(done.error()));
  return joins;
}

}  // namespace

Result<void> Journal::replay() {
  auto file = base_.files.open(path(), OpenMode::kReadWrite);
  if (!file && file.error().os_error == ENOENT) return {};
  if (!file) return std::unexpected(std::move(file.error()));
  const auto size = (*file)->size();
  if (!size) return std::unexpected(size.error());
  auto found = read(**file, *size);
  if (!found) return std::unexpected(std::move(found.error()));
  apply(*found);
  if (!damage_.empty()) {
    if (auto done = keep_damaged(); !done) return done;
  }
  if (!complete()) {  // those channels stay closed; the next start tries again
    turn_.with([&] { phase_ = Phase::kDead; });
    return {};
  }
  return damage_.empty() ? reset(std::move(*file), *size, *found) : Result<void>{};
}

/// Under another name, unless the next start needs it.
Result<void> Journal::keep_damaged() {
  std::string kept = path();
  if (complete()) {
    auto aside = name_aside(base_.files, path(), kDamagedSuffix);
    if (!aside) return std::unexpected(std::move(aside.error()));
    if (auto done = base_.files.rename(path(), *aside); !done) return done;
    if (auto done = base_.files.sync_directory(options_.directory); !done) return done;
    kept = std::move(*aside);
  }
  logger("log").error(
      "The shared journal is damaged: records that were acknowledged may be missing. The file is "
      "kept. kept=\"{}\" what=\"{}\"",
      kept, damage_);
  return {};
}

Result<Journal::Found> Journal::read(File& file, std::uint64_t size) {
  Found found;
  found.half_bytes = size / 2;
  std::vector<JournalHalf> halves;
  std::size_t zero = 0;
  for (const std::uint64_t at : {std::uint64_t{0}, found.half_bytes}) {
    Buffer block(kJournalBlock);
    const auto got = file.read_at(at, block);
    if (!got) return std::unexpected(got.error());
    if (is_zero(block)) {
      ++zero;
      continue;
    }
    const auto header = decode_journal_header(Bytes(block).first(*got));
    if (!header) {
      return storage_error("'" + path() + "' cannot be used: " + header.error().detail + ".");
    }
    if (!*header || (*header)->half_bytes != found.half_bytes) {
      damage_ += " The header at position " + std::to_string(at) + " is damaged.";
      continue;
    }
    auto half = read_journal_half(file, at, **header);
    if (!half) return std::unexpected(std::move(half.error()));
    if (half->broken_before) {
      damage_ += " The entry at position " + std::to_string(half->end) +
                 " is damaged; one at " + std::to_string(*half->broken_before) + " is sound.";
    }
    halves.push_back(std::move(*half));
  }
  if (zero > 0) {  // both headers are synced before the first entry
    found.was_made = false;
    if (std::ranges::any_of(halves, [](const auto& half) { return half.header->live; }))
      damage_ += " One of its headers is gone.";
  }
  std::ranges::sort(halves, {}, [](const JournalHalf& half) { return half.header->use.count; });
  bool follows = false;
  for (JournalHalf& half : halves) {
    const JournalHeader& header = *half.header;
    found.last_use = std::max(found.last_use, header.use.count);
    if (header.live && std::exchange(follows, true) && found.last_number + 1 < header.first) {
      damage_ += " The entries from number " + std::to_string(found.last_number + 1) + " to " +
                 std::to_string(header.first - 1) + " are damaged.";
    }
    found.last_number = std::max(found.last_number, header.first - 1 + half.records.size());
    std::ranges::move(half.records, std::back_inserter(found.records));
  }
  return found;
}

void Journal::apply(const Found& found) {
  std::vector<JournalPiece> all;
  for (const JournalRecord& record : found.records) {
    const auto pieces = record.pieces();
    if (!pieces) {
      damage_ += " " + pieces.error().detail;
      continue;
    }
    all.insert(all.end(), pieces->begin(), pieces->end());
  }
  if (all.empty()) return;
  Tally tally;
  std::map<std::string_view, std::map<Sequence, Pieces>> targets;
  std::set<std::string_view> doubtful;  // directories for which pieces are skipped as damage
  std::map<std::string_view, Result<ChannelFile>> channels;
  for (const JournalPiece& piece : all) {
    auto channel = channels.find(piece.directory);
    if (channel == channels.end()) {
      const std::string directory = options_.directory + "/" + std::string(piece.directory);
      channel = channels.emplace(piece.directory, identify(base_.files, directory)).first;
      if (channel->second && channel->second->condition == ChannelFile::Condition::kDamaged) {
        damage_ += " '" + directory + "/" + std::string(kChannelFile) +
                   "' is damaged: bytes for its directory may be another topic's.";
        doubtful.insert(piece.directory);
      }
    }
    using Condition = ChannelFile::Condition;
    const Result<ChannelFile>& known = channel->second;
    if (!known) {
      unreplayed_.emplace(piece.directory, known.error());
      continue;
    }
    // Gone, or a topic made again under the name: the file was synced before the first piece.
    const bool is_ours =
        (known->condition == Condition::kSound || known->condition == Condition::kRepaired) &&
        known->state.topic_id == piece.topic_id && known->state.partition == piece.partition;
    if (is_ours)
      targets[piece.directory][piece.base].push_back(piece);
    else
      ++tally.skipped;
  }
  for (const auto& [directory, segments] : targets) {
    for (const auto& [base, pieces] : segments) {
      const std::string file =
          options_.directory + "/" + std::string(directory) + "/" + segment_name(base);
      auto joins = write_pieces(base_.files, file, pieces, tally, damage_);
      if (!joins) {
        unreplayed_.emplace(directory, std::move(joins.error()));
      } else if (!*joins) {
        doubtful.insert(directory);
      }
    }
  }
  // The next replay would not skip them in a log that has grown meanwhile, but write over its end.
  if (complete()) doubtful.clear();
  for (const std::string_view directory : doubtful) {
    unreplayed_.emplace(directory, Error{ErrorCode::KAFKA_STORAGE_ERROR,
                                         "The shared journal is damaged and has bytes of it that "
                                         "do not join; it is kept for the next start."});
  }
  for (const auto& [directory, why] : unreplayed_) {
    logger("log").error("The journal could not be replayed into a channel. directory={} why=\"{}\"",
                        directory, why.detail);
  }
  logger("log").info(
      "The shared journal was replayed. entries={} pieces={} bytes={} files={} skipped={}",
      found.records.size(), tally.pieces, tally.bytes, tally.files, tally.skipped);
}

/// Everything is in the segments: the journal starts anew before any of them changes again.
Result<void> Journal::reset(std::unique_ptr<File> file, std::uint64_t size, const Found& found) {
  if (!found.was_made || size != 2 * options_.half_bytes) {
    file.reset();
    auto done = base_.files.remove(path());
    return done ? base_.files.sync_directory(options_.directory) : done;
  }
  return turn_.with([&]() -> Result<void> {
    file_ = std::move(file);
    last_use_ = found.last_use;
    next_number_ = found.last_number + 1;
    phase_ = Phase::kReady;
    if (!found.records.empty()) return empty_halves();
    halves_[0].use = ++last_use_;
    halves_[1].use = ++last_use_;
    return {};
  });
}

}  // namespace kanal::log
