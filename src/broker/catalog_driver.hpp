// Runs the catalog machine: one group of changes at a time, stored and synced, then seen by
// everybody as a new Topics picture, then answered. Opens and removes the partitions it asks for.
// start() and change() block: helper threads.
#pragma once

#include "channel_table.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/broker/guarded.hpp"
#include "kanal/broker/topics.hpp"
#include "kanal/coordinator/catalog.hpp"
#include "kanal/log/channel_log.hpp"
#include "kanal/reserved/store.hpp"
#include "published.hpp"

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace kanal::broker {

class CatalogDriver {
 public:
  struct Stage {
    reserved::Store& store;
    reserved::Session& session;
    log::LogStore& logs;
    ChannelTable& channels;
    const Clock& clock;
    LeaderEpoch epoch;
    std::shared_ptr<const coordinator::BrokerConfig> config;
    /// Told, on the helper, after topics were deleted and are no longer seen.
    std::function<void()> on_deleted;
  };
  explicit CatalogDriver(Stage stage);

  /// Replays the catalog and opens every partition.
  Result<void> start(StartReport& report);
  std::vector<coordinator::CatalogReply> change(
      std::span<const coordinator::CatalogCommand> commands);
  /// Goes over to new broker configs: topics that follow them have the new values at once.
  void configure(std::shared_ptr<const coordinator::BrokerConfig> config);
  [[nodiscard]] std::shared_ptr<const Topics> topics() const { return topics_.load(); }
  /// No topic is made, changed or deleted meanwhile. Blocks; helper threads.
  template <class Use>
  auto while_unchanged(Use&& use) {
    return catalog_.with([&](Catalog&) { return std::forward<Use>(use)(*topics_.load()); });
  }

 private:
  struct Catalog {
    std::unique_ptr<coordinator::Catalog> machine;
    bool stale =
        false;  // a write failed: what is stored is not known, rebuild before the next change
  };
  Result<void> rebuild(Catalog& catalog);
  Result<std::vector<coordinator::CatalogAction>> store(
      Catalog& catalog, std::span<const coordinator::CatalogCommand> commands,
      std::vector<coordinator::CatalogReply>& replies);
  /// The picture after the machine's present state: opens what is new, drops what is gone.
  void publish(coordinator::Catalog& machine, std::span<const coordinator::CatalogAction> actions);
  void reconcile(coordinator::Catalog& machine, StartReport* report);
  TopicPtr open_topic(const coordinator::TopicPtr& entry, const Topic* before, StartReport* report);
  std::shared_ptr<Partition> open_partition(const coordinator::TopicEntry& entry,
                                            PartitionIndex index, StartReport* report);
  void drop(const TopicPtr& topic);

  Stage stage_;
  Guarded<Catalog, Rank::kCatalog> catalog_;
  Published<Topics> topics_;
};

}  // namespace kanal::broker
