#include "compaction_record.hpp"

#include "blob.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace kanal::log {
namespace {

constexpr std::string_view kMagic = "KNLM";
constexpr std::uint16_t kVersion = 1;
constexpr std::uint64_t kMaxFile = 256 << 20;

Buffer encode_one(const CompactionRecord& record) {
  BlobWriter writer;
  writer.id(record.first_dirty);
  writer.number(record.next_generation);
  writer.number(static_cast<std::uint32_t>(record.segments.size()));
  for (const CompactedSegment& segment : record.segments) {
    writer.id(segment.id.base);
    writer.number(segment.id.generation);
    writer.id(segment.end);
    writer.number(segment.size);
    writer.number(segment.batches);
    writer.number(segment.crc);
    writer.id(segment.last_epoch);
    writer.id(segment.first_timestamp);
    writer.id(segment.max_timestamp);
    writer.id(segment.newest);
  }
  return writer.seal(kMagic, kVersion);
}

bool is_sound(const CompactionRecord& record) {
  Sequence end{1};
  for (const CompactedSegment& segment : record.segments) {
    if (segment.id.base < end || segment.end <= segment.id.base || segment.id.generation == 0 ||
        segment.id.generation >= record.next_generation || segment.size == 0 ||
        segment.newest < kNoTimestamp) {
      return false;
    }
    end = segment.end;
  }
  return is_stored(end) && is_stored(record.first_dirty);
}

Result<CompactionRecord> decode_one(Bytes copy) {
  const auto payload = open_blob(copy, kMagic, kVersion);
  if (!payload) return std::unexpected(payload.error());
  BlobReader reader(*payload);
  CompactionRecord record;
  record.first_dirty = reader.id<Sequence>();
  record.next_generation = reader.number<std::uint32_t>();
  const auto count = reader.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && reader.good(); ++i) {
    CompactedSegment& segment = record.segments.emplace_back();
    segment.id.base = reader.id<Sequence>();
    segment.id.generation = reader.number<std::uint32_t>();
    segment.end = reader.id<Sequence>();
    segment.size = reader.number<std::uint64_t>();
    segment.batches = reader.number<std::uint64_t>();
    segment.crc = reader.number<std::uint32_t>();
    segment.last_epoch = reader.id<LeaderEpoch>();
    segment.first_timestamp = reader.id<Timestamp>();
    segment.max_timestamp = reader.id<Timestamp>();
    segment.newest = reader.id<Timestamp>();
  }
  if (!reader.done()) return storage_error("its length does not match");
  if (!is_sound(record)) return storage_error("its segments are not in order");
  return record;
}

}  // namespace

void CompactionRecord::replace(Sequence from, Sequence end,
                               const std::vector<CompactedSegment>& with) {
  std::erase_if(segments, [&](const CompactedSegment& segment) {
    return segment.id.base < end && segment.end > from;
  });
  segments.insert(segments.end(), with.begin(), with.end());
  std::ranges::sort(segments, {}, [](const CompactedSegment& segment) { return segment.id.base; });
}

void CompactionRecord::drop_below(Sequence start) {
  std::erase_if(segments, [&](const CompactedSegment& segment) { return segment.end <= start; });
}

const CompactedSegment* CompactionRecord::holder(Sequence sequence) const noexcept {
  const auto after = std::ranges::upper_bound(
      segments, sequence, {}, [](const CompactedSegment& segment) { return segment.id.base; });
  if (after == segments.begin() || (after - 1)->end <= sequence) return nullptr;
  return &*(after - 1);
}

const CompactedSegment* CompactionRecord::find(Sequence base) const noexcept {
  const CompactedSegment* segment = holder(base);
  return segment != nullptr && segment->id.base == base ? segment : nullptr;
}

bool CompactionRecord::counts(const SegmentId& id) const noexcept {
  const CompactedSegment* listed = holder(id.base);
  return listed != nullptr ? listed->id == id : id.generation == 0;
}

SegmentId CompactionRecord::file_of(Sequence base) const noexcept {
  const CompactedSegment* listed = find(base);
  return listed != nullptr ? listed->id : SegmentId{base, 0};
}

Buffer encode_compaction(const CompactionRecord& record) {
  Buffer file = encode_one(record);
  const Buffer copy = file;
  append(file, copy);
  return file;
}

Result<CompactionRecord> decode_compaction(Bytes file) {
  const std::size_t half = file.size() / 2;
  auto first = decode_one(file.first(half));
  return first ? std::move(first) : decode_one(file.subspan(half));
}

Result<StoredCompaction> read_compaction(FileSystem& files, const std::string& path) {
  StoredCompaction stored;
  const auto bytes = read_file(files, path, kMaxFile);
  if (!bytes) {
    if (bytes.error().os_error == ENOENT) return stored;
    return std::unexpected(bytes.error());
  }
  auto record = decode_compaction(*bytes);
  if (!record) {
    stored.condition = StoredCompaction::Condition::kDamaged;
    stored.why = std::move(record.error().detail);
    return stored;
  }
  stored.condition = *bytes == encode_compaction(*record) ? StoredCompaction::Condition::kSound
                                                          : StoredCompaction::Condition::kRepaired;
  stored.record = std::move(*record);
  return stored;
}

WrittenCompaction write_compaction(FileSystem& files, const std::string& directory,
                                   const CompactionRecord& record) {
  const std::string path = directory + "/" + std::string(kCompactionFile);
  const std::string fresh = path + ".tmp";
  if (auto done = write_file(files, fresh, encode_compaction(record), true); !done) {
    (void)files.remove(fresh);
    return {std::move(done), false};
  }
  if (auto done = files.rename(fresh, path); !done) return {std::move(done), false};
  return {files.sync_directory(directory), true};
}

}  // namespace kanal::log
