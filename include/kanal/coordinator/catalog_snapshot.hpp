// What readers see of the catalog: an immutable map of all topics by name, by id and in name order.
// A CatalogSnapshot is shared by all I/O threads without a lock; its builder belongs to the
// catalog's one writer. Copy on write in small pieces (64 shards a map, runs of up to 128 names),
// so that one change among 10,000 topics copies a few hundred pointers. Pointers and references
// stay valid as long as the snapshot (or the TopicPtr) is held.
#pragma once

#include "kanal/base/ids.hpp"
#include "kanal/coordinator/topic_config.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kanal::coordinator {

/// One topic as it is at one moment; a change makes a new entry.
struct TopicEntry {
  Uuid id;  // never zero, never changes while the topic lives
  std::string name;
  std::int32_t partition_count = 0;
  Timestamp created = kNoTimestamp;
  ConfigMap overlay;   // what was set on the topic
  TopicConfig config;  // the values in force
};
using TopicPtr = std::shared_ptr<const TopicEntry>;

class CatalogSnapshot {
 public:
  /// Null if there is none.
  [[nodiscard]] const TopicPtr& find(std::string_view name) const noexcept;
  [[nodiscard]] const TopicPtr& find(const Uuid& id) const noexcept;
  [[nodiscard]] std::size_t topic_count() const noexcept { return topics_; }
  [[nodiscard]] std::int64_t partition_count() const noexcept { return partitions_; }

  /// Every topic in name order (bytes compared) from the first name >= `from`, while
  /// visit(const TopicPtr&) returns true.
  template <class Visit>
  void visit_from(std::string_view from, Visit&& visit) const {
    for (auto [run, at] = lower_bound(from); run < runs_.size(); ++run, at = 0) {
      for (const auto& topics = runs_[run]->topics; at < topics.size(); ++at) {
        if (!visit(topics[at])) return;
      }
    }
  }
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const auto& run : runs_) {
      for (const TopicPtr& topic : run->topics) visit(topic);
    }
  }

 private:
  friend class CatalogSnapshotBuilder;
  struct Slot {
    std::uint64_t hash;
    TopicPtr topic;
  };
  struct Shard {  // sorted by hash; equal hashes side by side
    std::uint64_t made_for = 0;
    std::vector<Slot> slots;
  };
  struct Run {  // never empty; sorted by name
    std::uint64_t made_for = 0;
    std::vector<TopicPtr> topics;
  };
  static constexpr std::size_t kShards = 64;
  using Shards = std::array<std::shared_ptr<Shard>, kShards>;
  struct RunPosition {
    std::size_t run, at;
  };
  [[nodiscard]] RunPosition lower_bound(std::string_view name) const noexcept;

  Shards by_name_;
  Shards by_id_;
  std::vector<std::shared_ptr<Run>> runs_;
  std::size_t topics_ = 0;
  std::int64_t partitions_ = 0;
};
using CatalogSnapshotPtr = std::shared_ptr<const CatalogSnapshot>;

/// Used by the catalog's writer alone. A piece made since the last publish() is changed in place,
/// one that a published snapshot may share is copied first.
class CatalogSnapshotBuilder {
 public:
  void put(TopicPtr topic);  // new, or replaces the one of that name and id
  void remove(const TopicEntry& topic);
  [[nodiscard]] const CatalogSnapshot& current() const noexcept { return working_; }
  [[nodiscard]] CatalogSnapshotPtr publish();

 private:
  using Shard = CatalogSnapshot::Shard;
  using Run = CatalogSnapshot::Run;
  template <class Piece>
  Piece& own(std::shared_ptr<Piece>& piece);
  void put_slot(CatalogSnapshot::Shards& shards, std::uint64_t hash, const TopicPtr& topic);
  void remove_slot(CatalogSnapshot::Shards& shards, std::uint64_t hash, const Uuid& id);
  void put_in_order(const TopicPtr& topic);
  void remove_in_order(const std::string& name);

  CatalogSnapshot working_;
  std::uint64_t version_ = 1;
};

}  // namespace kanal::coordinator
