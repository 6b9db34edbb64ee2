// One run: a computer, the broker's lives on it, clients that come and go, and a nemesis that
// breaks things, all on one thread and decided by one seed. Time stands still while anything can
// run and then jumps to the next timer. The first violation ends the run. Actors are coroutines on
// the clients' I/O thread; they end soon after running() turns false.
#pragma once

#include "computer.hpp"
#include "directory.hpp"
#include "group_ledger.hpp"
#include "kanal/broker/io_thread.hpp"
#include "ledger.hpp"
#include "network.hpp"
#include "process.hpp"
#include "profile.hpp"
#include "tamper.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace kanal::sim {

struct RunOptions {
  std::uint64_t seed = 1;
  std::uint64_t steps = 10'000;
  Mutant mutant = Mutant::kNone;
  bool trace = false;
  bool short_run = false;  // the scripted one
  Strike strike;           // in it
};

struct RunResult {
  std::optional<std::string> violation;
  std::uint64_t steps = 0;   // requests sent, and what the nemesis did
  std::uint64_t digest = 0;  // of all answers in their order: the same for the same seed
  std::uint64_t starts = 0;
  std::uint64_t records = 0;  // acknowledged
  Duration elapsed{};         // of virtual time
  std::uint64_t changes = 0;  // of disk and store
  bool struck = false;
};

/// By what it is and topic.
using StoredGroups = std::map<std::pair<std::string, Uuid>, std::string>;
using ConnectionPtr = std::shared_ptr<Connection>;

class World {
 public:
  explicit World(const RunOptions& options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  RunResult run();

  // What actors use.
  [[nodiscard]] bool running() const noexcept { return steps_ < options_.steps && !ending_; }
  /// Nothing more is to be waited for.
  [[nodiscard]] bool aborting() const noexcept { return aborting_; }
  [[nodiscard]] const SimClock& clock() const noexcept { return computer_.clock; }
  [[nodiscard]] broker::IoThread& client_io() noexcept { return client_io_; }
  [[nodiscard]] Dice fork_dice() { return dice_.fork(); }
  [[nodiscard]] const Profile& profile() const noexcept { return profile_; }
  broker::Task<void> sleep(Duration time);
  /// Null while the broker is down.
  [[nodiscard]] ConnectionPtr connect(const std::string& client_id);
  void spawn(broker::Task<void> actor);
  /// Makes an actor that lives as long as the world: answers may be shown to it late.
  template <class Actor, class... Args>
  std::shared_ptr<Actor> keep(Args&&... args) {
    auto actor = std::make_shared<Actor>(*this, std::forward<Args>(args)...);
    kept_.push_back(actor);
    return actor;
  }
  void violate(const std::string& what);
  template <class... Args>
  void trace(fmt::format_string<Args...> format, Args&&... args) {
    if (options_.trace) print_trace(fmt::format(format, std::forward<Args>(args)...));
  }
  [[nodiscard]] RecordLedger& records() noexcept { return records_; }
  [[nodiscard]] Directory& topics() noexcept { return topics_; }
  [[nodiscard]] GroupLedger& groups() noexcept { return groups_; }
  [[nodiscard]] OffsetLedger& offsets() noexcept { return offsets_; }
  [[nodiscard]] static std::string group_id(int number);
  /// The clock's time without the broker's stalls.
  [[nodiscard]] Time group_now() const noexcept;
  /// No producer id is given out twice.
  void check_producer_id(ProducerId id);
  [[nodiscard]] Tamper& tamper() noexcept { return tamper_; }
  /// SIGTERM has come: what waits is answered at once.
  [[nodiscard]] bool stopping() const noexcept { return stopping_; }
  /// The disk has failed since the process began.
  [[nodiscard]] bool hurts() const noexcept;
  /// A fault of the disk may explain errors now.
  [[nodiscard]] bool troubled() const noexcept;
  /// The broker stood still, which may explain that time ran out.
  [[nodiscard]] bool slow() const noexcept { return clock().now() < slow_until_; }
  /// Counts power cuts: what a producer knew before one need not be true after it.
  [[nodiscard]] std::uint64_t power_cuts() const noexcept { return power_cuts_; }
  [[nodiscard]] std::uint64_t starts() const noexcept { return starts_; }

  // What the nemesis uses.
  [[nodiscard]] Process* process() noexcept { return process_.get(); }
  [[nodiscard]] Computer& computer() noexcept { return computer_; }
  void count_step() noexcept { ++steps_; }
  void stop_cleanly(Duration downtime);
  void kill(bool power_cut, Duration downtime);
  /// Whatever ends this process, the power goes with it.
  void plan_power_cut() noexcept { power_fails_ = true; }
  void plan_death_at_start(std::uint64_t changes) noexcept { next_dies_after_ = changes; }
  void set_trouble() noexcept;
  void end_trouble() noexcept;
  void stall(Duration time);
  void close_connections(int percent);

  // What connections use.
  std::uint64_t count_request() noexcept { return ++steps_, ++requests_; }
  [[nodiscard]] Call::Fate roll_fate();
  void check_limit(const Call& call);
  /// It will never be answered.
  void swallow(std::shared_ptr<Call> call) { swallowed_.push_back(std::move(call)); }
  void fold(std::uint64_t number, Bytes answer) noexcept;

 private:
  bool turn();
  void note_strike();
  void run_until_actors_end(const char* whose);
  void jump();
  void boot();
  void boot_later(Duration downtime);
  void after_start(RecordLedger::Death death);
  void survey_topic(const Directory::Entry& entry, RecordLedger::Death death);
  void end_process(RecordLedger::Death death, Duration downtime);
  void mourn();
  void end_stall();
  void cut_power();
  void compare_groups(const StoredGroups& before);
  void start_actors();
  void final_audit();
  void abort();
  void print_trace(const std::string& line) const;

  const RunOptions options_;
  Dice dice_, network_dice_;
  const Profile profile_;
  Computer computer_;
  broker::IoThread client_io_;
  std::unique_ptr<Process> process_;
  RecordLedger records_;
  Directory topics_;
  GroupLedger groups_;
  OffsetLedger offsets_;
  Tamper tamper_;
  std::vector<std::shared_ptr<void>> kept_;
  std::vector<std::weak_ptr<Connection>> connections_;
  std::vector<std::shared_ptr<Call>> swallowed_;
  std::set<broker::Event*> sleepers_;
  std::set<ProducerId> producer_ids_;
  std::optional<std::string> violation_;
  std::uint64_t steps_ = 0, requests_ = 0, digest_ = 0, starts_ = 0, power_cuts_ = 0;
  std::int32_t last_epoch_ = -1;
  std::uint64_t actors_ = 0;
  bool ending_ = false, aborting_ = false;
  bool stopping_ = false, power_fails_ = false, in_trouble_ = false;
  std::optional<std::uint64_t> next_dies_after_;
  RecordLedger::Death last_death_ = RecordLedger::Death::kCleanStop;
  Duration next_downtime_{};
  Time trouble_until_{}, slow_until_{}, stalled_since_{}, stalled_until_{};
  Duration stalled_{};
  std::optional<StoredGroups> groups_before_;  // what a restart must bring back
};

}  // namespace kanal::sim
