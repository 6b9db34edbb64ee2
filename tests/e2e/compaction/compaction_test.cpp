// Compacted topics under librdkafka: what is left is the last value of each key, over kill -9 too,
// and is what Apache Kafka 4.4 leaves of the same load. Its results are in
// tests/golden/compaction; KANAL_RECORD_COMPACTION=host:port records them from a running Kafka
// (started with log.cleaner.backoff.ms=1000).
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker_process.hpp"
#include "client.hpp"

namespace kanal::e2e {
namespace {

using std::chrono::steady_clock;
constexpr auto kCompactionPatience = std::chrono::seconds(60);

/// One line a record: offset, key, the value's size and a checksum of it; "-" for a tombstone.
std::string line_of(const Record& record) {
  std::string value = "-";
  if (record.value) {
    std::uint32_t sum = 2166136261;  // FNV-1a
    for (const char byte : *record.value) {
      sum = (sum ^ static_cast<unsigned char>(byte)) * 16777619U;
    }
    value = std::to_string(record.value->size()) + "\t" + std::to_string(sum);
  }
  return std::to_string(record.offset) + "\t" + record.key.value_or("?") + "\t" + value;
}

std::vector<std::string> lines_below(const std::string& address, const std::string& topic,
                                     std::int64_t end) {
  Consumer consumer(address);
  consumer.assign({{topic, 0, RD_KAFKA_OFFSET_BEGINNING}});
  std::vector<std::string> lines;
  for (const Record& record : consumer.read_to_end()) {
    if (record.offset < end) lines.push_back(line_of(record));
  }
  return lines;
}

std::string text(std::uint32_t seed, std::size_t size) {
  std::string out;
  while (out.size() < size) {
    seed = seed * 1664525U + 1013904223U;
    out += "word" + std::to_string(seed >> 12) + " and ";
  }
  out.resize(size);
  return out;
}

constexpr std::int64_t kLoad = 1'500;

/// The same for every broker: batches of ten records, some keys often, every seventh a tombstone.
void load(const std::string& address, const std::string& topic, const std::string& codec) {
  Producer producer(address, {{"enable.idempotence", "true"},
                              {"compression.type", codec},
                              {"linger.ms", "5000"},
                              {"batch.num.messages", "10"}});
  std::uint32_t seed = 7;
  for (std::int64_t i = 0; i < kLoad; ++i) {
    seed = seed * 1664525U + 1013904223U;
    const std::uint32_t key = (seed >> 10) % 3 == 0 ? (seed >> 12) % 20 : (seed >> 12) % 400;
    Record record{.topic = topic, .key = "key-" + std::to_string(key)};
    if (i % 7 != 3) record.value = text(seed, 3'000 + (seed >> 8) % 3'000);
    ASSERT_EQ(producer.send(record), RD_KAFKA_RESP_ERR_NO_ERROR);
    if (i % 10 == 9) producer.flush();
  }
  for (const Delivery& delivery : producer.flush()) ASSERT_EQ(delivery.error, 0);
}

/// Moves what was written out of the segment being written.
void fill(const std::string& address, const std::string& topic) {
  static std::uint32_t number = 0;
  Producer producer(address);
  for (int i = 0; i < 12; ++i) {
    std::string value(100'000, 'f');
    Record record{.topic = topic, .key = "fill-" + std::to_string(++number), .value = value};
    ASSERT_EQ(producer.deliver(record).error, 0);
  }
}

struct Case {
  const char* name;
  const char* codec;
  bool tombstones_go;
};
void PrintTo(const Case& of, std::ostream* out) {
  *out << of.name;
}
constexpr Case kCases[] = {{"none", "none", false},     {"gzip", "gzip", false},
                           {"snappy", "snappy", false}, {"lz4", "lz4", false},
                           {"zstd", "zstd", false},     {"tombstones-gone", "lz4", true}};

/// Loads, and lets the broker compact until nothing changes any more.
std::vector<std::string> compacted(const std::string& address, const Case& of) {
  const std::string topic = std::string("compaction-") + of.name;
  Admin admin(address);
  EXPECT_TRUE(admin
                  .create({topic,
                           1,
                           {{"cleanup.policy", "compact"},
                            {"segment.bytes", "1048576"},
                            {"min.cleanable.dirty.ratio", "0.01"},
                            {"file.delete.delay.ms", "0"},
                            {"delete.retention.ms", of.tombstones_go ? "1" : "86400000"}}})
                  .ok());
  load(address, topic, of.codec);
  fill(address, topic);
  std::vector<std::string> lines;
  int same = 0;
  for (const auto end = steady_clock::now() + kCompactionPatience; steady_clock::now() < end;) {
    std::this_thread::sleep_for(milliseconds(500));
    if (of.tombstones_go) fill(address, topic);  // passes come with new records
    auto now = lines_below(address, topic, kLoad);
    const bool shrunk = std::cmp_less(now.size(), kLoad) && !now.empty();
    same = shrunk && now == lines ? same + 1 : 0;
    lines = std::move(now);
    const bool gone =
        std::ranges::none_of(lines, [](const std::string& line) { return line.ends_with("\t-"); });
    if (same >= 8 && (gone || !of.tombstones_go)) break;
  }
  EXPECT_TRUE(admin.remove(topic).ok());
  return lines;
}

std::string golden_file(const Case& of) {
  return std::string(KANAL_GOLDEN_DIR) + "/compaction/" +
         (of.tombstones_go ? "tombstones-gone.tsv" : "kept.tsv");  // whatever the codec
}

class LikeKafka : public testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() {
    if (std::getenv("KANAL_RECORD_COMPACTION") != nullptr) return;
    broker = std::make_unique<BrokerProcess>(
        KANALD, std::vector<std::string>{"log.cleaner.backoff.ms=1000"});
    broker->start();
  }
  static void TearDownTestSuite() {
    if (broker == nullptr) return;
    EXPECT_EQ(broker->terminate(), 0);
    EXPECT_THAT(broker->log_lines(" error "), testing::IsEmpty());
    broker.reset();
  }
  static inline std::unique_ptr<BrokerProcess> broker;
};
INSTANTIATE_TEST_SUITE_P(Compaction, LikeKafka, testing::ValuesIn(kCases), [](const auto& of) {
  std::string name = of.param.name;
  std::erase(name, '-');
  return name;
});

TEST_P(LikeKafka, EndsInTheSameRecordsAtTheSameOffsets) {
  const char* kafka = std::getenv("KANAL_RECORD_COMPACTION");
  const auto lines = compacted(kafka != nullptr ? kafka : broker->address(), GetParam());
  if (kafka != nullptr) {
    std::ofstream file(golden_file(GetParam()));
    for (const std::string& line : lines) file << line << "\n";
    return;
  }
  std::ifstream file(golden_file(GetParam()));
  std::vector<std::string> expected;
  for (std::string line; std::getline(file, line);) expected.push_back(line);
  ASSERT_FALSE(expected.empty()) << golden_file(GetParam());
  EXPECT_EQ(lines, expected);
}

class Compaction : public testing::Test {
 protected:
  Compaction() : broker_(KANALD, {"log.cleaner.backoff.ms=1000"}) { broker_.start(); }
  ~Compaction() override {
    if (!broker_.running()) return;
    EXPECT_EQ(broker_.terminate(), 0);
    EXPECT_THAT(broker_.log_lines(" error "), testing::IsEmpty());
  }
  void make(const std::string& policy) {
    ASSERT_TRUE(Admin(broker_.address())
                    .create({"t",
                             1,
                             {{"cleanup.policy", policy},
                              {"internal.segment.bytes", "20000"},
                              {"min.cleanable.dirty.ratio", "0.01"},
                              {"file.delete.delay.ms", "0"}}})
                    .ok());
  }
  std::vector<Record> read(std::int64_t from = RD_KAFKA_OFFSET_BEGINNING) {
    Consumer consumer(broker_.address());
    consumer.assign({{"t", 0, from}});
    return consumer.read_to_end();
  }
  /// Waits until at most `most` records are left.
  void expect_shrunk(std::size_t most) {
    const auto end = steady_clock::now() + kCompactionPatience;
    while (read().size() > most && steady_clock::now() < end) {
      std::this_thread::sleep_for(milliseconds(200));
    }
    ASSERT_LE(read().size(), most);
  }

