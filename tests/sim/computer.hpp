// The computer below a simulated broker: its clock, its disk and its reserved store outlive every
// process that runs on it. A process sees them through a Life: kill it and nothing it still does
// reaches the disk; let it die at its n-th change, and that change is torn. One thread.
#pragma once

#include "dice.hpp"
#include "kanal/base/clock.hpp"
#include "kanal/base/executor.hpp"
#include "kanal/reserved/memory_store.hpp"
#include "mutants.hpp"
#include "support/memory_file_system.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace kanal::sim {

class SimClock final : public Clock {
 public:
  [[nodiscard]] Time now() const noexcept override { return now_; }
  [[nodiscard]] Timestamp wall() const noexcept override {
    return Timestamp(1'700'000'000'000 + (now_ - kStart) / std::chrono::milliseconds(1));
  }
  void advance_to(Time then) noexcept {
    if (then > now_) now_ = then;
  }
  [[nodiscard]] Duration elapsed() const noexcept { return now_ - kStart; }

 private:
  // Far ahead of the machine's own clock, so that no timer descriptor ever fires.
  static constexpr Time kStart{std::chrono::hours(1'000'000)};
  Time now_ = kStart;
};

/// One blow at one change of the disk or the store, counted over all processes of a run.
struct Strike {
  enum class Kind : std::uint8_t { kNone, kError, kFull, kPowerCut };
  Kind kind = Kind::kNone;
  std::uint64_t at = 0;
};
struct Strikes {
  Strike planned;
  std::uint64_t changes = 0;  // so far
  bool struck = false;        // at all
  bool hurts = false;         // it did, and may explain errors
  [[nodiscard]] Strike::Kind next() noexcept {
    if (changes++ != planned.at || planned.kind == Strike::Kind::kNone) return Strike::Kind::kNone;
    struck = hurts = true;
    return planned.kind;
  }
};

/// Whether a process lives. Everything that changes the disk asks it first.
class Life {
 public:
  enum class Step { kGo, kError, kFull, kDie, kDead };
  explicit Life(Strikes& strikes) : strikes_(strikes) {}
  Step step() noexcept {
    if (dead_) return Step::kDead;
    ++changes_;
    const Strike::Kind struck = strikes_.next();
    if (struck == Strike::Kind::kError) return Step::kError;
    if (struck == Strike::Kind::kFull) return Step::kFull;
    if (struck == Strike::Kind::kNone && (!left_ || (*left_)-- > 0)) return Step::kGo;
    dead_ = true;
    return Step::kDie;
  }
  void kill() noexcept { dead_ = true; }
  /// It dies in the midst of the change after this many more.
  void die_after(std::uint64_t changes) noexcept { left_ = changes; }
  [[nodiscard]] bool dead() const noexcept { return dead_; }
  [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }

 private:
  Strikes& strikes_;
  bool dead_ = false;
  std::uint64_t changes_ = 0;
  std::optional<std::uint64_t> left_;
};

/// What a process' disk and store share with it.
struct Fittings {
  std::shared_ptr<Life> life;
  Dice dice;
  Mutant mutant = Mutant::kNone;
};

/// `disk` as a process sees it.
[[nodiscard]] std::unique_ptr<FileSystem> process_files(test::MemoryFileSystem& disk,
                                                        const Fittings& fittings);
/// How writes of the reserved store fail until the process ends.
struct StoreTrouble {
  bool broken = false;            // every write, as RocksDB after an I/O error
  std::uint64_t full_writes = 0;  // the next ones, with ENOSPC
};
[[nodiscard]] std::unique_ptr<reserved::Store> process_store(reserved::MemoryStore& store,
                                                             const Fittings& fittings,
                                                             std::shared_ptr<StoreTrouble> trouble);

/// The helper threads: work is done later, in the order of due times that the dice gave.
class SlowHelpers final : public Executor {
 public:
  SlowHelpers(const SimClock& clock, Dice dice) : clock_(clock), dice_(dice) {}
  void post(std::move_only_function<void()> work) override;
  /// Runs the first job that is due; whether there was one.
  bool run_one();
  [[nodiscard]] std::optional<Time> next() const;
  void run_all();
  void drop_all();
  /// How slow the disk is from now on: jobs take up to this long.
  void set_delay(Duration most) noexcept { most_ = most; }

 private:
  const SimClock& clock_;
  Dice dice_;
  Duration most_ = std::chrono::milliseconds(5);
  std::uint64_t posted_ = 0;
  std::map<std::pair<Time, std::uint64_t>, std::move_only_function<void()>> queue_;
};

struct Computer {
  Computer();
  SimClock clock;
  test::MemoryFileSystem disk;
  reserved::MemoryStore store;
  Strikes strikes;

  /// The power fails: `dice` says how much of what was not synced survives.
  void power_cut(Dice& dice);
};

}  // namespace kanal::sim
