// The one broker of this program, started with the first test and stopped with the last, and what
// its tests share. Every test works on topics named after itself. Main thread only.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker_process.hpp"
#include "client.hpp"

namespace kanal::e2e {

BrokerProcess& shared_broker();

class Librdkafka : public testing::Test {
 protected:
  Librdkafka();
  /// A topic named after the test, `suffix` behind it.
  std::string make_topic(int partitions = 1, const Settings& configs = {},
                         const std::string& suffix = {});

  const std::string address_;
  const std::string name_;
  Admin admin_;
};

/// `count` records with values "0", "1", … for partition 0; each one's error is expected to be
/// none.
void produce_numbers(const std::string& address, const std::string& topic, std::size_t count,
                     const Settings& settings = {});
/// Values "0", "1", … at offsets from `first` on.
void expect_numbers(const std::vector<Record>& records, std::size_t count, std::int64_t first = 0);

}  // namespace kanal::e2e
