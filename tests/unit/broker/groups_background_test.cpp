// What runs beside the requests of groups: failures and their mending, deadlines, sweeps.
#include "group_world.hpp"
#include "support/log_lines.hpp"

namespace kanal::broker::test {
namespace {

using kanal::test::LogLines;
using reserved::MemoryStore;

struct GroupsBackground : GroupWorld {};

TEST_F(GroupsBackground, WritesThatFailAgainAndAgainAreLoggedOnceASecond) {
  create("t");
  const LogLines lines("broker");
  for (int i = 0; i < 10; ++i) {
    store.fail_write(1, MemoryStore::Failure::kDiskFull);
    EXPECT_EQ(commit("g", "t", 1), ErrorCode::COORDINATOR_NOT_AVAILABLE);
    pass(250ms);
  }
  EXPECT_EQ(lines.with("A group could not be stored"), 3U) << lines.text();
}

}  // namespace
}  // namespace kanal::broker::test
