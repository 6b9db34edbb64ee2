// Compaction as the broker runs it: when, on which topics, how fast, and what happens when it
// cannot.
#include "group_world.hpp"

#include "compactor.hpp"

#include "support/log_lines.hpp"
#include "unit/log/keyed.hpp"

#include <fmt/format.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>

#include <cerrno>
#include <functional>
#include <map>

namespace kanal::broker::test {
namespace {

using coordinator::ConfigSetting;
using kanal::test::LogLines;
using Disk = kanal::test::MemoryFileSystem;
using log::test::KeyedBatch;
using Values = std::map<std::string, std::string>;

/// Runs `then` in the middle of who says these words, the first time.
class Interrupts final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  Interrupts(std::string words, std::function<void()> then)
      : words_(std::move(words)), then_(std::move(then)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& line) override {
    if (then_ == nullptr ||
        !std::string_view(line.payload.data(), line.payload.size()).contains(words_))
      return;
    std::exchange(then_, nullptr)();
  }
  void flush_() override {}

  std::string words_;
  std::function<void()> then_;
};

class CompactorTest : public GroupWorld {
 protected:
  CompactorTest() { restart_with({}); }

  void restart_with(std::map<std::string, std::string> configs) {
    configs.try_emplace("log.cleaner.backoff.ms", "1000");
    GroupWorld::restart_with(configs);
  }
  void make(const std::string& topic, std::vector<ConfigSetting> configs, int partitions = 1) {
    configs.push_back({"internal.segment.bytes", "500"});
    create(topic, partitions, std::move(configs));
  }
  void compacted(const std::string& topic, std::vector<ConfigSetting> more = {}) {
    more.push_back({"cleanup.policy", "compact"});
    more.push_back({"min.cleanable.dirty.ratio", "0.01"});
    make(topic, std::move(more));
  }
  void append(const std::string& topic, const std::string& key, const std::string& value) {
    KeyedBatch keyed;
    keyed.records = {{key, value, clock.wall().value()}};
    const auto appended = GroupWorld::append(topic, 0, log::test::encode(keyed));
    ASSERT_TRUE(appended) << appended.error().detail;
    settle();
  }
  /// `rounds` values of each of three keys; the last ones are "<round>v…".
  void load(const std::string& topic, int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (const char* key : {"a", "b", "c"}) {
        append(topic, key, std::to_string(round) + std::string(40, 'v'));
      }
    }
  }
  std::vector<log::test::KeyedRecord> records(const std::string& topic) {
    std::vector<log::test::KeyedRecord> all;
    const auto held = partition(topic);
    const auto end = held->with_log([](log::Partition& log) { return log.watermarks(); });
    for (Offset from = end->log_start; from < end->high_watermark;) {
      std::vector<log::Slice> slices;
      const auto got = held->read(from, {1 << 20, true, false}, slices, nullptr);
      if (!got) {
        const auto* miss = std::get_if<log::Miss>(&got.error());
        if (miss == nullptr) {
          ADD_FAILURE() << std::get<Error>(got.error()).detail;
          break;
        }
        ADD_FAILURE() << "cold";
        break;
      }
      const Buffer bytes = log::test::bytes_of(slices);
      for (Bytes rest(bytes); !rest.empty();) {
        const std::size_t size = records::parse_header(rest).value().size();
        const auto batch = log::test::decode(rest.first(size));
        all.insert(all.end(), batch.records.begin(), batch.records.end());
        rest = rest.subspan(size);
      }
      from = got->records.next;
    }
    return all;
  }
  Values last(const std::string& topic) {
    Values values;
    for (const auto& record : records(topic)) values[*record.key] = record.value.value_or("-");
    return values;
  }
  std::uint64_t bytes(const std::string& topic) {
    return partition(topic)->with_log([](log::Partition& log) { return log.bytes(); }).value();
  }
  void fill_disk() {
    files.set_content("/others", Buffer(files.space("/data")->usable_bytes));
    pass(1s);
  }
  std::string segment_of(const std::string& topic) {
    for (const std::string& path : files.files()) {
      if (path.find("/kafka." + topic + "/") != std::string::npos && path.ends_with(".log")) {
        return path;
      }
    }
    return {};
  }
};

TEST_F(CompactorTest, CompactsTopicsThatAskForItAndNoOthers) {
  compacted("yes");
  make("no", {{"retention.ms", "-1"}});
  make("neither", {{"cleanup.policy", ""}});
  for (const char* topic : {"yes", "no", "neither"}) load(topic, 20);
  const auto before = bytes("no");
  const Values values = last("yes");
  pass(5s);
  EXPECT_LT(bytes("yes"), before / 3);
  EXPECT_EQ(last("yes"), values);
  EXPECT_EQ(bytes("no"), before);
  EXPECT_EQ(bytes("neither"), before);
}

