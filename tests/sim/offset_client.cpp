#include "offset_client.hpp"

#include <algorithm>

#include "kanal/wire/messages/offset_commit.hpp"

namespace kanal::sim {
namespace {

constexpr std::int32_t kEpochNotTold = OffsetLedger::kNotTold;

}  // namespace

void OffsetClient::own(const std::vector<std::pair<std::string, std::int32_t>>& partitions) {
  owned_.clear();
  for (const auto& [name, index] : partitions) {
    const Directory::Entry& entry = world_.topics().at(name);
    if (entry.state == Directory::State::kPresent) owned_.push_back({entry, index, 0});
  }
}

broker::Task<ErrorCode> OffsetClient::commit(Who me, std::optional<std::string_view> instance) {
  const bool by_name = dice_.percent(50);
  const auto version = static_cast<std::int16_t>(by_name ? dice_.between(instance ? 7 : 2, 9) : 10);
  wire::OffsetCommitRequest request;
  request.group_id = group_;
  request.generation_id_or_member_epoch = me.generation;
  request.member_id = me.member;
  request.group_instance_id = instance;
  auto attempts = std::make_shared<std::vector<Attempt>>();
  const std::string metadata = fmt::format("m{}", dice_.below(1'000'000));
  for (Owned& owned : owned_) {
    if (owned.topic.eternal != by_name && by_name) continue;
    if (dice_.percent(30)) continue;
    owned.position += dice_.between(0, 9);
    const OffsetLedger::Value value{owned.position, version >= 6 ? dice_.between(-1, 3) : -1,
                                    metadata};
    auto& topic = request.topics.emplace_back();
    if (by_name)
      topic.name = owned.topic.facts.name;
    else
      topic.topic_id = owned.topic.facts.id;
    topic.partitions.push_back({PartitionIndex(owned.index), Offset(value.offset),
                                LeaderEpoch(value.leader_epoch), std::string_view(metadata)});
    const OffsetLedger::Key key{group_, {owned.topic.facts.id, owned.index}};
    attempts->push_back({key, world_.offsets().committing(key, value), owned.index});
  }
  if (attempts->empty()) co_return ErrorCode::NONE;
  const auto result = std::make_shared<ErrorCode>(ErrorCode::NONE);
  const std::function<void(wire::OffsetCommitResponse&)> seen =
      [this, me, attempts, result](wire::OffsetCommitResponse& response) {
        bool taken = false;
        std::vector<Attempt> left = *attempts;
        for (const auto& topic : response.topics) {
          const ErrorCode code = topic.partitions.at(0).error_code;
          // Those that fail first stand first: found again by partition and, where told, by id.
          const auto mine = std::ranges::find_if(left, [&](const Attempt& attempt) {
            if (attempt.index != topic.partitions[0].partition_index.value()) return false;
            return topic.topic_id.is_zero()
                       ? world_.topics().at(topic.name).facts.id == attempt.key.log.first
                       : topic.topic_id == attempt.key.log.first;
          });
          if (mine == left.end()) return world_.violate("OffsetCommit answers another partition");
          const Attempt attempt = *mine;
          left.erase(mine);
          if (code == ErrorCode::NONE) {
            taken = true;
            world_.offsets().committed(attempt.key, attempt.begun);
            continue;
          }
          if (!world_.troubled()) world_.offsets().refused(attempt.key, attempt.begun);
          if (code != ErrorCode::UNKNOWN_TOPIC_ID && code != ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
            *result = code;
        }
        if (taken && me.generation >= 0) world_.groups().committed(me);
      };
  const Ask how{version};
  co_await ask<wire::OffsetCommitResponse>(link_, request, how, seen);
  co_return *result;
}

void OffsetClient::take_partition(
    const OffsetLedger::Key& key, OffsetLedger::Moment begun,
    const wire::OffsetFetchResponse::Group::Topic::Partition& partition, bool has_epoch) {
  if (partition.error_code != ErrorCode::NONE) return;
  const OffsetLedger::Value value{
      partition.committed_offset.value(),
      has_epoch ? partition.committed_leader_epoch.value() : kEpochNotTold,
      partition.metadata.value_or("")};
  world_.offsets().fetched(key, begun, value);
  for (Owned& owned : owned_) {
    if (owned.topic.facts.id != key.log.first || owned.index != key.log.second) continue;
    owned.position = std::max<std::int64_t>(value.offset, 0);
  }
}

broker::Task<void> OffsetClient::fetch_own() {
  if (owned_.empty() || !link_.up()) co_return;
  wire::OffsetFetchRequest request;
  auto& group = request.groups.emplace_back();
  group.group_id = group_;
  group.topics.emplace();
  auto keys = std::make_shared<std::vector<OffsetLedger::Key>>();
  for (const Owned& owned : owned_) {
    auto& topic = group.topics->emplace_back();
    topic.topic_id = owned.topic.facts.id;
    topic.partition_indexes.push_back(PartitionIndex(owned.index));
    keys->push_back({group_, {owned.topic.facts.id, owned.index}});
  }
  const OffsetLedger::Moment begun = world_.offsets().now();
  const std::function<void(wire::OffsetFetchResponse&)> seen =
      [this, keys, begun](wire::OffsetFetchResponse& response) {
        const auto& answered = response.groups.at(0);
        if (answered.error_code != ErrorCode::NONE) {
          if (answered.error_code != ErrorCode::COORDINATOR_NOT_AVAILABLE && !world_.troubled()) {
            world_.violate(fmt::format("OffsetFetch is answered {}", name(answered.error_code)));
          }
          return;
        }
        for (const auto& topic : answered.topics) {
          const auto& partition = topic.partitions.at(0);
          const OffsetLedger::Key key{group_, {topic.topic_id, partition.partition_index.value()}};
          if (std::ranges::find(*keys, key) == keys->end())
            return world_.violate("OffsetFetch answers another partition");
          take_partition(key, begun, partition, true);
        }
      };
  const Ask how{10};
  co_await ask<wire::OffsetFetchResponse>(link_, request, how, seen);
}

broker::Task<void> OffsetClient::fetch_all() {
  wire::OffsetFetchRequest request;
  auto& group = request.groups.emplace_back();
  group.group_id = group_;
  group.topics.reset();
  const OffsetLedger::Moment begun = world_.offsets().now();
  const auto version = static_cast<std::int16_t>(dice_.between(8, 9));
  const std::function<void(wire::OffsetFetchResponse&)> seen =
      [this, begun](wire::OffsetFetchResponse& response) {
        const auto& answered = response.groups.at(0);
        if (answered.error_code != ErrorCode::NONE) return;
        for (const auto& [name, entry] : world_.topics().entries()) {
          if (!entry.eternal || entry.state != Directory::State::kPresent) continue;
          for (std::int32_t index = 0; index < entry.facts.partitions; ++index) {
            wire::OffsetFetchResponse::Group::Topic::Partition found;
            found.committed_offset = kNoOffset;
            for (const auto& topic : answered.topics) {
              for (const auto& partition : topic.partitions) {
                if (topic.name == name && partition.partition_index.value() == index)
                  found = partition;
              }
            }
            take_partition({group_, {entry.facts.id, index}}, begun, found, true);
          }
        }
      };
  const Ask how{version};
  co_await ask<wire::OffsetFetchResponse>(link_, request, how, seen);
}

}  // namespace kanal::sim
