// The connections of one I/O thread and what they share there: buffers, writers, the idle clock.
// Used on that thread, but for size() and post(). It outlives its connections; they are all gone
// once empty() after close_all().
#pragma once

#include "answer_queue.hpp"
#include "connection.hpp"
#include "frame_buffer.hpp"
#include "log_budget.hpp"
#include "request_memory.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>

namespace kanal::server {

/// Shared by all connections of the broker.
struct ConnectionOptions {
  broker::Broker& broker;
  RouteFinder find_route;
  RequestMemory& request_memory;
  LogBudget& refusals;  // for lines about clients' mistakes
  std::int32_t largest_frame = 104'857'600;
  std::uint32_t requests = 256;                  // in flight on one connection
  std::uint64_t answer_bytes = 16 << 20;         // made and not sent, of one connection
  Duration max_idle = std::chrono::minutes(10);  // negative: none
};

class ConnectionGroup {
 public:
  ConnectionGroup(broker::IoThread& io, const ConnectionOptions& options)
      : io_(io), options_(options) {}
  ConnectionGroup(const ConnectionGroup&) = delete;
  ConnectionGroup& operator=(const ConnectionGroup&) = delete;
  ~ConnectionGroup();

  /// Any thread.
  void post_adopt(Accepted accepted);
  [[nodiscard]] std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }
  [[nodiscard]] broker::IoThread& io() noexcept { return io_; }

  void adopt(Accepted accepted);
  void drain();
  void close_all();
  /// Connections that exist, those that are closed but still have a handler running included.
  [[nodiscard]] bool empty() const noexcept { return alive_.load(std::memory_order_acquire) == 0; }

 private:
  friend class Connection;
  static constexpr Duration kSweepInterval = std::chrono::seconds(1);
  static constexpr Duration kHoardingTime = std::chrono::seconds(10);

  using Connections = std::list<std::shared_ptr<Connection>>;
  Connections::iterator enter(std::shared_ptr<Connection> connection);
  void leave(Connections::iterator place);
  void touch(Connection& connection);
  void watch_idle();
  void close_idle();
  /// A connection took a buffer that it may have to give back later.
  void sweep_later();
  void sweep();

  broker::IoThread& io_;
  const ConnectionOptions& options_;
  BufferPool buffers_;
  WriterPool writers_;
  Connections connections_;  // the longest quiet one first
  std::atomic<std::size_t> size_{0};
  std::atomic<std::size_t> alive_{0};
  bool idle_timer_ = false, sweeping_ = false, draining_ = false;
};

}  // namespace kanal::server
