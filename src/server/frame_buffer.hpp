// Memory that requests are received into. A FrameBuffer is shared by the connection that fills it
// and by the requests whose views point into it; it never moves while somebody holds it. Everything
// here belongs to one I/O thread. Capacities come in classes, so that freed buffers fit the next
// frame: kSmall for a connection that is quiet, kSlab for a busy one, above it four steps a
// doubling. Memory is not touched before bytes arrive in it.
#pragma once

#include "kanal/base/bytes.hpp"
#include "request_memory.hpp"

#include <cstddef>
#include <utility>
#include <vector>

namespace kanal::server {

class BufferPool;

class FrameBuffer {
 public:
  [[nodiscard]] std::byte* data() noexcept { return data_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] bool shared() const noexcept { return holders_ > 1; }
  /// What this buffer counts for in the broker's RequestMemory.
  [[nodiscard]] Reservation& reservation() noexcept { return reservation_; }

 private:
  friend class BufferPool;
  friend class FrameRef;
  FrameBuffer(BufferPool& pool, std::byte* data, std::size_t capacity)
      : pool_(pool), data_(data), capacity_(capacity) {}

  BufferPool& pool_;
  std::byte* data_;
  std::size_t capacity_;
  std::size_t holders_ = 0;
  Reservation reservation_;
};

/// One holder of a FrameBuffer.
class FrameRef {
 public:
  FrameRef() = default;
  explicit FrameRef(FrameBuffer* buffer) noexcept : buffer_(buffer) {
    if (buffer_ != nullptr) ++buffer_->holders_;
  }
  FrameRef(const FrameRef& other) noexcept : FrameRef(other.buffer_) {}
  FrameRef(FrameRef&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  FrameRef& operator=(FrameRef other) noexcept {
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~FrameRef() { reset(); }
  void reset() noexcept;

  [[nodiscard]] FrameBuffer* operator->() const noexcept { return buffer_; }
  [[nodiscard]] explicit operator bool() const noexcept { return buffer_ != nullptr; }

 private:
  FrameBuffer* buffer_ = nullptr;
};

/// Makes FrameBuffers and keeps a few free ones. It outlives them.
class BufferPool {
 public:
  static constexpr std::size_t kSmall = 4 << 10;
  static constexpr std::size_t kSlab = 64 << 10;

  BufferPool() = default;
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool();

  [[nodiscard]] static std::size_t class_of(std::size_t bytes) noexcept;
  /// Empty where the system has no memory left.
  [[nodiscard]] FrameRef make(std::size_t bytes, Reservation reservation);
  [[nodiscard]] std::size_t idle_bytes() const noexcept { return idle_bytes_; }
  [[nodiscard]] std::size_t live() const noexcept { return live_; }

 private:
  friend class FrameRef;
  static constexpr std::size_t kIdleLimit = 8 << 20;  // bytes kept for reuse
  struct Idle {
    std::byte* data;
    std::size_t capacity;
  };
  void give_back(FrameBuffer* buffer) noexcept;

  std::vector<Idle> idle_;  // the one freed last comes first: its pages are warm
  std::size_t idle_bytes_ = 0;
  std::size_t live_ = 0;
};

}  // namespace kanal::server
