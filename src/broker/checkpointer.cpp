#include "checkpointer.hpp"

#include "kanal/base/logging.hpp"

namespace kanal::broker {
namespace {

using namespace std::chrono_literals;
constexpr auto kMaxAge = 60s;

}  // namespace

void Checkpointer::became_dirty(std::shared_ptr<Partition> partition, Time now) {
  const std::lock_guard lock(mutex_);
  dirty_.push_back({now, std::move(partition)});
}

void Checkpointer::due(std::shared_ptr<Partition> partition) {
  std::vector<std::shared_ptr<Partition>> batch;
  batch.push_back(std::move(partition));
  run(std::move(batch));
}

void Checkpointer::tick(Time now) {
  std::vector<std::shared_ptr<Partition>> batch;
  {
    const std::lock_guard lock(mutex_);
    for (; !dirty_.empty() && now - dirty_.front().since >= kMaxAge; dirty_.pop_front()) {
      if (auto partition = dirty_.front().partition.lock()) batch.push_back(std::move(partition));
    }
  }
  if (!batch.empty()) run(std::move(batch));
}

void Checkpointer::run(std::vector<std::shared_ptr<Partition>> batch) {
  helpers_.post([held = std::move(batch)] {
    for (const auto& partition : held) {
      auto done = partition->checkpoint();
      if (done || done.error().code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) continue;
      logger("broker").warn(
          "Checkpoint failed; a start after a crash will scan more. channel={} reason={}",
          partition->id().name, done.error().detail);
    }
  });
}

}  // namespace kanal::broker
