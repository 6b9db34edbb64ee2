// kill -9 at random under mixed load, and on a disk that fails: every promise holds.
// KILL_ROUNDS=100 makes each test that long (a few by themselves), HISTORY_SEED draws anew,
// HISTORY_FILE keeps the history; `history_check FILE` checks one again.
#include <gtest/gtest.h>

#include <cstdlib>

#include "kill_world.hpp"

namespace kanal::e2e {
namespace {

int number(const char* name, int usual) {
  const char* text = variable(name);
  return text == nullptr ? usual : std::max(1, std::atoi(text));
}

TEST(Killed, AtRandomUnderMixedLoadItKeepsEveryPromise) {
  KillWorld world(static_cast<unsigned>(number("HISTORY_SEED", 1)));
  world.start();
  for (int i = number("KILL_ROUNDS", 8); i > 0; --i) world.round();
  world.finish();
}

TEST(Killed, OnADiskThatFailsItKeepsEveryPromise) {
  KillWorld world(static_cast<unsigned>(number("HISTORY_SEED", 2)), true);
  world.start();
  for (int i = number("KILL_ROUNDS", 8); i > 0; --i) world.faulty_round();
  world.finish();
}

}  // namespace
}  // namespace kanal::e2e
