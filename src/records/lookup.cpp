#include "kanal/records/lookup.hpp"

#include "record_stream.hpp"

#include <limits>

namespace kanal::records {
namespace {

/// The first record that `wanted` accepts.
template <class Wanted>
Result<std::optional<TimedOffset>> find(Bytes batch, Scratch& scratch, Wanted&& wanted) {
  const Result<BatchHeader> header = parse_header(batch);
  if (!header) return std::unexpected(header.error());
  if (header->size() > batch.size()) return fail(ErrorCode::CORRUPT_MESSAGE, "the batch is cut");
  const RecordStream::Source source{header->codec(), payload(batch.first(header->size())),
                                    header->record_count, std::numeric_limits<std::int32_t>::max()};
  RecordStream records(scratch.inflater, source);
  if (header->record_count <= 0) return std::optional<TimedOffset>();
  if (Result<void> opened = records.open(); !opened) return std::unexpected(opened.error());
  RecordFields record;
  for (;;) {
    const Result<bool> more = records.next(record);
    if (!more) return std::unexpected(more.error());
    if (!*more) return std::optional<TimedOffset>();
    const TimedOffset here{header->timestamp_of(record.timestamp_delta),
                           header->offset_of(record.offset_delta)};
    if (wanted(*header, here)) return std::optional<TimedOffset>(here);
  }
}

}  // namespace

Result<std::optional<TimedOffset>> find_by_time(Bytes batch, Timestamp at_least, Offset from,
                                                Scratch& scratch) {
  return find(batch, scratch, [at_least, from](const BatchHeader&, const TimedOffset& here) {
    return here.timestamp >= at_least && here.offset >= from;
  });
}

Result<std::optional<TimedOffset>> find_max_timestamp(Bytes batch, Offset from, Scratch& scratch) {
  std::optional<TimedOffset> largest;
  const auto found = find(batch, scratch, [&](const BatchHeader& header, const TimedOffset& here) {
    if (here.offset < from) return false;
    if (!largest || here.timestamp > largest->timestamp) largest = here;
    return here.timestamp == header.max_timestamp;
  });
  if (!found) return std::unexpected(found.error());
  return largest;
}

}  // namespace kanal::records
