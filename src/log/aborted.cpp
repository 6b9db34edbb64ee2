#include "aborted.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace kanal::log {
namespace {

void put(Buffer& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to.push_back(static_cast<std::byte>(value | 0x80));
  to.push_back(static_cast<std::byte>(value));
}

/// Nothing where it is cut or has more than 64 bits.
std::optional<std::uint64_t> take(Bytes& from) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !from.empty(); shift += 7) {
    const auto part = std::to_integer<std::uint64_t>(from.front());
    from = from.subspan(1);
    if (shift == 63 && part > 1) return std::nullopt;
    value |= (part & 0x7F) << shift;
    if (part < 0x80) return value;
  }
  return std::nullopt;
}

std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

/// What the first one of a chunk is told apart from.
constexpr AbortedTransaction kNone{ProducerId(0), Offset(-1), Offset(-1), Offset(0)};

std::uint64_t distance(std::int64_t from, std::int64_t to) {
  return static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
}

}  // namespace

/// Over the transactions of one chunk.
class AbortedTransactions::Walk {
 public:
  explicit Walk(Bytes bytes) : bytes_(bytes) {}

  /// Nothing at the end, or, where good() is false from then on, where no such transaction can be.
  std::optional<AbortedTransaction> next() {
    if (bytes_.empty()) return std::nullopt;
    const auto marker = take(bytes_), length = take(bytes_), unstable = take(bytes_);
    const auto producer = take(bytes_);
    constexpr auto kLargest = static_cast<std::uint64_t>(kLargestSequence.value());
    good_ = marker && length && unstable && producer && *marker > 0 && *marker <= kLargest;
    if (!good_) return std::nullopt;
    AbortedTransaction found;
    found.last = last_.last + static_cast<std::int64_t>(*marker);
    const std::int64_t end = found.last.value() + 1;
    const auto most = static_cast<std::uint64_t>(end);
    good_ = end <= kLargestSequence.value() && *length > 0 && *length < most && *unstable <= most;
    if (!good_) return std::nullopt;
    found.first = found.last - static_cast<std::int64_t>(*length);
    found.last_stable = Offset(end - static_cast<std::int64_t>(*unstable));
    std::int64_t id = 0;
    good_ = !__builtin_add_overflow(last_.producer.value(), unzigzag(*producer), &id) && id >= 0;
    if (!good_) return std::nullopt;
    found.producer = ProducerId(id);
    last_ = found;
    return found;
  }
  [[nodiscard]] bool good() const { return good_; }

 private:
  Bytes bytes_;
  AbortedTransaction last_ = kNone;
  bool good_ = true;
};

void AbortedTransactions::add(const AbortedTransaction& transaction) {
  if (chunks_.empty() || chunks_.back().count == kChunk) {
    chunks_.push_back({transaction.last, transaction.last, transaction.first, kNone, 0, {}});
  }
  Chunk& chunk = chunks_.back();
  const std::int64_t marker = transaction.last.value();
  put(chunk.bytes, distance(chunk.last.last.value(), marker));
  put(chunk.bytes, distance(transaction.first.value(), marker));
  put(chunk.bytes, distance(transaction.last_stable.value(), marker + 1));
  put(chunk.bytes, zigzag(transaction.producer.value() - chunk.last.producer.value()));
  chunk.last = transaction;
  chunk.last_marker = transaction.last;
  chunk.lowest = std::min(chunk.lowest, transaction.first);
  if (++chunk.count == kChunk) chunk.bytes.shrink_to_fit();
}

void AbortedTransactions::find(Offset from, Offset upto,
                               std::vector<AbortedTransaction>& out) const {
  from = std::max(from, start_);
  auto chunk = std::ranges::lower_bound(chunks_, from, {}, &Chunk::last_marker);
  for (; chunk != chunks_.end(); ++chunk) {
    if (chunk->lowest < upto) {
      Walk walk(chunk->bytes);
      while (const auto transaction = walk.next()) {
        if (transaction->last >= from && transaction->first < upto) out.push_back(*transaction);
      }
    }
    // All that end later begin at or after it.
    if (chunk->last.last_stable >= upto) return;
  }
}

void AbortedTransactions::trim(Offset start) {
  start_ = std::max(start_, start);
  const auto stays = std::ranges::lower_bound(chunks_, start_, {}, &Chunk::last_marker);
  chunks_.erase(chunks_.begin(), stays);
}

std::size_t AbortedTransactions::keep(Offset from, Offset below,
                                      const std::vector<Offset>& markers) {
  std::size_t gone = 0;
  AbortedTransactions kept;
  for (Chunk& chunk : chunks_) {
    if (chunk.last_marker < from || chunk.first_marker >= below) {
      kept.chunks_.push_back(std::move(chunk));
      continue;
    }
    Walk walk(chunk.bytes);
    while (const auto transaction = walk.next()) {
      const bool judged = transaction->last >= from && transaction->last < below;
      if (judged && !std::ranges::binary_search(markers, transaction->last)) {
        ++gone;
      } else {
        kept.add(*transaction);
      }
    }
  }
  chunks_ = std::move(kept.chunks_);
  return gone;
}

std::size_t AbortedTransactions::bytes() const noexcept {
  std::size_t bytes = 0;
  for (const Chunk& chunk : chunks_) bytes += sizeof chunk + chunk.bytes.size();
  return bytes;
}

void AbortedTransactions::encode(BlobWriter& writer) const {
  writer.id(start_);
  writer.number(static_cast<std::uint32_t>(chunks_.size()));
  for (const Chunk& chunk : chunks_) {
    writer.number(chunk.count);
    writer.sized(chunk.bytes);
  }
}

Result<AbortedTransactions::Chunk> AbortedTransactions::decode_chunk(BlobReader& reader) {
  const auto count = reader.number<std::uint32_t>();
  const Bytes bytes = reader.sized();
  if (!reader.good()) return storage_error("The aborted transactions are cut short.");
  Chunk chunk{{}, {}, to_offset(kLargestSequence), kNone, 0, Buffer(bytes.begin(), bytes.end())};
  Walk walk(bytes);
  while (const auto transaction = walk.next()) {
    if (transaction->last_stable < chunk.last.last_stable)
      return storage_error("The aborted transactions are out of order.");
    if (chunk.count++ == 0) chunk.first_marker = transaction->last;
    chunk.last = *transaction;
    chunk.lowest = std::min(chunk.lowest, transaction->first);
  }
  chunk.last_marker = chunk.last.last;
  if (!walk.good() || chunk.count != count || count == 0 || count > kChunk)
    return storage_error("The aborted transactions are not what they say.");
  return chunk;
}

Result<void> AbortedTransactions::decode(BlobReader& reader, Offset below) {
  chunks_.clear();
  start_ = reader.id<Offset>();
  const auto chunks = reader.number<std::uint32_t>();
  AbortedTransaction last = kNone;
  for (std::uint32_t i = 0; i < chunks && reader.good(); ++i) {
    auto chunk = decode_chunk(reader);
    if (!chunk) return std::unexpected(std::move(chunk.error()));

    const auto first = Walk(chunk->bytes).next();
    if (chunk->first_marker <= last.last || first->last_stable < last.last_stable ||
        chunk->last_marker >= below || chunk->last_marker < start_) {
      return storage_error("The aborted transactions are out of order.");
    }
    last = chunk->last;
    chunks_.push_back(std::move(*chunk));
  }
  if (!reader.good()) return storage_error("The aborted transactions are cut short.");
  if (start_.value() < 0 || start_ > below)
    return storage_error("The aborted transactions begin at an offset that none can have.");
  return {};
}

}  // namespace kanal::log
