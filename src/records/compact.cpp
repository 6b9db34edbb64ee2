#include "kanal/records/compact.hpp"

#include "record_stream.hpp"
#include "sip_hash.hpp"

#include "kanal/base/check.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace kanal::records {
namespace {


/// Makes the digest of each record's key while it passes by, in one piece or many.
class KeySink final : public RecordSink {
 public:
  explicit KeySink(const DigestSecret& secret) : secret_(secret), hash_(secret) {}

  void begin(const RecordFields&, std::size_t) override {
    hash_ = SipHash(secret_);
    size_bytes_ = 0;
    in_size_ = true;
    left_ = 0;
  }
  void tail(Bytes bytes) override {
    while (in_size_ && !bytes.empty()) {
      size_[size_bytes_++] = bytes.front();
      const bool more = (bytes.front() & std::byte{0x80}) != std::byte{0};
      bytes = bytes.subspan(1);
      if (more && size_bytes_ < kMaxVarint) continue;
      in_size_ = false;
      const std::byte* at = size_.data();
      std::int32_t size = 0;
      if (read_varint(at, at + size_bytes_, size) && size > 0) {
        left_ = static_cast<std::size_t>(size);
      }
    }
    const Bytes key = bytes.first(std::min(bytes.size(), left_));
    if (key.empty()) return;
    hash_.update(key);
    left_ -= key.size();
  }
  [[nodiscard]] KeyDigest digest() { return hash_.finish(); }

 private:
  const DigestSecret secret_;
  SipHash hash_;
  std::array<std::byte, kMaxVarint> size_{};
  std::size_t size_bytes_ = 0;
  std::size_t left_ = 0;
  bool in_size_ = true;
};

/// Writes the records that are kept.
class KeepSink final : public RecordSink {
 public:
  struct Times {
    std::optional<Timestamp> base;  // nothing: the first kept record's
    Timestamp largest{-1};
  };
  KeepSink(const BatchHeader& header, const std::vector<bool>& keep, Times times,
           Deflater& deflater)
      : header_(header), keep_(keep), times_(times), deflater_(deflater) {}

  void begin(const RecordFields& fields, std::size_t tail_size) override {
    keeping_ = seen_ < keep_.size() && keep_[seen_];
    ++seen_;
    if (!keeping_) return;
    ++kept_;
    const Timestamp time = header_.timestamp_of(fields.timestamp_delta);
    if (!times_.base) times_.base = time;
    times_.largest = std::max(times_.largest, time);
    std::array<std::byte, 1 + kMaxVarlong + kMaxVarint> body;
    std::size_t body_size = 0;
    body[body_size++] = std::byte{0};  // record attributes: none are in use
    body_size +=
        write_varlong(body.data() + body_size, timestamp_delta(time, *times_.base));
    body_size += write_varint(body.data() + body_size, fields.offset_delta);
    std::array<std::byte, kMaxVarint> length;
    const std::size_t length_size =
        write_varint(length.data(), static_cast<std::int32_t>(body_size + tail_size));
    write(Bytes(length).first(length_size));
    write(Bytes(body).first(body_size));
  }
  void tail(Bytes bytes) override {
    if (keeping_) write(bytes);
  }

  [[nodiscard]] const Times& times() const noexcept { return times_; }
  [[nodiscard]] std::int32_t kept() const noexcept { return kept_; }
  [[nodiscard]] Result<void>& outcome() noexcept { return outcome_; }

 private:
  void write(Bytes bytes) {
    if (outcome_) outcome_ = deflater_.write(bytes);
  }

  const BatchHeader& header_;
  const std::vector<bool>& keep_;
  Times times_;
  Deflater& deflater_;
  Result<void> outcome_;
  std::size_t seen_ = 0;
  std::int32_t kept_ = 0;
  bool keeping_ = false;
};

Result<BatchHeader> whole_header(Bytes batch) {
  Result<BatchHeader> header = parse_header(batch);
  if (header && header->size() > batch.size()) {
    return fail(ErrorCode::CORRUPT_MESSAGE, "the batch is cut");
  }
  return header;
}

RecordStream::Source source_of(Bytes batch, const BatchHeader& header) {
  return {header.codec(), payload(batch.first(header.size())), header.record_count,
          std::numeric_limits<std::int32_t>::max()};
}

}  // namespace

