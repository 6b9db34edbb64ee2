// When the machine of a slot has to be told that time has passed: one timer a slot at most, on the
// slot's home thread, armed only when a deadline comes earlier than the one it is set for, so that
// what moves a deadline on costs nothing. A Slot has `id`, `timer` and, under `live`, `due`: the
// deadline that the timer is set for, or that a barrier runs for. Before a deadline counts all
// threads have handled what was there (stalls.hpp). Any thread but where said otherwise.
#pragma once

#include "kanal/base/clock.hpp"
#include "kanal/broker/io_thread.hpp"
#include "slot_table.hpp"
#include "stalls.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace kanal::broker {

template <class Slot>
class Deadlines {
 public:
  using SlotPtr = std::shared_ptr<Slot>;
  using Live = typename Slot::Live;
  struct Stage {
    const Clock& clock;
    Stalls& stalls;
    /// Under the lock: the deadline, exactly; none where the slot cannot be used.
    std::function<std::optional<Time>(Live&)> next;
    /// On the home thread: it has come.
    std::function<void(const SlotPtr&)> pass;
  };
  explicit Deadlines(Stage stage) : stage_(std::move(stage)) {}

  void attach(IoThread& io) { threads_.push_back(&io); }  // before the first request
  /// Null before there are threads.
  [[nodiscard]] IoThread* home(const Slot& slot) const noexcept {
    if (threads_.empty()) return nullptr;
    return threads_[SlotTable<Slot>::home(slot.id, threads_.size())];
  }
  /// `due` comes earlier than what the timer is set for.
  void arm(const SlotPtr& slot) {
    if (IoThread* io = home(*slot)) {
      io->post([this, slot] { set_timer(slot); });
      return;
    }
    const std::lock_guard lock(mutex_);
    loaded_.push_back(slot);
  }
  /// Those from before there were threads; every second.
  void arm_loaded() {
    std::vector<std::weak_ptr<Slot>> loaded;
    {
      const std::lock_guard lock(mutex_);
      loaded.swap(loaded_);
    }
    for (const auto& slot : loaded) {
      if (const SlotPtr held = slot.lock()) arm(held);
    }
  }

 private:
  void set_timer(const SlotPtr& slot) {
    // Asked now: several may have armed it, and their posts may have overtaken each other.
    const std::optional<Time> due = slot->live.with([](Live& live) { return live.due; });
    IoThread& io = *home(*slot);
    if (slot->timer) io.cancel_timer(*std::exchange(slot->timer, std::nullopt));
    if (!due) return;
    const Time by_clock = stage_.stalls.by_clock(*due);
    const Time not_before = std::max(by_clock, stage_.clock.now());
    auto on_due = [this, weak = std::weak_ptr(slot), not_before] {
      if (const SlotPtr held = weak.lock()) on_timer(held, not_before);
    };
    slot->timer = io.add_timer(by_clock, std::move(on_due));
  }

  void on_timer(const SlotPtr& slot, Time due_by_clock) {
    slot->timer.reset();
    stage_.stalls.ran(due_by_clock);
    // What it was set for has mostly moved on: a barrier is for what is left.
    const bool due = slot->live.with([&](Live& live) {
      live.due = stage_.next(live);
      return live.due && *live.due <= stage_.stalls.now();
    });
    if (!due) return set_timer(slot);
    // Until the barrier is through `due` stays set, so that nobody arms it for the same again.
    stage_.stalls.after_barrier(
        [this, slot] { home(*slot)->post([this, slot] { stage_.pass(slot); }); });
  }

  const Stage stage_;
  std::vector<IoThread*> threads_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<Slot>> loaded_;
};

}  // namespace kanal::broker
