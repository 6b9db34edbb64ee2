#include "proxy.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

namespace kanal::e2e {
namespace {

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int make_socket() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

bool send_all(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t sent = ::send(fd, data, size, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    data += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

}  // namespace

Proxy::Proxy(int port, int broker_port) : broker_port_(broker_port), listener_(make_socket()) {
  const sockaddr_in address = loopback(port);
  if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener_, 64) != 0) {
    throw std::runtime_error("the proxy cannot listen");
  }
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Proxy::~Proxy() {
  thread_.request_stop();
  thread_.join();
  for (const Pair& pair : pairs_) {
    ::close(pair.client);
    ::close(pair.broker);
  }
  ::close(listener_);
}

void Proxy::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::vector<pollfd> waits{{listener_, POLLIN, 0}};
    for (const Pair& pair : pairs_) {
      waits.push_back({pair.client, POLLIN, 0});
      waits.push_back({pair.broker, POLLIN, 0});
    }
    if (::poll(waits.data(), waits.size(), 20) <= 0) continue;
    std::vector<Pair> kept;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      bool open = true;
      if (waits[1 + 2 * i].revents != 0) open = forward(pairs_[i], false);
      if (open && waits[2 + 2 * i].revents != 0) open = forward(pairs_[i], true);
      if (open) {
        kept.push_back(pairs_[i]);
      } else {
        ::close(pairs_[i].client);
        ::close(pairs_[i].broker);
      }
    }
    pairs_ = std::move(kept);
    if (waits[0].revents != 0) accept_one();
  }
}

void Proxy::accept_one() {
  const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  const int broker = make_socket();
  const sockaddr_in address = loopback(broker_port_);
  if (::connect(broker, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(client);
    ::close(broker);
    return;
  }
  pairs_.push_back({client, broker, false});
}

bool Proxy::forward(Pair& pair, bool from_broker) {
  std::array<char, 65536> buffer;  // NOLINT: filled by recv
  const ssize_t got =
      ::recv(from_broker ? pair.broker : pair.client, buffer.data(), buffer.size(), 0);
  if (got <= 0) return false;
  const auto size = static_cast<std::size_t>(got);
  if (!from_broker) return send_all(pair.broker, buffer.data(), size);
  pair.losing |= losing_;
  if (!pair.losing) return send_all(pair.client, buffer.data(), size);
  lost_ += size;
  return true;
}

}  // namespace kanal::e2e
