#include "kanal/log/producer_state.hpp"

#include "blob.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace kanal::log {
namespace {

constexpr std::uint16_t kVersion = 2;  // 1 has no transactions

bool in_sequence(std::int32_t last, std::int32_t next) {
  return next == std::int64_t{last} + 1 ||
         (next == 0 && last == std::numeric_limits<std::int32_t>::max());
}

/// Whether its transaction can be: it began with a batch, the last of which is remembered.
bool can_be(const ProducerState::Producer& producer) {
  if (!producer.in_transaction()) return true;
  return producer.transaction.value() >= 0 && producer.epoch.value() >= 0 && producer.count > 0 &&
         producer.transaction <= producer.batches[producer.count - 1].last_offset;
}

std::string who(const records::BatchHeader& header) {
  return "producer " + std::to_string(header.producer_id.value()) + " with epoch " +
         std::to_string(header.producer_epoch.value());
}

}  // namespace

Result<std::optional<ProducedBatch>> ProducerState::check(
    const records::BatchHeader& header) const {
  const auto found = producers_.find(header.producer_id);
  if (found == producers_.end()) return std::nullopt;
  const Producer& producer = found->second;
  const std::int32_t first = header.base_sequence;
  if (header.producer_epoch == producer.epoch) {
    for (std::size_t i = 0; i < producer.count; ++i) {
      const ProducedBatch& batch = producer.batches[i];
      if (batch.first_sequence == first && batch.last_sequence == header.last_sequence())
        return batch;
    }
  }
  if (header.producer_epoch < producer.epoch) {
    return fail(ErrorCode::INVALID_PRODUCER_EPOCH,
                "The epoch of " + who(header) + " is older than the last one seen, " +
                    std::to_string(producer.epoch.value()) + ".");
  }
  if (header.producer_epoch > producer.epoch) {
    if (first == 0) return std::nullopt;
    return fail(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER,
                "The first sequence number of " + who(header) + " is " + std::to_string(first) +
                    ", a new epoch starts at 0; the last epoch was " +
                    std::to_string(producer.epoch.value()) + ".");
  }
  const std::int32_t last = producer.count == 0
                                ? records::kNoSequence
                                : producer.batches[producer.count - 1].last_sequence;
  if (in_sequence(last, first)) return std::nullopt;
  return fail(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER,
              "The sequence number of " + who(header) + " is " + std::to_string(first) +
                  ", the last one stored is " + std::to_string(last) + ".");
}

void ProducerState::update(const records::BatchHeader& header, Offset base_offset, Timestamp now) {
  Producer& producer = at_epoch(header.producer_id, header.producer_epoch, now);
  if (producer.count == kRemembered) {
    std::shift_left(producer.batches.begin(), producer.batches.end(), 1);
    --producer.count;
  }
  producer.batches[producer.count++] = {header.base_sequence, header.last_sequence(), base_offset,
                                        base_offset + header.last_offset_delta,
                                        header.max_timestamp};
}

ProducerState::Producer& ProducerState::at_epoch(ProducerId id, ProducerEpoch epoch,
                                                 Timestamp now) {
  Producer& producer = producers_[id];
  if (producer.epoch != epoch) {
    producer.epoch = epoch;
    producer.count = 0;
  }
  producer.last_timestamp = now;
  return producer;
}

bool ProducerState::begin(ProducerId id, Offset base_offset) {
  Producer& producer = producers_[id];
  if (producer.in_transaction()) return false;
  producer.transaction = base_offset;
  return true;
}

Offset ProducerState::end(ProducerId id, ProducerEpoch epoch, std::int32_t coordinator_epoch,
                          Timestamp now) {
  Producer& producer = at_epoch(id, epoch, now);
  producer.coordinator_epoch = coordinator_epoch;
  return std::exchange(producer.transaction, kNoOffset);
}

Offset ProducerState::note_epoch(ProducerId id, ProducerEpoch epoch, Timestamp now) {
  return std::exchange(at_epoch(id, epoch, now).transaction, kNoOffset);
}

std::size_t ProducerState::expire(Timestamp now, std::int64_t expiration_ms) {
  std::size_t gone = 0;
  for (auto entry = producers_.begin(); entry != producers_.end();) {
    Timestamp& last = entry->second.last_timestamp;
    // Rebuilt from the log, or the clock went back: counted from now on.
    if (last == kNoTimestamp || last > now) last = now;
    if (now - last < expiration_ms || entry->second.in_transaction()) {
      ++entry;
    } else {
      entry = producers_.erase(entry);
      ++gone;
    }
  }
  return gone;
}

void ProducerState::encode(Buffer& to) const {
  BlobWriter writer;
  writer.number(kVersion);
  writer.number(static_cast<std::uint32_t>(producers_.size()));
  for (const auto& [id, producer] : producers_) {
    writer.id(id);
    writer.id(producer.epoch);
    writer.id(producer.last_timestamp);
    writer.number(producer.coordinator_epoch);
    writer.id(producer.transaction);
    writer.number(static_cast<std::uint16_t>(producer.count));
    for (std::size_t i = 0; i < producer.count; ++i) {
      const ProducedBatch& batch = producer.batches[i];
      writer.number(batch.first_sequence);
      writer.number(batch.last_sequence);
      writer.id(batch.base_offset);
      writer.id(batch.last_offset);
      writer.id(batch.timestamp);
    }
  }
  append(to, writer.take());
}

Result<void> ProducerState::decode(Bytes& from) {
  BlobReader reader(from);
  producers_.clear();
  const auto version = reader.number<std::uint16_t>();
  if (version == 0 || version > kVersion)
    return storage_error("The producers' state has another version.");
  const auto count = reader.number<std::uint32_t>();
  bool sound = true;
  for (std::uint32_t i = 0; i < count && reader.good(); ++i) {
    const auto id = reader.id<ProducerId>();
    Producer& producer = producers_[id];
    producer.epoch = reader.id<ProducerEpoch>();
    producer.last_timestamp = reader.id<Timestamp>();
    sound = sound && producer.last_timestamp >= kNoTimestamp;
    if (version > 1) {
      producer.coordinator_epoch = reader.number<std::int32_t>();
      producer.transaction = reader.id<Offset>();
    }
    const auto batches = reader.number<std::uint16_t>();
    if (batches > kRemembered)
      return storage_error("The producers' state remembers too many batches.");
    producer.count = static_cast<std::uint8_t>(batches);
    for (std::size_t at = 0; at < batches; ++at) {
      ProducedBatch& batch = producer.batches[at];
      batch.first_sequence = reader.number<std::int32_t>();
      batch.last_sequence = reader.number<std::int32_t>();
      batch.base_offset = reader.id<Offset>();
      batch.last_offset = reader.id<Offset>();
      batch.timestamp = reader.id<Timestamp>();
      sound = sound && batch.base_offset.value() >= 0 && batch.base_offset <= batch.last_offset &&
              batch.last_offset < to_offset(kLargestSequence);
    }
    sound = sound && can_be(producer);
  }
  if (!reader.good()) return storage_error("The producers' state is cut short.");
  if (!sound) return storage_error("The producers' state has times or offsets that none can have.");
  from = reader.rest();
  return {};
}

}  // namespace kanal::log
