// The members of one group in session, by member id, with what is counted over all of them. Used
// under the group's lock. Iteration is in the order of the member ids. A Member stays where it is
// as long as it is in the table; its id is the table's key.
#pragma once

#include "kanal/coordinator/group.hpp"

#include <map>
#include <set>
#include <unordered_map>

namespace kanal::coordinator {

inline constexpr Time kNever = Time::max();

struct GroupProtocol {
  std::string name;
  Buffer metadata;  // not looked into, but for the topics of consumers (subscription.hpp)
};
/// The same names and bytes in the same order.
[[nodiscard]] bool same_protocols(const std::vector<GroupProtocol>& known,
                                  const std::vector<wire::JoinGroupRequest::Protocol>& asked);

struct MemberFacts {
  std::optional<std::string> instance_id;  // KIP-345: a static member
  std::string client_id, client_host;
  std::chrono::milliseconds rebalance_timeout{0}, session_timeout{0};
};

struct Member {
  std::string_view id;
  MemberFacts facts;
  std::vector<GroupProtocol> protocols;  // in the order of preference, never empty
  Buffer assignment;
  std::optional<WaiterId> join, sync;  // parked requests
  Time deadline = kNever;              // of the session
  bool is_new = false;     // joins for the first time: may expire while its join is parked
  bool owes_sync = false;  // got this generation's JoinGroup, sent no SyncGroup yet
};

class Members {
 public:
  using ById = std::map<std::string, Member, std::less<>>;

  [[nodiscard]] bool empty() const noexcept { return by_id_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return by_id_.size(); }
  [[nodiscard]] ById::iterator begin() noexcept { return by_id_.begin(); }
  [[nodiscard]] ById::iterator end() noexcept { return by_id_.end(); }
  [[nodiscard]] ById::const_iterator begin() const noexcept { return by_id_.begin(); }
  [[nodiscard]] ById::const_iterator end() const noexcept { return by_id_.end(); }

  /// Null if there is none. Constant time, allocates nothing.
  [[nodiscard]] Member* find(std::string_view id) const noexcept;
  [[nodiscard]] Member* find_static(std::string_view instance_id) const noexcept;

  /// Neither the id nor the instance id is known yet.
  Member& add(std::string id, MemberFacts facts, std::vector<GroupProtocol> protocols);
  void remove(Member& member);
  void rename(Member& member, std::string id);
  void set_protocols(Member& member, std::vector<GroupProtocol> protocols);
  void park_join(Member& member, WaiterId waiter);
  /// The parked JoinGroup, which is parked no longer.
  std::optional<WaiterId> take_join(Member& member);

  [[nodiscard]] std::size_t parked_joins() const noexcept { return parked_joins_; }
  [[nodiscard]] std::chrono::milliseconds longest_rebalance_timeout() const noexcept;
  /// Whether one of these protocols is supported by every member.
  [[nodiscard]] bool support(const std::vector<wire::JoinGroupRequest::Protocol>& any) const;
  /// Each member votes for the first of its protocols that all support. Not for an empty table.
  [[nodiscard]] std::string elect_protocol() const;

 private:
  void count(const Member& member, int by);

  ById by_id_;
  std::unordered_map<std::string_view, Member*> index_;
  std::map<std::string, Member*, std::less<>> by_instance_;
  std::map<std::string, std::size_t, std::less<>> supporters_;  // of each protocol
  std::size_t parked_joins_ = 0;
};

}  // namespace kanal::coordinator
