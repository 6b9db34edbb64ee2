// What the server's tests share: a clock set by hand, request bytes, routes with behaviour on
// demand, and a client whose other end is a Connection on an I/O thread that the test itself polls.
// One thread.
#pragma once

#include "connection_group.hpp"
#include "kanal/base/bytes.hpp"
#include "kanal/broker/io_thread.hpp"
#include "kanal/handlers/route.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace kanal::server::testing {

class ManualClock final : public Clock {
 public:
  [[nodiscard]] Time now() const noexcept override { return now_; }
  [[nodiscard]] Timestamp wall() const noexcept override { return Timestamp(0); }
  void advance(Duration by) { now_ += by; }

 private:
  // Far ahead of the machine's own: its timers never fire in a test.
  Time now_{std::chrono::hours(1'000'000)};
};

// Keys of the fake routes.
inline constexpr std::int16_t kEcho = 3;    // answers its body
inline constexpr std::int16_t kPark = 1;    // waits parked, then answers "parked" or "cancelled"
inline constexpr std::int16_t kSilent = 0;  // acks=0: no answer
inline constexpr std::int16_t kExclusive = 19;  // waits, not parked
inline constexpr std::int16_t kThrow = 20;
inline constexpr std::int16_t kUndecodable = 22;
inline constexpr std::int16_t kLast = 32;   // answers and closes
inline constexpr std::int16_t kLarge = 37;  // answers as many bytes as its body says
inline constexpr std::int16_t kSlow = 60;   // exclusive at first, then parked
const handlers::Route* fake_route(std::int16_t key);

/// What fake handlers did, in order: "start <correlation>", "end <correlation>".
std::vector<std::string>& trace();
/// Handlers that wait, by correlation id; firing lets them go on.
void release(std::int32_t correlation_id);
void release_all();
std::size_t waiting_handlers();

std::string be16(int value);
std::string be32(std::int32_t value);
/// A request with header version 1 and its size.
std::string request(std::int16_t key, std::int32_t correlation_id, std::string_view body = {});

struct Received {
  std::int32_t correlation_id;
  std::string body;
};
/// The whole answers that `bytes` begins with; the rest stays.
std::vector<Received> take_answers(std::string& bytes);

/// A client's socket, non-blocking; closed with it.
class Client {
 public:
  Client() = default;
  explicit Client(int socket) : socket_(socket) {}
  Client(Client&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), ended_(other.ended_) {}
  Client& operator=(Client&& other) noexcept {
    std::swap(socket_, other.socket_);
    std::swap(ended_, other.ended_);
    return *this;
  }
  ~Client() { close(); }

  std::size_t send(std::string_view bytes);
  void read();    // what has arrived
  void finish();  // FIN
  void reset();   // RST
  void close();
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  [[nodiscard]] int socket() const noexcept { return socket_; }
  std::string bytes;  // received so far

 private:
  int socket_ = -1;
  bool ended_ = false;
};

class ConnectionTest : public ::testing::Test {
 protected:
  ConnectionTest();
  ~ConnectionTest() override;

  Client connect();
  /// Runs the loop until `done`; false after some seconds.
  bool pump_until(const std::function<bool()>& done);
  /// Runs what is ready.
  void pump();
  std::vector<Received> answers(Client& client, std::size_t count);
  bool closed(Client& client);
  void rebuild();  // after a change of options_

  ManualClock clock_;
  broker::IoThread io_{clock_, 0};
  LogBudget refusals_{1000};
  std::unique_ptr<RequestMemory> memory_ = std::make_unique<RequestMemory>(1 << 30);
  ConnectionLimits limits_{{}};
  broker::Listener listener_{"PLAINTEXT", "127.0.0.1", 9092};
  std::unique_ptr<ConnectionOptions> options_;
  std::unique_ptr<ConnectionGroup> group_;
};

}  // namespace kanal::server::testing
