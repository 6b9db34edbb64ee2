// Transactions for the log's tests: batches of a transactional producer, what a read_committed
// consumer makes of a log, and a naive model that goes through all batches anew for each question.
#pragma once

#include "keyed.hpp"

#include "kanal/log/partition.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace kanal::log::test {

struct TxnBatch {
  std::int64_t producer = 1;
  std::int16_t epoch = 0;
  std::int32_t sequence = 0;
  std::int32_t records = 1;
  bool transactional = true;
  std::string key = "k", value = "v";
};

inline Buffer encode(const TxnBatch& batch) {
  records::BatchOptions options;
  options.producer_id = ProducerId(batch.producer);
  options.producer_epoch = ProducerEpoch(batch.epoch);
  options.base_sequence = batch.sequence;
  options.transactional = batch.transactional;
  records::BatchBuilder builder(options);
  for (std::int32_t i = 0; i < batch.records; ++i)
    builder.add(Timestamp(1000), as_bytes(batch.key), as_bytes(batch.value));
  static records::Deflater deflater;
  return builder.build(deflater).value();
}

inline Result<AppendResult> write(World& world, Partition& partition, const TxnBatch& batch,
                                  const AppendTerms& terms = {}) {
  Buffer bytes = encode(batch);
  return partition.append(bytes, records::parse_header(bytes).value(), world.clock.wall(), terms);
}

struct End {
  std::int64_t producer = 1;
  std::int16_t epoch = 0;
  bool commit = false;
  std::int32_t coordinator = 0;
  std::int16_t version = 1;
};
inline EndMarker marker_of(const End& end) {
  EndMarker marker;
  marker.producer = ProducerId(end.producer);
  marker.epoch = ProducerEpoch(end.epoch);
  marker.type = end.commit ? records::ControlType::kCommit : records::ControlType::kAbort;
  marker.coordinator_epoch = end.coordinator;
  marker.version = end.version;
  return marker;
}
inline Result<AppendResult> finish(World& world, Partition& partition, const End& end) {
  return partition.append_marker(marker_of(end), world.clock.wall());
}
inline ErrorCode code_of(const Result<AppendResult>& result) {
  return result ? ErrorCode::NONE : result.error().code;
}

inline std::vector<AbortedTransaction> aborted_in(const Partition& partition, std::int64_t from = 0,
                                                  std::int64_t upto = INT64_MAX) {
  std::vector<AbortedTransaction> found;
  partition.aborted(Offset(from), Offset(upto), found);
  return found;
}

inline void checkpoint(Partition& partition) {
  const Checkpoint moment = partition.checkpoint();
  ASSERT_TRUE(partition.log().checkpoint(moment));
  partition.note_checkpoint(moment.upto);
}

/// All batches that were written, and the answers that follow from looking at each.
class TxnModel {
 public:
  struct Written {
    std::int64_t producer, base, last;
    enum class Kind { kPlain, kTransactional, kCommit, kAbort } kind;
  };
  std::vector<Written> written;
  std::int64_t start = 0, high = 0;

  [[nodiscard]] std::int64_t last_stable() const {
    std::map<std::int64_t, std::int64_t> open;
    std::int64_t unstable = high;
    for (const Written& batch : written) {
      if (batch.kind == Written::Kind::kTransactional) open.try_emplace(batch.producer, batch.base);
      if (batch.kind < Written::Kind::kCommit) continue;
      const auto found = open.find(batch.producer);
      if (found == open.end()) continue;
      if (batch.base >= high) unstable = std::min(unstable, found->second);
      open.erase(found);
    }
    for (const auto& [producer, first] : open) unstable = std::min(unstable, first);
    return std::min(std::max(unstable, start), high);
  }
  [[nodiscard]] std::vector<AbortedTransaction> aborted(std::int64_t from = 0,
                                                        std::int64_t upto = INT64_MAX) const {
    std::map<std::int64_t, std::int64_t> open;
    std::vector<AbortedTransaction> found;
    for (const Written& batch : written) {
      if (batch.kind == Written::Kind::kTransactional) open.try_emplace(batch.producer, batch.base);
      if (batch.kind < Written::Kind::kCommit || !open.contains(batch.producer)) continue;
      const std::int64_t first = open.extract(batch.producer).mapped();
      if (batch.kind == Written::Kind::kCommit) continue;
      std::int64_t stable = batch.base + 1;
      for (const auto& [producer, began] : open) stable = std::min(stable, began);
      if (batch.base >= std::max(from, start) && first < upto)
        found.push_back(
            {ProducerId(batch.producer), Offset(first), Offset(batch.base), Offset(stable)});
    }
    return found;
  }
};

/// "offset key=value" of all that a read_committed consumer sees, fetch by fetch as Kafka's does.
inline std::vector<std::string> committed_in(World& world, Partition& partition,
                                             std::uint32_t max_bytes) {
  std::vector<std::string> seen;
  std::int64_t from = partition.watermarks().log_start.value();
  const std::int64_t end = partition.watermarks().last_stable.value();
  while (from < end) {
    std::vector<Slice> slices;
    const auto fetched = partition.read(Offset(from), {max_bytes, true, true}, slices);
    if (!fetched) {
      const auto* miss = std::get_if<Miss>(&fetched.error());
      if (miss == nullptr) {
        ADD_FAILURE() << std::get<Error>(fetched.error()).detail;
        return seen;
      }
      world.store().load(*miss, [](Result<void> done) { EXPECT_TRUE(done); });
      world.helpers.run();
      continue;
    }
    std::vector<AbortedTransaction> aborted = aborted_in(partition, from, fetched->next.value());
    std::ranges::sort(aborted, std::ranges::greater{}, &AbortedTransaction::first);
    std::set<ProducerId> skipped;
    const Buffer bytes = bytes_of(slices);
    for (Bytes rest(bytes); !rest.empty();) {
      const auto header = records::parse_header(rest).value();
      const Bytes batch = rest.first(header.size());
      rest = rest.subspan(header.size());
      for (; !aborted.empty() && aborted.back().first <= header.last_offset(); aborted.pop_back())
        skipped.insert(aborted.back().producer);
      if (header.is_control()) {
        const auto marker = records::parse_marker(batch).value();
        if (marker && marker->type == records::ControlType::kAbort)
          skipped.erase(header.producer_id);
        continue;
      }
      if (header.is_transactional() && skipped.contains(header.producer_id)) continue;
      for (const KeyedRecord& record : decode(batch).records) {
        seen.push_back(std::to_string(record.offset) + " " + record.key.value_or("-") + "=" +
                       record.value.value_or("-"));
      }
    }
    EXPECT_LE(fetched->next.value(), end);
    if (fetched->next.value() <= from) {
      ADD_FAILURE() << "no progress at " << from;
      return seen;
    }
    from = fetched->next.value();
  }
  return seen;
}

}  // namespace kanal::log::test
