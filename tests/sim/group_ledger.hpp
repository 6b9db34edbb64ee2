// What is known of every group from what the broker answered, and the checks: generations don't go
// backwards, who is answered in a generation is one of its members, everybody gets the assignment
// that the generation's leader made for him, a partition has one owner in a generation, who keeps
// his times stays a member and who is silent does not, commits and heartbeats of another generation
// are refused. Times are group time: stalls of the broker do not count. One thread.
#pragma once

#include "assignment.hpp"
#include "kanal/base/clock.hpp"
#include "kanal/wire/messages/describe_groups.hpp"
#include "kanal/wire/messages/join_group.hpp"
#include "ledger.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace kanal::sim {

/// All members of a group have the same.
struct GroupTimes {
  Duration session{}, rebalance{};
};
struct Who {
  std::string group;
  std::int32_t generation = -1;
  std::string member;
  bool is_static = false;
};

class GroupLedger {
 public:
  /// `now`: the group time. `troubled`: a fault of the disk may explain what is odd.
  GroupLedger(Report report, std::function<Time()> now, std::function<bool()> troubled)
      : report_(std::move(report)), now_(std::move(now)), troubled_(std::move(troubled)) {}

  void add(const std::string& group, GroupTimes times) { groups_[group].times = times; }

  // What the broker answered.
  void joined(const std::string& group, const wire::JoinGroupResponse& answer, bool is_static);
  void synced(const Who& who, Bytes assignment);
  void beat(const Who& who, ErrorCode answer);
  void committed(const Who& who);
  void left(const Who& who);
  /// The member that its client holds for alive is not known any more.
  void lost(const Who& who);
  void described(const wire::DescribeGroupsResponse::Group& group);

  // What clients do.
  void assigning(const Who& leader, const std::string& member, const Buffer& assignment);
  /// What the broker does not know of keeps it from counting on the member.
  void misbehaves(const Who& who);

  void started();
  void died(RecordLedger::Death death);
  [[nodiscard]] std::uint64_t generations() const noexcept { return generations_; }

 private:
  struct Generation {
    std::string leader, protocol;
    bool leader_told = false, stored = false, has_static = false;
    bool vague = false;  // from before a death that may have undone it: nothing is held against it
    std::set<std::string> members;   // as the leader was told
    std::set<std::string> answered;  // joins
    std::map<std::string, Buffer> made;
    std::map<std::pair<std::string, std::int32_t>, std::string> owners;
  };
  struct Member {
    Time heard, settled;  // any answer but an error of membership; one that says: no rebalance
    Time seen;            // in a description, first
    bool left = false, misbehaved = false;
  };
  struct GroupModel {
    GroupTimes times;
    std::int32_t generation = -1;  // the latest answered
    bool unknown = false;          // after a power cut: whatever is answered next
    std::map<std::int32_t, Generation> generations;
    std::map<std::string, Member> members;
  };
  void fail(const std::string& group, const std::string& what) const;
  Generation* current(const Who& who, const char* what);
  void hear(const Who& who, bool settled);
  void open_vague(GroupModel& model, std::int32_t number);
  void own(const Who& who, Generation& generation, const Assignment& assignment);
  void check_members(const std::string& group, std::int32_t number, const Generation& generation);

  Report report_;
  std::function<Time()> now_;
  std::function<bool()> troubled_;
  std::map<std::string, GroupModel> groups_;
  Time started_{};
  std::uint64_t generations_ = 0;
};

/// What a group has committed, partition by partition: a fetch gives a value that was there at some
/// moment of the fetch. One thread.
class OffsetLedger {
 public:
  explicit OffsetLedger(Report report) : report_(std::move(report)) {}

  static constexpr std::int32_t kNotTold = -2;
  struct Value {
    std::int64_t offset = -1;
    std::int32_t leader_epoch = -1;  // kNotTold by an old version
    std::string metadata;
    [[nodiscard]] bool fits(const Value& other) const {
      return offset == other.offset && metadata == other.metadata &&
             (leader_epoch == other.leader_epoch || leader_epoch == kNotTold);
    }
  };
  struct Key {
    std::string group;
    LogKey log;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  using Moment = std::uint64_t;
  [[nodiscard]] Moment now() noexcept { return ++moment_; }

  /// A commit goes out; its outcome follows, or never.
  [[nodiscard]] Moment committing(const Key& key, const Value& value);
  void committed(const Key& key, Moment begun);
  void refused(const Key& key, Moment begun);
  /// `begun`: when the request was sent.
  void fetched(const Key& key, Moment begun, const Value& value);

  /// Everything that is stored is synced.
  void synced();
  void died(RecordLedger::Death death);

 private:
  struct Write {
    Moment begun = 0, ended = 0;  // 0: it may yet happen
    bool certain = false, durable = false;
    Value value;
  };
  Report report_;
  Moment moment_ = 0;
  std::map<Key, std::vector<Write>> writes_;
};

}  // namespace kanal::sim
