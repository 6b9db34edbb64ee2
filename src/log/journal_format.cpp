#include "journal_format.hpp"

#include "blob.hpp"

#include "kanal/base/check.hpp"
#include "kanal/records/batch.hpp"

#include <algorithm>

namespace kanal::log {
namespace {

constexpr std::string_view kHeaderMagic = "KNLJ";
constexpr std::string_view kEntryMagic = "KNLE";
constexpr std::uint16_t kVersion = 1;
constexpr std::size_t kHeaderPayload = 8 + 8 + 8 + 8 + 4;
constexpr std::ptrdiff_t kSecondCopy = 512;  // in another sector
constexpr std::uint64_t kLargestHalf = std::uint64_t{1} << 30;
constexpr std::size_t kHeaderSize = 16 + kHeaderPayload + 4;  // a blob
constexpr std::size_t kEntryHead = 40;  // magic, version, 0, id, use, number, length, pieces
constexpr std::size_t kEntryTail = 4;   // CRC-32C of all before it
constexpr std::size_t kPieceHead = 4 + 16 + 4 + 4 + 8 + 8 + 4;  // without the directory's name
constexpr std::uint32_t kBytesOfASegment = 1;                   // the only kind of piece yet
constexpr std::size_t kLengthAt = 32, kPiecesAt = 36;

struct EntryHead {
  JournalUse use;
  std::uint64_t number;
  std::uint32_t length, pieces;
};

std::optional<EntryHead> parse_head(Bytes bytes) {
  if (bytes.size() < kEntryHead || as_text(bytes.first(4)) != kEntryMagic) return std::nullopt;
  if (load_be<std::uint16_t>(bytes.data() + 4) != kVersion) return std::nullopt;
  return EntryHead{{load_be<std::uint64_t>(bytes.data() + 8),
                    load_be<std::uint64_t>(bytes.data() + 16)},
                   load_be<std::uint64_t>(bytes.data() + 24),
                   load_be<std::uint32_t>(bytes.data() + kLengthAt),
                   load_be<std::uint32_t>(bytes.data() + kPiecesAt)};
}

bool is_sound(Bytes entry) {
  const std::size_t checked = entry.size() - kEntryTail;
  return records::crc32c(entry.first(checked)) ==
         load_be<std::uint32_t>(entry.data() + checked);
}

/// The entry at `at` of a half's bytes if it is one of `use` with a number that `wanted` accepts.
template <class Wanted>
std::optional<EntryHead> entry_at(Bytes half, std::uint64_t at, const JournalUse& use,
                                  const Wanted& wanted) {
  const Bytes rest = half.subspan(std::min(static_cast<std::size_t>(at), half.size()));
  const auto head = parse_head(rest);
  if (!head || head->use != use || !wanted(head->number)) return std::nullopt;
  if (head->length < kEntryHead + kEntryTail || head->length > rest.size()) return std::nullopt;
  if (!is_sound(rest.first(head->length))) return std::nullopt;
  return head;
}

}  // namespace

Buffer encode_journal_header(const JournalHeader& header) {
  BlobWriter writer;
  writer.number(header.half_bytes);
  writer.number(header.use.id);
  writer.number(header.use.count);
  writer.number(header.first);
  writer.number(std::uint32_t{header.live});
  const Buffer copy = writer.seal(kHeaderMagic, kVersion);
  CHECK(copy.size() == kHeaderSize, "the header's size is fixed");
  Buffer block(kJournalBlock);
  std::ranges::copy(copy, block.begin());
  std::ranges::copy(copy, block.begin() + kSecondCopy);
  return block;
}

Result<std::optional<JournalHeader>> decode_journal_header(Bytes block) {
  std::optional<JournalHeader> newest;
  if (block.size() < kJournalBlock) return newest;
  for (const std::size_t at : {std::size_t{0}, std::size_t{kSecondCopy}}) {
    const Bytes copy = block.subspan(at, kHeaderSize);
    std::uint16_t version = 0;
    const auto payload = open_blob(copy, kHeaderMagic, UINT16_MAX, &version);
    if (!payload) continue;
    if (version > kVersion) return storage_error("it has a newer format than this version reads");
    BlobReader reader(*payload);
    JournalHeader header;
    header.half_bytes = reader.number<std::uint64_t>();
    header.use.id = reader.number<std::uint64_t>();
    header.use.count = reader.number<std::uint64_t>();
    header.first = reader.number<std::uint64_t>();
    header.live = reader.number<std::uint32_t>() != 0;
    const bool sound = reader.done() && header.half_bytes % kJournalBlock == 0 &&
                       header.half_bytes > kJournalBlock && header.half_bytes <= kLargestHalf;
    if (sound && (!newest || newest->use.count < header.use.count)) newest = header;
  }
  return newest;
}

void JournalEntry::begin(const JournalUse& use, std::uint64_t number) {
  bytes_.clear();
  bytes_.resize(kEntryHead);
  std::ranges::copy(as_bytes(kEntryMagic), bytes_.begin());
  store_be(bytes_.data() + 4, kVersion);
  store_be(bytes_.data() + 8, use.id);
  store_be(bytes_.data() + 16, use.count);
  store_be(bytes_.data() + 24, number);
  pieces_ = 0;
  last_ = bytes_.size();
}

MutableBytes JournalEntry::add(const JournalPiece& piece, std::size_t length) {
  last_ = bytes_.size();
  BlobWriter head;
  head.number(kBytesOfASegment);
  head.uuid(piece.topic_id);
  head.id(piece.partition);
  head.sized(as_bytes(piece.directory));
  head.id(piece.base);
  head.number(piece.position);
  head.number(static_cast<std::uint32_t>(length));
  append(bytes_, head.take());
  bytes_.resize(bytes_.size() + length);
  ++pieces_;
  return MutableBytes(bytes_).last(length);
}

void JournalEntry::undo() {
  CHECK(pieces_ > 0, "there is a piece to take out");
  bytes_.resize(last_);
  --pieces_;
}

std::uint64_t JournalEntry::size_with(std::string_view directory, std::size_t length) const {
  return whole_blocks(bytes_.size() + kPieceHead + directory.size() + length + kEntryTail);
}

Bytes JournalEntry::finish() {
  const std::size_t length = bytes_.size() + kEntryTail;
  store_be(bytes_.data() + kLengthAt, static_cast<std::uint32_t>(length));
  store_be(bytes_.data() + kPiecesAt, pieces_);
  const std::uint32_t crc = records::crc32c(bytes_);
  bytes_.resize(static_cast<std::size_t>(whole_blocks(length)));
  store_be(bytes_.data() + length - kEntryTail, crc);
  return bytes_;
}

Result<std::vector<JournalPiece>> JournalRecord::pieces() const {
  std::vector<JournalPiece> all;
  const auto head = parse_head(bytes);
  CHECK(head.has_value(), "only sound entries are kept");
  BlobReader reader(Bytes(bytes).subspan(kEntryHead, bytes.size() - kEntryHead - kEntryTail));
  for (std::uint32_t i = 0; i < head->pieces && reader.good(); ++i) {
    JournalPiece& piece = all.emplace_back();
    if (reader.number<std::uint32_t>() != kBytesOfASegment) break;
    piece.topic_id = reader.uuid();
    piece.partition = reader.id<PartitionIndex>();
    piece.directory = as_text(reader.sized());
    piece.base = reader.id<Sequence>();
    piece.position = reader.number<std::uint64_t>();
    piece.bytes = reader.sized();
  }
  if (!reader.done() || all.size() != head->pieces) {
    return storage_error("The journal's entry " + std::to_string(head->number) +
                         " is not laid out as it should be.");
  }
  return all;
}

Result<JournalHalf> read_journal_half(const File& file, std::uint64_t position,
                                      const JournalHeader& header) {
  JournalHalf half;
  half.header = header;
  half.end = position + kJournalBlock;
  if (!header.live) return half;
  Buffer bytes(static_cast<std::size_t>(header.half_bytes));
  const auto got = file.read_at(position, bytes);
  if (!got) return std::unexpected(got.error());
  const Bytes all = Bytes(bytes).first(*got);
  std::uint64_t at = kJournalBlock, number = header.first;
  for (;; ++number) {
    const auto is_next = [&](std::uint64_t found) { return found == number; };
    const auto head = entry_at(all, at, header.use, is_next);
    if (!head) break;
    const Bytes entry = all.subspan(static_cast<std::size_t>(at), head->length);
    half.records.push_back({number, position + at, Buffer(entry.begin(), entry.end())});
    at += whole_blocks(head->length);
  }
  half.end = position + at;
  // One entry at a time is written and synced, so nothing live can lie behind a torn one.
  const auto is_later = [&](std::uint64_t found) { return found > number; };
  for (std::uint64_t behind = at + kJournalBlock; behind < all.size(); behind += kJournalBlock) {
    if (!entry_at(all, behind, header.use, is_later)) continue;
    half.broken_before = position + behind;
    break;
  }
  return half;
}

}  // namespace kanal::log
