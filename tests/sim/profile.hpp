// What kind of run a seed makes: how many actors of which kind, how the network and the disk
// behave, the broker's configs. Plain data.
#pragma once

#include "dice.hpp"
#include "group_ledger.hpp"
#include "kanal/coordinator/broker_config.hpp"

#include <string>

namespace kanal::sim {

struct Profile {
  int topics = 2, eternal_topics = 1;
  int idempotent_producers = 1, plain_producers = 1, fetchers = 1;
  int groups = 0, members = 0;  // of each
  int static_groups = 0;        // the first ones
  GroupTimes times;
  Duration produce_pause{};  // at most, between two windows of a producer
  int lost_per_10000 = 0;    // requests whose connection breaks
  int synced_percent = 40;   // of the topics: acks after sync
  int keyed_percent = 0;     // of the topics: keys, and so compaction
  int cleaned_percent = 0;   // of the topics: small segments, retention and compaction
  bool scripted = false;     // the nemesis only stops and kills, at set times
  bool restarts = false, deaths = false, power_cuts = false, disk_faults = false, stalls = false;
  Duration disk_delay{};
  Duration between_faults{};
  coordinator::BrokerConfig kafka;
};

[[nodiscard]] Profile make_profile(Dice dice);
/// Of the short run in which each change of the disk fails in turn: all there is, nothing broken.
[[nodiscard]] Profile make_short_profile(Dice dice);
[[nodiscard]] std::string describe(const Profile& profile);

}  // namespace kanal::sim
