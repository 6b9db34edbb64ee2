// Incremental fetch sessions (KIP-227): what a consumer fetches is remembered between its requests,
// and answers name only what changed. The cache is bounded
// (max.incremental.fetch.session.cache.slots); a full cache means session-less answers, never an
// error. The cache has a lock of its own; one session is used by one request at a time.
#pragma once

#include "kanal/base/clock.hpp"
#include "kanal/base/error.hpp"
#include "kanal/base/ids.hpp"

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace kanal::broker {

/// A partition of a fetch: how it was named, where to read, and what the last answer said.
struct FetchPartition {
  std::string topic;       // empty where named by id
  Uuid topic_id;           // zero where named by name
  std::string known_name;  // the topic's name when a session last met its id; else empty
  PartitionIndex partition;
  Offset fetch_offset;
  std::int32_t max_bytes = 0;
  LeaderEpoch current_leader_epoch = kNoLeaderEpoch;
  LeaderEpoch last_fetched_epoch = kNoLeaderEpoch;
  // What the client last heard; -1 before the first answer.
  std::int64_t answered_high_watermark = -1;
  std::int64_t answered_log_start = -1;
};

class FetchSession {
 public:
  std::int32_t id = 0;
  std::int32_t next_epoch = 1;
  bool by_topic_id = false;
  std::list<FetchPartition>
      partitions;  // in the order to read; a served partition moves to the end
  /// Adds the partition, or gives the one that has its name a new position and limits.
  void put(FetchPartition partition);
  void forget(const FetchPartition& partition);
  /// The cached partition of that name; null if there is none.
  [[nodiscard]] FetchPartition* find(const FetchPartition& partition);
  void move_to_end(const FetchPartition& partition);
  std::mutex busy;  // held by the request that works on it, never across a wait
  // Under the cache's lock, for eviction:
  Time last_used, created;
  std::size_t size = 0;

 private:
  struct Key {
    std::string topic;
    Uuid topic_id;
    PartitionIndex partition;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  static Key key_of(const FetchPartition& partition) {
    return {partition.topic, partition.topic_id, partition.partition};
  }
  std::unordered_map<Key, std::list<FetchPartition>::iterator, KeyHash> by_key_;
};

class FetchSessions {
 public:
  explicit FetchSessions(std::size_t slots) : slots_(slots) {}

  /// FETCH_SESSION_ID_NOT_FOUND for an unknown id.
  Result<std::shared_ptr<FetchSession>> find(std::int32_t id);
  /// A session with a fresh random id, or nothing if the cache is full of sessions that are not to
  /// be evicted.
  std::shared_ptr<FetchSession> create(std::int32_t random_id, Time now, std::size_t partitions);
  void touch(FetchSession& session, Time now, std::size_t partitions);
  void remove(std::int32_t id);
  [[nodiscard]] std::size_t size();

 private:
  std::mutex mutex_;
  std::size_t slots_;
  std::unordered_map<std::int32_t, std::shared_ptr<FetchSession>> sessions_;
};

}  // namespace kanal::broker
