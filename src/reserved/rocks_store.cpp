// The reserved channels in one RocksDB instance with one column family (see names.hpp for the keys,
// record_frame.hpp for the values). A generation pointer and its records change in one WriteBatch,
// so exactly one generation is live after a crash. Locks, all leaves of rank 4: a stripe keeps one
// channel's writes in order while they wait for the disk, `table_lock_` guards the table of live
// generations, `db_lock_` the database's repair after a full disk: taken before a stripe, shared
// from a write's look at the table to its entry there, since a repair compares it and the database.
#include "rocks_store.hpp"

#include "kanal/base/logging.hpp"
#include "kanal/reserved/check.hpp"
#include "names.hpp"
#include "record_frame.hpp"
#include "rocks_files.hpp"
#include "rocks_quota.hpp"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <utility>

namespace kanal::reserved {
namespace {

constexpr std::size_t kMemtableBytes = 4 << 20;
constexpr std::size_t kCacheBytes = 8 << 20;
constexpr std::size_t kStripes = 64;

/// RocksDB's warnings go to our log; its own LOG file is not written at all.
class WarningsToOurLog final : public rocksdb::Logger {
 public:
  WarningsToOurLog() : Logger(rocksdb::InfoLogLevel::WARN_LEVEL) {}
  using Logger::Logv;
  void Logv(const char*, va_list) override {}  // headers and what has no level
  void Logv(rocksdb::InfoLogLevel level, const char* format, va_list arguments) override {
    if (level < GetInfoLogLevel() || level == rocksdb::InfoLogLevel::HEADER_LEVEL) return;
    char line[512];
    if (std::vsnprintf(line, sizeof line, format, arguments) < 0) return;
    std::ranges::replace(line, '\n', ' ');
    logger("reserved").warn("The reserved store's database warns: {}", line);
  }
};

rocksdb::Options base_options() {
  rocksdb::Options options;
  options.info_log = std::make_shared<WarningsToOurLog>();
  // Damage must stop the start: a torn tail of the journal is cut, anything else is an error.
  // Dropping what lies behind a flipped bit would take topics and producer ids back to an older
  // state.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.paranoid_checks = true;
  // Small: a broker with nothing to do stays below 30 MB.
  options.write_buffer_size = kMemtableBytes;
  options.arena_block_size = 64 << 10;
  options.max_write_buffer_number = 2;
  options.max_total_wal_size = 4 * kMemtableBytes;
  options.max_background_jobs = 1;
  options.max_open_files = 64;
  options.max_file_opening_threads = 1;
  options.max_manifest_file_size = 1 << 20;
  options.target_file_size_base = 8 << 20;
  options.compression = rocksdb::kNoCompression;
  // Quick to open and silent when idle.
  options.skip_stats_update_on_db_open = true;
  options.skip_checking_sst_file_sizes_on_db_open = true;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.delete_obsolete_files_period_micros = 0;
  options.enable_write_thread_adaptive_yield = false;
  options.avoid_unnecessary_blocking_io = true;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(kCacheBytes, /*num_shard_bits=*/0);
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

Bytes bytes_of(const rocksdb::Slice& text) {
  return as_bytes({text.data(), text.size()});
}

struct Live {
  std::uint64_t generation = 0;  // 0: the channel does not exist
  std::uint64_t records = 0;     // numbered from 1 without a gap
};
using LiveTable = std::map<ReservedName, Live>;

constexpr std::uint32_t bit(Kind kind) {
  return 1U << static_cast<unsigned>(kind);
}
constexpr std::uint32_t kAllKinds = bit(Kind::kCluster) | bit(Kind::kConfig) | bit(Kind::kPids) |
                                    bit(Kind::kOffsets) | bit(Kind::kTxn);

/// Reads the database, or all keys that start with `prefix`, in key order: pointers, then the
/// records they belong to.
class Scan {
 public:
  Scan(rocksdb::DB& db, const Session::Visitor* visitor, std::string prefix = {})
      : db_(db), visitor_(visitor), prefix_(std::move(prefix)) {}
  Result<LiveTable> run();

 private:
  Result<void> take(const rocksdb::Slice& key, const rocksdb::Slice& value);
  Result<void> take_pointer(const ReservedName& name, Bytes content);

  rocksdb::DB& db_;
  const Session::Visitor* visitor_;
  const std::string prefix_;
  LiveTable table_;
  LiveTable::iterator channel_ = table_.end();
};

std::unexpected<Error> damaged(const ReservedName& name, std::uint64_t generation,
                               const std::string& what) {
  return fail(
      ErrorCode::KAFKA_STORAGE_ERROR,
      (generation > 0 ? to_string(name, generation) : to_string(name)) + " is damaged: " + what);
}

Result<LiveTable> Scan::run() {
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  options.verify_checksums = true;
  const std::unique_ptr<rocksdb::Iterator> at(db_.NewIterator(options));
  for (at->Seek(prefix_); at->Valid() && at->key().starts_with(prefix_); at->Next()) {
    if (auto taken = take(at->key(), at->value()); !taken) return std::unexpected(taken.error());
  }
  if (!at->status().ok()) {
    const std::string after =
        channel_ == table_.end() ? "" : " after " + to_string(channel_->first);
    return std::unexpected(
        storage_error("the reserved channels cannot be read" + after, at->status()));
  }
  return std::move(table_);
}

Result<void> Scan::take(const rocksdb::Slice& key, const rocksdb::Slice& value) {
  const auto parsed = parse_key({key.data(), key.size()});
  if (!parsed) {
    return fail(ErrorCode::KAFKA_STORAGE_ERROR,
                "the reserved store has a key of no channel: " + key.ToString(/*hex=*/true));
  }
  const auto content = unframe({key.data(), key.size()}, bytes_of(value));
  if (!content) return damaged(parsed->name, parsed->generation, content.error().detail);
  if (parsed->number == 0) return take_pointer(parsed->name, *content);
  if (channel_ == table_.end() || channel_->first != parsed->name ||
      channel_->second.generation != parsed->generation) {
    return damaged(parsed->name, parsed->generation, "a record does not belong to the generation");
  }
  if (parsed->number != channel_->second.records + 1) {
    return damaged(parsed->name, parsed->generation,
                   "record " + std::to_string(channel_->second.records + 1) + " is missing");
  }
  ++channel_->second.records;
  if (visitor_ == nullptr) return {};
  return (*visitor_)(parsed->name, *content);
}

Result<void> Scan::take_pointer(const ReservedName& name, Bytes content) {
  Live live;
  if (content.size() == sizeof live.generation) {
    live.generation = load_be<std::uint64_t>(content.data());
  }
  if (live.generation == 0) return damaged(name, 0, "its generation pointer is not one");
  channel_ = table_.emplace_hint(table_.end(), name, live);
  return {};
}

class RocksStore final : public Store, public std::enable_shared_from_this<RocksStore> {
 public:
  RocksStore(std::string directory, const std::shared_ptr<rocksdb::FileSystem>& files)
      : directory_(std::move(directory)),
        files_(std::make_shared<FewerSyncs>(std::make_shared<QuotaFiles>(files))),
        env_(rocksdb::NewCompositeEnv(files_)),
        options_(base_options()) {
    options_.env = env_.get();
  }
  Result<void> start();

  Result<std::unique_ptr<Session>> open() override;
  Result<void> flush() override;
  std::uint64_t journal_position() const override;
  Result<void> copy(const std::string& directory);

  Result<Stored> append(const ReservedName& name, std::span<const Bytes> records,
                        Durability durability);
  Result<Stored> roll(const ReservedName& name, std::span<const Bytes> snapshot,
                      Durability durability);
  Result<Stored> erase(const ReservedName& name, Durability durability);
  Result<void> replay(const Session::Visitor& visitor);
  Result<void> replay_kind(Kind kind, const Session::Visitor* visitor);
  Result<void> replay_channel(const ReservedName& name, const Session::Visitor& visitor);
  std::uint64_t records_in(const ReservedName& name) const;
  void end_session() { session_open_ = false; }

 private:
  Live live(const ReservedName& name) const;
  void remember(const ReservedName& name, Live live);
  std::mutex& stripe(const ReservedName& name);
  Result<void> ensure_loaded(Kind kind);
  Result<void> scan_and_load(const std::string& prefix, std::uint32_t kinds,
                             const Session::Visitor* visitor);
  bool is_loaded(Kind kind) const { return (loaded_kinds_ & bit(kind)) != 0; }
  /// Held from the look at the live generation until what was written is in the table.
  struct Writing {
    std::shared_lock<std::shared_mutex> database;
    std::unique_lock<std::mutex> order;
  };
  Result<Writing> begin(const ReservedName& name, Durability durability);
  Result<Stored> write(rocksdb::WriteBatch& batch, const ReservedName& name, Durability durability);
  Result<std::unique_ptr<rocksdb::DB>> open_database();
  Result<void> repair_if_broken();
  Result<void> repair();
  Result<void> drop_records_that_failed(rocksdb::DB& db, LiveTable& table) const;

  const std::string directory_;
  const std::shared_ptr<FewerSyncs> files_;
  const std::unique_ptr<rocksdb::Env> env_;
  rocksdb::Options options_;
  std::unique_ptr<rocksdb::DB> db_;
  mutable std::shared_mutex db_lock_;
  std::atomic<bool> broken_ = false;  // a write failed for want of space, and no repair since
  mutable std::mutex table_lock_;
  LiveTable table_;
  std::atomic<std::uint32_t> loaded_kinds_ = 0;  // a bit for each kind whose channels table_ has
  std::mutex load_lock_;
  std::array<std::mutex, kStripes> stripes_;
  std::atomic<std::uint64_t> position_ = 0;
  std::atomic<bool> session_open_ = false;
};

class RocksSession final : public Session {
 public:
  explicit RocksSession(std::shared_ptr<RocksStore> store) : store_(std::move(store)) {}
  ~RocksSession() override { store_->end_session(); }
  RocksSession(const RocksSession&) = delete;
  RocksSession& operator=(const RocksSession&) = delete;

  Result<Stored> append(const ReservedName& name, std::span<const Bytes> records,
                        Durability durability) override {
    return store_->append(name, records, durability);
  }
  Result<Stored> roll(const ReservedName& name, std::span<const Bytes> snapshot,
                      Durability durability) override {
    return store_->roll(name, snapshot, durability);
  }
  Result<Stored> erase(const ReservedName& name, Durability durability) override {
    return store_->erase(name, durability);
  }
  Result<void> replay(const Visitor& visitor) override { return store_->replay(visitor); }
  Result<void> replay_kind(Kind kind, const Visitor& visitor) override {
    return store_->replay_kind(kind, &visitor);
  }
  Result<void> replay_channel(const ReservedName& name, const Visitor& visitor) override {
    return store_->replay_channel(name, visitor);
  }
  std::uint64_t records_in(const ReservedName& name) const override {
    return store_->records_in(name);
  }

 private:
  std::shared_ptr<RocksStore> store_;
};

/// What callers hold; the store itself lives as long as its session.
class RocksStoreHandle final : public Store {
 public:
  explicit RocksStoreHandle(std::shared_ptr<RocksStore> store) : store_(std::move(store)) {}
  Result<std::unique_ptr<Session>> open() override { return store_->open(); }
  Result<void> flush() override { return store_->flush(); }
  std::uint64_t journal_position() const override { return store_->journal_position(); }
  Result<void> copy(const std::string& directory) { return store_->copy(directory); }

 private:
  std::shared_ptr<RocksStore> store_;
};

Result<void> RocksStore::start() {
  auto db = open_database();
  if (!db) return std::unexpected(db.error());
  db_ = std::move(*db);
  return {};
}

Result<std::unique_ptr<rocksdb::DB>> RocksStore::open_database() {
  const auto creating = prepare_directory(*env_, directory_);
  if (!creating) return std::unexpected(creating.error());
  options_.create_if_missing = *creating;
  files_->set_creating(*creating);
  rocksdb::DB* opened = nullptr;
  rocksdb::Status status = rocksdb::DB::Open(options_, directory_, &opened);
  std::unique_ptr<rocksdb::DB> db(opened);
  files_->set_creating(false);
  if (status.ok() && *creating) status = env_->DeleteFile(new_mark(directory_));
  if (status.ok()) return db;
  return std::unexpected(
      storage_error("the reserved store in " + directory_ + " cannot be opened", status));
}

Result<std::unique_ptr<Session>> RocksStore::open() {
  if (session_open_.exchange(true)) {
    return fail(ErrorCode::KAFKA_STORAGE_ERROR, "the reserved store has an open session");
  }
  return std::make_unique<RocksSession>(shared_from_this());
}

Result<void> RocksStore::flush() {
  if (auto usable = repair_if_broken(); !usable) return usable;
  const std::shared_lock database(db_lock_);
  if (db_ == nullptr) return fail(ErrorCode::KAFKA_STORAGE_ERROR, "the reserved store is closed");
  const rocksdb::Status status = db_->FlushWAL(/*sync=*/true);
  if (!status.ok()) {
    return std::unexpected(storage_error("the reserved store cannot be synced", status));
  }
  return {};
}

std::uint64_t RocksStore::journal_position() const {
  const std::shared_lock database(db_lock_);
  return db_ == nullptr ? 0 : db_->GetLatestSequenceNumber();
}

Result<void> RocksStore::copy(const std::string& directory) {
  if (auto usable = repair_if_broken(); !usable) return usable;
  const std::shared_lock database(db_lock_);
  if (db_ == nullptr) return fail(ErrorCode::KAFKA_STORAGE_ERROR, "the reserved store is closed");
  return copy_database(*db_, directory);
}

void add_records(rocksdb::WriteBatch& batch, std::string_view prefix, Live& live,
                 std::span<const Bytes> records) {
  for (const Bytes record : records) {
    const std::string key = record_key(prefix, live.generation, ++live.records);
    batch.Put(key, frame(key, record));
  }
}

void put_pointer(rocksdb::WriteBatch& batch, const std::string& prefix, std::uint64_t generation) {
  std::byte content[sizeof generation];
  store_be(content, generation);
  batch.Put(prefix, frame(prefix, content));
}

void delete_records(rocksdb::WriteBatch& batch, std::string_view prefix, const Live& live,
                    std::uint64_t from = 1) {
  for (std::uint64_t number = from; number <= live.records; ++number) {
    batch.Delete(record_key(prefix, live.generation, number));
  }
}

Result<Stored> RocksStore::append(const ReservedName& name, std::span<const Bytes> records,
                                  Durability durability) {
  const auto writing = begin(name, durability);
  if (!writing) return std::unexpected(writing.error());
  const std::string prefix = channel_prefix(name);
  Live next = live(name);
  rocksdb::WriteBatch batch;
  if (next.generation == 0) {
    next.generation = 1;
    put_pointer(batch, prefix, next.generation);
  }
  add_records(batch, prefix, next, records);
  auto stored = write(batch, name, durability);
  if (stored) remember(name, next);
  return stored;
}

Result<Stored> RocksStore::roll(const ReservedName& name, std::span<const Bytes> snapshot,
                                Durability durability) {
  const auto writing = begin(name, durability);
  if (!writing) return std::unexpected(writing.error());
  const std::string prefix = channel_prefix(name);
  const Live old = live(name);
  Live next{old.generation + 1, 0};
  rocksdb::WriteBatch batch;
  delete_records(batch, prefix, old);
  put_pointer(batch, prefix, next.generation);
  add_records(batch, prefix, next, snapshot);
  auto stored = write(batch, name, durability);
  if (stored) remember(name, next);
  return stored;
}

Result<Stored> RocksStore::erase(const ReservedName& name, Durability durability) {
  const auto writing = begin(name, durability);
  if (!writing) return std::unexpected(writing.error());
  const std::string prefix = channel_prefix(name);
  rocksdb::WriteBatch batch;
  delete_records(batch, prefix, live(name));
  batch.Delete(prefix);
  auto stored = write(batch, name, durability);
  if (stored) remember(name, {});
  return stored;
}

Result<void> RocksStore::replay(const Session::Visitor& visitor) {
  return scan_and_load({}, kAllKinds, &visitor);
}

Result<void> RocksStore::replay_kind(Kind kind, const Session::Visitor* visitor) {
  return scan_and_load(std::string(1, static_cast<char>(kind)), bit(kind), visitor);
}

Result<void> RocksStore::scan_and_load(const std::string& prefix, std::uint32_t kinds,
                                       const Session::Visitor* visitor) {
  if (auto usable = repair_if_broken(); !usable) return usable;
  const std::shared_lock database(db_lock_);
  if (db_ == nullptr) return fail(ErrorCode::KAFKA_STORAGE_ERROR, "the reserved store is closed");
  auto table = Scan(*db_, visitor, prefix).run();
  if (!table) return std::unexpected(table.error());
  const std::lock_guard guard(table_lock_);
  // Of kinds that were loaded before, the table is ahead of what a scan has seen.
  std::erase_if(*table, [&](const auto& channel) { return is_loaded(channel.first.kind); });
  table_.merge(*table);
  loaded_kinds_ |= kinds;
  return {};
}

Result<void> RocksStore::replay_channel(const ReservedName& name, const Session::Visitor& visitor) {
  if (auto usable = repair_if_broken(); !usable) return usable;
  const std::shared_lock database(db_lock_);
  if (db_ == nullptr) return fail(ErrorCode::KAFKA_STORAGE_ERROR, "the reserved store is closed");
  auto table = Scan(*db_, &visitor, channel_prefix(name)).run();
  if (!table) return std::unexpected(table.error());
  return {};
}

std::uint64_t RocksStore::records_in(const ReservedName& name) const {
  return live(name).records;
}

Live RocksStore::live(const ReservedName& name) const {
  const std::lock_guard guard(table_lock_);
  const auto at = table_.find(name);
  return at == table_.end() ? Live{} : at->second;
}

void RocksStore::remember(const ReservedName& name, Live live) {
  const std::lock_guard guard(table_lock_);
  if (live.generation == 0) {
    table_.erase(name);
  } else {
    table_.insert_or_assign(name, live);
  }
}

std::mutex& RocksStore::stripe(const ReservedName& name) {
  return stripes_[std::hash<std::string>{}(name.key) % kStripes];
}

// Whoever writes before a replay needs to know what is there.
Result<void> RocksStore::ensure_loaded(Kind kind) {
  if (is_loaded(kind)) return {};
  const std::lock_guard guard(load_lock_);
  if (is_loaded(kind)) return {};
  return replay_kind(kind, nullptr);
}

Result<RocksStore::Writing> RocksStore::begin(const ReservedName& name, Durability durability) {
  const auto no_room = [&] {
    return std::unexpected(storage_error(to_string(name) + " cannot be written",
                                         rocksdb::Status::NoSpace("an earlier write found none")));
  };
  // Who does not wait for the disk does not wait for a repair either.
  if (broken_ && durability == Durability::kWritten) return no_room();
  if (auto usable = repair_if_broken(); !usable) return std::unexpected(usable.error());
  if (auto loaded = ensure_loaded(name.kind); !loaded) return std::unexpected(loaded.error());
  Writing writing{std::shared_lock(db_lock_), std::unique_lock(stripe(name))};
  if (db_ == nullptr || broken_) return no_room();  // another write was quicker to find none
  return writing;
}

Result<Stored> RocksStore::write(rocksdb::WriteBatch& batch, const ReservedName& name,
                                 Durability durability) {
  rocksdb::WriteOptions options;
  options.sync = durability == Durability::kSynced;
  const rocksdb::Status status = db_->Write(options, &batch);
  if (status.ok()) return Stored{.position = ++position_, .committed = true};
  // Only a full disk mends itself; after any other failed write or sync the database stays refused,
  // since nobody knows what reached the disk.
  if (status.IsNoSpace()) broken_ = true;
  return std::unexpected(storage_error(to_string(name) + " cannot be written", status));
}

// Whoever may wait for the disk: a read too may be the first to come when there is room again.
Result<void> RocksStore::repair_if_broken() {
  return broken_ ? repair() : Result<void>{};
}

// RocksDB keeps its error state after a failed journal write: resumed or, failing that, opened
// anew, as where it could not make a journal while it recovered: that it takes for the end, and
// answers the same whether there is room by now or not. Until all of that has worked the database
// is closed and the table as it was.
Result<void> RocksStore::repair() {
  const std::unique_lock database(db_lock_);
  if (!broken_) return {};
  const rocksdb::Status resumed = db_ == nullptr ? rocksdb::Status::Aborted() : db_->Resume();
  if (resumed.IsNoSpace() && resumed.severity() < rocksdb::Status::kFatalError) {
    return std::unexpected(storage_error("the reserved store still has no room", resumed));
  }
  if (resumed.ok()) {
    broken_ = false;
    return {};
  }
  db_.reset();
  auto db = open_database();
  if (!db) return std::unexpected(db.error());
  // What the journal holds may have come from memory that never reached the disk: written once
  // more.
  if (const auto flushed = (*db)->Flush(rocksdb::FlushOptions()); !flushed.ok()) {
    return std::unexpected(storage_error("the reserved store cannot be repaired", flushed));
  }
  auto table = Scan(**db, nullptr).run();
  if (!table) return std::unexpected(table.error());
  const std::lock_guard guard(table_lock_);
  if (auto dropped = drop_records_that_failed(**db, *table); !dropped) return dropped;
  db_ = std::move(*db);
  table_ = std::move(*table);
  loaded_kinds_ = kAllKinds;
  broken_ = false;
  return {};
}

// The journal may hold a write whose caller was told that it failed: taken back, so that nothing
// comes to life unasked. (A roll leaves the same state either way, an erase only removes.) `table`
// is what the database holds, table_ what callers know.
Result<void> RocksStore::drop_records_that_failed(rocksdb::DB& db, LiveTable& table) const {
  rocksdb::WriteBatch batch;
  for (auto at = table.begin(); at != table.end();) {
    auto& [name, now] = *at;
    if (!is_loaded(name.kind)) {  // nothing of it was written yet, so nothing of it failed
      ++at;
      continue;
    }
    const auto known = table_.find(name);
    if (known == table_.end()) {
      const std::string prefix = channel_prefix(name);
      delete_records(batch, prefix, now);
      batch.Delete(prefix);
      at = table.erase(at);
      continue;
    }
    const Live then = known->second;
    if (then.generation == now.generation && now.records > then.records) {
      delete_records(batch, channel_prefix(name), now, then.records + 1);
      now.records = then.records;
    }
    ++at;
  }
  if (batch.Count() == 0) return {};
  rocksdb::WriteOptions options;
  options.sync = true;
  const rocksdb::Status status = db.Write(options, &batch);
  if (status.ok()) return {};
  return std::unexpected(storage_error("the reserved store cannot be repaired", status));
}

}  // namespace

Result<std::unique_ptr<Store>> open_rocks_store(const std::string& directory,
                                                std::shared_ptr<rocksdb::FileSystem> files) {
  auto store = std::make_shared<RocksStore>(directory, files);
  if (auto opened = store->start(); !opened) return std::unexpected(opened.error());
  return std::make_unique<RocksStoreHandle>(std::move(store));
}

Result<std::unique_ptr<Store>> open_rocks_store(const std::string& directory) {
  return open_rocks_store(directory, rocksdb::FileSystem::Default());
}

Result<void> copy_rocks_store(Store& store, const std::string& directory) {
  auto* handle = dynamic_cast<RocksStoreHandle*>(&store);
  if (handle != nullptr) return handle->copy(directory);
  return fail(ErrorCode::KAFKA_STORAGE_ERROR, "this reserved store cannot be copied");
}

}  // namespace kanal::reserved
