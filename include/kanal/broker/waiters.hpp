// Long polls: who waits for how many bytes on which partitions (FetchWait), without polling. A
// FetchWait is made by a request, registers a node with each partition it watches (under that
// partition's lock), and is woken once, by the append that completes its bytes, by an error, or by
// a commit. Waking is posted to the waiting I/O thread.
#pragma once

#include "kanal/broker/io_thread.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace kanal::broker {

class FetchWait;
class Partition;

struct WatchNode {  // in its partition's list, under that partition's lock
  FetchWait* wait = nullptr;
  Partition* partition = nullptr;
  WatchNode* previous = nullptr;
  WatchNode* next = nullptr;
};

class WatchList {
 public:
  void add(WatchNode& node) noexcept;
  void remove(WatchNode& node) noexcept;
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  /// `bytes` more are readable: adds to `woken` each wait that has enough now.
  void on_bytes(std::uint64_t bytes, std::vector<std::shared_ptr<FetchWait>>& woken);
  void wake_all(std::vector<std::shared_ptr<FetchWait>>& woken);

 private:
  WatchNode* first_ = nullptr;
};

class FetchWait : public std::enable_shared_from_this<FetchWait> {
 public:
  FetchWait(IoThread& io, std::int64_t bytes_wanted) : event_(io), missing_(bytes_wanted) {}
  ~FetchWait();

  /// A node for one more partition; stays at its address. The partition links it.
  WatchNode& node(std::shared_ptr<Partition> partition);
  /// Bytes that the registering read found already count too.
  void found(std::int64_t bytes) noexcept { missing_.fetch_sub(bytes, std::memory_order_relaxed); }
  /// Once, from any thread: true for the caller that has to wake it.
  bool take_bytes(std::int64_t bytes) noexcept;
  bool take() noexcept { return !woken_.exchange(true, std::memory_order_acq_rel); }
  /// Posts the event to the waiting thread. Any thread, no lock held.
  static void wake(std::vector<std::shared_ptr<FetchWait>>& woken);

  [[nodiscard]] Event& event() noexcept { return event_; }
  /// Unlinks every node; after it no partition knows this wait.
  void leave();

 private:
  Event event_;
  std::atomic<std::int64_t> missing_;
  std::atomic<bool> woken_{false};
  std::deque<WatchNode> nodes_;
  std::vector<std::shared_ptr<Partition>> partitions_;  // keeps them alive while linked
};

}  // namespace kanal::broker
