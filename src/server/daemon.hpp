// The running broker: everything that main starts, in the order in which it needs each other.
// start() returns once clients are served; stop() takes at most kStopTime. Used by the main thread.
#pragma once

#include "config.hpp"
#include "connection_group.hpp"
#include "connection_limits.hpp"
#include "control.hpp"
#include "helper_pool.hpp"
#include "kanal/base/error.hpp"
#include "kanal/broker/broker.hpp"
#include "listener.hpp"
#include "system_clock.hpp"
#include "system_random.hpp"

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace kanal::server {

class Daemon {
 public:
  static constexpr Duration kStopTime = std::chrono::milliseconds(4500);

  /// Writes `ready_file` (one host:port line per listener) when clients are served.
  [[nodiscard]] static Result<std::unique_ptr<Daemon>> start(
      const Config& config, std::string_view version, const std::optional<std::string>& ready_file);
  ~Daemon();

  /// No more connections and requests; what is parked is answered, all is flushed and checkpointed.
  [[nodiscard]] Result<void> stop();

 private:
  struct Descriptors {
    std::size_t connections = 0, log_files = 0;
  };
  explicit Daemon(const Config& config);
  static Descriptors share_descriptors(const Config& config);
  Result<void> start_broker(broker::StartReport& report, std::size_t log_files);
  Result<void> start_listeners(std::size_t connections);
  Result<void> open_control();
  Result<void> open_doors(const std::optional<std::string>& ready_file);
  void run_io_threads();
  void tick_later();
  /// Whether all connections are gone by then.
  bool connections_end_by(Time deadline);
  void stop_helpers();
  void on_every_group(void (ConnectionGroup::*action)());

  const Config& config_;
  SystemClock clock_;
  SystemRandom random_;
  std::unique_ptr<FileSystem> files_;
  HelperPool helpers_;
  HelperPool syncs_;  // what acknowledgements wait for, and nothing else
  HelperPool at_ease_;
  LogBudget refusals_{10};
  RequestMemory request_memory_;
  std::vector<std::unique_ptr<broker::IoThread>> io_;
  std::unique_ptr<broker::Broker> broker_;
  std::optional<ConnectionLimits> limits_;
  std::optional<ConnectionOptions> connection_options_;
  std::optional<ListenerShared> listener_shared_;
  std::vector<std::unique_ptr<ConnectionGroup>> groups_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<std::jthread> threads_;
  std::unique_ptr<ControlSocket> control_;  // goes first
};

}  // namespace kanal::server
