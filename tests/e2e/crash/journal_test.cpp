// kill -9 again and again while producers write to many partitions whose records are acknowledged
// after a sync, most of them by way of the shared journal: nothing acknowledged is missing, doubled
// or reordered, the journal is replayed at each start, and a clean stop leaves it empty.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>
#include <thread>

#include "broker_process.hpp"
#include "reading.hpp"

namespace kanal::e2e {
namespace {

constexpr int kPartitions = 20;
constexpr int kRounds = 5;
constexpr std::size_t kEach = 2'000;  // records acknowledged before each end

/// The file is made in the background, its headers last.
bool is_made(const std::filesystem::path& journal) {
  char magic[4] = {};
  std::ifstream(journal, std::ios::binary).read(magic, sizeof magic);
  return std::string_view(magic, sizeof magic) == "KNLJ";
}

TEST(SharedJournal, NothingAcknowledgedIsLostByKillsInTheMiddleOfIt) {
  BrokerProcess broker(KANALD);
  broker.start();
  ASSERT_TRUE(
      Admin(broker.address()).create({"synced", kPartitions, {{"flush.messages", "1"}}}).ok());
  std::vector<std::unique_ptr<Load>> loads;
  for (int id = 1; id <= 3; ++id) {
    loads.push_back(std::make_unique<Load>(
        broker.address(), LoadOptions{.id = id,
                                      .topic = "synced",
                                      .partitions = kPartitions,
                                      .promise = id == 3 ? Promise::kAtLeastOnce
                                                         : Promise::kExactlyOnce}));
  }
  const auto acknowledged = [&] {
    std::size_t sum = 0;
    for (const auto& load : loads) sum += load->acknowledged();
    return sum;
  };
  const auto until = [&](const auto& reached) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (!reached()) {
      broker.expect_running();
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "nothing moves";
      std::this_thread::sleep_for(milliseconds(5));
    }
  };
  const auto journal = broker.channel("synced", 0).parent_path() / "journal";
  until([&] { return is_made(journal); });
  for (int round = 0; round < kRounds && !HasFatalFailure(); ++round) {
    const std::size_t wanted = acknowledged() + kEach;
    until([&] { return acknowledged() >= wanted; });
    broker.kill9();
    broker.start();
    EXPECT_LE(broker.start_figure("broken"), 0);
    EXPECT_EQ(broker.log_lines("The shared journal was replayed").size(), 1U) << "round " << round;
  }
  for (const auto& load : loads) load->finish();
  const Content content = read_topic(broker.address(), "synced", kPartitions);
  for (const auto& load : loads) expect_promise(*load, content);

  EXPECT_EQ(broker.terminate(), 0);
  broker.start();
  EXPECT_TRUE(broker.log_lines("The shared journal").empty()) << "a stop leaves it empty";
  EXPECT_EQ(read_topic(broker.address(), "synced", kPartitions), content);
}

}  // namespace
}  // namespace kanal::e2e
