// How an actor asks: a request struct becomes a frame, mutants have their say, the answer is shown
// to `watch` when it leaves the broker, whether or not it arrives. One thread.
#pragma once

#include "network.hpp"
#include "world.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace kanal::sim {

/// Reconnects when asked again after the connection broke.
struct Link {
  World& world;
  std::string client_id;
  ConnectionPtr connection;

  /// Whether there is a connection now.
  bool up() {
    if (connection == nullptr || connection->closed()) connection = world.connect(client_id);
    return connection != nullptr;
  }
};

struct Ask {
  std::int16_t version = 0;
  Duration limit = std::chrono::seconds(40);  // what it may take without a fault
};

/// The frame of a request, without its size.
template <class Request>
Buffer frame_of(const Request& request, std::int16_t version, std::string_view client_id) {
  wire::Writer out;
  out.int16(Request::kApiKey);
  out.int16(version);
  out.int32(1);
  out.nullable_text(false, client_id);
  if (version >= Request::kFlexibleFrom) out.uvarint(0);
  encode(out, version, request);
  return {out.bytes().begin(), out.bytes().end()};
}

/// Sends without waiting for the answer. `link` is up.
template <class Response, class Request>
std::shared_ptr<Pending<Response>> send(Link& link, const Request& request, Ask ask,
                                        std::function<void(Response&)> watch = {}) {
  World& world = link.world;
  Response forged;
  if (world.tamper().forge(request, forged)) {
    auto call = std::make_shared<Pending<Response>>(world, ask.limit, std::move(watch));
    call->answer_locally(std::move(forged));
    return call;
  }
  auto shown = [&world, watch = std::move(watch)](Response& response) {
    world.tamper().alter(response);
    if (watch) watch(response);
  };
  auto call = std::make_shared<Pending<Response>>(world, ask.limit, std::move(shown));
  call->set_frame(frame_of(request, ask.version, link.client_id));
  if (world.tamper().swallows())
    world.swallow(call);
  else
    link.connection->send(call);
  return call;
}

/// Sends and waits: the answer, or null if the connection broke before it came.
template <class Response, class Request>
broker::Task<std::shared_ptr<Pending<Response>>> ask(Link& link, const Request& request, Ask how,
                                                     std::function<void(Response&)> watch = {}) {
  auto call = send<Response>(link, request, how, std::move(watch));
  const bool arrived = co_await answered(*call);
  if (!arrived) call.reset();
  co_return call;
}

}  // namespace kanal::sim
