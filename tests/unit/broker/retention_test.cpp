// Retention as the broker runs it: when, on which topics, and that all who ask see the same start.
#include "group_world.hpp"

#include "support/log_lines.hpp"
#include "unit/log/world.hpp"

namespace kanal::broker::test {
namespace {

using coordinator::ConfigSetting;
using log::test::BatchSpec;
using log::test::make_batch;

constexpr auto kInterval = 10s;

class RetentionTest : public GroupWorld {
 protected:
  using Configs = std::map<std::string, std::string>;
  RetentionTest() { restart_with(kConfigs); }

  /// A topic whose segments take one batch each.
  void make(const std::string& topic, std::vector<ConfigSetting> configs, int partitions = 1) {
    configs.push_back({"internal.segment.bytes", std::to_string(kBatch)});
    create(topic, partitions, std::move(configs));
  }
  Result<log::AppendResult> try_append(const std::string& topic, BatchSpec spec, int index = 0) {
    if (spec.timestamp == 1000) spec.timestamp = clock.wall().value();
    auto appended = GroupWorld::append(topic, index, make_batch(spec));
    settle();
    return appended;
  }
  void append(const std::string& topic, const BatchSpec& spec = {}, int index = 0) {
    const auto appended = try_append(topic, spec, index);
    ASSERT_TRUE(appended) << appended.error().detail;
  }
  std::int64_t first(const std::string& topic, int index = 0) {
    return partition(topic, index)
        ->with_log([](log::Partition& log) { return log.watermarks().log_start.value(); })
        .value();
  }
  std::uint64_t bytes(const std::string& topic, int index = 0) {
    return partition(topic, index)
        ->with_log([](log::Partition& log) { return log.bytes(); })
        .value();
  }
  ErrorCode read(const std::string& topic, std::int64_t from) {
    std::vector<log::Slice> slices;
    const auto got = partition(topic)->read(Offset(from), {1 << 20, true, false}, slices, nullptr);
    return got ? ErrorCode::NONE : std::get<Error>(got.error()).code;
  }
  std::size_t files_named(std::string_view part) {
    std::size_t count = 0;
    for (const std::string& path : files.files()) {
      count += path.find(part) != std::string::npos && path.ends_with(".log") ? 1 : 0;
    }
    return count;
  }

