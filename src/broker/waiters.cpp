#include "kanal/broker/waiters.hpp"

#include "kanal/broker/partition.hpp"

#include <utility>

namespace kanal::broker {

void WatchList::add(WatchNode& node) noexcept {
  node.previous = nullptr;
  node.next = first_;
  if (first_ != nullptr) first_->previous = &node;
  first_ = &node;
  stable_ += node.stable != kNoOffset ? 1 : 0;
}

void WatchList::remove(WatchNode& node) noexcept {
  if (node.previous != nullptr)
    node.previous->next = node.next;
  else if (first_ == &node)
    first_ = node.next;
  else
    return;  // never linked
  if (node.next != nullptr) node.next->previous = node.previous;
  node.previous = node.next = nullptr;
  stable_ -= node.stable != kNoOffset ? 1 : 0;
}

void WatchList::on_bytes(std::uint64_t bytes, Woken& woken) {
  for (WatchNode* node = first_; node != nullptr; node = node->next) {
    if (node->stable == kNoOffset && node->wait->take_bytes(static_cast<std::int64_t>(bytes)))
      woken.push_back(node->wait->shared_from_this());
  }
}

void WatchList::on_stable(const Stable& news, Woken& woken) {
  for (WatchNode* node = first_; node != nullptr; node = node->next) {
    if (node->stable == kNoOffset || news.last_stable <= node->stable) continue;
    const bool known = std::exchange(node->stable, news.last_stable) == news.base;
    if (known ? node->wait->take_bytes(static_cast<std::int64_t>(news.bytes)) : node->wait->take())
      woken.push_back(node->wait->shared_from_this());
  }
}

void WatchList::on_commit(Offset last_stable, Woken& woken) {
  for (WatchNode* node = first_; node != nullptr; node = node->next) {
    if (node->stable != kNoOffset && last_stable <= node->stable) continue;
    if (node->wait->take()) woken.push_back(node->wait->shared_from_this());
  }
}

void WatchList::wake_all(Woken& woken) {
  for (WatchNode* node = first_; node != nullptr; node = node->next) {
    if (node->wait->take()) woken.push_back(node->wait->shared_from_this());
  }
}

FetchWait::~FetchWait() {
  leave();
}

WatchNode& FetchWait::node(std::shared_ptr<Partition> partition) {
  nodes_.push_back({this, partition.get(), nullptr, nullptr});
  partitions_.push_back(std::move(partition));
  return nodes_.back();
}

bool FetchWait::take_bytes(std::int64_t bytes) noexcept {
  if (woken_.load(std::memory_order_relaxed)) return false;
  return missing_.fetch_sub(bytes, std::memory_order_relaxed) - bytes <= 0 && take();
}

void FetchWait::wake(std::vector<std::shared_ptr<FetchWait>>& woken) {
  for (auto& wait : woken) {
    IoThread& io = wait->event().io();
    io.post([held = std::move(wait)] { held->event().fire(); });
  }
  woken.clear();
}

void FetchWait::leave() {
  for (WatchNode& node : nodes_) node.partition->unwatch(node);
  nodes_.clear();
  partitions_.clear();
}

}  // namespace kanal::broker
