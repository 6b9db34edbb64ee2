// Runs the cluster's state machine: what is set while the broker runs is stored and synced, then in
// force (a new BrokerConfig that every thread sees), then answered. One change at a time. start()
// and change() block: helper threads. The lock is taken before the catalog's, never inside another.
#pragma once

#include "driver.hpp"
#include "kanal/base/clock.hpp"
#include "kanal/coordinator/cluster_state.hpp"
#include "published.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace kanal::broker {

class ConfigDriver {
 public:
  using Config = std::shared_ptr<const coordinator::BrokerConfig>;
  /// Told of a new config before the change is answered, in order, on the changing thread.
  using Listener = std::function<void(const Config&)>;

  /// `base`: what the process was started with.
  ConfigDriver(reserved::Session& session, const Clock& clock, Config base);

  /// Replays, takes the next leader epoch, and puts in force what is stored.
  Result<coordinator::ClusterFacts> start(const coordinator::StartNode& node);
  std::vector<Result<void>> change(std::span<coordinator::AlterConfigs> commands);
  /// Calls `listener` with what is in force, and from now on with every change.
  void listen(Listener listener);

  [[nodiscard]] Config config() const { return config_.load(); }
  [[nodiscard]] std::shared_ptr<const coordinator::DynamicConfigs> stored() const {
    return stored_.load();
  }

 private:
  Result<void> rebuild();
  Result<void> change_one(coordinator::AlterConfigs& command);
  /// What the machine has now is seen by everybody.
  void publish(bool broker_changed);

  reserved::Session& session_;
  const Clock& clock_;
  const Config base_;
  std::mutex mutex_;
  coordinator::ClusterState machine_;
  bool stale_ = false;  // a write failed: what is stored is not known
  std::vector<Listener> listeners_;
  Published<coordinator::BrokerConfig> config_;
  Published<coordinator::DynamicConfigs> stored_;
};

}  // namespace kanal::broker
