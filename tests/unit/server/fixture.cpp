#include "fixture.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <map>
#include <stdexcept>
#include <thread>

#include "kanal/base/check.hpp"

namespace kanal::server::testing {
namespace {

std::map<std::int32_t, broker::Event*>& waiting() {
  static std::map<std::int32_t, broker::Event*> all;
  return all;
}

std::string rest_of(wire::Reader& body) {
  std::string text;
  while (body.remaining() > 0) text += static_cast<char>(body.int8("body"));
  return text;
}

void put(wire::Writer& out, std::string_view text) {
  out.raw(as_bytes(text));
}

broker::Task<void> wait(broker::Context& context, bool parked) {
  if (context.cancelled) co_return;
  broker::Event event(context.io);
  waiting()[context.correlation_id] = &event;
  if (parked) {
    context.parked = &event;
    if (context.observer != nullptr) context.observer->on_parked(context);
  }
  co_await event.wait_until(Time::max());
  context.parked = nullptr;
  waiting().erase(context.correlation_id);
}

using Result = broker::Task<Result<void>>;

Result echo(broker::Context& context, wire::Reader& body, std::int16_t, wire::Writer& out) {
  trace().push_back("start " + std::to_string(context.correlation_id));
  put(out, rest_of(body));
  co_return kanal::Result<void>{};
}

Result park(broker::Context& context, wire::Reader&, std::int16_t, wire::Writer& out) {
  trace().push_back("start " + std::to_string(context.correlation_id));
  co_await wait(context, true);
  put(out, context.cancelled ? "cancelled" : "parked");
  trace().push_back("end " + std::to_string(context.correlation_id));
  co_return kanal::Result<void>{};
}

Result silent(broker::Context& context, wire::Reader&, std::int16_t, wire::Writer&) {
  trace().push_back("start " + std::to_string(context.correlation_id));
  context.suppress_response = true;
  co_return kanal::Result<void>{};
}

Result exclusive(broker::Context& context, wire::Reader& body, std::int16_t, wire::Writer& out) {
  trace().push_back("start " + std::to_string(context.correlation_id));
  co_await wait(context, false);
  put(out, rest_of(body));
  trace().push_back("end " + std::to_string(context.correlation_id));
  co_return kanal::Result<void>{};
}

Result throwing(broker::Context&, wire::Reader&, std::int16_t, wire::Writer& out) {
  put(out, "half an answer");
  throw std::runtime_error("a bug");
  co_return kanal::Result<void>{};
}

Result undecodable(broker::Context&, wire::Reader& body, std::int16_t version, wire::Writer&) {
  (void)body.text(false, "name");
  co_return std::unexpected(body.error("Undecodable request", version));
}

Result last(broker::Context& context, wire::Reader&, std::int16_t, wire::Writer& out) {
  context.close_connection = true;
  put(out, "last");
  co_return kanal::Result<void>{};
}

Result large(broker::Context& context, wire::Reader& body, std::int16_t, wire::Writer& out) {
  trace().push_back("start " + std::to_string(context.correlation_id));
  put(out, std::string(static_cast<std::size_t>(body.int32("size")), 'x'));
  co_return kanal::Result<void>{};
}

Result slow(broker::Context& context, wire::Reader&, std::int16_t, wire::Writer& out) {
  co_await wait(context, false);
  co_await wait(context, true);
  put(out, "slow");
  co_return kanal::Result<void>{};
}

constexpr handlers::Route route(std::int16_t key, std::string_view name,
                                decltype(handlers::Route::run) run) {
  return {key, name, 0, 7, 0, 5, static_cast<std::int16_t>(key == kApiVersionsKey ? 0 : -1), run};
}
constexpr handlers::Route kRoutes[] = {
    route(kSilent, "Silent", silent), route(kPark, "Park", park),
    route(kEcho, "Echo", echo),       route(kApiVersionsKey, "ApiVersions", echo),
    route(kThrow, "Throw", throwing), route(kUndecodable, "Undecodable", undecodable),
    route(kLast, "Last", last),       route(kLarge, "Large", large),
    route(kSlow, "Slow", slow),       route(kExclusive, "Exclusive", exclusive),
};

// Fake handlers never touch the broker.
broker::Broker& no_broker() {
  alignas(64) static std::byte place[256];
  return reinterpret_cast<broker::Broker&>(place);
}

std::pair<int, int> connected_sockets() {
  const int listening = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  CHECK(::bind(listening, reinterpret_cast<sockaddr*>(&address), length) == 0, "bind");
  CHECK(::listen(listening, 1) == 0, "listen");
  ::getsockname(listening, reinterpret_cast<sockaddr*>(&address), &length);
  const int client = ::socket(AF_INET, SOCK_STREAM, 0);
  CHECK(::connect(client, reinterpret_cast<sockaddr*>(&address), length) == 0, "connect");
  const int server = ::accept4(listening, nullptr, nullptr, SOCK_NONBLOCK);
  ::close(listening);
  return {client, server};
}

}  // namespace

const handlers::Route* fake_route(std::int16_t key) {
  for (const handlers::Route& each : kRoutes) {
    if (each.key == key) return &each;
  }
  return nullptr;
}

std::vector<std::string>& trace() {
  static std::vector<std::string> all;
  return all;
}

void release(std::int32_t correlation_id) {
  ASSERT_TRUE(waiting().contains(correlation_id)) << correlation_id;
  waiting().at(correlation_id)->fire();
}

void release_all() {
  for (const auto& [id, event] : waiting()) event->fire();
}

std::size_t waiting_handlers() {
  return waiting().size();
}

std::string be16(int value) {
  std::string text(2, '\0');
  store_be(reinterpret_cast<std::byte*>(text.data()), static_cast<std::int16_t>(value));
  return text;
}

std::string be32(std::int32_t value) {
  std::string text(4, '\0');
  store_be(reinterpret_cast<std::byte*>(text.data()), value);
  return text;
}

std::string request(std::int16_t key, std::int32_t correlation_id, std::string_view body) {
  std::string frame = be16(key) + be16(1) + be32(correlation_id) + be16(2) + "me";
  frame += body;
  return be32(static_cast<std::int32_t>(frame.size())) + frame;
}

std::vector<Received> take_answers(std::string& bytes) {
  std::vector<Received> all;
  while (bytes.size() >= 8) {
    const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
    const auto size = static_cast<std::size_t>(load_be<std::int32_t>(data));
    if (bytes.size() < 4 + size) break;
    all.push_back({load_be<std::int32_t>(data + 4), bytes.substr(8, size - 4)});
    bytes.erase(0, 4 + size);
  }
  return all;
}

std::size_t Client::send(std::string_view text) {
  const ssize_t sent = ::send(socket_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent < 0 ? 0 : static_cast<std::size_t>(sent);
}

void Client::read() {
  char buffer[65536];
  for (;;) {
    const ssize_t got = ::recv(socket_, buffer, sizeof buffer, MSG_DONTWAIT);
    if (got > 0)
      bytes.append(buffer, static_cast<std::size_t>(got));
    else {
      ended_ = ended_ || got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
      return;
    }
  }
}

void Client::finish() {
  ::shutdown(socket_, SHUT_WR);
}

void Client::reset() {
  const linger at_once{1, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close();
}

void Client::close() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
}

ConnectionTest::ConnectionTest() {
  trace().clear();
  options_ = std::make_unique<ConnectionOptions>(ConnectionOptions{.broker = no_broker(),
                                                                   .find_route = fake_route,
                                                                   .request_memory = *memory_,
                                                                   .refusals = refusals_});
  rebuild();
}

ConnectionTest::~ConnectionTest() {
  group_->close_all();
  EXPECT_TRUE(pump_until([this] { return group_->empty(); }));
  EXPECT_EQ(waiting_handlers(), 0U);
  EXPECT_EQ(memory_->used(), 0U);
  EXPECT_EQ(limits_.total(), 0U);
}

void ConnectionTest::rebuild() {
  group_.reset();
  group_ = std::make_unique<ConnectionGroup>(io_, *options_);
}

Client ConnectionTest::connect() {
  const auto [client, server] = connected_sockets();
  group_->post_adopt({server, false, &listener_, "127.0.0.1", 4711, *limits_.admit("127.0.0.1")});
  pump();
  return Client(client);
}

void ConnectionTest::pump() {
  for (int i = 0; i < 20; ++i) io_.poll();
}

bool ConnectionTest::pump_until(const std::function<bool()>& done) {
  using namespace std::chrono;
  const auto limit = steady_clock::now() + seconds(20);
  while (!done()) {
    if (!io_.poll()) std::this_thread::sleep_for(microseconds(100));
    if (steady_clock::now() > limit) return false;
  }
  return true;
}

std::vector<Received> ConnectionTest::answers(Client& client, std::size_t count) {
  std::vector<Received> all;
  pump_until([&] {
    client.read();
    for (Received& each : take_answers(client.bytes)) all.push_back(std::move(each));
    return all.size() >= count || client.ended();
  });
  return all;
}

bool ConnectionTest::closed(Client& client) {
  return pump_until([&] {
    client.read();
    return client.ended();
  });
}

}  // namespace kanal::server::testing
