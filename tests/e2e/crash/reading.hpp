// What a topic holds, held against what its loads know; and a reader that follows the topics
// through every restart.
#pragma once

#include <atomic>
#include <thread>

#include "load.hpp"

namespace kanal::e2e {

/// The records of each partition by offset; dense offsets from 0 are expected.
using Content = std::vector<std::vector<std::string>>;
Content read_topic(const std::string& address, const std::string& topic, int partitions);

/// One gtest failure for each partition where the load's promise is broken. The number of repeats.
std::size_t expect_promise(const Load& load, const Content& content);

/// Reads from the first record on, in a thread of its own, while the broker comes and goes.
class Follower {
 public:
  Follower(const std::string& address, std::string topic, int partitions);
  ~Follower();
  /// Waits until everything in `content` was read, and expects that it was just that.
  void finish(const Content& content);

 private:
  void run(const std::string& address);

  const std::string topic_;
  Content read_;
  std::vector<std::string> failures_;
  std::atomic<std::size_t> count_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace kanal::e2e
