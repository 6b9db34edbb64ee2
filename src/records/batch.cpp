#include "kanal/records/batch.hpp"

#include <isa-l/crc.h>

#include <limits>

namespace kanal::records {

std::string_view name(Codec codec) noexcept {
  switch (codec) {
    case Codec::kNone:
      return "none";
    case Codec::kGzip:
      return "gzip";
    case Codec::kSnappy:
      return "snappy";
    case Codec::kLz4:
      return "lz4";
    case Codec::kZstd:
      return "zstd";
  }
  return "unknown";
}

std::int32_t BatchHeader::last_sequence() const noexcept {
  if (base_sequence == kNoSequence) return kNoSequence;
  constexpr std::int64_t kModulus = std::int64_t{std::numeric_limits<std::int32_t>::max()} + 1;
  const std::int64_t sum = std::int64_t{base_sequence} + last_offset_delta;
  return static_cast<std::int32_t>(sum >= kModulus ? sum - kModulus : sum);
}

Result<BatchHeader> parse_header(Bytes bytes) {
  if (bytes.size() < kHeaderSize) {
    return fail(ErrorCode::CORRUPT_MESSAGE, "a record batch needs at least 61 bytes");
  }
  if (static_cast<std::int8_t>(bytes[at::kMagic]) != kMagic) {
    return fail(ErrorCode::CORRUPT_MESSAGE, "not a record batch of magic 2");
  }
  if (load_be<std::int32_t>(bytes.data() + at::kLength) <
      static_cast<std::int32_t>(kHeaderSize - kLogOverhead)) {
    return fail(ErrorCode::CORRUPT_MESSAGE, "the batch length is smaller than its header");
  }
  return read_header(bytes.data());
}

BatchHeader read_header(const std::byte* bytes) noexcept {
  BatchHeader header;
  header.base_offset = Offset(load_be<std::int64_t>(bytes + at::kBaseOffset));
  header.length = load_be<std::int32_t>(bytes + at::kLength);
  header.leader_epoch = LeaderEpoch(load_be<std::int32_t>(bytes + at::kLeaderEpoch));
  header.magic = static_cast<std::int8_t>(bytes[at::kMagic]);
  header.crc = load_be<std::uint32_t>(bytes + at::kCrc);
  header.attributes = load_be<std::int16_t>(bytes + at::kAttributes);
  header.last_offset_delta = load_be<std::int32_t>(bytes + at::kLastOffsetDelta);
  header.base_timestamp = Timestamp(load_be<std::int64_t>(bytes + at::kBaseTimestamp));
  header.max_timestamp = Timestamp(load_be<std::int64_t>(bytes + at::kMaxTimestamp));
  header.producer_id = ProducerId(load_be<std::int64_t>(bytes + at::kProducerId));
  header.producer_epoch = ProducerEpoch(load_be<std::int16_t>(bytes + at::kProducerEpoch));
  header.base_sequence = load_be<std::int32_t>(bytes + at::kBaseSequence);
  header.record_count = load_be<std::int32_t>(bytes + at::kRecordCount);
  return header;
}

void write_header(MutableBytes bytes, const BatchHeader& header) noexcept {
  std::byte* to = bytes.data();
  store_be(to + at::kBaseOffset, header.base_offset.value());
  store_be(to + at::kLength, header.length);
  store_be(to + at::kLeaderEpoch, header.leader_epoch.value());
  to[at::kMagic] = static_cast<std::byte>(header.magic);
  store_be(to + at::kAttributes, header.attributes);
  store_be(to + at::kLastOffsetDelta, header.last_offset_delta);
  store_be(to + at::kBaseTimestamp, header.base_timestamp.value());
  store_be(to + at::kMaxTimestamp, header.max_timestamp.value());
  store_be(to + at::kProducerId, header.producer_id.value());
  store_be(to + at::kProducerEpoch, header.producer_epoch.value());
  store_be(to + at::kBaseSequence, header.base_sequence);
  store_be(to + at::kRecordCount, header.record_count);
}

std::uint32_t crc32c(Bytes bytes, std::uint32_t crc) noexcept {
  // ISA-L only reads, though its signature says otherwise, and leaves both inversions to the
  // caller. It takes an int length: longer input goes in pieces.
  constexpr std::size_t kPiece = std::size_t{1} << 30;
  std::uint32_t state = ~crc;
  while (!bytes.empty()) {
    const Bytes piece = bytes.first(bytes.size() < kPiece ? bytes.size() : kPiece);
    auto* data = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(piece.data()));
    state = crc32_iscsi(data, static_cast<int>(piece.size()), state);
    bytes = bytes.subspan(piece.size());
  }
  return ~state;
}

std::uint32_t compute_crc(Bytes batch) noexcept {
  return crc32c(batch.subspan(at::kAttributes));
}

bool verify_crc(Bytes batch) noexcept {
  return batch.size() >= kHeaderSize &&
         load_be<std::uint32_t>(batch.data() + at::kCrc) == compute_crc(batch);
}

std::uint32_t seal(MutableBytes batch) noexcept {
  const std::uint32_t crc = compute_crc(batch);
  store_be(batch.data() + at::kCrc, crc);
  return crc;
}

}  // namespace kanal::records
