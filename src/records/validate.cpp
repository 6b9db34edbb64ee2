#include "kanal/records/validate.hpp"

#include "record_check.hpp"
#include "record_stream.hpp"

#include "kanal/records/record.hpp"

#include <algorithm>
#include <utility>

namespace kanal::records {
namespace {

constexpr std::int32_t kSmallestLength =
    14;  // Kafka's floor is the oldest message format's overhead

std::unexpected<Rejection> reject(ErrorCode code, std::string detail) {
  return std::unexpected(Rejection{code, {}, {}, std::move(detail), false});
}

enum class Framing { kBatch, kNone, kCorrupt };
struct Frame {
  Framing framing = Framing::kNone;
  std::size_t size = 0;
  const char* why = "";
};

/// What lies at the start of `bytes`: a whole batch, too few bytes for one, or no batch at all.
Frame frame(Bytes bytes) noexcept {
  if (bytes.size() < kLogOverhead) return {};
  const auto length = load_be<std::int32_t>(bytes.data() + at::kLength);
  if (length < kSmallestLength) return {Framing::kCorrupt, 0, "the batch length is too small"};
  if (bytes.size() < kUpToMagic) return {};
  const auto magic = static_cast<std::int8_t>(bytes[at::kMagic]);
  if (magic < 0 || magic > kMagic) return {Framing::kCorrupt, 0, "unknown batch magic"};
  const std::size_t size = kLogOverhead + static_cast<std::size_t>(length);
  if (bytes.size() < size) return {};
  return {Framing::kBatch, size, ""};
}

/// The checks on the record set as a whole: exactly one batch, of magic 2, with a codec this
/// version may use.
std::expected<Bytes, Rejection> check_frame(Bytes record_set, const ProduceRules& rules) {
  const std::expected<Bytes, Rejection> first = first_batch(record_set);
  if (!first) return first;
  if (static_cast<std::int8_t>((*first)[at::kMagic]) != kMagic) {
    return reject(ErrorCode::INVALID_RECORD, "only batches of magic 2 can be produced");
  }
  const auto codec =
      static_cast<Codec>(load_be<std::int16_t>(first->data() + at::kAttributes) & kCodecMask);
  if (rules.produce_version < 7 && codec == Codec::kZstd) {
    return reject(ErrorCode::UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce version 7");
  }
  const Frame second = frame(record_set.subspan(first->size()));
  if (second.framing == Framing::kCorrupt) return reject(ErrorCode::CORRUPT_MESSAGE, second.why);
  if (second.framing == Framing::kBatch) {
    return reject(ErrorCode::INVALID_RECORD, "more than one batch for a partition");
  }
  return first;
}

/// The header's own checks, in Kafka's order, the CRC among them.
std::expected<BatchHeader, Rejection> check_header(Bytes batch, const ProduceRules& rules) {
  if (batch.size() < kHeaderSize)
    return reject(ErrorCode::CORRUPT_MESSAGE, "the batch is smaller than its header");
  const BatchHeader header = read_header(batch.data());
  if (header.base_offset.value() != 0)
    return reject(ErrorCode::INVALID_RECORD, "the base offset is not 0");
  if (batch.size() > static_cast<std::size_t>(std::max(rules.max_message_bytes, 0))) {
    return reject(ErrorCode::MESSAGE_TOO_LARGE, "the batch is larger than max.message.bytes");
  }
  if (!verify_crc(batch)) return reject(ErrorCode::CORRUPT_MESSAGE, "the CRC does not match");
  if (header.codec() > Codec::kZstd) {
    return reject(ErrorCode::UNKNOWN_SERVER_ERROR, "unknown compression codec");
  }
  if (header.record_count <= 0)
    return reject(ErrorCode::INVALID_RECORD, "the batch has no records");
  if (header.last_offset_delta != header.record_count - 1) {
    return reject(ErrorCode::INVALID_RECORD, "record count and last offset delta disagree");
  }
  if (header.is_control())
    return reject(ErrorCode::INVALID_RECORD, "clients may not write control batches");
  if (header.has_producer_id() && header.base_sequence < 0) {
    return reject(ErrorCode::INVALID_RECORD, "negative sequence of an idempotent producer");
  }
  return header;
}

std::unexpected<Rejection> reject_records(Error error) {
  return reject(error.code, std::move(error.detail));
}

RecordStream::Source source_of(Bytes batch, const BatchHeader& header, const ProduceRules& rules) {
  return {header.codec(), payload(batch), header.record_count, rules.max_decompressed_bytes,
          rules.inflate_budget};
}

std::expected<void, Rejection> walk_stream(RecordStream& records, RecordCheck& check) {
  if (Result<void> opened = records.open(); !opened) {
    return reject_records(std::move(opened.error()));
  }
  RecordFields record;
  for (;;) {
    Result<bool> more = records.next(record);
    if (!more) {
      std::unexpected<Rejection> rejected = reject_records(std::move(more.error()));
      rejected.error().over_budget = records.over_budget();
      return rejected;
    }
    if (!*more) return {};
    check.add(record);
  }
}

/// Walks the records of a batch that is stored as it came.
std::expected<void, Rejection> check_records(Bytes batch, RecordCheck& check,
                                             const ProduceRules& rules, Scratch& scratch) {
  const BatchHeader& header = check.header();
  if (!header.is_compressed()) {
    const std::expected<void, Malformed> walked = walk<RecordFields>(
        payload(batch), header.record_count, [&check](const RecordFields& record) {
          check.add(record);
          return true;
        });
    if (!walked) return reject(ErrorCode::INVALID_RECORD, walked.error().why);
    return {};
  }
  RecordStream records(scratch.inflater, source_of(batch, header, rules));
  return walk_stream(records, check);
}

/// Stores the header's new times where they differ, and the CRC for them.
void set_times(CheckedBatch& checked, bool log_append_time, Timestamp max_timestamp) {
  BatchHeader& header = checked.header;
  if (header.log_append_time() == log_append_time && header.max_timestamp == max_timestamp) return;
  const int kept = header.attributes & kUsedAttributes & ~kLogAppendTimeBit;
  header.attributes = static_cast<std::int16_t>(kept | (log_append_time ? kLogAppendTimeBit : 0));
  header.max_timestamp = max_timestamp;
  set_attributes(checked.bytes, header.attributes);
  set_max_timestamp(checked.bytes, max_timestamp);
  header.crc = seal(checked.bytes);
}

/// Whether a trusted compressed batch still has to be inflated: keys to look at, or a max timestamp
/// nobody set.
bool must_walk(const BatchHeader& header, const ProduceRules& rules) noexcept {
  if (!rules.trusted || !header.is_compressed() || rules.compacted) return true;
  if (rules.log_append_time) return header.log_append_time();
  return header.log_append_time() || header.max_timestamp < header.base_timestamp ||
         !check_timestamp(header.max_timestamp, rules);
}

std::expected<CheckedBatch, Rejection> keep(MutableBytes batch, const BatchHeader& header,
                                            const ProduceRules& rules, Scratch& scratch) {
  CheckedBatch checked{batch, header, -1, {}};
  Timestamp max_timestamp = header.max_timestamp;
  if (must_walk(header, rules)) {
    RecordCheck check(header, rules);
    if (std::expected<void, Rejection> walked = check_records(batch, check, rules, scratch);
        !walked) {
      return std::unexpected(std::move(walked.error()));
    }
    if (check.has_errors()) return std::unexpected(check.rejection());
    if (header.is_compressed() && !check.dense()) {
      return reject(ErrorCode::UNKNOWN_SERVER_ERROR,
                    "the offset deltas of a compressed batch have gaps");
    }
    max_timestamp = check.max_timestamp();
    checked.max_timestamp_delta = rules.log_append_time ? 0 : check.max_timestamp_delta();
  }
  set_times(checked, rules.log_append_time, rules.log_append_time ? rules.now : max_timestamp);
  return checked;
}

/// Writes the records of a batch anew for another codec: dense offset deltas, times relative to the
/// first record.
class Recompress final : public RecordSink {
 public:
  Recompress(RecordCheck& check, Deflater& deflater, Buffer& out, std::size_t limit)
      : check_(check), deflater_(deflater), out_(out), limit_(limit) {}

  void begin(const RecordFields& fields, std::size_t tail_size) override {
    const Timestamp timestamp = check_.header().timestamp_of(fields.timestamp_delta);
    if (count_ == 0) base_timestamp_ = timestamp;
    negative_time_ = negative_time_ || (timestamp.value() < 0 && timestamp != kNoTimestamp);
    std::byte bytes[kMaxVarint + 1 + kMaxVarlong + kMaxVarint];
    std::byte body[1 + kMaxVarlong + kMaxVarint];
    std::size_t body_size = 0;
    body[body_size++] = std::byte{0};
    body_size += write_varlong(body + body_size, timestamp_delta(timestamp, base_timestamp_));
    body_size += write_varint(body + body_size, count_++);
    const std::size_t size = write_varint(bytes, static_cast<std::int32_t>(body_size + tail_size));
    std::copy(body, body + body_size, bytes + size);
    write(Bytes(bytes, size + body_size));
  }
  void tail(Bytes bytes) override { write(bytes); }

  [[nodiscard]] Timestamp base_timestamp() const noexcept { return base_timestamp_; }
  [[nodiscard]] bool negative_time() const noexcept { return negative_time_; }
  [[nodiscard]] bool too_large() const noexcept { return too_large_; }
  [[nodiscard]] Result<void>& outcome() noexcept { return outcome_; }

 private:
  /// Nothing more is written once the batch cannot be stored any more: a bomb must not cost memory.
  void write(Bytes bytes) {
    if (!outcome_ || too_large_ || check_.has_errors()) return;
    too_large_ = out_.size() + (check_.target() == Codec::kNone ? bytes.size() : 0) > limit_;
    if (!too_large_) outcome_ = deflater_.write(bytes);
  }

  RecordCheck& check_;
  Deflater& deflater_;
  Buffer& out_;
  std::size_t limit_;
  Result<void> outcome_;
  Timestamp base_timestamp_{-1};
  std::int32_t count_ = 0;
  bool negative_time_ = false;
  bool too_large_ = false;
};

BatchHeader rebuilt_header(const RecordCheck& check, const ProduceRules& rules,
                           Timestamp base_timestamp) {
  BatchHeader header = check.header();
  const int times = rules.log_append_time ? kLogAppendTimeBit : 0;
  header.attributes = static_cast<std::int16_t>(static_cast<int>(check.target()) | times |
                                                (header.attributes & kTransactionalBit));
  header.leader_epoch = kNoLeaderEpoch;
  header.base_timestamp = base_timestamp;
  header.max_timestamp = rules.log_append_time ? rules.now : check.max_timestamp();
  return header;
}

/// What Kafka's builder of new batches refuses, as an exception it answers with -1.
const char* builder_refuses(const BatchHeader& header, bool negative_time) noexcept {
  if (negative_time) return "negative timestamps cannot be compressed anew";
  if (header.is_transactional() && !header.has_producer_id())
    return "a transactional batch needs a producer id";
  if (header.producer_id != kNoProducerId && header.producer_epoch == kNoProducerEpoch) {
    return "an idempotent batch needs a producer epoch";
  }
  return nullptr;
}

std::expected<CheckedBatch, Rejection> rebuild(Bytes batch, RecordCheck& check,
                                               const ProduceRules& rules, Scratch& scratch) {
  const BatchHeader& header = check.header();
  CheckedBatch checked;
  checked.storage.reserve(batch.size());
  checked.storage.resize(kHeaderSize);
  Result<void> done =
      scratch.deflater.open(check.target(), rules.levels.of(check.target()), checked.storage);
  if (!done) return reject_records(std::move(done.error()));
  const auto limit = static_cast<std::size_t>(std::max(rules.max_message_bytes, 0));
  Recompress writer(check, scratch.deflater, checked.storage, limit);
  {
    RecordStream records(scratch.inflater, source_of(batch, header, rules), &writer);
    if (std::expected<void, Rejection> walked = walk_stream(records, check); !walked) {
      return std::unexpected(std::move(walked.error()));
    }
  }
  if (check.has_errors()) return std::unexpected(check.rejection());
  if (const char* why = builder_refuses(header, writer.negative_time())) {
    return reject(ErrorCode::UNKNOWN_SERVER_ERROR, why);
  }
  if (writer.outcome()) done = scratch.deflater.finish();
  if (!writer.outcome()) return reject_records(std::move(writer.outcome().error()));
  if (!done) return reject_records(std::move(done.error()));
  if (writer.too_large() || checked.storage.size() > limit) {
    return reject(ErrorCode::MESSAGE_TOO_LARGE,
                  "the batch is larger than max.message.bytes once compressed anew");
  }
  checked.header = rebuilt_header(check, rules, writer.base_timestamp());
  checked.header.length = static_cast<std::int32_t>(checked.storage.size() - kLogOverhead);
  checked.bytes = checked.storage;
  checked.max_timestamp_delta = rules.log_append_time ? 0 : check.max_timestamp_index();
  write_header(checked.bytes, checked.header);
  checked.header.crc = seal(checked.bytes);
  return checked;
}

}  // namespace

std::expected<CheckedBatch, Rejection> check_produce(MutableBytes record_set,
                                                     const ProduceRules& rules, Scratch& scratch) {
  std::expected<Bytes, Rejection> framed = check_frame(record_set, rules);
  if (!framed) {
    framed.error().before_append = true;
    return std::unexpected(std::move(framed.error()));
  }
  const std::expected<BatchHeader, Rejection> header = check_header(*framed, rules);
  if (!header) return std::unexpected(header.error());
  const Codec target = rules.compression.value_or(header->codec());
  if (target == header->codec())
    return keep(record_set.first(framed->size()), *header, rules, scratch);
  RecordCheck check(*header, rules, target);
  return rebuild(*framed, check, rules, scratch);
}

std::expected<Bytes, Rejection> first_batch(Bytes record_set) {
  const Frame first = frame(record_set);
  switch (first.framing) {
    case Framing::kBatch:
      return record_set.first(first.size);
    case Framing::kNone:
      return reject(ErrorCode::INVALID_RECORD, "the record set holds no whole batch");
    case Framing::kCorrupt:
      break;
  }
  Rejection rejection{
      ErrorCode::CORRUPT_MESSAGE, first.why, {}, first.why};  // Kafka sends a text here
  return std::unexpected(std::move(rejection));
}

}  // namespace kanal::records