  static inline const Configs kConfigs = {{"log.retention.check.interval.ms", "10000"}};
  static inline const std::uint64_t kBatch = make_batch({}).size();
};

TEST_F(RetentionTest, OldSegmentsGoAtTheCheckAndEverybodySeesTheSameStart) {
  make("t", {{"retention.ms", "60000"}});
  for (int i = 0; i < 3; ++i) append("t");
  pass(55s);
  append("t");
  EXPECT_EQ(first("t"), 0);
  pass(5s + 2 * kInterval);
  EXPECT_EQ(first("t"), 3);
  EXPECT_EQ(bytes("t"), kBatch);
  EXPECT_EQ(read("t", 2), ErrorCode::OFFSET_OUT_OF_RANGE);
  EXPECT_EQ(read("t", 3), ErrorCode::NONE);
  pass(80s);
  EXPECT_EQ(first("t"), 4) << "the one being written too";
  EXPECT_EQ(bytes("t"), 0U);
  append("t");
  EXPECT_EQ(read("t", 4), ErrorCode::NONE);
}

TEST_F(RetentionTest, FilesGoOnceTheirDelayHasPassed) {
  make("t", {{"retention.ms", "1000"}, {"file.delete.delay.ms", "30000"}});
  append("t");
  pass(2 * kInterval);
  EXPECT_EQ(first("t"), 1);
  EXPECT_EQ(files_named("/kafka.t/"), 0U);
  EXPECT_EQ(files_named("/.removed/"), 1U);
  pass(31s);
  EXPECT_EQ(files_named("/.removed/"), 0U);
}

TEST_F(RetentionTest, AChangeWhileRunningActsAtTheNextCheck) {
  make("t", {{"retention.ms", "-1"}});
  for (int i = 0; i < 4; ++i) append("t");
  pass(10min);
  EXPECT_EQ(first("t"), 0);
  configure("t", "retention.bytes", std::to_string(2 * kBatch));
  pass(2 * kInterval);
  EXPECT_EQ(first("t"), 2);
  configure("t", "retention.ms", "1000");
  pass(2 * kInterval);
  EXPECT_EQ(first("t"), 4);
}

TEST_F(RetentionTest, TheBrokersDefaultIsForTopicsThatSetNothing) {
  make("kept", {{"retention.ms", "-1"}});
  make("t", {});
  append("kept");
  append("t");
  coordinator::AlterConfigs command;
  command.type = coordinator::ConfigResourceType::kBroker;
  command.changes = std::vector<coordinator::ConfigAlteration>{
      {"log.retention.ms", coordinator::ConfigOperation::kSet, "5000"}};
  Context context{
      .broker = *broker, .io = *threads[0], .peer = peer, .client_id = {}, .slices = {}};
  auto changing = [](Context& asking, coordinator::AlterConfigs what) -> Task<void> {
    std::vector<coordinator::AlterConfigs> commands;
    commands.push_back(std::move(what));
    const auto replies = co_await asking.broker.change_configs(asking, std::move(commands));
    EXPECT_TRUE(replies.at(0)) << replies[0].error().detail;
  };
  run(changing(context, std::move(command)), *threads[0]);
  pass(2 * kInterval);
  EXPECT_EQ(first("t"), 1);
  EXPECT_EQ(first("kept"), 0);
}

TEST_F(RetentionTest, OnlyTopicsThatDeleteLoseAnything) {
  const std::vector<std::pair<std::string, std::string>> policies = {
      {"none", ""}, {"compacted", "compact"}, {"both", "compact,delete"}, {"deleted", "delete"}};
  for (const auto& [name, policy] : policies) {
    make(name, {{"retention.ms", "1000"}, {"retention.bytes", "0"}, {"cleanup.policy", policy}});
    append(name);
  }
  pass(1min);
  EXPECT_EQ(first("none"), 0);
  EXPECT_EQ(first("compacted"), 0);
  EXPECT_EQ(first("both"), 1);
  EXPECT_EQ(first("deleted"), 1);
  configure("none", "cleanup.policy", "delete");
  pass(2 * kInterval);
  EXPECT_EQ(first("none"), 1);
}

TEST_F(RetentionTest, NoRecordComesBackAfterAKillAndProducersGoOn) {
  make("t", {{"retention.ms", "1000"}});
  for (int i = 0; i < 5; ++i) append("t", {.producer = 9, .epoch = 0, .sequence = i});
  pass(2 * kInterval);
  ASSERT_EQ(first("t"), 5);
  kill();
  EXPECT_EQ(first("t"), 5);
  EXPECT_EQ(read("t", 4), ErrorCode::OFFSET_OUT_OF_RANGE);
  const auto again = try_append("t", {.producer = 9, .epoch = 0, .sequence = 4});
  ASSERT_TRUE(again) << again.error().detail;
  EXPECT_TRUE(again->duplicate);
  append("t", {.producer = 9, .epoch = 0, .sequence = 5});
}

TEST_F(RetentionTest, AFetchThatWaitsBelowTheNewStartWakes) {
  make("t", {{"retention.ms", "1000"}});
  append("t");
  const auto wait = std::make_shared<FetchWait>(*threads[1], 1'000'000);
  std::vector<log::Slice> slices;
  ASSERT_TRUE(partition("t")->read(Offset(0), {1 << 20, true, false}, slices, wait.get()));
  slices.clear();
  pass(2 * kInterval);
  EXPECT_TRUE(wait->event().fired());
  EXPECT_EQ(read("t", 0), ErrorCode::OFFSET_OUT_OF_RANGE);
  wait->leave();
}

TEST_F(RetentionTest, EveryPartitionOfManyIsLookedAt) {
  make("many", {{"retention.ms", "1000"}}, 700);
  make("more", {{"retention.ms", "1000"}}, 20);
  for (int i = 0; i < 700; i += 7) append("many", {}, i);
  append("more", {}, 19);
  pass(2 * kInterval);
  for (int i = 0; i < 700; i += 7) EXPECT_EQ(first("many", i), 1) << i;
  EXPECT_EQ(first("more", 19), 1);
}

TEST_F(RetentionTest, TheLimitForAllLogsTakesFromTheFullestTopic) {
  coordinator::NodeOptions node;
  node.retention_total_bytes = 9 * kBatch;
  restart_with(kConfigs, node);
  make("forever", {{"cleanup.policy", ""}});
  make("small", {});
  make("large", {}, 2);
  for (int i = 0; i < 3; ++i) append("forever");
  for (int i = 0; i < 2; ++i) append("small");
  for (int i = 0; i < 2; ++i) append("large", {}, 1);  // the oldest of the topic
  pass(1ms);
  for (int i = 0; i < 4; ++i) append("large", {}, 0);
  pass(2 * kInterval);
  EXPECT_EQ(first("large", 1), 1) << "its active segment stays";
  EXPECT_EQ(first("large", 0), 1);
  EXPECT_EQ(first("small"), 0);
  EXPECT_EQ(first("forever"), 0);
  for (int i = 0; i < 20; ++i) append("forever");
  pass(2 * kInterval);
  EXPECT_EQ(first("forever"), 0);
  EXPECT_EQ(first("large", 0), 3);
  EXPECT_EQ(first("small"), 1);
}

TEST_F(RetentionTest, TheLimitForAllLogsIsHeldInSlicesToo) {
  constexpr int kPartitions = 1000;
  coordinator::NodeOptions node;
  node.retention_total_bytes = kPartitions * kBatch;
  restart_with(kConfigs, node);
  make("many", {}, kPartitions);
  for (int i = 0; i < kPartitions; ++i) append("many", {}, i);
  pass(2 * kInterval);
  const auto round = [&] {
    std::size_t slices = 0;
    for (Duration passed{}; passed < kInterval; passed += 1s) {
      helpers.paused = true;
      pass(1s);
      helpers.paused = false;
      while (helpers.run_one()) ++slices;
    }
    return slices;
  };
  const std::size_t below = round();
  for (int i = 0; i < kPartitions; i += 100) append("many", {}, i);
  EXPECT_GE(round(), below + kPartitions / 256 + 1) << "not all of it in one piece";
  for (int i = 0; i < kPartitions; ++i) EXPECT_EQ(first("many", i), i % 100 == 0 ? 1 : 0) << i;
}

TEST_F(RetentionTest, ATopicDeletedWhileTheLimitIsHeldHarmsNothing) {
  coordinator::NodeOptions node;
  node.retention_total_bytes = 1;
  restart_with(kConfigs, node);
  make("kept", {}, 600);
  for (int i = 0; i < 2; ++i) append("kept", {}, 599);
  make("many", {}, 600);
  for (int i = 0; i < 600; i += 100) {
    append("many", {}, i);
    append("many", {}, i);
  }
  helpers.paused = true;
  pass(kInterval + 1s);
  helpers.paused = false;
  for (int i = 0; i < 9; ++i) helpers.run_one();  // the round is between its looks
  remove("many");
  pass(2 * kInterval);
  EXPECT_EQ(first("kept", 599), 1);
}

TEST_F(RetentionTest, AFutureTimestampIsToldOncePerSegmentNotAtEveryCheck) {
  make("t", {{"retention.ms", "1000"}});
  append("t", {.timestamp = clock.wall().value() + 3'600'000});
  const kanal::test::LogLines lines("broker");
  pass(5 * kInterval);
  EXPECT_EQ(lines.with("timestamp in the future"), 1U) << lines.text();
  configure("t", "retention.ms", "-1");
  pass(2 * kInterval);
  configure("t", "retention.ms", "1000");
  pass(3 * kInterval);
  EXPECT_EQ(lines.with("timestamp in the future"), 2U) << lines.text();
}

TEST_F(RetentionTest, AfterTheStopNothingIsTouched) {
  make("t", {{"retention.ms", "1000"}});
  append("t");
  helpers.paused = true;
  pass(2 * kInterval);  // a round is queued
  EXPECT_TRUE(broker->stop({}));
  const auto before = files.files();
  helpers.paused = false;
  settle();
  EXPECT_EQ(files.files(), before);
  helpers.forget();
  broker.reset();
  threads.clear();
  start();
  EXPECT_EQ(first("t"), 0);
  pass(2 * kInterval);
  EXPECT_EQ(first("t"), 1);
}

TEST_F(RetentionTest, AFullDiskIsFreedByWhatTheLastCheckpointCovers) {
  make("t", {{"retention.ms", "5000"}, {"file.delete.delay.ms", "0"}});
  for (int i = 0; i < 4; ++i) append("t");
  ASSERT_TRUE(partition("t")->checkpoint());
  append("t");
  files.set_capacity(files.bytes());
  pass(2 * kInterval);
  EXPECT_GE(first("t"), 4);
  EXPECT_LE(files_named("/kafka.t/"), 1U);
  files.set_capacity(std::nullopt);
  pass(2 * kInterval);
  EXPECT_EQ(first("t"), 5);
}

}  // namespace
}  // namespace kanal::broker::test
