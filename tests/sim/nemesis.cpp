// Breaks things at random moments: restarts, kill -9 between and within operations, power cuts,
// disks that fail or fill up, stalls, broken connections. What it breaks it mends.
#include <cerrno>

#include "actors.hpp"

namespace kanal::sim {
namespace {

using namespace std::chrono_literals;
using Files = test::MemoryFileSystem;

enum class Blow {
  kStop,
  kKill,
  kDie,
  kPowerCut,
  kDieByPower,
  kColdDisk,
  kDiskError,
  kDiskFull,
  kStoreError,
  kStoreFull,
  kStall,
  kHangUp
};

std::vector<Blow> possible(const Profile& profile) {
  std::vector<Blow> blows{Blow::kColdDisk, Blow::kHangUp};
  if (profile.restarts) blows.insert(blows.end(), {Blow::kStop, Blow::kStop});
  if (profile.deaths) blows.insert(blows.end(), {Blow::kKill, Blow::kDie, Blow::kDie, Blow::kKill});
  if (profile.power_cuts) blows.insert(blows.end(), {Blow::kPowerCut, Blow::kDieByPower});
  if (profile.disk_faults) {
    blows.insert(blows.end(),
                 {Blow::kDiskError, Blow::kDiskFull, Blow::kStoreError, Blow::kStoreFull});
  }
  if (profile.stalls) blows.push_back(Blow::kStall);
  return blows;
}

/// One write, sync or rename fails; a log that met it takes nothing more until a restart.
broker::Task<void> fail_disk(World& world, Dice& dice) {
  const std::uint32_t kinds[] = {Files::kWrite, Files::kSync, Files::kAllocate, Files::kChanges,
                                 Files::kSyncDirectory | Files::kRename};
  Files::Fault fault;
  fault.at = dice.below(30);
  fault.kinds = dice.pick(kinds);
  fault.error = EIO;
  fault.sticky = dice.percent(20);
  world.set_trouble();
  world.computer().disk.fail(fault);
  const Duration patience = dice.milliseconds(500, 10'000);
  co_await world.sleep(patience);
  if (dice.percent(50)) {
    world.kill(false, dice.milliseconds(1, 2'000));
  } else {
    world.computer().disk.clear_faults();
    world.stop_cleanly(dice.milliseconds(1, 2'000));
  }
}

/// No room for a while; what was refused works again once there is some.
broker::Task<void> fill_disk(World& world, Dice& dice) {
  world.set_trouble();
  world.computer().disk.set_capacity(world.computer().disk.bytes() + dice.below(3000));
  const Duration patience = dice.milliseconds(200, 5'000);
  co_await world.sleep(patience);
  world.computer().disk.set_capacity(std::nullopt);
  world.end_trouble();
}

broker::Task<void> fail_store(World& world, Dice& dice, bool full) {
  world.set_trouble();
  StoreTrouble& trouble = world.process()->store_trouble();
  if (full)
    trouble.full_writes += dice.below(4) + 1;
  else
    trouble.broken = true;
  const Duration patience = dice.milliseconds(200, 5'000);
  co_await world.sleep(patience);
  if (!full)
    world.kill(false, dice.milliseconds(1, 2'000));
  else
    world.end_trouble();
}

broker::Task<void> strike(World& world, Dice& dice, Blow blow) {
  const Duration downtime = dice.milliseconds(1, dice.percent(20) ? 15'000 : 500);
  const std::uint64_t changes = dice.below(dice.percent(50) ? 20 : 400);
  switch (blow) {
    case Blow::kStop:
      if (dice.percent(20)) world.plan_death_at_start(dice.below(60));
      if (dice.percent(20)) world.process()->life().die_after(dice.below(20));  // while it stops
      world.stop_cleanly(downtime);
      break;
    case Blow::kPowerCut:
    case Blow::kKill:
      if (dice.percent(20)) world.plan_death_at_start(dice.below(60));
      world.kill(blow == Blow::kPowerCut, downtime);
      break;
    case Blow::kDieByPower:
    case Blow::kDie:
      if (blow == Blow::kDieByPower) world.plan_power_cut();
      world.process()->life().die_after(changes);
      break;
    case Blow::kColdDisk:
      world.computer().disk.drop_caches();
      break;
    case Blow::kDiskError:
      co_await fail_disk(world, dice);
      break;
    case Blow::kDiskFull:
      co_await fill_disk(world, dice);
      break;
    case Blow::kStoreError:
    case Blow::kStoreFull:
      co_await fail_store(world, dice, blow == Blow::kStoreFull);
      break;
    case Blow::kStall:
      world.stall(dice.milliseconds(100, 30'000));
      break;
    case Blow::kHangUp:
      world.close_connections(dice.between(10, 100));
      break;
  }
}

}  // namespace

broker::Task<void> follow_script(World& world) {
  for (int i = 0; world.running(); ++i) {
    const Duration pause = 7s;
    co_await world.sleep(pause);
    if (!world.running() || world.process() == nullptr) continue;
    world.count_step();
    const Duration downtime = 50ms;
    if (i % 2 == 0)
      world.stop_cleanly(downtime);
    else
      world.kill(false, downtime);
  }
}

broker::Task<void> break_things(World& world) {
  Dice dice = world.fork_dice();
  std::vector<Blow> blows = possible(world.profile());
  while (world.running()) {
    const auto most = world.profile().between_faults / 1ms;
    const Duration pause = dice.milliseconds(10, static_cast<int>(most));
    co_await world.sleep(pause);
    if (!world.running()) break;
    if (world.process() == nullptr) continue;
    const Blow blow = dice.pick(blows);
    world.count_step();
    world.trace("nemesis: blow {}", static_cast<int>(blow));
    co_await strike(world, dice, blow);
  }
}

}  // namespace kanal::sim
