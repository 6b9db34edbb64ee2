// Long polls: who waits for how many bytes on which partitions (FetchWait), without polling. A
// FetchWait is made by a request, registers a node with each partition it watches (under that
// partition's lock), and is woken once, by the append that completes its bytes, by an error, or by
// a commit. Who reads committed is told of what the last stable offset passes, not of what stays
// above it. Waking is posted to the waiting I/O thread.
#pragma once

#include "kanal/base/ids.hpp"
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
  Offset stable = kNoOffset;  // of who reads committed: the last stable offset it has seen
};

class WatchList {
 public:
  void add(WatchNode& node) noexcept;
  void remove(WatchNode& node) noexcept;
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  using Woken = std::vector<std::shared_ptr<FetchWait>>;
  /// `bytes` more are readable: adds to `woken` each wait that has enough now. Not for those who
  /// read committed.
  void on_bytes(std::uint64_t bytes, Woken& woken);
  /// Whether anybody reads committed, and so has to be told of these two.
  [[nodiscard]] bool any_stable() const noexcept { return stable_ > 0; }
  struct Stable {
    Offset base;              // of what was appended last, all that there is of it …
    std::uint64_t bytes = 0;  // … has so many
    Offset last_stable;
  };
  /// What else came to be stable has bytes that are not known: who waits for it reads again.
  void on_stable(const Stable& news, Woken& woken);
  /// Everybody who waits for a commit or reads it.
  void on_commit(Offset last_stable, Woken& woken);
  void wake_all(Woken& woken);

 private:
  WatchNode* first_ = nullptr;
  std::size_t stable_ = 0;
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
