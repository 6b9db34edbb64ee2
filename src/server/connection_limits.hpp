// How many connections there may be (max.connections, max.connections.per.ip and its overrides,
// max.connection.creation.rate). Over the first and the last the listener accepts no more until one
// closes or the second is over; over the others a connection is closed at once. New limits hold for
// connections to come. Any thread; the mutex is a leaf.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kanal::server {

class ConnectionLimits;

/// A place among the broker's connections, given back when destroyed.
class Admission {
 public:
  Admission() = default;
  Admission(ConnectionLimits& limits, std::string address)
      : limits_(&limits), address_(std::move(address)) {}
  Admission(Admission&& other) noexcept
      : limits_(std::exchange(other.limits_, nullptr)), address_(std::move(other.address_)) {}
  Admission& operator=(Admission&& other) noexcept {
    std::swap(limits_, other.limits_);
    std::swap(address_, other.address_);
    return *this;
  }
  ~Admission();

 private:
  ConnectionLimits* limits_ = nullptr;
  std::string address_;
};

class ConnectionLimits {
 public:
  struct Options {
    std::size_t total = SIZE_MAX;
    std::size_t per_address = SIZE_MAX;
    std::map<std::string, std::size_t, std::less<>> overrides;  // by address
    std::size_t per_second = SIZE_MAX;
  };
  explicit ConnectionLimits(Options options) : options_(std::move(options)) {}
  ConnectionLimits(const ConnectionLimits&) = delete;
  ConnectionLimits& operator=(const ConnectionLimits&) = delete;

  /// Whether one more connection may be accepted; if not, `resume` is called once when one has
  /// closed (any thread).
  [[nodiscard]] bool room_or_wait(std::function<void()> resume);
  /// Nothing if the address has all it may have.
  [[nodiscard]] std::optional<Admission> admit(const std::string& address);
  [[nodiscard]] std::size_t total() const;
  [[nodiscard]] std::size_t limit_of(std::string_view address) const;
  [[nodiscard]] std::size_t per_second() const;
  /// Who waits for room looks again.
  void configure(Options options);

 private:
  friend class Admission;
  void leave(const std::string& address) noexcept;
  [[nodiscard]] std::size_t limit_now(std::string_view address) const;  // under the lock

  Options options_;
  mutable std::mutex mutex_;
  std::size_t total_ = 0;
  std::unordered_map<std::string, std::size_t> by_address_;
  std::vector<std::function<void()>> resume_;
};

}  // namespace kanal::server
