#include "time_lookup.hpp"

#include <algorithm>

namespace kanal::handlers {
namespace {

using broker::Context;
using broker::Task;

/// The bytes of slices that a read gave, in one piece.
Result<Buffer> bytes_of(const std::vector<log::Slice>& slices) {
  Buffer bytes;
  for (const log::Slice& slice : slices) {
    if (const auto* memory = std::get_if<log::MemorySlice>(&slice.where)) {
      append(bytes, memory->bytes);
      continue;
    }
    const auto& file = std::get<log::FileSlice>(slice.where);
    const std::size_t before = bytes.size();
    bytes.resize(before + file.length);
    auto got = file.file->read_at(file.offset, MutableBytes(bytes).subspan(before));
    if (!got) return std::unexpected(got.error());
    bytes.resize(before + *got);
  }
  return bytes;
}

/// One batch that holds `from`, from memory or after loading it. Empty at the end of the log.
Task<Result<Buffer>> read_batch(Context& context, broker::Partition& partition, Offset from) {
  const log::FetchLimits one_batch{1, true, false};
  for (;;) {
    std::vector<log::Slice> slices;
    auto outcome = partition.read(from, one_batch, slices, nullptr);
    if (outcome) co_return bytes_of(slices);
    const auto* miss = std::get_if<log::Miss>(&outcome.error());
    if (miss == nullptr) co_return std::unexpected(std::get<Error>(outcome.error()));
    const Result<void> loaded = co_await context.broker.load(context, *miss);
    if (!loaded) co_return std::unexpected(loaded.error());
  }
}

using Position = std::optional<log::TimePosition>;

/// The first batch with a max timestamp of at least `timestamp`; without one, the first with the
/// largest.
Task<Result<Position>> find_batch(Context& context, broker::Partition& partition,
                                  std::optional<Timestamp> timestamp) {
  for (;;) {
    auto found = partition.with_log(
        [&](log::Partition& log) { return timestamp ? log.find(*timestamp) : log.find_max(); });
    if (!found) co_return std::unexpected(found.error());
    if (*found) co_return **found;
    const auto* miss = std::get_if<log::Miss>(&found->error());
    if (miss == nullptr) co_return std::unexpected(std::get<Error>(found->error()));
    const Result<void> loaded = co_await context.broker.load(context, *miss);
    if (!loaded) co_return std::unexpected(loaded.error());
  }
}

}  // namespace

/// The record for `timestamp`, walking on from the first batch that may hold it: that one may hold
/// it only before the log start.
Task<Result<std::optional<records::TimedOffset>>> find_record(Context& context,
                                                              broker::Partition& partition,
                                                              Timestamp timestamp,
                                                              const Marks& seen) {
  using Outcome = Result<std::optional<records::TimedOffset>>;
  auto position = co_await find_batch(context, partition, timestamp);
  if (!position) co_return std::unexpected(position.error());
  if (!*position) co_return std::optional<records::TimedOffset>();
  Offset next = std::max(to_offset((*position)->sequence), seen.marks.log_start);
  while (next < seen.end) {
    auto bytes = co_await read_batch(context, partition, next);
    if (!bytes) co_return std::unexpected(bytes.error());
    const auto header = records::parse_header(*bytes);
    if (!header) co_return std::unexpected(header.error());
    if (header->max_timestamp >= timestamp) {
      Outcome found =
          records::find_by_time(*bytes, timestamp, seen.marks.log_start, context.io.scratch());
      if (!found || *found) co_return found;
    }
    next = header->last_offset() + 1;
  }
  co_return std::optional<records::TimedOffset>();
}

/// -3: the first record with the largest timestamp of those that can be fetched. (Where
/// DeleteRecords cut it, Kafka goes on naming the deleted one.) One batch is read, but where the
/// log start cuts the batch with the largest timestamp between its records: then the headers of all
/// later ones decide.
Task<Result<std::optional<records::TimedOffset>>> find_largest(Context& context,
                                                               broker::Partition& partition,
                                                               const Marks& seen) {
  auto position = co_await find_batch(context, partition, std::nullopt);
  if (!position) co_return std::unexpected(position.error());
  std::optional<records::TimedOffset> largest;
  if (!*position) co_return largest;
  bool cut = false;
  Offset next = std::max(to_offset((*position)->sequence), seen.marks.log_start);
  do {
    auto bytes = co_await read_batch(context, partition, next);
    if (!bytes) co_return std::unexpected(bytes.error());
    const auto header = records::parse_header(*bytes);
    if (!header) co_return std::unexpected(header.error());
    next = header->last_offset() + 1;
    if (largest && header->max_timestamp <= largest->timestamp) continue;
    auto found = records::find_max_timestamp(*bytes, seen.marks.log_start, context.io.scratch());
    if (!found) co_return std::unexpected(found.error());
    if (*found) largest = **found;
    cut = cut || !largest || largest->timestamp != header->max_timestamp;
  } while (cut && next < seen.marks.high_watermark);
  co_return largest;
}

}  // namespace kanal::handlers
