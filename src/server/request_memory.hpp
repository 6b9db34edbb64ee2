// Bytes that requests may take in memory over the whole broker (queued.max.request.bytes, else
// limits.request_memory). A connection reserves room for a large frame before it reads the body and
// waits where there is none: nothing is dropped. As in Kafka a frame is admitted while anything is
// left, so that one larger than what is left still gets in. Any thread; the mutex is a leaf and is
// touched only while somebody waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>

namespace kanal::server {

class RequestMemory;

/// Bytes taken from a RequestMemory, given back when destroyed.
class Reservation {
 public:
  Reservation() = default;
  Reservation(RequestMemory& memory, std::uint64_t bytes) : memory_(&memory), bytes_(bytes) {}
  Reservation(Reservation&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Reservation& operator=(Reservation&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Reservation();
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  RequestMemory* memory_ = nullptr;
  std::uint64_t bytes_ = 0;
};

class RequestMemory {
 public:
  using Wake = std::move_only_function<void()>;

  explicit RequestMemory(std::uint64_t limit) noexcept : limit_(limit) {}
  RequestMemory(const RequestMemory&) = delete;
  RequestMemory& operator=(const RequestMemory&) = delete;

  /// An empty Reservation (0 bytes) where nothing is left.
  [[nodiscard]] Reservation try_reserve(std::uint64_t bytes) noexcept;
  /// Calls `wake` once, when there may be room again: in turn, from the thread that made room or
  /// from this one. Who is woken tries again, and calls wake_next() once it has done so, whatever
  /// came of it.
  void wait(Wake wake);
  void wake_next();

  [[nodiscard]] std::uint64_t used() const noexcept {
    return used_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool contended() const noexcept {
    return waiting_.load(std::memory_order_relaxed) > 0;
  }

 private:
  friend class Reservation;
  void release(std::uint64_t bytes) noexcept;

  const std::uint64_t limit_;
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint32_t> waiting_{0};
  std::mutex mutex_;
  std::deque<Wake> waiters_;
};

}  // namespace kanal::server
