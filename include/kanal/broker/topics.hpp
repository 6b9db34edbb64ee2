// The immutable picture of all topics that requests work on: the catalog's snapshot and each
// topic's partitions. A change makes a new picture that shares all but one shard with the old one.
// Any thread; hold the shared_ptr while you use it.
#pragma once

#include "kanal/base/ids.hpp"
#include "kanal/coordinator/catalog_snapshot.hpp"

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kanal::broker {

class Partition;

struct Topic {
  coordinator::TopicPtr entry;                         // id, name, overlay, configs in force
  std::vector<std::shared_ptr<Partition>> partitions;  // by index

  [[nodiscard]] const std::string& name() const noexcept { return entry->name; }
  [[nodiscard]] const Uuid& id() const noexcept { return entry->id; }
  [[nodiscard]] const coordinator::TopicConfig& config() const noexcept { return entry->config; }
  /// Null for an index the topic does not have.
  [[nodiscard]] std::shared_ptr<Partition> partition(PartitionIndex index) const noexcept {
    const auto at = static_cast<std::size_t>(index.value());
    return index.value() >= 0 && at < partitions.size() ? partitions[at] : nullptr;
  }
};
using TopicPtr = std::shared_ptr<const Topic>;

class Topics {
 public:
  explicit Topics(coordinator::CatalogSnapshotPtr catalog);
  /// Null if there is none.
  [[nodiscard]] TopicPtr find(std::string_view name) const;
  [[nodiscard]] TopicPtr find(const Uuid& id) const;
  /// Every topic in name order from the first name >= `from`, while visit(const TopicPtr&) returns
  /// true.
  template <class Visit>
  void visit_from(std::string_view from, Visit&& visit) const {
    catalog_->visit_from(from, [&](const coordinator::TopicPtr& entry) {
      const TopicPtr topic = find(entry->id);
      return topic == nullptr || visit(topic);
    });
  }
  template <class Visit>
  void for_each(Visit&& visit) const {
    visit_from({}, [&](const TopicPtr& topic) { return visit(topic), true; });
  }
  [[nodiscard]] const coordinator::CatalogSnapshot& catalog() const noexcept { return *catalog_; }

  /// A new picture of the catalog's next snapshot, with `changed` in place of what had its id and
  /// without `gone`.
  [[nodiscard]] std::shared_ptr<const Topics> next(coordinator::CatalogSnapshotPtr catalog,
                                                   const std::vector<TopicPtr>& changed,
                                                   const std::vector<Uuid>& gone) const;

 private:
  static constexpr std::size_t kShards = 64;
  using ById = std::unordered_map<Uuid, TopicPtr>;
  static std::size_t shard_of(const Uuid& id) noexcept { return id.bytes[15] % kShards; }

  coordinator::CatalogSnapshotPtr catalog_;
  std::array<std::shared_ptr<const ById>, kShards> by_id_;
};

}  // namespace kanal::broker