  BrokerProcess broker_;
};

TEST_F(Compaction, NoKeyLosesItsLastValueWhileTheBrokerIsKilledAgainAndAgain) {
  make("compact");
  const std::string codecs[] = {"none", "gzip", "snappy", "lz4", "zstd"};
  std::map<std::string, std::pair<std::int64_t, std::string>> last;
  std::vector<std::unique_ptr<Producer>> producers;
  for (const std::string& codec : codecs) {
    producers.push_back(
        std::make_unique<Producer>(broker_.address(), Settings{{"enable.idempotence", "true"},
                                                               {"compression.type", codec},
                                                               {"batch.num.messages", "7"}}));
  }
  for (int round = 0; round < 8; ++round) {
    for (auto& producer : producers) {
      std::vector<std::pair<std::string, std::string>> sent;
      for (int i = 0; i < 100; ++i) {
        const auto number = static_cast<std::uint32_t>(round * 1'000 + i);
        sent.emplace_back("key-" + std::to_string(i % 30), text(number, 100 + number % 300));
        ASSERT_EQ(
            producer->send({.topic = "t", .key = sent.back().first, .value = sent.back().second}),
            RD_KAFKA_RESP_ERR_NO_ERROR);
      }
      const auto& reports = producer->flush();
      for (std::size_t i = 0; i < sent.size(); ++i) {
        const Delivery& report = reports[reports.size() - sent.size() + i];
        ASSERT_EQ(report.error, RD_KAFKA_RESP_ERR_NO_ERROR);
        last[sent[i].first] = {report.offset, sent[i].second};
      }
    }
    std::this_thread::sleep_for(milliseconds(700 + round * 130));
    broker_.kill9();
    broker_.start();
    std::map<std::string, std::pair<std::int64_t, std::string>> found;
    for (const Record& record : read()) found[*record.key] = {record.offset, *record.value};
    ASSERT_EQ(found, last) << "round " << round;
  }
  expect_shrunk(250);
  // A reader that starts in a gap gets what comes next; the end is the end.
  const auto bounds = Consumer(broker_.address()).bounds("t", 0);
  EXPECT_EQ(bounds.first, 0);
  const auto all = read();
  const auto some = read(bounds.second / 3);
  ASSERT_FALSE(some.empty());
  EXPECT_GE(some.front().offset, bounds.second / 3);
  EXPECT_EQ(some.back().offset, all.back().offset);
}

TEST_F(Compaction, RecordsAreDeletedIntoAGapAndTimesAreFoundBehindIt) {
  make("compact,delete");
  Producer producer(broker_.address());
  const std::int64_t base = now_ms() - 100'000;
  for (int i = 0; i < 400; ++i) {
    const Record record{.topic = "t",
                        .key = "k" + std::to_string(i % 5),
                        .value = std::string(200, 'v'),
                        .timestamp = base + i};
    ASSERT_EQ(producer.deliver(record).error, 0);
  }
  expect_shrunk(120);
  const auto records = read();
  const std::int64_t first = records.front().offset;
  ASSERT_GT(first, 100);
  Consumer consumer(broker_.address());
  EXPECT_EQ(consumer.offset_for_time("t", 0, base + 50), first);
  EXPECT_EQ(Admin(broker_.address()).delete_records("t", 0, 57), 57);
  EXPECT_EQ(consumer.bounds("t", 0).first, 57);
  EXPECT_EQ(read(57).front().offset, first);
  broker_.kill9();
  broker_.start();
  EXPECT_EQ(Consumer(broker_.address()).bounds("t", 0).first, 57);
  EXPECT_EQ(read().front().offset, first);
}

TEST_F(Compaction, APolicyChangedBackAndForthLeavesEverythingReadable) {
  make("delete");
  Producer producer(broker_.address());
  const auto write = [&](const std::string& value) {
    for (int i = 0; i < 300; ++i) {
      ASSERT_EQ(producer
                    .deliver({.topic = "t",
                              .key = "k" + std::to_string(i % 5),
                              .value = value + std::string(200, 'v')})
                    .error,
                0);
    }
  };
  const auto configs = [&](const std::string& policy) {
    ASSERT_TRUE(Admin(broker_.address())
                    .alter("t", {{"cleanup.policy", policy},
                                 {"internal.segment.bytes", "20000"},
                                 {"min.cleanable.dirty.ratio", "0.01"}})
                    .ok());
  };
  ASSERT_EQ(producer.deliver({.topic = "t", .value = "no key"}).error, 0);
  write("1");
  configs("compact");
  EXPECT_EQ(producer.deliver({.topic = "t", .value = "no key"}).error,
            RD_KAFKA_RESP_ERR_INVALID_RECORD);
  expect_shrunk(120);
  EXPECT_TRUE(
      std::ranges::all_of(read(), [](const Record& record) { return record.key.has_value(); }));
  configs("delete");
  const auto before = read().size();
  write("2");
  EXPECT_EQ(read().size(), before + 300);
  configs("compact");
  expect_shrunk(120);
  EXPECT_EQ(read().back().offset, 600);
}

}  // namespace
}  // namespace kanal::e2e
