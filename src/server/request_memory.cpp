#include "request_memory.hpp"

namespace kanal::server {

Reservation::~Reservation() {
  if (memory_ != nullptr) memory_->release(bytes_);
}

Reservation RequestMemory::try_reserve(std::uint64_t bytes) noexcept {
  std::uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (used >= limit_) return {};
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_seq_cst));
  return {*this, bytes};
}

void RequestMemory::wait(Wake wake) {
  {
    const std::lock_guard lock(mutex_);
    waiters_.push_back(std::move(wake));
    waiting_.fetch_add(1, std::memory_order_seq_cst);
  }
  // Room made before the count was seen would have woken nobody.
  if (used_.load(std::memory_order_seq_cst) < limit_) wake_next();
}

void RequestMemory::wake_next() {
  if (used_.load(std::memory_order_seq_cst) >= limit_) return;
  Wake first;
  {
    const std::lock_guard lock(mutex_);
    if (waiters_.empty()) return;
    first = std::move(waiters_.front());
    waiters_.pop_front();
    waiting_.fetch_sub(1, std::memory_order_seq_cst);
  }
  first();
}

void RequestMemory::release(std::uint64_t bytes) noexcept {
  used_.fetch_sub(bytes, std::memory_order_seq_cst);
  if (waiting_.load(std::memory_order_seq_cst) > 0) wake_next();
}

}  // namespace kanal::server
