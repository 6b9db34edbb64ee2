#include "tamper.hpp"

#include "assignment.hpp"
#include "kanal/records/batch.hpp"

namespace kanal::sim {
namespace {

MutableBytes writable(Bytes bytes) {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};  // of the call's own answer
}

/// The size of the first batch if it is whole and not the only one; else 0.
std::size_t first_of_several(Bytes records) {
  const auto header = records::parse_header(records);
  if (!header || header->size() >= records.size()) return 0;
  return header->size();
}

}  // namespace

bool Tamper::forge(const wire::ProduceRequest& request, wire::ProduceResponse& response) {
  if (mutant_ != Mutant::kProduceIsDropped || request.acks == 0 || !dice_.one_in(20)) return false;
  for (const auto& topic : request.topic_data) {
    for (const auto& partition : topic.partition_data) {
      if (!ends_.contains({topic.topic_id, partition.index.value()})) return false;
    }
  }
  for (const auto& topic : request.topic_data) {
    auto& answered = response.responses.emplace_back();
    answered.name = std::string(topic.name);
    answered.topic_id = topic.topic_id;
    for (const auto& partition : topic.partition_data) {
      auto& answer = answered.partition_responses.emplace_back();
      answer.index = partition.index;
      answer.base_offset = ends_.at({topic.topic_id, partition.index.value()});
    }
  }
  return true;
}

bool Tamper::forge(const wire::HeartbeatRequest& request, wire::HeartbeatResponse& response) {
  if (mutant_ != Mutant::kHeartbeatIsSwallowed) return false;
  response.error_code = ErrorCode::NONE;
  return std::hash<std::string_view>{}(request.member_id) % 3 == 0;
}

bool Tamper::forge(const wire::LeaveGroupRequest& request, wire::LeaveGroupResponse& response) {
  if (mutant_ != Mutant::kLeaveIsIgnored) return false;
  for (const auto& member : request.members) {
    auto& answer = response.members.emplace_back();
    answer.member_id = std::string(member.member_id);
    answer.error_code = ErrorCode::NONE;
  }
  return true;
}

bool Tamper::forge(const wire::OffsetCommitRequest& request, wire::OffsetCommitResponse& response) {
  if (mutant_ != Mutant::kCommitIsDropped || !dice_.one_in(4)) return false;
  for (const auto& topic : request.topics) {
    auto& answered = response.topics.emplace_back();
    answered.name = std::string(topic.name);
    answered.topic_id = topic.topic_id;
    for (const auto& partition : topic.partitions) {
      answered.partitions.push_back({partition.partition_index, ErrorCode::NONE});
    }
  }
  return true;
}

void Tamper::alter(wire::ProduceResponse& response) {
  if (mutant_ != Mutant::kProduceIsDropped) return;
  for (const auto& topic : response.responses) {
    for (const auto& answer : topic.partition_responses) {
      if (answer.error_code != ErrorCode::NONE) continue;
      ends_[{topic.topic_id, answer.index.value()}] = answer.base_offset + 1;
    }
  }
}

void Tamper::alter(wire::FetchResponse& response) {
  for (auto& topic : response.responses) {
    for (auto& partition : topic.partitions) {
      auto& records = partition.records;
      if (records.inline_bytes.empty() || !dice_.one_in(20)) continue;
      const std::size_t first = first_of_several(records.inline_bytes);
      if (mutant_ == Mutant::kFetchAltersAByte) {
        const auto header = records::parse_header(records.inline_bytes);
        if (!header || header->size() > records.inline_bytes.size()) continue;
        const MutableBytes batch = writable(records.inline_bytes.first(header->size()));
        batch[batch.size() - 2] ^= std::byte{1};
        records::seal(batch);
      } else if (mutant_ == Mutant::kFetchSkipsABatch && first > 0) {
        records.inline_bytes = records.inline_bytes.subspan(first);
        records.bytes -= static_cast<std::uint32_t>(first);
      } else if (mutant_ == Mutant::kFetchShowsOldEnd) {
        records.inline_bytes = {};
        partition.high_watermark = partition.high_watermark - 1;
      }
    }
  }
}

