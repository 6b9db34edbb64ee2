// Producers of one partition (KIP-98, KIP-360, KIP-890): per producer id the epoch, the last five
// batches, where its open transaction began, the coordinator of its last marker. Under the
// partition's lock. Survives restart through the checkpoint and replay of the tail.
#pragma once

#include "kanal/base/bytes.hpp"
#include "kanal/base/error.hpp"
#include "kanal/base/ids.hpp"
#include "kanal/records/batch.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace kanal::log {

struct ProducedBatch {
  std::int32_t first_sequence = -1;
  std::int32_t last_sequence = -1;
  Offset base_offset, last_offset;
  Timestamp timestamp;  // max timestamp of the batch
};

class ProducerState {
 public:
  static constexpr std::size_t kRemembered = 5;

  struct Producer {
    ProducerEpoch epoch = kNoProducerEpoch;
    std::array<ProducedBatch, kRemembered> batches;  // oldest first, `count` of them
    std::uint8_t count = 0;
    std::int32_t coordinator_epoch = -1;  // of the last marker
    Timestamp last_timestamp;             // broker time of the last append, for expiry
    Offset transaction = kNoOffset;       // first offset of the one that is open

    [[nodiscard]] bool in_transaction() const noexcept { return transaction != kNoOffset; }
  };

  /// The remembered batch equal to this one (a duplicate), nothing if it may be appended, or
  /// OUT_OF_ORDER_SEQUENCE_NUMBER / INVALID_PRODUCER_EPOCH. An unknown producer's first sequence is
  /// accepted, whatever it is.
  Result<std::optional<ProducedBatch>> check(const records::BatchHeader& header) const;
  void update(const records::BatchHeader& header, Offset base_offset, Timestamp now);
  /// Behind `update` of a transactional batch: whether its transaction begins with it.
  bool begin(ProducerId id, Offset base_offset);
  /// What a marker leaves: the first offset of the transaction that it ends, kNoOffset where none
  /// was open.
  Offset end(ProducerId id, ProducerEpoch epoch, std::int32_t coordinator_epoch, Timestamp now);
  /// All that a marker tells whose record compaction took; what it leaves is as of `end`.
  Offset note_epoch(ProducerId id, ProducerEpoch epoch, Timestamp now);
  /// A producer with an open transaction stays.
  std::size_t expire(Timestamp now, std::int64_t expiration_ms);

  void encode(Buffer& to) const;
  Result<void> decode(Bytes& from);  // consumes its part

  [[nodiscard]] const std::unordered_map<ProducerId, Producer>& producers() const noexcept {
    return producers_;
  }

 private:
  Producer& at_epoch(ProducerId id, ProducerEpoch epoch, Timestamp now);

  std::unordered_map<ProducerId, Producer> producers_;
};

}  // namespace kanal::log
