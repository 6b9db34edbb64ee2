#include "kanal/records/build.hpp"

#include "kanal/base/check.hpp"

#include <algorithm>
#include <limits>

namespace kanal::records {
namespace {

void put_varint(Buffer& to, std::int32_t value) {
  std::byte bytes[kMaxVarint];
  append(to, Bytes(bytes, write_varint(bytes, value)));
}

std::int32_t size_of(const std::optional<Bytes>& field) noexcept {
  return field ? static_cast<std::int32_t>(field->size()) : -1;
}

std::size_t stored_size(const std::optional<Bytes>& field) noexcept {
  return varint_size(size_of(field)) + (field ? field->size() : 0);
}

void put_field(Buffer& to, const std::optional<Bytes>& field) {
  put_varint(to, size_of(field));
  if (field) append(to, *field);
}

}  // namespace

BatchBuilder::BatchBuilder(const BatchOptions& options)
    : options_(options), last_offset_(options.base_offset - 1) {
  if (options.delete_horizon) base_timestamp_ = *options.delete_horizon;
}

void BatchBuilder::add(const NewRecord& record) {
  std::size_t tail = stored_size(record.key) + stored_size(record.value) +
                     varint_size(static_cast<std::int32_t>(record.headers.size()));
  for (const RecordHeader& header : record.headers) {
    tail += stored_size(header.key) + stored_size(header.value);
  }
  begin_record(last_offset_ + 1, record.timestamp, tail);
  put_field(records_, record.key);
  put_field(records_, record.value);
  put_varint(records_, static_cast<std::int32_t>(record.headers.size()));
  for (const RecordHeader& header : record.headers) {
    put_field(records_, header.key);
    put_field(records_, header.value);
  }
}

void BatchBuilder::copy(Offset offset, Timestamp timestamp, const RecordView& record) {
  begin_record(offset, timestamp, record.tail.size());
  append(records_, record.tail);
}

void BatchBuilder::begin_record(Offset offset, Timestamp timestamp, std::size_t tail_size) {
  CHECK(offset > last_offset_, "record offsets rise within a batch");
  if (count_ == 0 && !options_.delete_horizon) base_timestamp_ = timestamp;
  max_timestamp_ = std::max(max_timestamp_, timestamp);
  last_offset_ = offset;
  ++count_;
  std::byte prefix[1 + kMaxVarlong + kMaxVarint];
  std::size_t size = 0;
  prefix[size++] = std::byte{0};  // record attributes: none are in use
  size += write_varlong(prefix + size, timestamp_delta(timestamp, base_timestamp_));
  size += write_varint(prefix + size, static_cast<std::int32_t>(offset - options_.base_offset));
  put_varint(records_, static_cast<std::int32_t>(size + tail_size));
  append(records_, Bytes(prefix, size));
}

Result<Buffer> BatchBuilder::build(Deflater& deflater) {
  Buffer batch(kHeaderSize);
  BatchHeader header;
  header.base_offset = options_.base_offset;
  header.leader_epoch = options_.leader_epoch;
  if (count_ > 0) {
    header.attributes = static_cast<std::int16_t>(options_.codec);
    Result<void> done = deflater.open(options_.codec, options_.levels.of(options_.codec), batch);
    if (done) done = deflater.write(records_);
    if (done) done = deflater.finish();
    if (!done) return std::unexpected(done.error());
  }
  if (batch.size() - kLogOverhead > std::numeric_limits<std::int32_t>::max()) {
    return fail(ErrorCode::MESSAGE_TOO_LARGE, "a batch is smaller than 2 GiB");
  }
  const auto bit = [&header](bool set, std::int16_t mask) {
    if (set) header.attributes = static_cast<std::int16_t>(header.attributes | mask);
  };
  bit(options_.log_append_time.has_value(), kLogAppendTimeBit);
  bit(options_.transactional, kTransactionalBit);
  bit(options_.control, kControlBit);
  bit(options_.delete_horizon.has_value(), kDeleteHorizonBit);
  header.length = static_cast<std::int32_t>(batch.size() - kLogOverhead);
  header.last_offset_delta = static_cast<std::int32_t>(last_offset_ - options_.base_offset);
  header.base_timestamp = base_timestamp_;
  header.max_timestamp = options_.log_append_time.value_or(max_timestamp_);
  header.producer_id = options_.producer_id;
  header.producer_epoch = options_.producer_epoch;
  header.base_sequence = options_.base_sequence;
  header.record_count = count_;
  write_header(batch, header);
  seal(batch);
  return batch;
}

Buffer build_marker(const Marker& marker, const MarkerOptions& options) {
  std::byte key[4];  // version 0, type
  store_be(key, std::int16_t{0});
  store_be(key + 2, static_cast<std::int16_t>(marker.type));
  std::byte value[6];  // version 0, coordinator epoch
  store_be(value, std::int16_t{0});
  store_be(value + 2, marker.coordinator_epoch);
  BatchOptions batch;
  batch.base_offset = options.base_offset;
  batch.leader_epoch = options.leader_epoch;
  batch.transactional = true;
  batch.control = true;
  batch.producer_id = options.producer_id;
  batch.producer_epoch = options.producer_epoch;
  if (options.log_append_time) batch.log_append_time = options.timestamp;
  BatchBuilder builder(batch);
  builder.add(options.timestamp, Bytes(key), Bytes(value));
  Deflater deflater;
  Result<Buffer> built = builder.build(deflater);
  CHECK(built.has_value(), "a marker is small and not compressed");
  return std::move(*built);
}

Result<std::optional<Marker>> parse_marker(Bytes batch) {
  const Result<BatchHeader> header = parse_header(batch);
  if (!header) return std::unexpected(header.error());
  if (!header->is_control() || header->is_compressed() || header->size() > batch.size()) {
    return fail(ErrorCode::CORRUPT_MESSAGE, "not a whole control batch");
  }
  if (header->record_count == 0) return std::optional<Marker>();  // what compaction left
  RecordView record;
  const Bytes records = payload(batch.first(header->size()));
  const std::byte* at = records.data();
  if (parse_record(at, records.data() + records.size(), record) != nullptr || !record.key ||
      record.key->size() < 4 || load_be<std::int16_t>(record.key->data()) < 0) {
    return fail(ErrorCode::CORRUPT_MESSAGE, "the key of a control record is malformed");
  }
  const auto type = load_be<std::int16_t>(record.key->data() + 2);
  if (type != static_cast<std::int16_t>(ControlType::kAbort) &&
      type != static_cast<std::int16_t>(ControlType::kCommit)) {
    return std::optional<Marker>();
  }
  if (!record.value || record.value->size() < 6 ||
      load_be<std::int16_t>(record.value->data()) < 0) {
    return fail(ErrorCode::CORRUPT_MESSAGE, "the value of a transaction marker is malformed");
  }
  return std::optional<Marker>(
      Marker{static_cast<ControlType>(type), load_be<std::int32_t>(record.value->data() + 2)});
}

}  // namespace kanal::records
