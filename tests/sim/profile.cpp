#include "profile.hpp"

#include <fmt/format.h>

#include "kanal/base/check.hpp"

namespace kanal::sim {

using namespace std::chrono_literals;

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
  layers.fixed["log.index.interval.bytes"] = "200";  // segments are small
  if (dice.percent(75)) {
    profile.cleaned_percent = dice.between(30, 100);
    profile.keyed_percent = dice.between(0, 100);
  }
  layers.fixed["log.retention.check.interval.ms"] = std::to_string(dice.between(1'000, 20'000));
  layers.fixed["log.cleaner.backoff.ms"] = std::to_string(dice.between(0, 15'000));
  layers.fixed["log.cleaner.threads"] = std::to_string(dice.between(1, 2));
  if (dice.percent(20)) layers.fixed["log.cleaner.dedupe.buffer.size"] = "600";  // several passes
  if (dice.percent(25)) {  // many logs share one sync: by the journal
    profile.synced_percent = 100;
    profile.topics = 4;
    profile.idempotent_producers = 6;
    profile.produce_pause = dice.milliseconds(0, 100);
    profile.disk_delay = 30ms;
  }
  layers.fixed["offsets.retention.check.interval.ms"] = "31536000000";
  auto made = coordinator::make_broker_config(std::move(layers), {});
  CHECK(made.has_value(), "the simulation's configs are sound");
  profile.kafka = std::move(*made);
  return profile;
}

Profile make_short_profile(Dice dice) {
  Profile profile;
  profile.topics = 2;
  profile.plain_producers = 1;
  profile.idempotent_producers = 2;
  profile.fetchers = 1;
  profile.groups = profile.members = 1;
  profile.times.session = 6s;
  profile.times.rebalance = 5s;
  profile.produce_pause = 400ms;
  profile.cleaned_percent = 100;
  profile.keyed_percent = 70;
  profile.scripted = profile.restarts = profile.deaths = profile.power_cuts = true;
  profile.disk_delay = dice.milliseconds(0, 30);
  coordinator::ConfigLayers layers;
  layers.fixed["log.retention.check.interval.ms"] = "1000";
  layers.fixed["log.cleaner.backoff.ms"] = "0";
  layers.fixed["group.initial.rebalance.delay.ms"] = "0";
  layers.fixed["offsets.retention.check.interval.ms"] = "31536000000";
  auto made = coordinator::make_broker_config(std::move(layers), {});
  CHECK(made.has_value(), "the short run's configs are sound");
  profile.kafka = std::move(*made);
  return profile;
}

std::string describe(const Profile& profile) {
  return fmt::format(
      "topics={}+{} producers={}+{} fetchers={} groups={}x{} lost={}/10000 restarts={} deaths={} "
      "power_cuts={} disk_faults={} stalls={} cleaned={}% keyed={}%",
      profile.topics, profile.eternal_topics, profile.idempotent_producers, profile.plain_producers,
      profile.fetchers, profile.groups, profile.members, profile.lost_per_10000, profile.restarts,
      profile.deaths, profile.power_cuts, profile.disk_faults, profile.stalls,
      profile.cleaned_percent, profile.keyed_percent);
}

}  // namespace kanal::sim
