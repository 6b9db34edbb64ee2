#include "kanal/broker/fetch_sessions.hpp"

namespace kanal::broker {
namespace {

using namespace std::chrono_literals;
constexpr auto kMinEvictionAge = 120s;  // Kafka's min.incremental.fetch.session.eviction.ms

}  // namespace

std::size_t FetchSession::KeyHash::operator()(const Key& key) const noexcept {
  return std::hash<std::string>{}(key.topic) ^ std::hash<Uuid>{}(key.topic_id) ^
         (static_cast<std::size_t>(key.partition.value()) * 0x9e3779b97f4a7c15ULL);
}

void FetchSession::put(FetchPartition partition) {
  const auto known = by_key_.find(key_of(partition));
  if (known == by_key_.end()) {
    partitions.push_back(std::move(partition));
    by_key_.emplace(key_of(partitions.back()), std::prev(partitions.end()));
    return;
  }
  FetchPartition& cached = *known->second;  // what it was answered last stays
  cached.fetch_offset = partition.fetch_offset;
  cached.max_bytes = partition.max_bytes;
  cached.current_leader_epoch = partition.current_leader_epoch;
  cached.last_fetched_epoch = partition.last_fetched_epoch;
}

void FetchSession::forget(const FetchPartition& partition) {
  const auto known = by_key_.find(key_of(partition));
  if (known == by_key_.end()) return;  // unknown entries are ignored, never an error
  partitions.erase(known->second);
  by_key_.erase(known);
}

FetchPartition* FetchSession::find(const FetchPartition& partition) {
  const auto known = by_key_.find(key_of(partition));
  return known != by_key_.end() ? &*known->second : nullptr;
}

void FetchSession::move_to_end(const FetchPartition& partition) {
  const auto known = by_key_.find(key_of(partition));
  if (known != by_key_.end()) partitions.splice(partitions.end(), partitions, known->second);
}

Result<std::shared_ptr<FetchSession>> FetchSessions::find(std::int32_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return fail(ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
  return found->second;
}

std::shared_ptr<FetchSession> FetchSessions::create(std::int32_t random_id, Time now,
                                                    std::size_t partitions) {
  const std::lock_guard lock(mutex_);
  if (slots_ == 0) return nullptr;
  if (sessions_.size() >= slots_) {
    // As Kafka: the least recently used goes if it has been idle, or if it is old and smaller than
    // the new one.
    auto oldest = sessions_.begin();
    for (auto at = sessions_.begin(); at != sessions_.end(); ++at) {
      if (at->second->last_used < oldest->second->last_used) oldest = at;
    }
    const bool idle = now - oldest->second->last_used > kMinEvictionAge;
    auto victim = idle ? oldest : sessions_.end();
    for (auto at = sessions_.begin(); victim == sessions_.end() && at != sessions_.end(); ++at) {
      if (now - at->second->created > kMinEvictionAge && at->second->size < partitions) victim = at;
    }
    if (victim == sessions_.end()) return nullptr;
    sessions_.erase(victim);
  }
  auto session = std::make_shared<FetchSession>();
  session->id = random_id & 0x7fffffff;
  while (session->id == 0 || sessions_.contains(session->id))
    session->id = (session->id + 1) & 0x7fffffff;
  session->created = session->last_used = now;
  session->size = partitions;
  sessions_.emplace(session->id, session);
  return session;
}

void FetchSessions::touch(FetchSession& session, Time now, std::size_t partitions) {
  const std::lock_guard lock(mutex_);
  session.last_used = now;
  session.size = partitions;
}

void FetchSessions::remove(std::int32_t id) {
  const std::lock_guard lock(mutex_);
  sessions_.erase(id);
}

std::size_t FetchSessions::size() {
  const std::lock_guard lock(mutex_);
  return sessions_.size();
}

}  // namespace kanal::broker
