#include "group_ledger.hpp"

#include <fmt/format.h>
#include <algorithm>

namespace kanal::sim {
namespace {

using namespace std::chrono_literals;
using Death = RecordLedger::Death;

constexpr Duration kSlack = 2s;            // stalls that are too short to count
constexpr Duration kNewMemberJoin = 5min;  // a newcomer whose first join is parked
constexpr std::size_t kGenerationsKept = 6;

}  // namespace

void GroupLedger::fail(const std::string& group, const std::string& what) const {
  report_(fmt::format("group {}: {}", group, what));
}

void GroupLedger::hear(const Who& who, bool settled) {
  Member& member = groups_[who.group].members[who.member];
  member.heard = now_();
  if (settled) member.settled = member.heard;
}

void GroupLedger::joined(const std::string& group, const wire::JoinGroupResponse& answer,
                         bool is_static) {
  GroupModel& model = groups_[group];
  if (answer.error_code == ErrorCode::MEMBER_ID_REQUIRED) {
    return hear({group, -1, answer.member_id, false}, true);
  }
  if (answer.error_code != ErrorCode::NONE) return;
  const std::int32_t number = answer.generation_id;
  // A group whose write failed is read anew, as after a restart.
  if (model.unknown || troubled_()) open_vague(model, number);
  if (number < model.generation) {
    return fail(group,
                fmt::format("a join is answered generation {} after {}", number, model.generation));
  }
  if (number > model.generation) ++generations_;
  model.generation = number;
  Generation& generation = model.generations[number];
  Member& member = model.members[answer.member_id];
  member.left = member.misbehaved = false;
  hear({group, number, answer.member_id, false}, true);
  if (generation.vague) return;
  if (model.generations.size() > kGenerationsKept) {
    model.generations.erase(model.generations.begin());
  }
  const std::string protocol = answer.protocol_name.value_or("");
  if (generation.answered.empty()) {
    generation.leader = answer.leader;
    generation.protocol = protocol;
  }
  if (generation.protocol != protocol || (generation.leader != answer.leader && !is_static)) {
    fail(group, fmt::format("generation {} has two leaders or two protocols", number));
  }
  generation.answered.insert(answer.member_id);
  generation.has_static |= is_static;
  if (answer.leader == answer.member_id) {
    std::set<std::string> told;
    for (const auto& each : answer.members) told.insert(each.member_id);
    if (generation.leader_told && told != generation.members && !is_static) {
      fail(group, fmt::format("generation {} is told to have other members than before", number));
    }
    generation.members = std::move(told);
    generation.leader_told = true;
  } else if (!answer.members.empty()) {
    fail(group, fmt::format("generation {}: a follower is told the members", number));
  }
  check_members(group, number, generation);
}

void GroupLedger::open_vague(GroupModel& model, std::int32_t number) {
  model.unknown = false;
  model.generation = number;
  model.generations[number].vague = true;
  model.generations.erase(model.generations.upper_bound(number), model.generations.end());
}

void GroupLedger::check_members(const std::string& group, std::int32_t number,
                                const Generation& generation) {
  // A static member that comes back takes its place under another id.
  if (!generation.leader_told || generation.has_static) return;
  for (const std::string& member : generation.answered) {
    if (generation.members.contains(member)) continue;
    fail(group,
         fmt::format("{} is answered in generation {} and not one of its members", member, number));
  }
}

void GroupLedger::assigning(const Who& leader, const std::string& member,
                            const Buffer& assignment) {
  groups_[leader.group].generations[leader.generation].made[member] = assignment;
}

GroupLedger::Generation* GroupLedger::current(const Who& who, const char* what) {
  GroupModel& model = groups_[who.group];
  if (model.unknown) open_vague(model, who.generation);
  if (who.generation > model.generation) {
    const auto vague = model.generations.find(who.generation);
    if (vague != model.generations.end() && vague->second.vague) model.generation = who.generation;
  }
  if (who.generation != model.generation) {
    if (troubled_()) return nullptr;  // while a group is read anew, heartbeats are answered blindly
    fail(who.group, fmt::format("{} of generation {} is answered without an error, it is {}", what,
                                who.generation, model.generation));
    return nullptr;
  }
  if (model.members[who.member].left && !troubled_()) {
    fail(who.group,
         fmt::format("{} of {}, which has left, is answered without an error", what, who.member));
  }
  Generation& generation = model.generations[who.generation];
  if (!generation.vague && !generation.answered.contains(who.member) && !troubled_()) {
    fail(who.group, fmt::format("{} of {} is answered without an error in a generation that it "
                                "was not told of",
                                what, who.member));
  }
  return &generation;
}

void GroupLedger::synced(const Who& who, Bytes bytes) {
  Generation* generation = current(who, "SyncGroup");
  if (generation == nullptr) return;
  hear(who, true);
  generation->stored = true;
  if (generation->vague) return;
  const auto assignment = decode_assignment(bytes);
  if (!assignment) {
    return fail(who.group, fmt::format("{} gets an assignment that nobody made", who.member));
  }
  const auto made = generation->made.find(assignment->member);
  if (assignment->generation != who.generation || made == generation->made.end() ||
      !std::ranges::equal(made->second, bytes)) {
    fail(who.group, fmt::format("{} gets an assignment that generation {}'s leader did not make",
                                who.member, who.generation));
  } else if (assignment->member != who.member && !who.is_static) {
    fail(who.group, fmt::format("{} gets the assignment of {}", who.member, assignment->member));
  }
  own(who, *generation, *assignment);
}

void GroupLedger::own(const Who& who, Generation& generation, const Assignment& assignment) {
  for (const auto& partition : assignment.partitions) {
    // A static member that comes back under another id takes over what was made for the first.
    const auto [owner, first] = generation.owners.try_emplace(partition, assignment.member);
    if (first || owner->second == assignment.member) continue;
    fail(who.group,
         fmt::format("{}~{} belongs to {} and to {} in generation {}", partition.first,
                     partition.second, owner->second, assignment.member, who.generation));
  }
}

void GroupLedger::beat(const Who& who, ErrorCode answer) {
  if (answer == ErrorCode::REBALANCE_IN_PROGRESS) return hear(who, false);
  if (answer == ErrorCode::NONE && current(who, "a heartbeat") != nullptr) hear(who, true);
}

void GroupLedger::committed(const Who& who) {
  if (current(who, "a commit") != nullptr) hear(who, false);
}

void GroupLedger::left(const Who& who) {
  groups_[who.group].members[who.member].left = true;
}

void GroupLedger::misbehaves(const Who& who) {
  groups_[who.group].members[who.member].misbehaved = true;
}

void GroupLedger::lost(const Who& who) {
  const GroupModel& model = groups_[who.group];
  const auto found = model.members.find(who.member);
  if (found == model.members.end() || troubled_()) return;
  const Member& member = found->second;
  if (member.left || member.misbehaved) return;
  const Time now = now_();
  if (now + kSlack >= std::max(member.heard, started_) + model.times.session) return;
  if (now + kSlack >= std::max(member.settled, started_) + model.times.rebalance) return;
  fail(who.group,
       fmt::format("{} is not known any more; it was heard {} ms ago and told of no "
                   "rebalance {} ms ago",
                   who.member, (now - member.heard) / 1ms, (now - member.settled) / 1ms));
}

void GroupLedger::described(const wire::DescribeGroupsResponse::Group& group) {
  GroupModel& model = groups_[group.group_id];
  const Time now = now_();
  std::set<std::string> listed;
  for (const auto& each : group.members) {
    listed.insert(each.member_id);
    Member& member = model.members[each.member_id];
    if (member.left && !troubled_()) {
      fail(group.group_id, fmt::format("{} has left and is still a member", each.member_id));
    }
    if (member.seen == Time{}) member.seen = now;
    const Time contact =
        std::max({member.heard, started_, member.heard == Time{} ? member.seen : Time{}});
    const Duration most = model.times.rebalance +
                          std::max(model.times.session, model.times.rebalance) + 5 * kSlack +
                          (member.heard == Time{} ? kNewMemberJoin : Duration{});
    if (now - contact > most && !troubled_()) {
      fail(group.group_id, fmt::format("{} is silent for {} ms and still a member", each.member_id,
                                       (now - contact) / 1ms));
    }
  }
  if (group.group_state != "Stable" || model.unknown ||
      !model.generations.contains(model.generation))
    return;
  const Generation& generation = model.generations.at(model.generation);
  if (generation.stored && !generation.vague && generation.leader_told &&
      listed != generation.members) {
    // A static member may have another id by now.
    for (const auto& each : group.members) {
      if (each.group_instance_id) return;
    }
    fail(group.group_id,
         fmt::format("stable in generation {} it has other members than its leader was told: {}, "
                     "not {}",
                     model.generation, fmt::join(listed, " "), fmt::join(generation.members, " ")));
  }
}

void GroupLedger::started() {
  started_ = now_();
}

void GroupLedger::died(Death death) {
  const Time now = now_();
  for (auto& [id, model] : groups_) {
    if (death == Death::kPowerCut) {
      model.generations.clear();
      model.generation = -1;
      model.unknown = true;
      for (auto& [name, member] : model.members) {
        member.misbehaved = true;
        member.left = false;
      }
      continue;
    }
    // A generation is stored with its assignments; one that had none yet goes back to the one
    // before, unless it was stored in the moment of the death.
    model.unknown = true;
    const Generation* stored = nullptr;
    for (auto at = model.generations.rbegin(); at != model.generations.rend(); ++at) {
      auto& [number, generation] = *at;
      if (generation.vague) break;
      if (generation.stored) {
        model.generation = number;
        model.unknown = false;
        stored = &generation;
        break;
      }
      generation = {};
      generation.vague = true;
    }
    // Who has left is back until the group is stored without him; who is not in it is forgotten.
    for (auto& [name, member] : model.members) {
      member.left = false;
      const bool late = now + kSlack >= std::max(member.heard, started_) + model.times.session ||
                        now + kSlack >= std::max(member.settled, started_) + model.times.rebalance;
      member.misbehaved |= late || stored == nullptr || !stored->answered.contains(name);
    }
  }
}

OffsetLedger::Moment OffsetLedger::committing(const Key& key, const Value& value) {
  const Moment begun = now();
  writes_[key].push_back({begun, 0, false, false, value});
  return begun;
}

void OffsetLedger::committed(const Key& key, Moment begun) {
  auto& writes = writes_[key];
  const auto write = std::ranges::find(writes, begun, &Write::begun);
  if (write == writes.end()) return;
  write->ended = now();
  write->certain = true;
}

void OffsetLedger::refused(const Key& key, Moment begun) {
  std::erase_if(writes_[key], [begun](const Write& write) { return write.begun == begun; });
}

void OffsetLedger::fetched(const Key& key, Moment begun, const Value& value) {
  const auto& writes = writes_[key];
  Moment overwritten = 0;  // what ended before this is not there any more
  for (const Write& write : writes) {
    if (write.certain && write.ended < begun) overwritten = std::max(overwritten, write.begun);
  }
  if (overwritten == 0 && value.offset == -1) return;
  std::string possible;
  for (const Write& write : writes) {
    if (write.ended != 0 && write.ended < overwritten) continue;
    if (value.fits(write.value)) return;
    possible += fmt::format(" {}", write.value.offset);
  }
  report_(fmt::format("group {}: the offset of {}~{} is fetched as {} '{}', committed was one of{}",
                      key.group, to_string(key.log.first), key.log.second, value.offset,
                      value.metadata, possible));
}

void OffsetLedger::synced() {
  const Moment present = now();
  for (auto& [key, writes] : writes_) {
    Moment overwritten = 0;
    for (const Write& write : writes) {
      if (write.certain && write.ended < present) overwritten = std::max(overwritten, write.begun);
    }
    std::erase_if(
        writes, [&](const Write& write) { return write.ended != 0 && write.ended < overwritten; });
    for (Write& write : writes) write.durable |= write.certain;
  }
}

void OffsetLedger::died(Death death) {
  const Moment moment = now();
  for (auto& [key, writes] : writes_) {
    for (Write& write : writes) {
      if (write.ended == 0) write.ended = moment;  // it happened by now, or never will
      if (death != Death::kPowerCut || write.durable) continue;
      write.ended = moment;
      write.certain = false;  // any of them may be what is left
    }
  }
}

}  // namespace kanal::sim
