// A broker under mixed load that ends at random, with everything its clients did and saw in a
// history: topics of every promise, producers of every kind, readers, a group, an onlooker, an
// administrator. One thread drives it. The seed decides when what happens, not what the clients do.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "actors.hpp"
#include "broker_process.hpp"
#include "checker.hpp"
#include "faults.hpp"

namespace kanal::e2e {

class KillWorld {
 public:
  explicit KillWorld(unsigned seed, bool with_faults = false);
  ~KillWorld();
  void start();
  /// Everybody gets on, then the broker ends, mostly by SIGKILL, and starts again.
  void round();
  /// The same, with its disk failing before.
  void faulty_round();
  /// Stops everybody, reads everything, and holds it all against the promises.
  void finish();

 private:
  void wait_for_progress(std::size_t each);
  void end_and_start();
  /// Writes the history to a file; its name.
  std::string keep_history() const;
  [[nodiscard]] std::vector<FaultRule> draw_faults();
  int below(int limit) { return static_cast<int>(dice_() % static_cast<unsigned>(limit)); }

  std::mt19937 dice_;
  BrokerProcess broker_;
  std::optional<FaultControl> faults_;
  History history_;
  std::vector<TopicPlan> topics_;
  std::vector<std::unique_ptr<Sender>> senders_;
  std::vector<std::unique_ptr<Actor>> others_;
  int kills_ = 0, stops_ = 0, faulty_ = 0;
  std::uint64_t strikes_ = 0;
};

}  // namespace kanal::e2e
