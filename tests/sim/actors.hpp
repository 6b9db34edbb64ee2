// The clients and the nemesis of a run: coroutines on the clients' I/O thread that end soon after
// World::running() turns false. One thread.
#pragma once

#include "world.hpp"

#include <string>

namespace kanal::sim {

struct GroupPlan {
  std::string id;
  GroupTimes times;
  bool static_members = false;
};

/// Makes, grows and deletes one topic, again and again; trims one that is never deleted.
broker::Task<void> change_topic(World& world, std::string name);
/// Appends records; retries what was not acknowledged.
broker::Task<void> produce(World& world, std::string name, bool idempotent);
/// Reads along, long polls, now and then from elsewhere.
broker::Task<void> fetch(World& world, std::string name);
/// Looks for records by their time.
broker::Task<void> seek(World& world);
/// Restarts, kills, cuts the power, breaks the disk.
broker::Task<void> break_things(World& world);
/// Stops and kills it by turns.
broker::Task<void> follow_script(World& world);
/// A member of a group: joins, syncs, heartbeats, commits, and goes in one way or another.
broker::Task<void> be_member(World& world, std::string name, GroupPlan plan);
/// Describes groups and compares; commits to a group that has no members.
broker::Task<void> watch_groups(World& world);
broker::Task<void> commit_alone(World& world, std::string group);
/// Reads every record of every topic that has to be there. Ends by itself.
broker::Task<void> audit(World& world);

}  // namespace kanal::sim
