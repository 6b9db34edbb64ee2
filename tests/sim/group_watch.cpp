// Who looks at groups from outside, and who uses one without membership.
#include "actors.hpp"
#include "client.hpp"
#include "offset_client.hpp"

namespace kanal::sim {
namespace {

using namespace std::chrono_literals;

class Watcher {
 public:
  explicit Watcher(World& world)
      : world_(world), dice_(world.fork_dice()), link_{world, "watcher", nullptr} {
    for (int i = 0; i < world.profile().groups; ++i) ids_.push_back(World::group_id(i));
  }

  broker::Task<void> run() {
    while (world_.running()) {
      const Duration pause = dice_.milliseconds(500, 10'000);
      co_await world_.sleep(pause);
      if (!world_.running() || !link_.up()) continue;
      wire::DescribeGroupsRequest request;
      for (int i = 0; i < world_.profile().groups; ++i)
        request.groups.push_back(ids_[static_cast<std::size_t>(i)]);
      const Ask how{6};
      const std::function<void(wire::DescribeGroupsResponse&)> seen =
          [this](wire::DescribeGroupsResponse& response) {
            for (const auto& group : response.groups) {
              if (group.error_code == ErrorCode::NONE) world_.groups().described(group);
            }
          };
      co_await ask<wire::DescribeGroupsResponse>(link_, request, how, seen);
    }
  }

 private:
  World& world_;
  Dice dice_;
  Link link_;
  std::vector<std::string> ids_;
};

class LoneCommitter {
 public:
  LoneCommitter(World& world, const std::string& group)
      : world_(world),
        dice_(world.fork_dice()),
        link_{world, "alone", nullptr},
        offsets_(world, dice_.fork(), link_, group),
        group_(group) {}

  broker::Task<void> run() {
    while (world_.running()) {
      const Duration pause = dice_.milliseconds(100, 3'000);
      co_await world_.sleep(pause);
      if (!world_.running() || !link_.up()) continue;
      const auto topic = world_.topics().pick(dice_);
      if (!topic) continue;
      const std::int32_t index = dice_.between(0, topic->facts.partitions - 1);
      std::vector<std::pair<std::string, std::int32_t>> one;
      one.emplace_back(topic->facts.name, index);
      offsets_.own(one);
      co_await offsets_.fetch_own();
      if (!link_.up()) continue;
      const Who nobody{group_, -1, "", false};
      const ErrorCode code = co_await offsets_.commit(nobody, std::nullopt);
      const bool down = code == ErrorCode::COORDINATOR_NOT_AVAILABLE;
      if (code != ErrorCode::NONE && !down && !world_.troubled()) {
        world_.violate(fmt::format("a lone commit is answered {}", name(code)));
      }
    }
  }

 private:
  World& world_;
  Dice dice_;
  Link link_;
  OffsetClient offsets_;
  const std::string group_;
};

}  // namespace

broker::Task<void> watch_groups(World& world) {
  const auto actor = world.keep<Watcher>();
  co_await actor->run();
}

broker::Task<void> commit_alone(World& world, std::string group) {
  const auto actor = world.keep<LoneCommitter>(group);
  co_await actor->run();
}

}  // namespace kanal::sim
