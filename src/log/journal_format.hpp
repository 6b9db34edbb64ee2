// The bytes of `channels/journal`, the file that lets many partitions share one sync. Two halves,
// each a header block and entries behind it; every entry begins at a block of its own, so that a
// torn write never damages the one before. An entry is live if its checksum holds, its id and use
// are the half's and its number is the next one: what a reused block still holds has an older use,
// what a client put into a record has not the id, which is random. Uses and numbers only count up.
// Sizes in bytes, integers big endian. Plain values: any thread.
#pragma once

#include "kanal/base/bytes.hpp"
#include "kanal/base/channel.hpp"
#include "kanal/base/error.hpp"
#include "kanal/base/file_system.hpp"
#include "kanal/base/ids.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace kanal::log {

inline constexpr std::string_view kJournalFile = "journal";
inline constexpr std::string_view kDamagedSuffix = ".damaged";  // of one that is kept
inline constexpr std::uint64_t kJournalBlock = 4096;

[[nodiscard]] constexpr std::uint64_t whole_blocks(std::uint64_t bytes) noexcept {
  return (bytes + kJournalBlock - 1) / kJournalBlock * kJournalBlock;
}

struct JournalUse {
  std::uint64_t id = 0;     // random, of the process that wrote it
  std::uint64_t count = 0;  // both halves share one counter
  friend bool operator==(const JournalUse&, const JournalUse&) = default;
};
struct JournalHeader {
  std::uint64_t half_bytes = 0;
  JournalUse use;
  std::uint64_t first = 0;  // number of the half's first entry
  bool live = false;        // false: nothing behind it counts
};
/// One block with two copies, so that a torn write leaves one of the old or of the new.
[[nodiscard]] Buffer encode_journal_header(const JournalHeader& header);
/// The newest sound copy; nothing where there is none; an error for a newer format.
[[nodiscard]] Result<std::optional<JournalHeader>> decode_journal_header(Bytes block);

struct JournalPiece {
  Uuid topic_id;
  PartitionIndex partition{0};
  std::string_view directory;  // of the channel
  Sequence base{1};            // of the segment
  std::uint64_t position = 0;  // in it
  Bytes bytes;
};

/// Builds one entry in a buffer it keeps.
class JournalEntry {
 public:
  void begin(const JournalUse& use, std::uint64_t number);
  /// Adds a piece (its `bytes` are not looked at) and hands out `length` bytes to be filled. Valid
  /// until the next call.
  MutableBytes add(const JournalPiece& piece, std::size_t length);
  /// Takes the last piece out again.
  void undo();
  [[nodiscard]] bool empty() const noexcept { return pieces_ == 0; }
  /// What the entry takes in the file with one more piece.
  [[nodiscard]] std::uint64_t size_with(std::string_view directory, std::size_t length) const;
  /// The entry, filled up to whole blocks; valid until the next begin().
  [[nodiscard]] Bytes finish();

 private:
  Buffer bytes_;
  std::size_t last_ = 0;  // where the last piece begins
  std::uint32_t pieces_ = 0;
};

struct JournalRecord {  // an entry that was read back
  std::uint64_t number = 0;
  std::uint64_t position = 0;  // in the file
  Buffer bytes;
  [[nodiscard]] Result<std::vector<JournalPiece>> pieces() const;  // views of `bytes`
};
struct JournalHalf {
  std::optional<JournalHeader> header;
  std::vector<JournalRecord> records;
  std::uint64_t end = 0;  // position after the last one
  /// A live entry behind one that is not: damage, not a torn end. Its position.
  std::optional<std::uint64_t> broken_before;
};
/// The half that begins at `position`. Errors: the file cannot be read, or has a newer format.
[[nodiscard]] Result<JournalHalf> read_journal_half(const File& file, std::uint64_t position,
                                                    const JournalHeader& header);

}  // namespace kanal::log
