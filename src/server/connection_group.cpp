#include "connection_group.hpp"

#include "kanal/base/check.hpp"
#include "kanal/base/logging.hpp"

namespace kanal::server {

ConnectionGroup::~ConnectionGroup() {
  CHECK(empty(), "connections are gone before their group");
}

void ConnectionGroup::post_adopt(Accepted accepted) {
  size_.fetch_add(1, std::memory_order_relaxed);
  auto adopt_it = [this, held = std::move(accepted)]() mutable { adopt(std::move(held)); };
  io_.post(std::move(adopt_it));
}

void ConnectionGroup::adopt(Accepted accepted) {
  const auto connection = std::make_shared<Connection>(*this, std::move(accepted));
  connection->start();
  if (draining_) connection->drain();
}

ConnectionGroup::Connections::iterator ConnectionGroup::enter(
    std::shared_ptr<Connection> connection) {
  const auto place = connections_.insert(connections_.end(), std::move(connection));
  watch_idle();
  return place;
}

void ConnectionGroup::leave(Connections::iterator place) {
  connections_.erase(place);
  size_.fetch_sub(1, std::memory_order_relaxed);
}

void ConnectionGroup::touch(Connection& connection) {
  connection.last_active_ = io_.clock().now();
  connections_.splice(connections_.end(), connections_, connection.place_);
}

void ConnectionGroup::watch_idle() {
  if (idle_timer_ || connections_.empty() || options_.max_idle < Duration::zero()) return;
  idle_timer_ = true;
  auto on_time = [this] {
    idle_timer_ = false;
    close_idle();
    watch_idle();
  };
  io_.add_timer(connections_.front()->last_active() + options_.max_idle, std::move(on_time));
}

void ConnectionGroup::close_idle() {
  const Time now = io_.clock().now();
  while (!connections_.empty() && connections_.front()->last_active() + options_.max_idle <= now) {
    Connection& longest = *connections_.front();
    if (longest.has_requests()) {
      touch(longest);
      continue;
    }
    logger("server").debug("Closing an idle connection. peer={}", longest.peer_name());
    longest.close();
  }
}

void ConnectionGroup::sweep_later() {
  if (sweeping_) return;
  sweeping_ = true;
  auto on_time = [this] {
    sweeping_ = false;
    sweep();
  };
  io_.add_timer(io_.clock().now() + kSweepInterval, std::move(on_time));
}

void ConnectionGroup::sweep() {
  const Time now = io_.clock().now();
  bool again = false;
  for (auto at = connections_.begin(); at != connections_.end();) {
    Connection& connection = **at++;
    if (connection.last_active() + kSweepInterval > now) {
      again = true;
      break;
    }
    connection.shrink();
    if (!connection.hoards()) continue;
    again = true;
    if (connection.last_active() + kHoardingTime > now || !options_.request_memory.contended())
      continue;
    logger("server").warn(
        "Closing a connection: others wait for the memory of a request that does not arrive. "
        "peer={}",
        connection.peer_name());
    connection.close();
  }
  if (again) sweep_later();
}

void ConnectionGroup::drain() {
  draining_ = true;
  for (auto at = connections_.begin(); at != connections_.end();) (*at++)->drain();
}

void ConnectionGroup::close_all() {
  draining_ = true;
  while (!connections_.empty()) connections_.front()->close();
}

}  // namespace kanal::server
