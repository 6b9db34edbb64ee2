// Members of consumer groups, as Kafka's clients behave, and as they should not: they stall, vanish
// without a word, leave, come back under their instance id, commit when they are long gone.
#include <algorithm>

#include "actors.hpp"
#include "client.hpp"
#include "offset_client.hpp"

#include "kanal/wire/messages/heartbeat.hpp"
#include "kanal/wire/messages/join_group.hpp"
#include "kanal/wire/messages/leave_group.hpp"
#include "kanal/wire/messages/sync_group.hpp"

namespace kanal::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kProtocolType = "consumer";

/// A consumer's subscription, in Kafka's form.
Buffer subscription(const Directory& topics) {
  wire::Writer out;
  out.int16(0);
  out.int32(static_cast<std::int32_t>(topics.entries().size()));
  for (const auto& [name, entry] : topics.entries()) out.text(false, name);
  out.int32(-1);
  return {out.bytes().begin(), out.bytes().end()};
}

class GroupMember {
 public:
  GroupMember(World& world, const std::string& name, const GroupPlan& plan)
      : world_(world),
        dice_(world.fork_dice()),
        link_{world, name, nullptr},
        plan_(plan),
        offsets_(world, dice_.fork(), link_, plan.id) {}

  broker::Task<void> run() {
    const Duration first = dice_.milliseconds(0, 20'000);
    co_await world_.sleep(first);
    while (world_.running()) {
      begin_life();
      while (world_.running() && phase_ != Phase::kGone) {
        if (!link_.up()) {
          co_await world_.sleep(200ms);
          continue;
        }
        co_await live();
      }
      const Duration pause = dice_.milliseconds(0, 30'000);
      co_await world_.sleep(pause);
    }
  }

 private:
  enum class Phase { kJoin, kSync, kMember, kGone };

  [[nodiscard]] Who who() const { return {plan_.id, generation_, member_, instance_.has_value()}; }
  [[nodiscard]] std::optional<std::string_view> instance() const {
    if (!instance_) return std::nullopt;
    return std::string_view(*instance_);
  }
  [[nodiscard]] Ask how(std::int16_t least, std::int16_t most) {
    const int low = instance_ ? std::max<int>(least, least_static(most)) : least;
    return {static_cast<std::int16_t>(dice_.between(low, most)),
            3 * plan_.times.rebalance + std::chrono::minutes(1)};
  }
  /// The first versions with an instance id, by the last version there is.
  static int least_static(std::int16_t most) { return most == 9 ? 5 : 3; }

  void begin_life() {
    phase_ = Phase::kJoin;
    member_.clear();
    generation_ = -1;
    instance_.reset();
    if (plan_.static_members) instance_ = link_.client_id;
    link_.connection.reset();
  }

  broker::Task<void> live() {
    switch (phase_) {
      case Phase::kJoin:
        co_await join();
        break;
      case Phase::kSync:
        co_await sync();
        break;
      case Phase::kMember:
        co_await be_member();
        break;
      case Phase::kGone:
        break;
    }
  }

  broker::Task<void> join() {
    const Ask asking = how(0, 9);
    const Buffer metadata = subscription(world_.topics());
    wire::JoinGroupRequest request;
    request.group_id = plan_.id;
    request.session_timeout =
        std::chrono::duration_cast<std::chrono::milliseconds>(plan_.times.session);
    request.rebalance_timeout =
        std::chrono::duration_cast<std::chrono::milliseconds>(plan_.times.rebalance);
    request.member_id = member_;
    request.group_instance_id = instance();
    request.protocol_type = kProtocolType;
    const MutableBytes bytes(const_cast<std::byte*>(metadata.data()), metadata.size());
    request.protocols.push_back({"range", bytes});
    request.protocols.push_back({"roundrobin", bytes});
    const std::function<void(wire::JoinGroupResponse&)> seen =
        [this, is_static = instance_.has_value()](wire::JoinGroupResponse& response) {
          world_.trace("{} join: {} generation={} member={} leader={} members={}", plan_.id,
                       name(response.error_code), response.generation_id, response.member_id,
                       response.leader, response.members.size());
          world_.groups().joined(plan_.id, response, is_static);
        };
    const Who before = who();
    const auto call = co_await ask<wire::JoinGroupResponse>(link_, request, asking, seen);
    if (call == nullptr) {
      world_.groups().misbehaves(before);
      co_return;
    }
    const wire::JoinGroupResponse& answer = call->response;
    switch (answer.error_code) {
      case ErrorCode::NONE:
        member_ = answer.member_id;
        generation_ = answer.generation_id;
        leads_ = answer.leader == answer.member_id;
        skips_ = answer.skip_assignment;
        protocol_ = answer.protocol_name.value_or("");
        members_.clear();
        for (const auto& each : answer.members) members_.push_back(each.member_id);
        phase_ = Phase::kSync;
        break;
      case ErrorCode::MEMBER_ID_REQUIRED:
        member_ = answer.member_id;
        break;
      default:
        take_error(before, answer.error_code, "JoinGroup");
        co_await world_.sleep(100ms);
    }
  }

  std::vector<std::pair<std::string, Buffer>> assign() {
    std::map<std::string, Assignment> made;
    std::ranges::sort(members_);
    for (const std::string& each : members_) made[each] = {generation_, member_, each, {}};
    std::size_t next = 0;
    for (const auto& [name, entry] : world_.topics().entries()) {
      if (entry.state != Directory::State::kPresent) continue;
      for (std::int32_t index = 0; index < entry.facts.partitions; ++index) {
        made[members_[next++ % members_.size()]].partitions.emplace_back(name, index);
      }
    }
    std::vector<std::pair<std::string, Buffer>> all;
    for (const auto& [each, assignment] : made) {
      all.emplace_back(each, encode_assignment(assignment));
      world_.groups().assigning(who(), each, all.back().second);
    }
    return all;
  }

  broker::Task<void> sync() {
    const Ask asking = how(0, 5);
    wire::SyncGroupRequest request;
    request.group_id = plan_.id;
    request.generation_id = generation_;
    request.member_id = member_;
    request.group_instance_id = instance();
    request.protocol_type = kProtocolType;
    request.protocol_name = protocol_;
    std::vector<std::pair<std::string, Buffer>> given;
    if (leads_ && !skips_) given = assign();
    for (auto& [member, bytes] : given) request.assignments.push_back({member, bytes});
    const Who me = who();
    const std::function<void(wire::SyncGroupResponse&)> seen =
        [this, me](wire::SyncGroupResponse& response) {
          world_.trace("{} sync: {} generation={} member={}", plan_.id, name(response.error_code),
                       me.generation, me.member);
          if (response.error_code == ErrorCode::NONE)
            world_.groups().synced(me, response.assignment);
        };
    const auto call = co_await ask<wire::SyncGroupResponse>(link_, request, asking, seen);
    if (call == nullptr) co_return;
    if (call->response.error_code != ErrorCode::NONE) {
      take_error(me, call->response.error_code, "SyncGroup");
      co_await world_.sleep(50ms);
      co_return;
    }
    const auto assignment = decode_assignment(call->response.assignment);
    offsets_.own(assignment ? assignment->partitions
                            : std::vector<std::pair<std::string, std::int32_t>>());
    phase_ = Phase::kMember;
    co_await offsets_.fetch_own();
  }

  broker::Task<void> be_member() {
    const auto interval = plan_.times.session / 3;
    co_await world_.sleep(Duration(static_cast<std::int64_t>(
        static_cast<std::uint64_t>(interval.count()) / 4 +
        dice_.below(static_cast<std::uint64_t>(interval.count()) * 3 / 4))));
    if (!world_.running()) co_return;
    const int mood = dice_.between(0, 199);
    if (mood < 3) {
      world_.trace("{} vanishes", member_);
      phase_ = Phase::kGone;  // without a word
    } else if (mood < 6) {
      if (!instance_) co_await leave();
      phase_ = Phase::kGone;
    } else if (mood < 9) {
      co_await stall();
    } else if (mood < 60) {
      co_await commit();
    } else if (mood < 75) {
      co_await offsets_.fetch_own();
    } else if (mood < 80) {
      if (link_.up()) co_await offsets_.fetch_all();
    }
    if (phase_ == Phase::kMember && link_.up()) co_await beat();
  }

  broker::Task<void> stall() {
    const int most = static_cast<int>(2 * plan_.times.session / 1ms);
    const Duration time = dice_.milliseconds(100, most);
    world_.trace("{} stalls for {} ms", member_, time / 1ms);
    co_await world_.sleep(time);
    if (dice_.percent(50) && link_.up()) co_await commit();
  }

  broker::Task<void> commit() {
    if (!link_.up()) co_return;
    const Who me = who();
    const ErrorCode code = co_await offsets_.commit(me, instance());
    if (code != ErrorCode::NONE) take_error(me, code, "OffsetCommit");
  }

  broker::Task<void> beat() {
    const Ask asking = how(0, 4);
    wire::HeartbeatRequest request;
    request.group_id = plan_.id;
    request.generation_id = generation_;
    request.member_id = member_;
    request.group_instance_id = instance();
    const Who me = who();
    const std::function<void(wire::HeartbeatResponse&)> seen =
        [this, me](wire::HeartbeatResponse& response) {
          world_.trace("{} beat: {} generation={} member={}", plan_.id, name(response.error_code),
                       me.generation, me.member);
          world_.groups().beat(me, response.error_code);
        };
    const auto call = co_await ask<wire::HeartbeatResponse>(link_, request, asking, seen);
    if (call != nullptr && call->response.error_code != ErrorCode::NONE) {
      if (call->response.error_code == ErrorCode::REBALANCE_IN_PROGRESS && dice_.percent(50)) {
        co_await commit();
      }
      if (phase_ == Phase::kMember) take_error(me, call->response.error_code, "Heartbeat");
    }
  }

  broker::Task<void> leave() {
    const Ask asking = how(3, 5);
    wire::LeaveGroupRequest request;
    request.group_id = plan_.id;
    auto& member = request.members.emplace_back();
    member.member_id = member_;
    const Who me = who();
    const std::function<void(wire::LeaveGroupResponse&)> seen =
        [this, me](wire::LeaveGroupResponse& response) {
          if (response.error_code == ErrorCode::NONE && !response.members.empty() &&
              response.members.front().error_code == ErrorCode::NONE) {
            world_.groups().left(me);
          }
        };
    if (link_.up()) co_await ask<wire::LeaveGroupResponse>(link_, request, asking, seen);
  }

  void take_error(const Who& me, ErrorCode code, const char* what) {
    switch (code) {
      case ErrorCode::GROUP_ID_NOT_FOUND:  // of a commit, v9 and later
      case ErrorCode::UNKNOWN_MEMBER_ID:
        if (!me.member.empty() && me.member == member_) world_.groups().lost(me);
        member_.clear();
        generation_ = -1;
        phase_ = Phase::kJoin;
        return;
      case ErrorCode::ILLEGAL_GENERATION:
      case ErrorCode::REBALANCE_IN_PROGRESS:
        phase_ = Phase::kJoin;
        return;
      case ErrorCode::FENCED_INSTANCE_ID:
        if (!instance_) break;
        phase_ = Phase::kGone;
        return;
      case ErrorCode::COORDINATOR_NOT_AVAILABLE:
      case ErrorCode::COORDINATOR_LOAD_IN_PROGRESS:
        // An earlier request of ours was still parked, the broker stops, or its store fails.
        return;
      default:
        break;
    }
    world_.violate(
        fmt::format("{} of {} in {} is answered {}", what, me.member, plan_.id, name(code)));
  }

  World& world_;
  Dice dice_;
  Link link_;
  const GroupPlan plan_;
  OffsetClient offsets_;
  Phase phase_ = Phase::kJoin;
  std::string member_, protocol_;
  std::optional<std::string> instance_;
  std::int32_t generation_ = -1;
  bool leads_ = false, skips_ = false;
  std::vector<std::string> members_;
};

}  // namespace

broker::Task<void> be_member(World& world, std::string name, GroupPlan plan) {
  const auto actor = world.keep<GroupMember>(name, plan);
  co_await actor->run();
}

}  // namespace kanal::sim
