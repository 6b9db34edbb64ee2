#include "listener.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <cstring>

#include "kanal/base/logging.hpp"

namespace kanal::server {
namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr int kAcceptsPerTurn = 64;
constexpr Duration kPauseWithoutDescriptors = std::chrono::milliseconds(100);

void set_option(int socket, int level, int name, int value) {
  ::setsockopt(socket, level, name, &value, sizeof value);
}

std::string text_of(const asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
  }
  return address.to_string();
}

std::unexpected<Error> cannot_listen(const ListenerOptions& options,
                                     const boost::system::error_code& error) {
  return fail(ErrorCode::UNKNOWN_SERVER_ERROR,
              "listener " + options.name + " cannot listen on " + to_string(options.bind) + ": " +
                  error.message(),
              error.value());
}

}  // namespace

Listener::Listener(broker::IoThread& io, const ListenerShared& shared)
    : io_(io), shared_(shared), acceptor_(io.context()) {}

Result<std::unique_ptr<Listener>> Listener::bind(broker::IoThread& io,
                                                 const ListenerOptions& options,
                                                 const ListenerShared& shared) {
  std::unique_ptr<Listener> made(new Listener(io, shared));
  boost::system::error_code error;
  tcp::resolver resolver(io.context());
  const auto found = resolver.resolve(options.bind.host, std::to_string(options.bind.port), error);
  if (error || found.empty()) return cannot_listen(options, error);
  const tcp::endpoint endpoint = found.begin()->endpoint();
  made->acceptor_.open(endpoint.protocol(), error);
  if (error) return cannot_listen(options, error);
  const int socket = made->acceptor_.native_handle();
  set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  // Before listen: the window that is offered follows from it.
  if (shared.sockets.receive_buffer_bytes > 0) {
    set_option(socket, SOL_SOCKET, SO_RCVBUF, shared.sockets.receive_buffer_bytes);
  }
  made->acceptor_.bind(endpoint, error);
  if (error) return cannot_listen(options, error);
  made->acceptor_.native_non_blocking(true, error);
  const tcp::endpoint local = made->acceptor_.local_endpoint(error);
  if (error) return cannot_listen(options, error);
  const std::int32_t advertised =
      options.advertised.port != 0 ? options.advertised.port : local.port();
  made->facts_ = {options.name, options.advertised.host, advertised};
  made->bound_ = {local.address().is_unspecified() ? "127.0.0.1" : local.address().to_string(),
                  local.port()};
  return made;
}

Result<void> Listener::listen() {
  boost::system::error_code error;
  acceptor_.listen(shared_.sockets.backlog, error);
  if (error) {
    return fail(ErrorCode::UNKNOWN_SERVER_ERROR,
                "cannot listen on " + to_string(bound_) + ": " + error.message(), error.value());
  }
  io_.post([this] { wait(); });
  return {};
}

void Listener::stop() {
  stopped_ = true;
  boost::system::error_code ignored;
  acceptor_.close(ignored);
}

void Listener::wait() {
  if (stopped_) return;
  auto on_ready = [this](const boost::system::error_code& error) {
    if (!error && !stopped_) accept_ready();
  };
  acceptor_.async_wait(tcp::acceptor::wait_read, std::move(on_ready));
}

void Listener::accept_ready() {
  for (int accepted = 0; accepted < kAcceptsPerTurn; ++accepted) {
    auto resume = [this] { io_.post([this] { wait(); }); };
    if (!shared_.limits.room_or_wait(std::move(resume))) {
      if (!std::exchange(full_logged_, true)) {
        logger("server").warn(
            "All connections are taken: accepting waits until one closes. listener={} "
            "connections={}",
            facts_.name, shared_.limits.total());
      }
      return;
    }
    if (!rate_allows()) return pause(std::chrono::milliseconds(50));
    sockaddr_storage storage{};
    socklen_t length = sizeof storage;
    const int socket = ::accept4(acceptor_.native_handle(), reinterpret_cast<sockaddr*>(&storage),
                                 &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (socket < 0 && (errno == EINTR || errno == ECONNABORTED || errno == EPROTO)) continue;
    if (socket < 0) return on_accept_error(errno);
    ++this_second_;
    tcp::endpoint client;
    std::memcpy(client.data(), &storage, length);
    client.resize(length);
    take(socket, client);
  }
  wait();
}

bool Listener::rate_allows() {
  const Time now = io_.clock().now();
  if (now - second_ >= std::chrono::seconds(1)) {
    second_ = now;
    this_second_ = 0;
  }
  return this_second_ < shared_.limits.per_second();
}

void Listener::pause(Duration time) {
  io_.add_timer(io_.clock().now() + time, [this] { wait(); });
}

void Listener::on_accept_error(int error) {
  if (const auto left_out = shared_.refusals.take(io_.clock().now())) {
    logger("server").warn(
        "Cannot accept a connection; trying again in a moment. listener={} reason=\"{}\" "
        "left_out={}",
        facts_.name, std::strerror(error), *left_out);
  }
  pause(kPauseWithoutDescriptors);
}

void Listener::take(int socket, const tcp::endpoint& client) {
  std::string address = text_of(client.address());
  auto admission = shared_.limits.admit(address);
  if (!admission) {
    if (const auto left_out = shared_.refusals.take(io_.clock().now())) {
      logger("server").warn(
          "Refused a connection: its address has all it may have. listener={} address={} limit={} "
          "left_out={}",
          facts_.name, address, shared_.limits.limit_of(address), *left_out);
    }
    ::close(socket);
    return;
  }
  full_logged_ = false;
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  if (shared_.sockets.send_buffer_bytes > 0) {
    set_option(socket, SOL_SOCKET, SO_SNDBUF, shared_.sockets.send_buffer_bytes);
  }
  Accepted accepted{socket,        client.address().is_v6(), &facts_, std::move(address),
                    client.port(), std::move(*admission)};
  least_loaded().post_adopt(std::move(accepted));
}

ConnectionGroup& Listener::least_loaded() {
  // Looks round from where it stopped, so that equals take turns.
  const auto groups = shared_.groups;
  std::size_t best = next_group_++ % groups.size();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::size_t at = (best + i) % groups.size();
    if (groups[at]->size() < groups[best]->size()) best = at;
  }
  return *groups[best];
}

}  // namespace kanal::server
