// One life of the broker: the real Broker on an I/O thread that the simulation polls, helpers that
// it runs, and the requests under way. It ends by stop() or by death (Life); then bury() ends what
// is left, without a byte reaching the disk. One thread.
#pragma once

#include "computer.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/broker/io_thread.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kanal::sim {

class Call;

struct ProcessPlan {
  coordinator::BrokerConfig kafka;
  Mutant mutant = Mutant::kNone;
  std::optional<std::uint64_t> dies_after;  // changes of the disk
};

class Process {
 public:
  /// The start may fail: by death, by a fault of the disk, or by a bug.
  static Result<std::unique_ptr<Process>> start(Computer& computer, const ProcessPlan& plan,
                                                Dice dice);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] broker::Broker& broker() noexcept { return *broker_; }
  [[nodiscard]] broker::IoThread& io() noexcept { return io_; }
  [[nodiscard]] const broker::Listener& listener() const noexcept { return listener_; }
  [[nodiscard]] Life& life() noexcept { return *life_; }
  [[nodiscard]] bool dead() const noexcept { return life_->dead(); }
  [[nodiscard]] SlowHelpers& helpers() noexcept { return helpers_; }
  [[nodiscard]] StoreTrouble& store_trouble() noexcept { return *trouble_; }
  [[nodiscard]] const broker::StartReport& report() const noexcept { return report_; }
  [[nodiscard]] Time started() const noexcept { return started_; }

  /// Runs what is ready; whether anything ran.
  bool turn();
  [[nodiscard]] std::optional<Time> next_timer() const;
  /// As SIGTERM does: answers what is parked, then checkpoints. False if a request does not end.
  bool release();
  Result<void> stop();
  /// After its death: every request ends and nothing happens. False if one does not end.
  bool bury();

  void add_running(const std::shared_ptr<Call>& call);
  void remove_running(const std::shared_ptr<Call>& call);
  [[nodiscard]] std::size_t running() const noexcept { return running_.size(); }

 private:
  Process(Computer& computer, const ProcessPlan& plan, Dice dice);
  void tick_later();
  void cancel_requests();
  bool end_requests();

  Computer& computer_;
  const std::shared_ptr<Life> life_;
  const std::shared_ptr<StoreTrouble> trouble_;
  Dice dice_;
  std::unique_ptr<FileSystem> files_;
  SlowHelpers helpers_;
  broker::IoThread io_;
  broker::Listener listener_{"PLAINTEXT", "127.0.0.1", 9092};
  broker::StartReport report_;
  std::unique_ptr<broker::Broker> broker_;
  std::vector<std::shared_ptr<Call>> running_;
  const Time started_;
};

}  // namespace kanal::sim
