// Producer ids (KIP-360's "never twice"): _KAFKA_PIDS_ stores the first id that is still free; a
// block of 1,000 is taken by storing the next free id, synced, before the first of the block is
// handed out. What is left of a block at a stop is lost on purpose. ProducerIds and
// ProducerIdBlock: under the broker's lock for producer ids. Ids count from 0.
#pragma once

#include "kanal/base/ids.hpp"
#include "kanal/coordinator/machine.hpp"

#include <optional>

namespace kanal::coordinator {

/// Ids that may be handed out; a value of the running process, never stored.
class ProducerIdBlock {
 public:
  ProducerIdBlock() = default;
  ProducerIdBlock(ProducerId first, ProducerId end) : next_(first), end_(end) {}
  /// Nothing if the block is used up: allocate another one.
  [[nodiscard]] std::optional<ProducerId> take() {
    if (next_ == end_) return std::nullopt;
    const ProducerId id = next_;
    ++next_;
    return id;
  }
  [[nodiscard]] bool empty() const noexcept { return next_ == end_; }
  [[nodiscard]] ProducerId first() const noexcept { return next_; }
  [[nodiscard]] ProducerId end() const noexcept { return end_; }

 private:
  ProducerId next_{0}, end_{0};
};

struct AllocateProducerIds {};

class ProducerIds {
 public:
  using Command = AllocateProducerIds;
  using Effects = coordinator::Effects<Result<ProducerIdBlock>, NoAction>;
  static constexpr bool kSynced = true;
  static constexpr std::int64_t kBlockSize = 1'000;

  [[nodiscard]] Effects step(Time now, const AllocateProducerIds& command) const;
  Result<void> apply(const Record& record);
  [[nodiscard]] std::vector<Buffer> snapshot(std::string_view key) const;
  [[nodiscard]] std::uint64_t live_records() const noexcept { return next_.value() > 0 ? 1 : 0; }
  [[nodiscard]] ProducerId next_free() const noexcept { return next_; }

 private:
  ProducerId next_{0};
};
static_assert(Machine<ProducerIds>);

}  // namespace kanal::coordinator
