#include "kanal/reserved/memory_store.hpp"

#include "names.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace kanal::reserved {
namespace {

std::vector<Buffer> copies(std::span<const Bytes> records) {
  std::vector<Buffer> copied;
  copied.reserve(records.size());
  for (const Bytes record : records) copied.emplace_back(record.begin(), record.end());
  return copied;
}

std::unexpected<Error> dead_session() {
  return fail(ErrorCode::KAFKA_STORAGE_ERROR, "the session of the reserved store is over");
}

}  // namespace

class MemorySession final : public Session {
 public:
  MemorySession(MemoryStore& store, std::uint64_t id) : store_(store), id_(id) {}
  ~MemorySession() override { store_.close(id_); }
  MemorySession(const MemorySession&) = delete;
  MemorySession& operator=(const MemorySession&) = delete;

  Result<Stored> append(const ReservedName& name, std::span<const Bytes> records,
                        Durability durability) override {
    return write(MemoryStore::Write::What::kAppend, name, records, durability);
  }
  Result<Stored> roll(const ReservedName& name, std::span<const Bytes> snapshot,
                      Durability durability) override {
    return write(MemoryStore::Write::What::kRoll, name, snapshot, durability);
  }
  Result<Stored> erase(const ReservedName& name, Durability durability) override {
    return write(MemoryStore::Write::What::kErase, name, {}, durability);
  }
  Result<void> replay(const Visitor& visitor) override {
    return store_.replay(id_, [](const ReservedName&) { return true; }, visitor);
  }
  Result<void> replay_kind(Kind kind, const Visitor& visitor) override {
    const auto wanted = [kind](const ReservedName& name) { return name.kind == kind; };
    return store_.replay(id_, wanted, visitor);
  }
  Result<void> replay_channel(const ReservedName& name, const Visitor& visitor) override {
    const auto wanted = [&name](const ReservedName& other) { return other == name; };
    return store_.replay(id_, wanted, visitor);
  }
  std::uint64_t records_in(const ReservedName& name) const override {
    return store_.records_in(name);
  }

 private:
  Result<Stored> write(MemoryStore::Write::What what, const ReservedName& name,
                       std::span<const Bytes> records, Durability durability) {
    return store_.store(id_, {what, name, copies(records)}, durability);
  }

  MemoryStore& store_;
  std::uint64_t id_;
};

Result<std::unique_ptr<Session>> MemoryStore::open() {
  const std::lock_guard guard(lock_);
  if (session_ != 0) {
    return fail(ErrorCode::KAFKA_STORAGE_ERROR, "the reserved store has an open session");
  }
  session_ = ++sessions_;
  return std::make_unique<MemorySession>(*this, session_);
}

Result<void> MemoryStore::flush() {
  const std::lock_guard guard(lock_);
  ++writes_;
  if (to_fail_ && to_fail_->first == writes_) {
    return fail(ErrorCode::KAFKA_STORAGE_ERROR, "the reserved store cannot be synced", EIO);
  }
  make_durable();
  return {};
}

std::uint64_t MemoryStore::journal_position() const {
  const std::lock_guard guard(lock_);
  return position_;
}

std::uint64_t MemoryStore::writes() const {
  const std::lock_guard guard(lock_);
  return writes_;
}

void MemoryStore::fail_write(std::uint64_t from_now, Failure failure) {
  const std::lock_guard guard(lock_);
  to_fail_ = std::pair(writes_ + from_now, failure);
}

void MemoryStore::kill() {
  const std::lock_guard guard(lock_);
  session_ = 0;
  // The disk has what was written, a write that was told to have failed included.
  channels_ = durable_;
  for (const Write& write : unsynced_) carry_out(channels_, write);
}

void MemoryStore::power_cut(std::size_t survivors) {
  const std::lock_guard guard(lock_);
  session_ = 0;
  const std::size_t kept = std::min(survivors, unsynced_.size());
  for (std::size_t i = 0; i < kept; ++i) carry_out(durable_, unsynced_[i]);
  unsynced_.clear();
  channels_ = durable_;
}

std::size_t MemoryStore::unsynced_writes() const {
  const std::lock_guard guard(lock_);
  return unsynced_.size();
}

void MemoryStore::damage(const ReservedName& name, std::uint64_t record) {
  const std::lock_guard guard(lock_);
  damaged_[name] = record;
}

void MemoryStore::carry_out(Channels& channels, const Write& write) {
  switch (write.what) {
    case Write::What::kErase:
      channels.erase(write.name);
      return;
    case Write::What::kAppend: {
      auto& records = channels[write.name].records;
      records.insert(records.end(), write.records.begin(), write.records.end());
      return;
    }
    case Write::What::kRoll: {
      const auto at = channels.find(write.name);
      const std::uint64_t generation = at == channels.end() ? 1 : at->second.generation + 1;
      channels.insert_or_assign(write.name, Channel{generation, write.records});
      return;
    }
  }
}

Result<Stored> MemoryStore::store(std::uint64_t session, Write write, Durability durability) {
  const std::lock_guard guard(lock_);
  if (session != session_) return dead_session();
  ++writes_;
  if (to_fail_ && to_fail_->first == writes_) {
    const Failure failure = to_fail_->second;
    const std::string what = to_string(write.name) + " cannot be written";
    if (failure == Failure::kWrittenUnsynced) unsynced_.push_back(std::move(write));
    return fail(ErrorCode::KAFKA_STORAGE_ERROR, what, failure == Failure::kDiskFull ? ENOSPC : EIO);
  }
  carry_out(channels_, write);
  unsynced_.push_back(std::move(write));
  if (durability == Durability::kSynced) make_durable();
  return Stored{.position = ++position_, .committed = true};
}

void MemoryStore::make_durable() {
  for (const Write& write : unsynced_) carry_out(durable_, write);
  unsynced_.clear();
}

Result<void> MemoryStore::replay(std::uint64_t session, const Filter& wanted,
                                 const Session::Visitor& visitor) const {
  Channels channels;
  std::map<ReservedName, std::uint64_t> damaged;
  {
    const std::lock_guard guard(lock_);
    if (session != session_) return dead_session();
    for (const auto& [name, channel] : channels_) {
      if (wanted(name)) channels.emplace_hint(channels.end(), name, channel);
    }
    damaged = damaged_;
  }
  for (const auto& [name, channel] : channels) {
    const auto bad = damaged.find(name);
    std::uint64_t number = 0;
    for (const Buffer& record : channel.records) {
      if (bad != damaged.end() && bad->second == ++number) {
        return fail(ErrorCode::KAFKA_STORAGE_ERROR,
                    to_string(name, channel.generation) + " is damaged");
      }
      if (auto visited = visitor(name, record); !visited) return visited;
    }
  }
  return {};
}

std::uint64_t MemoryStore::records_in(const ReservedName& name) const {
  const std::lock_guard guard(lock_);
  const auto at = channels_.find(name);
  return at == channels_.end() ? 0 : at->second.records.size();
}

void MemoryStore::close(std::uint64_t session) {
  const std::lock_guard guard(lock_);
  if (session == session_) session_ = 0;
}

std::unique_ptr<Store> make_memory_store() {
  return std::make_unique<MemoryStore>();
}

}  // namespace kanal::reserved
