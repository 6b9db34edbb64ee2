// What is known of every partition's records, from what was sent, acknowledged and read, and the
// checks: nothing acknowledged is lost or moved, idempotent records are there once and plain ones
// not more often than sent, offsets are dense, bytes are those that were produced, watermarks don't
// go back, a power cut takes no more than it may, retention and compaction remove what a policy of
// the topic let them remove. A record's id tells its lane (a producer's way into one partition) and
// its number there; its key and value follow from the id. One thread.
#pragma once

#include "kanal/base/bytes.hpp"
#include "kanal/base/ids.hpp"
#include "kanal/records/compress.hpp"
#include "kanal/records/record.hpp"
#include "policy.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kanal::sim {

using LogKey = std::pair<Uuid, std::int32_t>;
using RecordId = std::uint64_t;  // 0: not known
using Report = std::function<void(const std::string& violation)>;

/// The value of a record, 8 bytes of id and up to 2 KiB that follow from it.
void append_value(Buffer& out, RecordId id);
/// Of a record that has a key: which one, and whether it is a tombstone; that has its id in a
/// header.
[[nodiscard]] int key_of(RecordId id) noexcept;
[[nodiscard]] std::string key_text(RecordId id);
[[nodiscard]] bool is_tombstone(RecordId id) noexcept;

class RecordLedger {
 public:
  /// `wall`: the broker's wall clock.
  RecordLedger(Report report, std::function<Timestamp()> wall)
      : report_(std::move(report)), wall_(std::move(wall)) {}

  struct Range {  // offsets; `end` is the one after the last
    std::int64_t start = 0, end = 0;
  };
  struct Found {  // one partition of a Fetch answer
    std::int64_t position = 0;
    std::int64_t floor = 0;  // must_show() when the request was sent
    std::int64_t high_watermark = 0, log_start = 0;
    bool may_be_empty = false;  // it had no room for a batch
    bool was_deleted = false;   // its topic had been deleted when the request was sent
  };
  enum class Death { kCleanStop, kKill, kPowerCut };

  void open(const LogKey& log, bool acks_after_sync);
  struct Manner {
    bool idempotent = false, keyed = false;
  };
  [[nodiscard]] std::uint32_t new_lane(const LogKey& log, Manner manner);
  [[nodiscard]] RecordId new_record(std::uint32_t lane);
  /// A batch of this size goes out (again).
  void sending(std::span<const RecordId> records, std::size_t bytes);
  void acknowledged(const LogKey& log, std::int64_t base_offset, std::span<const RecordId> records);
  /// What every read from now on has to show the end of.
  [[nodiscard]] std::int64_t must_show(const LogKey& log) const;
  /// Returns the position after what was read.
  std::int64_t read(const LogKey& log, const Found& found, Bytes records);
  /// A read was answered OFFSET_OUT_OF_RANGE.
  void out_of_range(const LogKey& log, const Found& found);
  /// Where to read from to meet no trimmed record.
  [[nodiscard]] std::int64_t safe_start(const LogKey& log) const;
  [[nodiscard]] Range range(const LogKey& log) const;
  /// The timestamp of the record there, where it is known which one that is.
  [[nodiscard]] std::optional<Timestamp> made(const LogKey& log, std::int64_t offset) const;
  void trimming(const LogKey& log, std::int64_t up_to);
  void trimmed(const LogKey& log, std::int64_t start);
  /// The topic's policies, see Policies.
  [[nodiscard]] Policies& policies(const Uuid& topic) { return policies_[topic]; }
  [[nodiscard]] std::int64_t now() const { return wall_().value(); }

  /// All that was written is synced.
  void stopped_cleanly();
  /// What a start found.
  void survived(const LogKey& log, const Range& found, Death death);
  [[nodiscard]] std::uint64_t records_checked() const noexcept { return checked_; }
  [[nodiscard]] std::uint64_t records_acknowledged() const noexcept { return acknowledged_; }

 private:
  struct Lane {
    LogKey log;
    Manner manner;
    std::vector<std::int64_t> where;  // by number; -1: not seen
    std::vector<std::uint16_t> sent, seen;
    std::vector<std::int64_t> made;    // the record's timestamp
    std::vector<std::uint32_t> bytes;  // of the batch, with its first record
  };
  struct Log {
    bool acks_after_sync = false;
    std::int64_t start = 0;        // acknowledged trims
    std::int64_t trim_limit = 0;   // attempted ones, and what retention was seen to remove
    std::int64_t end = 0;          // what must be shown
    std::int64_t durable = 0;      // what a power cut must leave
    std::deque<RecordId> known;    // from offset 0
    std::uint64_t sent_bytes = 0;  // of all batches that may have been appended
    // Of the batches below `passed`, as far as they are known.
    std::int64_t passed = 0;
    std::uint64_t passed_bytes = 0;
  };
  void learn(const LogKey& key, Log& log, std::int64_t offset, RecordId id, const char* by);
  bool read_batch(const LogKey& key, Log& log, std::int64_t& next, Bytes& records);
  bool read_records(const LogKey& key, Log& log, std::int64_t base, Bytes batch);
  bool is_as_made(const records::RecordView& record, RecordId id, Timestamp time);
  void forget_from(Log& log, std::int64_t end);
  // ledger_cleaning.cpp
  [[nodiscard]] std::int64_t removable_end(const LogKey& key, Log& log, std::int64_t upto) const;
  void check_start(const LogKey& key, Log& log, std::int64_t start, const char* when);
  bool check_gap(const LogKey& key, const Log& log, std::int64_t from, std::int64_t to);
  [[nodiscard]] bool is_superseded(const LogKey& key, const Log& log, std::int64_t offset) const;
  [[nodiscard]] bool is_open(const LogKey& key, int record_key) const;
  void raise_end(Log& log, std::int64_t end);
  void fail(const LogKey& key, const std::string& what) const;

  Report report_;
  std::function<Timestamp()> wall_;
  std::map<Uuid, Policies> policies_;
  std::map<LogKey, Log> logs_;
  std::vector<Lane> lanes_;
  records::Inflater inflater_;
  Buffer inflated_, expected_;
  std::uint64_t checked_ = 0, acknowledged_ = 0;
};

}  // namespace kanal::sim