TEST_F(CompactorTest, ATopicChangedWhileRunningIsCompactedAndMayStopBeing) {
  make("t", {{"retention.ms", "-1"}});
  load("t", 20);
  const auto before = bytes("t");
  pass(5s);
  EXPECT_EQ(bytes("t"), before);
  configure("t", "cleanup.policy", "compact");
  configure("t", "min.cleanable.dirty.ratio", "1");
  pass(5s);
  EXPECT_EQ(bytes("t"), before) << "all of it is dirty, which is not more than all";
  configure("t", "min.cleanable.dirty.ratio", "0.9");
  pass(5s);
  const auto cleaned = bytes("t");
  EXPECT_LT(cleaned, before / 3);
  configure("t", "cleanup.policy", "delete");
  load("t", 20);
  EXPECT_EQ(last("t")["a"], "19" + std::string(40, 'v'));
  pass(5s);
  EXPECT_GT(bytes("t"), before);
}

TEST_F(CompactorTest, AYoungRecordWaitsForItsLagAndAnOldOneForNoRatio) {
  compacted("t", {{"min.compaction.lag.ms", "60000"}});
  load("t", 20);
  const auto before = bytes("t");
  pass(30s);
  EXPECT_EQ(bytes("t"), before);
  pass(40s);
  EXPECT_LT(bytes("t"), before);
  compacted("old", {{"max.compaction.lag.ms", "60000"}});
  configure("old", "min.cleanable.dirty.ratio", "1");
  load("old", 20);
  const auto all = bytes("old");
  pass(30s);
  EXPECT_EQ(bytes("old"), all);
  pass(40s);
  EXPECT_LT(bytes("old"), all);
}

TEST_F(CompactorTest, RetentionGoesOnWhereBothAreAskedFor) {
  restart_with({{"log.retention.check.interval.ms", "1000"}});
  make("t", {{"cleanup.policy", "compact,delete"},
             {"min.cleanable.dirty.ratio", "0.01"},
             {"retention.ms", "60000"}});
  load("t", 20);
  pass(20s);
  const auto start = [&] {
    return partition("t")
        ->with_log([](log::Partition& log) { return log.watermarks().log_start.value(); })
        .value();
  };
  EXPECT_EQ(start(), 0);
  EXPECT_EQ(last("t").size(), 3u);
  pass(120s);
  EXPECT_EQ(start(), 60);
  EXPECT_TRUE(records("t").empty());
  append("t", "a", "new");
  EXPECT_EQ(records("t").front().offset, 60);
}

