#include "members.hpp"

#include "kanal/base/check.hpp"

namespace kanal::coordinator {
namespace {

// Kafka keeps the votes in a Java HashMap and takes the first of those with the most: among equals
// its bucket order decides, which clients can see.
std::uint32_t java_hash(std::string_view text) {
  std::uint32_t hash = 0;
  for (const char c : text) hash = hash * 31U + static_cast<unsigned char>(c);
  return hash ^ (hash >> 16U);
}

std::uint32_t java_buckets(std::size_t entries) {
  std::uint32_t buckets = 16;
  while (entries * 4 > std::size_t{buckets} * 3) buckets *= 2;
  return buckets;
}

// A name listed twice counts once, or nobody would support it.
std::set<std::string_view> names_of(const Member& member) {
  std::set<std::string_view> names;
  for (const GroupProtocol& protocol : member.protocols) names.insert(protocol.name);
  return names;
}

}  // namespace

bool same_protocols(const std::vector<GroupProtocol>& known,
                    const std::vector<wire::JoinGroupRequest::Protocol>& asked) {
  return std::ranges::equal(known, asked,
                            [](const GroupProtocol& a, const wire::JoinGroupRequest::Protocol& b) {
                              return a.name == b.name && std::ranges::equal(a.metadata, b.metadata);
                            });
}

Member* Members::find(std::string_view id) const noexcept {
  const auto found = index_.find(id);
  return found == index_.end() ? nullptr : found->second;
}

Member* Members::find_static(std::string_view instance_id) const noexcept {
  const auto found = by_instance_.find(instance_id);
  return found == by_instance_.end() ? nullptr : found->second;
}

Member& Members::add(std::string id, MemberFacts facts, std::vector<GroupProtocol> protocols) {
  const auto [at, added] = by_id_.try_emplace(std::move(id));
  CHECK(added, "a new member brings a fresh id");
  Member& member = at->second;
  member.id = at->first;
  member.facts = std::move(facts);
  member.protocols = std::move(protocols);
  index_.emplace(member.id, &member);
  if (member.facts.instance_id) {
    CHECK(by_instance_.emplace(*member.facts.instance_id, &member).second,
          "an instance has one member");
  }
  count(member, +1);
  return member;
}

void Members::remove(Member& member) {
  (void)take_join(member);
  count(member, -1);
  if (member.facts.instance_id) by_instance_.erase(*member.facts.instance_id);
  index_.erase(member.id);
  by_id_.erase(by_id_.find(member.id));
}

void Members::rename(Member& member, std::string id) {
  index_.erase(member.id);
  auto node = by_id_.extract(by_id_.find(member.id));
  node.key() = std::move(id);
  const auto inserted = by_id_.insert(std::move(node));
  CHECK(inserted.inserted, "a replaced member gets a fresh id");
  member.id = inserted.position->first;
  index_.emplace(member.id, &member);
}

void Members::set_protocols(Member& member, std::vector<GroupProtocol> protocols) {
  count(member, -1);
  member.protocols = std::move(protocols);
  count(member, +1);
}

void Members::park_join(Member& member, WaiterId waiter) {
  if (!member.join) ++parked_joins_;
  member.join = waiter;
}

std::optional<WaiterId> Members::take_join(Member& member) {
  if (!member.join) return std::nullopt;
  --parked_joins_;
  return std::exchange(member.join, std::nullopt);
}

std::chrono::milliseconds Members::longest_rebalance_timeout() const noexcept {
  std::chrono::milliseconds longest{0};
  for (const auto& [id, member] : by_id_) {
    longest = std::max(longest, member.facts.rebalance_timeout);
  }
  return longest;
}

bool Members::support(const std::vector<wire::JoinGroupRequest::Protocol>& any) const {
  return std::ranges::any_of(any, [this](const wire::JoinGroupRequest::Protocol& protocol) {
    const auto found = supporters_.find(protocol.name);
    return (found == supporters_.end() ? 0 : found->second) == by_id_.size();
  });
}

std::string Members::elect_protocol() const {
  std::map<std::string_view, std::size_t> votes;
  for (const auto& [id, member] : by_id_) {
    for (const GroupProtocol& protocol : member.protocols) {
      if (supporters_.find(protocol.name)->second != by_id_.size()) continue;
      ++votes[protocol.name];
      break;
    }
  }
  CHECK(!votes.empty(), "the members of a group have a protocol in common");
  const std::uint32_t buckets = java_buckets(votes.size());
  const auto elected = std::ranges::min_element(votes, {}, [&](const auto& vote) {
    return std::pair(-static_cast<std::int64_t>(vote.second),
                     java_hash(vote.first) & (buckets - 1));
  });
  return std::string(elected->first);
}

void Members::count(const Member& member, int by) {
  for (const std::string_view name : names_of(member)) {
    const auto at = supporters_.try_emplace(std::string(name)).first;
    at->second += static_cast<std::size_t>(by);
    if (at->second == 0) supporters_.erase(at);
  }
}

}  // namespace kanal::coordinator
