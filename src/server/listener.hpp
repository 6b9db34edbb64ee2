// Accepts the connections of one listening socket and deals them to the I/O thread that has fewest.
// Lives on one I/O thread. Limits: max.connections (accepting pauses until one closes), per address
// (closed at once), creation rate; without a file descriptor left accepting pauses for a moment and
// never spins.
#pragma once

#include "config.hpp"
#include "connection_group.hpp"
#include "connection_limits.hpp"
#include "kanal/base/error.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kanal::server {

struct SocketOptions {
  std::int32_t send_buffer_bytes = -1;  // -1: the system's
  std::int32_t receive_buffer_bytes = -1;
  std::int32_t backlog = 50;
};

/// What all listeners of the broker share; it outlives them.
struct ListenerShared {
  ConnectionLimits& limits;
  LogBudget& refusals;
  SocketOptions sockets;
  std::span<const std::unique_ptr<ConnectionGroup>> groups;
};

class Listener {
 public:
  /// Binds; nobody can connect before listen().
  [[nodiscard]] static Result<std::unique_ptr<Listener>> bind(broker::IoThread& io,
                                                              const ListenerOptions& options,
                                                              const ListenerShared& shared);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  [[nodiscard]] Result<void> listen();  // any thread, once
  void stop();                          // on the listener's I/O thread
  /// Where it can be reached from this machine.
  [[nodiscard]] const HostPort& bound() const noexcept { return bound_; }
  [[nodiscard]] const broker::Listener& facts() const noexcept { return facts_; }

 private:
  Listener(broker::IoThread& io, const ListenerShared& shared);
  void wait();
  void accept_ready();
  [[nodiscard]] bool rate_allows();
  void pause(Duration time);
  void on_accept_error(int error);
  void take(int socket, const boost::asio::ip::tcp::endpoint& client);
  ConnectionGroup& least_loaded();

  broker::IoThread& io_;
  const ListenerShared& shared_;
  boost::asio::ip::tcp::acceptor acceptor_;
  broker::Listener facts_;
  HostPort bound_;
  Time second_{};
  std::size_t this_second_ = 0;
  std::size_t next_group_ = 0;
  bool full_logged_ = false;
  bool stopped_ = false;
};

}  // namespace kanal::server
