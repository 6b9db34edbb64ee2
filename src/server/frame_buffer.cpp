#include "frame_buffer.hpp"

#include <algorithm>
#include <bit>
#include <new>

#include "kanal/base/check.hpp"

namespace kanal::server {

void FrameRef::reset() noexcept {
  FrameBuffer* buffer = std::exchange(buffer_, nullptr);
  if (buffer != nullptr && --buffer->holders_ == 0) buffer->pool_.give_back(buffer);
}

BufferPool::~BufferPool() {
  CHECK(live_ == 0, "buffers are gone before their pool");
  for (const Idle& idle : idle_) ::operator delete(idle.data);
}

std::size_t BufferPool::class_of(std::size_t bytes) noexcept {
  if (bytes <= kSmall) return kSmall;
  if (bytes <= kSlab) return kSlab;
  const std::size_t step = std::max<std::size_t>(std::bit_floor(bytes - 1) / 4, 1);
  return (bytes + step - 1) / step * step;
}

FrameRef BufferPool::make(std::size_t bytes, Reservation reservation) {
  const std::size_t capacity = class_of(bytes);
  std::byte* data = nullptr;
  for (auto idle = idle_.rbegin(); idle != idle_.rend(); ++idle) {
    if (idle->capacity != capacity) continue;
    data = idle->data;
    idle_.erase(std::next(idle).base());
    idle_bytes_ -= capacity;
    break;
  }
  if (data == nullptr) data = static_cast<std::byte*>(::operator new(capacity, std::nothrow));
  if (data == nullptr) return {};
  auto* buffer = new FrameBuffer(*this, data, capacity);
  buffer->reservation_ = std::move(reservation);
  ++live_;
  return FrameRef(buffer);
}

void BufferPool::give_back(FrameBuffer* buffer) noexcept {
  --live_;
  const Idle idle{buffer->data_, buffer->capacity_};
  delete buffer;
  if (idle_bytes_ + idle.capacity > kIdleLimit) {
    ::operator delete(idle.data);
    return;
  }
  idle_.push_back(idle);
  idle_bytes_ += idle.capacity;
}

}  // namespace kanal::server
