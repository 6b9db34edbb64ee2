#include "background_sync.hpp"

#include <algorithm>
#include <cerrno>

namespace kanal::broker {
namespace {

using namespace std::chrono_literals;
constexpr Duration kLongest = 1s;
constexpr Duration kGrid = 50ms;  // what is due close together shares a timer
constexpr std::uint64_t kMostBytes = 64 << 20;
constexpr std::size_t kSlice = 16;  // partitions a helper syncs before others have their turn
constexpr std::size_t kMany = 64;   // worth one call that writes everything back

/// Rounded up, where that is little against the wait.
Time due_at(Time now, Duration within) {
  const Time due = now + within;
  if (within < 4 * kGrid) return due;
  const auto over = due.time_since_epoch() % kGrid;
  return over == Duration::zero() ? due : due + (kGrid - over);
}

}  // namespace

void BackgroundSync::attach(IoThread& io) {
  const std::lock_guard lock(mutex_);
  if (io_ == nullptr) io_ = &io;
}

void BackgroundSync::appended(const std::shared_ptr<Partition>& partition, const AppendNews& news,
                              std::uint64_t bytes) {
  if (news.became_unsynced) wait(partition, std::min<Duration>(news.sync_within, kLongest));
  if (news.sync_due) {
    Lock lock(mutex_);
    if (!stopped_) due_.push_back({partition, false});
    start_if_needed(std::move(lock));
  }
  if (bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes < kMostBytes) return;
  bytes_.store(0, std::memory_order_relaxed);
  Lock lock(mutex_);
  take_due(Time::max());
  start_if_needed(std::move(lock));
}

void BackgroundSync::wait(const std::shared_ptr<Partition>& partition, Duration within) {
  Lock lock(mutex_);
  if (stopped_) return;
  if (within <= Duration::zero()) {
    due_.push_back({partition, true});
    return start_if_needed(std::move(lock));
  }
  waiting_.emplace(due_at(stage_.clock.now(), within), partition);
  arm(lock);
}

void BackgroundSync::tick() {
  Lock lock(mutex_);
  take_due(stage_.clock.now());
  start_if_needed(std::move(lock));
}

void BackgroundSync::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  waiting_.clear();
  due_.clear();
  written_back_ = 0;
}

void BackgroundSync::take_due(Time now) {
  const auto end = waiting_.upper_bound(now);
  for (auto at = waiting_.begin(); at != end; ++at) due_.push_back({std::move(at->second), true});
  waiting_.erase(waiting_.begin(), end);
}

void BackgroundSync::start_if_needed(Lock lock) {
  if (running_ || due_.empty()) return;
  running_ = true;
  lock.unlock();
  stage_.helpers.post([this] { run(); });
}

void BackgroundSync::arm(const Lock&) {
  if (io_ == nullptr || waiting_.empty() || armed_ <= waiting_.begin()->first) return;
  armed_ = waiting_.begin()->first;
  io_->post([this, due = armed_] {
    io_->add_timer(due, [this, due] {
      Lock held(mutex_);
      if (armed_ == due) armed_ = Time::max();
      take_due(std::max(due, stage_.clock.now()));
      start_if_needed(std::move(held));
      arm(Lock(mutex_));
    });
  });
}

void BackgroundSync::run() {
  std::vector<Due> slice;
  bool write_back = false;
  {
    const std::lock_guard lock(mutex_);
    write_back = written_back_ == 0 && due_.size() >= kMany;
    if (write_back) written_back_ = due_.size();
    const std::size_t count = std::min(due_.size(), written_back_ > 0 ? kMany : kSlice);
    slice.assign(std::move_iterator(due_.begin()),
                 std::move_iterator(due_.begin() + static_cast<std::ptrdiff_t>(count)));
    due_.erase(due_.begin(), due_.begin() + static_cast<std::ptrdiff_t>(count));
    written_back_ -= std::min(written_back_, count);
  }
  if (write_back) stage_.write_back();
  for (const auto& [partition, timed] : slice) {
    const auto done = partition->sync_background(timed);
    // Without file handles nothing is lost yet; every other error is final and has been told.
    if (done || (done.error().os_error != EMFILE && done.error().os_error != ENFILE)) continue;
    if (partition->sync_again()) wait(partition, kLongest);
  }
  Lock lock(mutex_);
  running_ = false;
  start_if_needed(std::move(lock));
}

}  // namespace kanal::broker
