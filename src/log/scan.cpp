#include "scan.hpp"

#include "blob.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace kanal::log {
namespace {

constexpr std::uint64_t kChunk = 1 << 20;

bool has_stored_offsets(const records::BatchHeader& header) {
  return header.base_offset.value() >= 0 && header.last_offset_delta >= 0 &&
         header.base_offset < to_offset(kLargestSequence) - header.last_offset_delta;
}

/// The header at the start of `bytes` if it can be one of a batch that fits into `left` bytes.
std::optional<records::BatchHeader> plausible_header(Bytes bytes, std::uint64_t left) {
  const auto header = records::parse_header(bytes);
  if (!header || header->size() > left || !has_stored_offsets(*header)) return std::nullopt;
  return *header;
}

}  // namespace

std::string refuse(const records::BatchHeader& header, Bytes batch, const Scanned& found,
                   std::optional<Sequence> gaps_below) {
  if (!records::verify_crc(batch)) return "its checksum does not match";
  const Offset expected = to_offset(found.next);
  if (gaps_below ? header.base_offset < expected : header.base_offset != expected) {
    return "its base offset is " + std::to_string(header.base_offset.value()) + ", not " +
           std::to_string(expected.value());
  }
  if (header.leader_epoch < found.epoch) return "its leader epoch falls";
  if (!has_stored_offsets(header)) return "its last offset is out of range";
  if (gaps_below && to_sequence(header.next_offset()) > *gaps_below) {
    return "it reaches beyond its segment";
  }
  return {};
}

Result<Bytes> BatchReader::bytes(std::uint64_t position, std::uint64_t size) {
  size = std::min(size, end_ - std::min(position, end_));
  if (position < start_ || position + size > start_ + buffer_.size()) {
    const std::uint64_t wanted = std::min(std::max(size, kChunk), end_ - position);
    buffer_.resize(static_cast<std::size_t>(wanted));
    const auto got = file_.read_at(position, buffer_);
    if (!got) return std::unexpected(got.error());
    buffer_.resize(*got);
    start_ = position;
    if (*got < size) return storage_error("the file became shorter while it was read");
  }
  return Bytes(buffer_).subspan(static_cast<std::size_t>(position - start_),
                                static_cast<std::size_t>(size));
}

Result<Scanned> scan(const File& file, std::uint64_t end, const ScanFrom& from,
                     const ScanOptions& options) {
  BatchReader reader(file, end);
  Scanned found;
  found.valid_end = from.position;
  found.next = from.expected;
  found.epoch = from.epoch;
  while (found.valid_end < end) {
    const auto head = reader.bytes(found.valid_end, records::kHeaderSize);
    if (!head) return std::unexpected(head.error());
    const auto header = records::parse_header(*head);
    if (!header) {
      found.stopped = header.error().detail;
      break;
    }
    if (header->size() > end - found.valid_end) {
      found.stopped = "the file ends inside a batch";
      break;
    }
    const auto batch = reader.bytes(found.valid_end, header->size());
    if (!batch) return std::unexpected(batch.error());
    if (auto why = refuse(*header, *batch, found, options.gaps_below); !why.empty()) {
      found.stopped = std::move(why);
      break;
    }
    if (options.index != nullptr) {
      note(*options.index,
           {static_cast<std::uint32_t>(to_sequence(header->base_offset) - options.base),
            found.valid_end, time_of(*header)},
           options.interval);
    }
    if (found.batches++ == 0) found.first_timestamp = header->max_timestamp;
    found.max_timestamp = std::max(found.max_timestamp, time_of(*header));
    if (options.gaps_below) found.crc = records::crc32c(*batch, found.crc);
    found.epoch = header->leader_epoch;
    found.next = to_sequence(header->next_offset());
    found.valid_end += header->size();
  }
  return found;
}

Result<std::optional<std::uint64_t>> find_batch_behind(const File& file, std::uint64_t end,
                                                       const Scanned& scanned) {
  BatchReader reader(file, end);
  const std::int64_t least = to_offset(scanned.next).value();
  for (std::uint64_t at = scanned.valid_end; at + records::kHeaderSize <= end; ++at) {
    const auto head = reader.bytes(at, records::kHeaderSize);
    if (!head) return std::unexpected(head.error());
    if (static_cast<std::int8_t>((*head)[records::at::kMagic]) != records::kMagic) continue;
    const auto header = plausible_header(*head, end - at);
    if (!header || header->leader_epoch.value() < 0) continue;
    const std::int64_t ahead = header->base_offset.value() - least;
    if (ahead < 0 || ahead > std::numeric_limits<std::int32_t>::max()) continue;
    const auto batch = reader.bytes(at, header->size());
    if (!batch) return std::unexpected(batch.error());
    if (records::verify_crc(*batch)) return at;
  }
  return std::nullopt;
}

Result<bool> all_zero(const File& file, std::uint64_t begin, std::uint64_t end) {
  BatchReader reader(file, end);
  for (std::uint64_t at = begin; at < end;) {
    const auto part = reader.bytes(at, std::min(kChunk, end - at));
    if (!part) return std::unexpected(part.error());
    if (!std::ranges::all_of(*part, [](std::byte byte) { return byte == std::byte{0}; }))
      return false;
    at += part->size();
  }
  return true;
}

Result<IndexFile> rebuild_index(const File& file, std::uint64_t end, Sequence base,
                                std::uint64_t interval) {
  IndexFile index;
  index.base = index.end = base;
  BatchReader reader(file, end);
  while (index.size < end) {
    const auto head = reader.bytes(index.size, records::kHeaderSize);
    if (!head) return std::unexpected(head.error());
    const auto header = plausible_header(*head, end - index.size);
    if (!header || header->base_offset < to_offset(index.end)) {
      return storage_error("there is no sound batch header at position " +
                           std::to_string(index.size));
    }
    const auto first = header->base_offset - to_offset(base);
    if (index.size == 0) index.first_timestamp = header->max_timestamp;
    note(index.blocks, {static_cast<std::uint32_t>(first), index.size, time_of(*header)}, interval);
    index.max_timestamp = std::max(index.max_timestamp, time_of(*header));
    index.end = to_sequence(header->next_offset());
    index.size += header->size();
  }
  return index;
}

}  // namespace kanal::log