void Tamper::alter(wire::DescribeGroupsResponse& response) {
  if (mutant_ != Mutant::kDeadMemberStays) return;
  for (auto& group : response.groups) {
    auto& ever = described_[group.group_id];
    for (const Described& member : group.members) ever[member.member_id] = member;
    if (group.error_code != ErrorCode::NONE) continue;
    group.members.clear();
    for (const auto& [id, member] : ever) group.members.push_back(member);
  }
}

void Tamper::alter(wire::HeartbeatResponse& response) {
  if (mutant_ == Mutant::kStaleGenerationIsFine &&
      (response.error_code == ErrorCode::ILLEGAL_GENERATION ||
       response.error_code == ErrorCode::UNKNOWN_MEMBER_ID)) {
    response.error_code = ErrorCode::NONE;
  }
}

void Tamper::alter(wire::JoinGroupResponse& response) {
  if (response.error_code != ErrorCode::NONE) return;
  if (mutant_ == Mutant::kGenerationGoesBack && dice_.one_in(5)) --response.generation_id;
  if (mutant_ == Mutant::kMemberIsLeftOut && response.members.size() > 1 && dice_.one_in(5)) {
    response.members.pop_back();
  }
}

void Tamper::alter(wire::SyncGroupResponse& response) {
  if (response.error_code != ErrorCode::NONE) return;
  const Bytes given = response.assignment;
  const Buffer own(given.begin(), given.end());
  if (mutant_ == Mutant::kAssignmentsAreSwapped && !last_assignment_.empty() && dice_.one_in(5)) {
    response.assignment = last_assignment_;
  }
  if (mutant_ == Mutant::kTwoOwners && dice_.one_in(5)) {
    auto mine = decode_assignment(own);
    const auto other = decode_assignment(last_assignment_);
    if (mine && other && !other->partitions.empty()) {
      mine->partitions.push_back(other->partitions.front());
      response.assignment = encode_assignment(*mine);
    }
  }
  last_assignment_ = own;
}

void Tamper::alter(wire::OffsetCommitResponse& response) {
  if (mutant_ != Mutant::kFencedCommitIsTaken) return;
  for (auto& topic : response.topics) {
    for (auto& partition : topic.partitions) {
      if (partition.error_code == ErrorCode::ILLEGAL_GENERATION ||
          partition.error_code == ErrorCode::UNKNOWN_MEMBER_ID) {
        partition.error_code = ErrorCode::NONE;
      }
    }
  }
}

void Tamper::alter(wire::OffsetFetchResponse& response) {
  if (mutant_ != Mutant::kOffsetGoesBack || !dice_.one_in(10)) return;
  for (auto& group : response.groups) {
    for (auto& topic : group.topics) {
      for (auto& partition : topic.partitions) {
        if (partition.committed_offset > Offset(0)) {
          partition.committed_offset = partition.committed_offset - 1;
        }
      }
    }
  }
}

Buffer Tamper::doubled(Bytes records) {
  const auto header = records::parse_header(records);
  if (mutant_ != Mutant::kProduceIsDoubled || !header || !header->has_producer_id() ||
      header->size() != records.size() || !dice_.one_in(20)) {
    return {};
  }
  Buffer copy(records.begin(), records.end());
  store_be(copy.data() + records::at::kProducerId, std::int64_t{-1});
  store_be(copy.data() + records::at::kProducerEpoch, std::int16_t{-1});
  store_be(copy.data() + records::at::kBaseSequence, std::int32_t{-1});
  records::seal(copy);
  return copy;
}

Policy Tamper::altered(Policy policy, bool keyed) const {
  switch (mutant_) {
    case Mutant::kTombstoneGoesEarly:
      policy.delete_retention_ms = 0;
      break;
    case Mutant::kLagIsIgnored:
      policy.min_lag_ms = 0;
      break;
    case Mutant::kRetentionIsHasty:
      if (policy.retention_ms > 0) policy.retention_ms /= 5;
      break;
    case Mutant::kTooFewBytesStay:
      if (policy.retention_bytes > 0) policy.retention_bytes /= 3;
      break;
    case Mutant::kCompactsWhatItShouldNot:
      policy.compacts |= keyed;
      break;
    default:
      break;
  }
  return policy;
}

}  // namespace kanal::sim