TEST_F(CompactorTest, StaysWithinItsBytesPerSecond) {
  restart_with({{"log.cleaner.io.max.bytes.per.second", "1000"}});
  compacted("t");
  load("t", 100);
  const auto before = bytes("t");
  ASSERT_GT(before, 30'000u);
  pass(20s);  // a read of all takes longer
  EXPECT_EQ(bytes("t"), before);
  pass(200s);
  EXPECT_LT(bytes("t"), before / 3);
}

TEST_F(CompactorTest, WorkersShareTheirBytesPerSecond) {
  restart_with({{"log.cleaner.threads", "3"}, {"log.cleaner.io.max.bytes.per.second", "1000"}});
  for (const char* topic : {"a", "b", "c"}) {
    compacted(topic);
    load(topic, 60);
  }
  const LogLines lines("broker");
  std::vector<int> ended;
  for (int second = 0; second < 1000 && ended.size() < 3; ++second) {
    pass(1s);
    ended.resize(lines.with("A log was compacted"), second);
  }
  ASSERT_EQ(ended.size(), 3U) << lines.text();
  EXPECT_GT(ended.front(), ended.back() * 9 / 10) << "logs of one size end together";
}

TEST_F(CompactorTest, MayBeSwitchedOff) {
  restart_with({{"log.cleaner.enable", "false"}});
  compacted("t");
  load("t", 20);
  const auto before = bytes("t");
  pass(60s);
  EXPECT_EQ(bytes("t"), before);
}

TEST_F(CompactorTest, ADamagedLogIsSetAsideUntilItsTopicChangesAndOthersGoOn) {
  compacted("bad");
  compacted("good");
  load("bad", 20);
  load("good", 20);
  const auto before = bytes("good");
  const std::string path = segment_of("bad");
  const Buffer whole = *files.content(path);
  Buffer damaged = whole;
  damaged[80] ^= std::byte{1};
  files.set_content(path, damaged);
  const auto bad = bytes("bad");
  pass(10s);
  EXPECT_EQ(bytes("bad"), bad);
  EXPECT_LT(bytes("good"), before / 3);
  append("bad", "goes", "on");
  files.set_content(path, whole);
  pass(10s);
  EXPECT_EQ(bytes("bad"), bytes("bad"));
  EXPECT_GT(bytes("bad"), bad);
  configure("bad", "min.cleanable.dirty.ratio", "0.02");
  pass(10s);
  EXPECT_LT(bytes("bad"), bad / 3);
}

TEST_F(CompactorTest, ATopicDeletedDuringAPassTakesNothingWithIt) {
  restart_with({{"log.cleaner.io.max.bytes.per.second", "1000"}});
  compacted("t");
  load("t", 60);
  pass(15s);  // in the middle
  remove("t");
  compacted("t");
  load("t", 4);
  const Values values = last("t");
  pass(100s);
  EXPECT_EQ(last("t"), values);
}

TEST_F(CompactorTest, NoPassBeginsWhileTheDiskIsFull) {
  files.set_capacity(1 << 20);
  reserve = 64 << 10;
  restart_with({});
  pass(2s);
  compacted("t");
  load("t", 20);
  const auto before = bytes("t");
  const LogLines lines("broker");
  fill_disk();
  pass(100s);
  EXPECT_EQ(bytes("t"), before) << "what was given up is not for compaction";
  EXPECT_EQ(lines.with("compacted"), 0U) << lines.text();
  files.erase("/others");
  pass(5s);
  EXPECT_LT(bytes("t"), before / 3);
}

TEST_F(CompactorTest, APassRestsWhileTheDiskIsFullAndThenGoesOn) {
  files.set_capacity(1 << 20);
  reserve = 64 << 10;
  restart_with({{"log.cleaner.io.max.bytes.per.second", "1000"}});
  pass(2s);
  compacted("t");
  load("t", 100);
  const auto before = bytes("t");
  pass(15s);  // in the middle
  const LogLines lines("broker");
  fill_disk();
  pass(300s);
  EXPECT_EQ(bytes("t"), before);
  EXPECT_EQ(lines.with("compacted"), 0U) << lines.text();
  files.erase("/others");
  pass(200s);
  EXPECT_LT(bytes("t"), before / 3);
  EXPECT_EQ(lines.with("A log was compacted"), 1U) << lines.text();
}

TEST_F(CompactorTest, AFailedLookTakesNoLogFromTheWorkerThatCleansIt) {
  restart_with({{"log.cleaner.threads", "2"}, {"log.cleaner.io.max.bytes.per.second", "100"}});
  make("t", {{"retention.ms", "-1"}, {"min.cleanable.dirty.ratio", "0.01"}});
  load("t", 20);  // a pass takes longer than a log is set aside for
  pass(5s);
  configure("t", "cleanup.policy", "compact");
  const auto before = bytes("t");
  const LogLines lines("broker");
  files.fail({.kinds = Disk::kAll, .error = EMFILE, .sticky = true});
  std::optional<Time> began;
  const auto interrupts = std::make_shared<Interrupts>("could not be compacted", [&] {
    files.clear_faults();
    began = clock.now();
    while (helpers.run_one()) {  // the other worker begins
    }
  });
  auto& sinks = logger("broker").sinks();
  sinks.push_back(interrupts);
  for (int second = 0; second < 1000 && lines.with("A log was compacted") == 0; ++second) pass(1s);
  std::erase(sinks, interrupts);
  ASSERT_TRUE(began) << lines.text();
  const auto took = std::chrono::duration<double>(clock.now() - *began).count();
  EXPECT_GT(took, 60) << "the failed look is over, and the log would have been taken once more";
  EXPECT_EQ(lines.with(fmt::format("seconds={:.3f}", took)), 1U) << lines.text();
  pass(100s);
  EXPECT_EQ(lines.with("could not be compacted"), 1U) << lines.text();
  EXPECT_EQ(lines.with("A log was compacted"), 1U) << lines.text();
  EXPECT_LT(bytes("t"), before / 3);
}

TEST_F(CompactorTest, AStopOrAKillInThePassLosesNothingAndItIsDoneAgain) {
  for (const bool clean : {true, false}) {
    restart_with({{"log.cleaner.io.max.bytes.per.second", "2000"}});
    const std::string topic = clean ? "clean" : "killed";
    compacted(topic);
    load(topic, 60);
    const auto before = bytes(topic);
    const Values values = last(topic);
    for (int i = 0; i < 20; ++i) {
      pass(4s);
      if (clean) {
        stop();
        start();
      } else {
        kill();
      }
      ASSERT_EQ(last(topic), values);
    }
    pass(100s);
    EXPECT_LT(bytes(topic), before / 3);
    EXPECT_EQ(last(topic), values);
  }
}

}  // namespace
}  // namespace kanal::broker::test
