// What the tests of full and broken disks share: a daemon, one record there and back, offsets of a
// group without members. One thread.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "broker_process.hpp"
#include "client.hpp"
#include "faults.hpp"

namespace kanal::e2e {

class DiskWorld : public testing::Test {
 protected:
  explicit DiskWorld(std::vector<std::string> settings = {})
      : broker_(KANALD, std::move(settings)) {}

  /// The outcome of one record, tried once.
  rd_kafka_resp_err_t produce(const std::string& topic, std::size_t bytes = 100, int partition = 0);
  /// Whether one record is taken before long; for what mends itself.
  bool taken_before_long(const std::string& topic, int partition = 0);
  /// All records of a partition, from `from` on; an error is thrown.
  std::vector<Record> read(const std::string& topic, int partition = 0, std::int64_t from = 0);
  /// What a fetch from the partition's first record answers.
  int fetch_error(const std::string& topic, int partition = 0);
  rd_kafka_resp_err_t commit(const std::string& group, const std::string& topic,
                             std::int64_t offset);
  std::int64_t committed(const std::string& group, const std::string& topic);
  bool commits_before_long(const std::string& group, const std::string& topic, std::int64_t offset);

  BrokerProcess broker_;
};

/// Patience for what has to happen, in steps.
template <class Done>
bool before_long(Done&& done) {
  for (const std::int64_t end = now_ms() + 2 * kPatience.count(); now_ms() < end;) {
    if (done()) return true;
  }
  return false;
}

}  // namespace kanal::e2e
