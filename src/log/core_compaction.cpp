// The part of a Core that belongs to compaction: its record.
#include "core.hpp"

#include "blob.hpp"

#include "kanal/base/logging.hpp"

#include <algorithm>

namespace kanal::log {

Result<const CompactionRecord*> Core::compaction_record() {
  if (compaction_ != nullptr) return compaction_.get();
  const std::string file = path(kCompactionFile);
  auto stored = read_compaction(store().files, file);
  if (!stored) return std::unexpected(std::move(stored.error()));
  if (stored->condition == StoredCompaction::Condition::kDamaged) {
    return storage_error("'" + file + "' is damaged: " + stored->why + ".");
  }
  if (stored->condition == StoredCompaction::Condition::kRepaired) {
    logger("log").warn("One of the two copies in a file is damaged. file=\"{}\"", file);
  }
  const CompactionRecord& record = stored->record;
  const bool complete = shared_.with([&](Shared& shared) {
    return std::ranges::all_of(shared.files, [&](const std::shared_ptr<SegmentFile>& segment) {
      return segment->generation == 0 || record.file_of(segment->base) == segment->id();
    });
  });
  if (!complete) {
    return storage_error("'" + file + "' does not list all segments that compaction wrote.");
  }
  set_compaction_record(std::move(stored->record));
  return compaction_.get();
}

void Core::set_compaction_record(CompactionRecord record) {
  first_dirty = record.first_dirty.value();
  compaction_ = std::make_unique<CompactionRecord>(std::move(record));
}

}  // namespace kanal::log
