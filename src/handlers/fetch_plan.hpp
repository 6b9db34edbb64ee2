// What one Fetch request is to read: its partitions, from the request or from the session it
// continues (KIP-227). A plan holds the session busy-free: it copies what it reads, and settles the
// session when the answer is made.
#pragma once

#include "kanal/broker/broker.hpp"
#include "kanal/wire/messages/fetch.hpp"

#include <memory>
#include <vector>

namespace kanal::handlers {

/// One partition of the plan, with what reading it gave.
struct PlannedPartition {
  broker::FetchPartition asked;
  broker::TopicPtr topic;                        // null where it is not known
  std::shared_ptr<broker::Partition> partition;  // null where there is none
  bool unresolved = false;                       // the answer is an error already
  bool inconsistent = false;  // the topic of a session was made anew under another id
  wire::FetchResponse::Topic::Partition answer;
};

struct FetchPlan {
  ErrorCode error = ErrorCode::NONE;              // the whole request's
  std::shared_ptr<broker::FetchSession> session;  // the one that is continued
  std::int32_t session_epoch = 0;                 // the epoch this request runs under
  bool may_create_session = false;
  std::vector<PlannedPartition> partitions;
};

/// The answer for a partition that cannot be read.
[[nodiscard]] wire::FetchResponse::Topic::Partition unreadable(PartitionIndex partition,
                                                               ErrorCode error);

[[nodiscard]] FetchPlan make_plan(broker::Context& context, const wire::FetchRequest& request);

/// The answer: all partitions, or for a continued session those that changed. Moves the session on,
/// or makes one.
[[nodiscard]] wire::FetchResponse settle(broker::Context& context, FetchPlan& plan);

}  // namespace kanal::handlers
