// A consumer that is a member of a group: subscribes, gets partitions, loses them, commits when
// told. Its callbacks run in poll(). One thread uses an object.
#pragma once

#include "client.hpp"

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kanal::e2e {

using Partitions = std::set<std::pair<std::string, std::int32_t>>;

class Member {
 public:
  Member(const std::string& address, const std::string& group,
         const std::vector<std::string>& topics, const Settings& settings = {});
  ~Member();
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  /// Serves callbacks and takes at most one record.
  void poll(milliseconds wait = milliseconds(20));
  /// Commits the positions of all that was read; waits for the answer.
  rd_kafka_resp_err_t commit();
  /// Leaves the group (a static member does not).
  void close();

  [[nodiscard]] const Partitions& assigned() const { return assigned_; }
  [[nodiscard]] const std::vector<Record>& records() const { return records_; }
  [[nodiscard]] std::string id() const;
  /// How often partitions were given or taken.
  [[nodiscard]] int rebalances() const { return rebalances_; }
  [[nodiscard]] bool took_all_at_once() const { return took_all_at_once_; }

 private:
  void rebalance(rd_kafka_resp_err_t what, rd_kafka_topic_partition_list_t* partitions);

  Partitions assigned_;
  std::vector<Record> records_;
  int rebalances_ = 0;
  bool took_all_at_once_ = false;
  bool closed_ = false;
  Handle handle_;
};

/// Polls the members in turn until `done`; false when that takes longer than anything should.
bool poll_until(const std::vector<Member*>& members, const std::function<bool()>& done);

/// Committed offsets by partition of one topic; -1 where there is none.
std::vector<std::int64_t> committed(const std::string& address, const std::string& group,
                                    const std::string& topic, int partitions);

struct GroupInfo {
  std::string state, protocol;
  std::vector<std::string> members;  // ids, sorted
};
/// As DescribeGroups tells it.
GroupInfo describe_group(const std::string& address, const std::string& group);

}  // namespace kanal::e2e
