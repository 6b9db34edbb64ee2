// Hands out producer ids from a block that was stored and synced before its first id left (KIP-98):
// never one twice, power cuts included. take() from any thread; refill() blocks, on a helper
// thread.
#pragma once

#include "driver.hpp"
#include "kanal/coordinator/producer_ids.hpp"
#include "kanal/reserved/store.hpp"

#include <mutex>
#include <optional>
#include <utility>

namespace kanal::broker {

class ProducerIdSource {
 public:
  ProducerIdSource(reserved::Session& session, const Clock& clock)
      : session_(session), clock_(clock) {}

  Result<void> start() {
    const std::lock_guard lock(mutex_);
    return rebuild();
  }
  [[nodiscard]] std::optional<ProducerId> take() {
    const std::lock_guard lock(mutex_);
    return block_.take();
  }
  Result<void> refill() {
    const std::lock_guard lock(mutex_);
    if (!block_.empty()) return {};  // somebody else was first
    if (stale_) {
      if (auto built = rebuild(); !built) return built;
    }
    auto effects = machine_.step(clock_.now(), coordinator::AllocateProducerIds{});
    auto stored = store_and_apply(session_, reserved::Kind::kPids, machine_, effects.records,
                                  reserved::Durability::kSynced);
    stale_ = !stored;
    if (!stored) return stored;
    if (!effects.replies.front()) return std::unexpected(effects.replies.front().error());
    block_ = *effects.replies.front();
    return {};
  }

 private:
  Result<void> rebuild() {
    coordinator::ProducerIds machine;
    if (auto replayed = replay_into(session_, reserved::Kind::kPids, machine); !replayed)
      return replayed;
    machine_ = std::move(machine);
    stale_ = false;
    return {};
  }

  reserved::Session& session_;
  const Clock& clock_;
  std::mutex mutex_;
  coordinator::ProducerIds machine_;
  coordinator::ProducerIdBlock block_;
  bool stale_ = false;  // a write failed: what is stored is not known
};

}  // namespace kanal::broker