KeyDigest digest(Bytes key, const DigestSecret& secret) noexcept {
  SipHash hash(secret);
  hash.update(key);
  return hash.finish();
}

Result<void> visit_keys(Bytes batch, const DigestSecret& secret, Scratch& scratch,
                        const KeyVisitor& visit) {
  const Result<BatchHeader> header = whole_header(batch);
  if (!header) return std::unexpected(header.error());
  if (header->record_count <= 0) return {};
  KeySink keys(secret);
  RecordStream stream(scratch.inflater, source_of(batch, *header), &keys);
  if (Result<void> opened = stream.open(); !opened) return opened;
  RecordFields fields;
  for (;;) {
    const Result<bool> more = stream.next(fields);
    if (!more) return std::unexpected(more.error());
    if (!*more) return {};
    KeyedRecord record;
    record.offset = header->offset_of(fields.offset_delta);
    record.timestamp = header->timestamp_of(fields.timestamp_delta);
    record.has_key = fields.has_key();
    record.has_value = fields.value_size >= 0;
    if (record.has_key) record.key = keys.digest();
    if (!visit(record)) return {};
  }
}

Result<Buffer> keep_records(Bytes batch, const std::vector<bool>& keep,
                            std::optional<Timestamp> delete_horizon, Scratch& scratch) {
  const Result<BatchHeader> original = whole_header(batch);
  if (!original) return std::unexpected(original.error());
  Buffer out(kHeaderSize);
  const Codec codec = original->codec();
  if (codec > Codec::kZstd) return fail(ErrorCode::CORRUPT_MESSAGE, "unknown compression codec");
  Result<void> done = scratch.deflater.open(codec, Levels{}.of(codec), out);
  if (!done) return std::unexpected(std::move(done.error()));
  KeepSink sink(*original, keep, {delete_horizon}, scratch.deflater);
  RecordStream stream(scratch.inflater, source_of(batch, *original), &sink);
  if (Result<void> opened = stream.open(); !opened) return std::unexpected(opened.error());
  RecordFields fields;
  for (;;) {
    const Result<bool> more = stream.next(fields);
    if (!more) return std::unexpected(more.error());
    if (!sink.outcome()) return std::unexpected(std::move(sink.outcome().error()));
    if (!*more) break;
  }
  CHECK(sink.kept() > 0, "a batch without records is an emptied one");
  if (done = scratch.deflater.finish(); !done) return std::unexpected(std::move(done.error()));
  if (out.size() - kLogOverhead > std::numeric_limits<std::int32_t>::max()) {
    return fail(ErrorCode::MESSAGE_TOO_LARGE, "a batch is smaller than 2 GiB");
  }
  BatchHeader header = *original;
  const int horizon_bit = delete_horizon ? kDeleteHorizonBit : 0;
  header.attributes =
      static_cast<std::int16_t>((header.attributes & kUsedAttributes & ~kDeleteHorizonBit) |
                                horizon_bit);
  header.length = static_cast<std::int32_t>(out.size() - kLogOverhead);
  header.base_timestamp = sink.times().base.value_or(kNoTimestamp);
  if (!header.log_append_time()) header.max_timestamp = sink.times().largest;
  header.record_count = sink.kept();
  write_header(out, header);
  seal(out);
  return out;
}

Buffer emptied(const BatchHeader& original) {
  BatchHeader header = original;
  header.attributes = static_cast<std::int16_t>(
      header.attributes & (kLogAppendTimeBit | kTransactionalBit | kControlBit));
  header.length = static_cast<std::int32_t>(kHeaderSize - kLogOverhead);
  header.base_timestamp = kNoTimestamp;
  header.record_count = 0;
  Buffer batch(kHeaderSize);
  write_header(batch, header);
  seal(batch);
  return batch;
}

}  // namespace kanal::records
