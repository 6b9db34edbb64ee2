// Record batch v2 (magic 2, KIP-98): the 61-byte header, its in-place patches and its CRC-32C.
// Plain functions over the caller's bytes: any thread. All integers are big endian; lengths in
// bytes, timestamps in ms. The CRC covers attributes..end, so base offset, length, leader epoch and
// magic change without a new CRC; whoever changes attributes or the max timestamp must seal() the
// batch again.
#pragma once

#include "kanal/base/bytes.hpp"
#include "kanal/base/error.hpp"
#include "kanal/base/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kanal::records {

inline constexpr std::size_t kHeaderSize = 61;  // a batch without records
inline constexpr std::size_t kLogOverhead =
    12;  // base offset and length, which `length` does not count
inline constexpr std::size_t kUpToMagic = 17;  // enough bytes to tell size and magic
inline constexpr std::int8_t kMagic = 2;
inline constexpr std::int32_t kNoSequence = -1;

enum class Codec : std::uint8_t {
  kNone = 0,
  kGzip = 1,
  kSnappy = 2,
  kLz4 = 3,
  kZstd = 4
};  // 5..7: unknown
[[nodiscard]] std::string_view name(Codec codec) noexcept;  // "none", "gzip", …; "unknown"

inline constexpr std::int16_t kCodecMask = 0x07;
inline constexpr std::int16_t kLogAppendTimeBit = 0x08;
inline constexpr std::int16_t kTransactionalBit = 0x10;
inline constexpr std::int16_t kControlBit = 0x20;
inline constexpr std::int16_t kDeleteHorizonBit =
    0x40;  // base timestamp is the delete horizon (KIP-534)
inline constexpr std::int16_t kUsedAttributes = 0x7F;

/// Where the fields lie in the header.
namespace at {
inline constexpr std::size_t kBaseOffset = 0;
inline constexpr std::size_t kLength = 8;
inline constexpr std::size_t kLeaderEpoch = 12;
inline constexpr std::size_t kMagic = 16;
inline constexpr std::size_t kCrc = 17;
inline constexpr std::size_t kAttributes = 21;
inline constexpr std::size_t kLastOffsetDelta = 23;
inline constexpr std::size_t kBaseTimestamp = 27;
inline constexpr std::size_t kMaxTimestamp = 35;
inline constexpr std::size_t kProducerId = 43;
inline constexpr std::size_t kProducerEpoch = 51;
inline constexpr std::size_t kBaseSequence = 53;
inline constexpr std::size_t kRecordCount = 57;
}  // namespace at

struct BatchHeader {
  Offset base_offset{0};
  std::int32_t length = 0;  // bytes after the length field
  LeaderEpoch leader_epoch{-1};
  std::int8_t magic = kMagic;
  std::uint32_t crc = 0;
  std::int16_t attributes = 0;
  std::int32_t last_offset_delta = 0;
  Timestamp base_timestamp{-1};
  Timestamp max_timestamp{-1};
  ProducerId producer_id{-1};
  ProducerEpoch producer_epoch{-1};
  std::int32_t base_sequence = kNoSequence;
  std::int32_t record_count = 0;

  /// May be a value outside the enum (5..7) for a batch that was not checked yet.
  [[nodiscard]] Codec codec() const noexcept { return static_cast<Codec>(attributes & kCodecMask); }
  [[nodiscard]] bool is_compressed() const noexcept { return (attributes & kCodecMask) != 0; }
  [[nodiscard]] bool log_append_time() const noexcept {
    return (attributes & kLogAppendTimeBit) != 0;
  }
  [[nodiscard]] bool is_transactional() const noexcept {
    return (attributes & kTransactionalBit) != 0;
  }
  [[nodiscard]] bool is_control() const noexcept { return (attributes & kControlBit) != 0; }
  [[nodiscard]] bool has_delete_horizon() const noexcept {
    return (attributes & kDeleteHorizonBit) != 0;
  }
  [[nodiscard]] bool has_producer_id() const noexcept { return producer_id.value() > -1; }
  // Sums wrap: a header read from damaged bytes may hold anything.
  [[nodiscard]] Offset offset_of(std::int32_t delta) const noexcept {
    return Offset(wrapping_sum(base_offset.value(), delta));
  }
  [[nodiscard]] Offset last_offset() const noexcept { return offset_of(last_offset_delta); }
  [[nodiscard]] Offset next_offset() const noexcept {
    return Offset(wrapping_sum(last_offset().value(), 1));
  }
  [[nodiscard]] std::size_t size() const noexcept {  // of the whole batch
    return kLogOverhead + static_cast<std::size_t>(length);
  }
  /// The sequence of the last record; wraps from INT32_MAX to 0 as Kafka's does.
  [[nodiscard]] std::int32_t last_sequence() const noexcept;
  /// A record's time: base + delta (wrapping), or the batch's append time.
  [[nodiscard]] Timestamp timestamp_of(std::int64_t timestamp_delta) const noexcept {
    if (log_append_time()) return max_timestamp;
    return Timestamp(wrapping_sum(base_timestamp.value(), timestamp_delta));
  }

 private:
  static std::int64_t wrapping_sum(std::int64_t a, std::int64_t b) noexcept {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }
};

/// What a record of `time` has as its delta in a batch of base timestamp `base`; wraps, as the way
/// back.
[[nodiscard]] inline std::int64_t timestamp_delta(Timestamp time, Timestamp base) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(time.value()) -
                                   static_cast<std::uint64_t>(base.value()));
}

/// Reads the header at the start of `bytes`, which need not hold the records. CORRUPT_MESSAGE if
/// there are fewer than kHeaderSize bytes, the magic is not 2 or the length is below a header's.
[[nodiscard]] Result<BatchHeader> parse_header(Bytes bytes);
/// The same for bytes already known to hold a v2 header.
[[nodiscard]] BatchHeader read_header(const std::byte* bytes) noexcept;
/// Writes all fields but the CRC; `bytes` holds at least kHeaderSize bytes.
void write_header(MutableBytes bytes, const BatchHeader& header) noexcept;

/// The record bytes of a whole batch (compressed as they are).
[[nodiscard]] inline Bytes payload(Bytes batch) noexcept {
  return batch.subspan(kHeaderSize);
}

// In-place patches. The first two leave the CRC valid, the others need seal().
inline void set_base_offset(MutableBytes batch, Offset offset) noexcept {
  store_be(batch.data() + at::kBaseOffset, offset.value());
}
inline void set_leader_epoch(MutableBytes batch, LeaderEpoch epoch) noexcept {
  store_be(batch.data() + at::kLeaderEpoch, epoch.value());
}
inline void set_max_timestamp(MutableBytes batch, Timestamp timestamp) noexcept {
  store_be(batch.data() + at::kMaxTimestamp, timestamp.value());
}
inline void set_attributes(MutableBytes batch, std::int16_t attributes) noexcept {
  store_be(batch.data() + at::kAttributes, attributes);
}

/// CRC-32C (Castagnoli) as Kafka and iSCSI use it; `crc` continues an earlier result.
[[nodiscard]] std::uint32_t crc32c(Bytes bytes, std::uint32_t crc = 0) noexcept;
/// The CRC the whole batch should carry.
[[nodiscard]] std::uint32_t compute_crc(Bytes batch) noexcept;
[[nodiscard]] bool verify_crc(Bytes batch) noexcept;
/// Recomputes and writes the CRC of the whole batch; returns it.
std::uint32_t seal(MutableBytes batch) noexcept;

}  // namespace kanal::records
