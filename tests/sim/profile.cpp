#include "profile.hpp"

#include <fmt/format.h>

#include "kanal/base/check.hpp"

namespace kanal::sim {

Profile make_profile(Dice dice) {
  Profile profile;
  profile.topics = dice.between(1, 4);
  profile.eternal_topics = dice.between(1, 2);
  profile.idempotent_producers = dice.between(1, 4);
  profile.plain_producers = dice.between(0, 2);
  profile.fetchers = dice.between(1, 3);
  profile.groups = dice.between(1, 3);
  profile.members = dice.between(1, 5);
  if (dice.percent(30)) profile.static_groups = dice.between(1, profile.groups);
  profile.times.session = dice.milliseconds(6'000, 12'000);
  profile.times.rebalance = dice.milliseconds(5'000, 20'000);
  // Half of the runs are about groups: producers are rare guests there.
  profile.produce_pause =
      dice.percent(50) ? dice.milliseconds(0, 300) : dice.milliseconds(5'000, 20'000);
  if (dice.percent(70)) profile.lost_per_10000 = dice.between(1, 100);
  const int level = dice.between(0, 9);
  profile.restarts = level >= 1;
  profile.deaths = level >= 2;
  profile.power_cuts = level >= 4;
  profile.disk_faults = level >= 7;
  profile.stalls = dice.percent(40);
  profile.disk_delay = dice.milliseconds(0, 30);
  profile.between_faults = dice.milliseconds(2'000, 30'000);
  coordinator::ConfigLayers layers;
  const char* delays[] = {"0", "500", "3000"};
  layers.fixed["group.initial.rebalance.delay.ms"] = dice.pick(delays);
  layers.fixed["offsets.retention.check.interval.ms"] = "31536000000";
  auto made = coordinator::make_broker_config(std::move(layers), {});
  CHECK(made.has_value(), "the simulation's configs are sound");
  profile.kafka = std::move(*made);
  return profile;
}

std::string describe(const Profile& profile) {
  return fmt::format(
      "topics={}+{} producers={}+{} fetchers={} groups={}x{} lost={}/10000 restarts={} deaths={} "
      "power_cuts={} disk_faults={} stalls={}",
      profile.topics, profile.eternal_topics, profile.idempotent_producers, profile.plain_producers,
      profile.fetchers, profile.groups, profile.members, profile.lost_per_10000, profile.restarts,
      profile.deaths, profile.power_cuts, profile.disk_faults, profile.stalls);
}

}  // namespace kanal::sim
