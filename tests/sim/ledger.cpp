#include "ledger.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "dice.hpp"
#include "kanal/records/batch.hpp"

namespace kanal::sim {
namespace {

constexpr std::uint32_t number_of(RecordId id) {
  return static_cast<std::uint32_t>(id);
}
constexpr std::uint32_t lane_of(RecordId id) {
  return static_cast<std::uint32_t>(id >> 32) - 1;
}

/// 0: it is none of ours.
RecordId identify(const records::RecordView& record) {
  std::optional<Bytes> where = record.value;
  if (!where && record.header_count == 1) {
    const auto header = records::HeaderCursor(record).next();
    if (header) where = header->value;
  }
  if (!where || where->size() < 8) return 0;
  return static_cast<RecordId>(load_be<std::int64_t>(where->data()));
}

}  // namespace

void append_value(Buffer& out, RecordId id) {
  std::array<std::byte, 8> head;
  store_be(head.data(), static_cast<std::int64_t>(id));
  append(out, head);
  const std::uint64_t noise = mix(id);
  std::size_t size = noise % 100;
  if (noise % 67 == 0) size = noise % 2000;
  const std::size_t at = out.size();
  out.resize(at + size);
  for (std::size_t i = 0; i < size; ++i) {
    out[at + i] = static_cast<std::byte>((noise >> (i % 8 * 8)) + i / 8);
  }
}

int key_of(RecordId id) noexcept {
  const std::uint64_t noise = mix(id ^ 0x6b6579);
  return static_cast<int>(noise % 4 == 0 ? 8 + noise / 4 % 1000 : noise / 4 % 8);  // some are rare
}

std::string key_text(RecordId id) {
  return "key-" + std::to_string(key_of(id));
}

bool is_tombstone(RecordId id) noexcept {
  return mix(id ^ 0x746f6d62) % 6 == 0;
}

void RecordLedger::fail(const LogKey& key, const std::string& what) const {
  report_(fmt::format("log {}~{}: {}", to_string(key.first), key.second, what));
}

void RecordLedger::open(const LogKey& log, bool acks_after_sync) {
  logs_[log].acks_after_sync = acks_after_sync;
}

std::uint32_t RecordLedger::new_lane(const LogKey& log, Manner manner) {
  lanes_.push_back({log, manner, {}, {}, {}, {}, {}});
  return static_cast<std::uint32_t>(lanes_.size() - 1);
}

RecordId RecordLedger::new_record(std::uint32_t lane) {
  Lane& to = lanes_[lane];
  to.where.push_back(-1);
  to.sent.push_back(0);
  to.seen.push_back(0);
  to.made.push_back(now());
  to.bytes.push_back(0);
  return (static_cast<RecordId>(lane + 1) << 32) | (to.where.size() - 1);
}

void RecordLedger::sending(std::span<const RecordId> records, std::size_t bytes) {
  Lane& first = lanes_[lane_of(records.front())];
  const std::uint32_t number = number_of(records.front());
  first.bytes[number] = static_cast<std::uint32_t>(bytes);
  if (!first.manner.idempotent || first.sent[number] == 0) logs_[first.log].sent_bytes += bytes;
  for (const RecordId id : records) ++lanes_[lane_of(id)].sent[number_of(id)];
}

void RecordLedger::raise_end(Log& log, std::int64_t end) {
  log.end = std::max(log.end, end);
  if (log.acks_after_sync) log.durable = log.end;
}

void RecordLedger::acknowledged(const LogKey& key, std::int64_t base_offset,
                                std::span<const RecordId> records) {
  Log& log = logs_[key];
  if (base_offset < 0) return fail(key, "acknowledged without an offset");
  for (std::size_t i = 0; i < records.size(); ++i) {
    learn(key, log, base_offset + static_cast<std::int64_t>(i), records[i], "acknowledgement");
  }
  acknowledged_ += records.size();
  raise_end(log, base_offset + static_cast<std::int64_t>(records.size()));
}

std::int64_t RecordLedger::must_show(const LogKey& log) const {
  const auto found = logs_.find(log);
  return found == logs_.end() ? 0 : found->second.end;
}

void RecordLedger::out_of_range(const LogKey& key, const Found& found) {
  Log& log = logs_[key];
  if (found.position < log.trim_limit || found.position > std::min(found.floor, log.end)) return;
  // Retention was there. It may have taken more, which nobody is to read then.
  const std::int64_t gone = removable_end(key, log, log.end);
  if (found.position < gone) {
    log.trim_limit = gone;
    return;
  }
  fail(key,
       fmt::format("{} is out of range, records up to {} are there", found.position, found.floor));
}

std::int64_t RecordLedger::safe_start(const LogKey& log) const {
  const auto found = logs_.find(log);
  return found == logs_.end() ? 0 : std::max(found->second.start, found->second.trim_limit);
}

RecordLedger::Range RecordLedger::range(const LogKey& log) const {
  const auto found = logs_.find(log);
  return found == logs_.end() ? Range{} : Range{found->second.start, found->second.end};
}

void RecordLedger::learn(const LogKey& key, Log& log, std::int64_t offset, RecordId id,
                         const char* by) {
  const auto at = static_cast<std::size_t>(offset);
  if (log.known.size() <= at) log.known.resize(at + 1, 0);
  RecordId& known = log.known[at];
  if (known == id) return;
  if (known != 0) {
    return fail(key, fmt::format("offset {} holds record {:x}, known was {:x} (by {})", offset, id,
                                 known, by));
  }
  if (lane_of(id) >= lanes_.size() || number_of(id) >= lanes_[lane_of(id)].where.size()) {
    return fail(key, fmt::format("offset {} holds record {:x}, which nobody made", offset, id));
  }
  Lane& lane = lanes_[lane_of(id)];
  const std::uint32_t number = number_of(id);
  if (lane.log != key) {
    return fail(key, fmt::format("offset {} holds record {:x} of another log", offset, id));
  }
  if (lane.manner.idempotent && lane.where[number] >= 0) {
    return fail(key, fmt::format("idempotent record {:x} is doubled: offsets {} and {} (by {})", id,
                                 lane.where[number], offset, by));
  }
  if (++lane.seen[number] > lane.sent[number]) {
    return fail(key, fmt::format("record {:x} is there {} times, sent {} times", id,
                                 lane.seen[number], lane.sent[number]));
  }
  lane.where[number] = offset;
  known = id;
}

std::optional<Timestamp> RecordLedger::made(const LogKey& key, std::int64_t offset) const {
  const auto log = logs_.find(key);
  if (log == logs_.end() || log->second.known.size() <= static_cast<std::size_t>(offset))
    return std::nullopt;
  const RecordId id = log->second.known[static_cast<std::size_t>(offset)];
  if (id == 0) return std::nullopt;
  return Timestamp(lanes_[lane_of(id)].made[number_of(id)]);
}

std::int64_t RecordLedger::read(const LogKey& key, const Found& found, Bytes records) {
  Log& log = logs_[key];
  if (found.was_deleted) fail(key, "a deleted topic's records are read");
  if (found.high_watermark < found.floor) {
    fail(key, fmt::format("the high watermark {} lies below {}, which was acknowledged or shown",
                          found.high_watermark, found.floor));
  }
  check_start(key, log, found.log_start, "");
  if (records.empty() && found.position < found.floor && !found.may_be_empty) {
    fail(key, fmt::format("a read at {} shows nothing, records up to {} are there", found.position,
                          found.floor));
  }
  std::int64_t next = found.position;
  bool first = true;
  while (!records.empty()) {
    const auto header = records::parse_header(records);
    if (!header || header->size() > records.size()) {
      fail(key, fmt::format("a read at {} shows bytes that are no batch", next));
      return next;
    }
    const std::int64_t base = header->base_offset.value();
    if (first && base <= next) next = base;
    if (base > next && !check_gap(key, log, next, base)) return next;
    next = std::max(next, base);
    first = false;
    if (!read_batch(key, log, next, records)) return next;
  }
  if (next > found.high_watermark && next > found.position) {
    fail(key, fmt::format("a read shows records up to {} beyond the high watermark {}", next,
                          found.high_watermark));
  }
  raise_end(log, std::max(next, found.high_watermark));
  return std::max(next, found.position);
}

bool RecordLedger::read_batch(const LogKey& key, Log& log, std::int64_t& next, Bytes& records) {
  const records::BatchHeader header = *records::parse_header(records);
  const Bytes batch = records.first(header.size());
  records = records.subspan(header.size());
  if (!records::verify_crc(batch)) {
    return fail(key, fmt::format("the batch at {} fails its checksum", next)), false;
  }
  if (header.base_offset.value() != next) {
    return fail(key, fmt::format("the batch at {} begins with offset {}", next,
                                 header.base_offset.value())),
           false;
  }
  if (!read_records(key, log, next, batch)) return false;
  next = header.next_offset().value();
  return true;
}

bool RecordLedger::read_records(const LogKey& key, Log& log, std::int64_t base, Bytes batch) {
  const records::BatchHeader header = *records::parse_header(batch);
  Bytes payload = records::payload(batch);
  if (header.is_compressed()) {
    inflated_.clear();
    const auto done =
        records::inflate_all(inflater_, header.codec(), payload, std::size_t{1} << 24, inflated_);
    if (!done) return fail(key, fmt::format("the batch at {} does not inflate", base)), false;
    payload = inflated_;
  }
  bool sound = true, whole = true;
  std::int64_t next = base;
  const auto walked =
      records::walk(payload, header.record_count, [&](const records::RecordView& record) {
        const std::int64_t offset = base + record.offset_delta;
        const RecordId id = identify(record);
        sound = id != 0 && offset >= next;
        if (!sound) return false;
        learn(key, log, offset, id, "read");
        if (!is_as_made(record, id, header.timestamp_of(record.timestamp_delta))) {
          return sound = false;
        }
        whole = whole && check_gap(key, log, next, offset);
        next = offset + 1;
        ++checked_;
        return true;
      });
  if (!sound || !walked) {
    return fail(key, fmt::format("the batch at {} holds other bytes than were produced", base)),
           false;
  }
  return whole && check_gap(key, log, next, header.next_offset().value());
}

bool RecordLedger::is_as_made(const records::RecordView& record, RecordId id, Timestamp time) {
  const std::size_t lane = lane_of(id);
  if (lane >= lanes_.size() || number_of(id) >= lanes_[lane].made.size()) return false;
  expected_.clear();
  const bool keyed = lanes_[lane].manner.keyed;
  if (keyed != record.key.has_value()) return false;
  if (keyed) {
    const std::string text = key_text(id);
    if (!std::ranges::equal(as_bytes(text), *record.key)) return false;
    if (is_tombstone(id) == record.value.has_value()) return false;
  }
  if (record.value) append_value(expected_, id);
  return (!record.value || std::ranges::equal(expected_, *record.value)) &&
         lanes_[lane].made[number_of(id)] == time.value();
}

void RecordLedger::trimming(const LogKey& key, std::int64_t up_to) {
  Log& log = logs_[key];
  log.trim_limit = std::max(log.trim_limit, up_to);
}

void RecordLedger::trimmed(const LogKey& key, std::int64_t start) {
  Log& log = logs_[key];
  check_start(key, log, start, " after a trim");
  log.start = std::max(log.start, start);
}

void RecordLedger::stopped_cleanly() {
  for (auto& [key, log] : logs_) log.durable = log.end;
}

void RecordLedger::survived(const LogKey& key, const Range& found, Death death) {
  Log& log = logs_[key];
  const std::int64_t promised = death == Death::kPowerCut ? log.durable : log.end;
  if (found.end < promised) {
    fail(key,
         fmt::format("the log ends at {} after a restart, {} was promised", found.end, promised));
  }
  if (found.start > found.end) fail(key, "the log starts behind its end");
  check_start(key, log, found.start, " after a restart");
  if (death != Death::kPowerCut) {
    if (found.start < log.start) {
      fail(key, fmt::format("the log starts at {} after a restart, it was trimmed to {}",
                            found.start, log.start));
    }
    return;
  }
  log.start = std::min(log.start, found.start);
  if (found.end < log.end) {
    log.end = found.end;
  }
  forget_from(log, found.end);
}

void RecordLedger::forget_from(Log& log, std::int64_t end) {
  log.passed = 0;
  log.passed_bytes = 0;
  while (static_cast<std::int64_t>(log.known.size()) > end) {
    const RecordId id = log.known.back();
    log.known.pop_back();
    if (id == 0) continue;
    Lane& lane = lanes_[lane_of(id)];
    lane.where[number_of(id)] = -1;
    --lane.seen[number_of(id)];
  }
}

}  // namespace kanal::sim
