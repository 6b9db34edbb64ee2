// Who looks for records by time (ListOffsets), and finds none that is later than one that is there.
#include "actors.hpp"
#include "client.hpp"
#include "kanal/wire/messages/list_offsets.hpp"

namespace kanal::sim {
namespace {

using namespace std::chrono_literals;

constexpr Timestamp kEarliest{-2};

class Seeker {
 public:
  explicit Seeker(World& world)
      : world_(world), dice_(world.fork_dice()), link_{world, "seeker", nullptr} {}

  broker::Task<void> run() {
    while (world_.running()) {
      co_await world_.sleep(dice_.milliseconds(100, 5'000));
      if (world_.running() && link_.up()) co_await seek();
    }
  }

 private:
  broker::Task<void> seek() {
    const auto topic = world_.topics().pick(dice_);
    if (!topic || !topic->eternal || topic->facts.keyed) co_return;  // compaction removes any
    const std::int32_t index = dice_.between(0, topic->facts.partitions - 1);
    const LogKey log{topic->facts.id, index};
    const std::int64_t start = world_.records().safe_start(log);
    const std::int64_t end = world_.records().must_show(log);
    if (end <= start) co_return;
    const std::int64_t offset =
        start + static_cast<std::int64_t>(dice_.below(static_cast<std::uint64_t>(end - start)));
    const auto made = world_.records().made(log, offset);
    if (!made) co_return;
    const std::uint64_t power_cuts = world_.power_cuts();
    const auto found = co_await ask_for(topic->facts.name, index, *made);
    if (!found || (*found >= 0 && *found <= offset) || !link_.up()) co_return;
    // It may have been removed, or be lost by a power cut: is it there now?
    const auto earliest = co_await ask_for(topic->facts.name, index, kEarliest);
    if (!earliest || *earliest > offset) co_return;
    if (world_.power_cuts() != power_cuts || world_.troubled()) co_return;
    world_.violate(fmt::format("{}~{}: a record of time {} lies at {}, found was {}",
                               topic->facts.name, index, made->value(), offset, *found));
  }

  broker::Task<std::optional<std::int64_t>> ask_for(std::string topic, std::int32_t index,
                                                    Timestamp time) {
    wire::ListOffsetsRequest request;
    auto& named = request.topics.emplace_back();
    named.name = topic;
    auto& partition = named.partitions.emplace_back();
    partition.partition_index = PartitionIndex(index);
    partition.timestamp = time;
    const Ask how{7};
    auto offset = std::make_shared<std::optional<std::int64_t>>();
    const std::function<void(wire::ListOffsetsResponse&)> seen =
        [this, offset, topic](wire::ListOffsetsResponse& response) {
          const auto& answer = response.topics.at(0).partitions.at(0);
          if (answer.error_code == ErrorCode::NONE)
            *offset = answer.offset.value();
          else if (answer.error_code != ErrorCode::KAFKA_STORAGE_ERROR || !world_.troubled())
            world_.violate(
                fmt::format("ListOffsets of {} is answered {}", topic, name(answer.error_code)));
        };
    const auto call = co_await ask<wire::ListOffsetsResponse>(link_, request, how, seen);
    co_return call == nullptr ? std::nullopt : *offset;
  }

  World& world_;
  Dice dice_;
  Link link_;
};

}  // namespace

broker::Task<void> seek(World& world) {
  const auto actor = world.keep<Seeker>();
  co_await actor->run();
}

}  // namespace kanal::sim
