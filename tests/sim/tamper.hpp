// The mutants that live between broker and client: they forge answers of requests that the broker
// never sees, or alter what it answered. With Mutant::kNone nothing happens. One thread.
#pragma once

#include "dice.hpp"
#include "kanal/wire/messages/describe_groups.hpp"
#include "kanal/wire/messages/fetch.hpp"
#include "kanal/wire/messages/heartbeat.hpp"
#include "kanal/wire/messages/join_group.hpp"
#include "kanal/wire/messages/leave_group.hpp"
#include "kanal/wire/messages/offset_commit.hpp"
#include "kanal/wire/messages/offset_fetch.hpp"
#include "kanal/wire/messages/produce.hpp"
#include "kanal/wire/messages/sync_group.hpp"
#include "mutants.hpp"
#include "policy.hpp"

#include <map>
#include <string>
#include <utility>

namespace kanal::sim {

class Tamper {
 public:
  Tamper(Mutant mutant, Dice dice) : mutant_(mutant), dice_(dice) {}
  [[nodiscard]] Mutant mutant() const noexcept { return mutant_; }

  /// Whether `response` answers the request without the broker.
  template <class Request, class Response>
  bool forge(const Request&, Response&) {
    return false;
  }
  bool forge(const wire::ProduceRequest& request, wire::ProduceResponse& response);
  bool forge(const wire::HeartbeatRequest& request, wire::HeartbeatResponse& response);
  bool forge(const wire::LeaveGroupRequest& request, wire::LeaveGroupResponse& response);
  bool forge(const wire::OffsetCommitRequest& request, wire::OffsetCommitResponse& response);

  template <class Response>
  void alter(Response&) {}
  void alter(wire::ProduceResponse& response);
  void alter(wire::FetchResponse& response);
  void alter(wire::DescribeGroupsResponse& response);
  void alter(wire::HeartbeatResponse& response);
  void alter(wire::JoinGroupResponse& response);
  void alter(wire::SyncGroupResponse& response);
  void alter(wire::OffsetCommitResponse& response);
  void alter(wire::OffsetFetchResponse& response);

  /// What the broker is told instead.
  [[nodiscard]] Policy altered(Policy policy, bool keyed) const;
  /// Whether this request is never answered.
  bool swallows() { return mutant_ == Mutant::kAnswerNeverComes && dice_.one_in(500); }
  /// The same record set without a producer, to be sent once more; empty: not this time.
  Buffer doubled(Bytes records);

 private:
  Mutant mutant_;
  Dice dice_;
  std::map<std::pair<Uuid, int>, Offset> ends_;  // as the answers tell
  Buffer last_assignment_;
  using Described = wire::DescribeGroupsResponse::Group::Member;
  std::map<std::string, std::map<std::string, Described>> described_;
};

}  // namespace kanal::sim
