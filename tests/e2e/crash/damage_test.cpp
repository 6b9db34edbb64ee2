// What a crash or a bad disk leaves behind: torn tails are cut with a warning and nothing before
// them is lost; a bit that flipped in the middle makes its partition answer KAFKA_STORAGE_ERROR,
// beside others that work, until it is put right; files beside the log that are missing or damaged
// are made again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "broker_process.hpp"
#include "raw_client.hpp"
#include "reading.hpp"

namespace kanal::e2e {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::SizeIs;

constexpr int kStorageError = 56;
constexpr std::size_t kRecords = 200, kPerBatch = 5;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

/// Where each batch of a segment begins; the last entry is where they end.
std::vector<std::size_t> batch_starts(const std::string& segment) {
  std::vector<std::size_t> starts{0};
  while (starts.back() + 12 <= segment.size()) {
    std::size_t length = 0;
    for (std::size_t i = 8; i < 12; ++i)
      length = length << 8 | static_cast<unsigned char>(segment[starts.back() + i]);
    starts.push_back(starts.back() + 12 + length);
  }
  return starts;
}

void flip(std::string& bytes, std::size_t at) {
  bytes.at(at) = static_cast<char>(bytes[at] ^ 0x10);
}

/// `count` more records of "load" 1 for each partition in batches of kPerBatch, numbered by
/// `content`, acknowledged.
void append(const std::string& address, const std::string& topic, Content& content,
            std::size_t count) {
  Producer producer(address, {{"enable.idempotence", "true"},
                              {"batch.num.messages", std::to_string(kPerBatch)},
                              {"linger.ms", "50"}});
  for (std::size_t p = 0; p < content.size(); ++p) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto partition = static_cast<std::int32_t>(p);
      content[p].push_back(load_value(1, partition, content[p].size()));
      ASSERT_EQ(producer.send({.topic = topic, .partition = partition, .value = content[p].back()}),
                RD_KAFKA_RESP_ERR_NO_ERROR);
    }
  }
  for (const Delivery& delivery : producer.flush())
    ASSERT_EQ(delivery.error, RD_KAFKA_RESP_ERR_NO_ERROR);
}

// With acks after the write (false) and after the sync (true).
class Damage : public testing::TestWithParam<bool> {
 protected:
  Damage() : broker_(KANALD) { broker_.start(); }

  void make_topic(int partitions, Settings configs = {}) {
    if (GetParam()) configs["flush.messages"] = "1";
    ASSERT_TRUE(Admin(broker_.address()).create({"t", partitions, configs}).ok());
    content_.resize(static_cast<std::size_t>(partitions));
    append(broker_.address(), "t", content_, kRecords);
  }
  void edit(int partition, const std::function<void(std::string&)>& change) {
    const fs::path path = broker_.active_segment("t", partition);
    std::string bytes = read_file(path);
    change(bytes);
    write_file(path, bytes);
  }
  void restart() {
    broker_.start();
    EXPECT_LE(broker_.start_figure("broken"), 0);
  }
  void expect_content() {
    const Content read = read_topic(broker_.address(), "t", static_cast<int>(content_.size()));
    for (std::size_t p = 0; p < content_.size(); ++p)
      EXPECT_TRUE(read[p] == content_[p]) << "partition " << p;
  }

  BrokerProcess broker_;
  Content content_;
};
INSTANTIATE_TEST_SUITE_P(Acks, Damage, testing::Bool(), [](const auto& synced) {
  return synced.param ? "AfterSync" : "AfterWrite";
});

using Edit = std::function<void(std::string&)>;

/// A copy of the last batch with the offset that comes next: what a crash may have begun to write.
std::string next_batch(const std::string& segment) {
  const auto starts = batch_starts(segment);
  std::string batch = segment.substr(starts[starts.size() - 2]);
  for (std::size_t i = 0, offset = kRecords; i < 8; ++i, offset >>= 8)
    batch[7 - i] = static_cast<char>(offset & 0xff);
  return batch;
}

TEST_P(Damage, TornTailsAreCutWithAWarningAndNothingBeforeThem) {
  const std::vector<std::pair<const char*, Edit>> edits{
      {"nothing", [](std::string&) {}},
      {"noise",
       [](std::string& bytes) {
         bytes += std::string("\x01\xfe\x33noise", 8) + std::string(1'000, '\x5a');
       }},
      {"zeros", [](std::string& bytes) { bytes += std::string(4'096, '\0'); }},
      {"a part of a header", [](std::string& bytes) { bytes += next_batch(bytes).substr(0, 40); }},
      {"a part of a batch", [](std::string& bytes) { bytes += next_batch(bytes).substr(0, 100); }},
      {"a batch with a wrong byte",
       [](std::string& bytes) {
         std::string batch = next_batch(bytes);
         flip(batch, batch.size() - 3);
         bytes += batch;
       }},
      {"a batch and a length out of bounds",
       [](std::string& bytes) {
         std::string batch = next_batch(bytes);
         batch.replace(8, 4, "\x7f\xff\xff\xff", 4);
         bytes += batch;
       }},
  };
  make_topic(static_cast<int>(edits.size()));
  broker_.kill9();
  for (std::size_t p = 0; p < edits.size(); ++p) edit(static_cast<int>(p), edits[p].second);
  restart();
  EXPECT_GT(broker_.start_figure("cut_bytes"), 5'000);
  for (std::size_t p = 0; p < edits.size(); ++p) {
    const std::string channel = broker_.channel("t", static_cast<int>(p)).filename();
    const auto lines = broker_.log_lines("Recovery cut a torn tail. channel=" + channel + " ");
    EXPECT_THAT(lines, SizeIs(p == 0 ? 0 : 1)) << edits[p].first;
    for (const std::string& line : lines) EXPECT_THAT(line, HasSubstr(" warn"));
  }
  expect_content();
  append(broker_.address(), "t", content_, 10);
  expect_content();
  broker_.kill9();
  restart();
  EXPECT_EQ(broker_.start_figure("cut_bytes"), 0);
  expect_content();
}

TEST_P(Damage, ALostTailTakesOnlyWhatWasInIt) {
  const std::vector<std::size_t> cuts{1, 30, 70};
  make_topic(static_cast<int>(cuts.size()));
  broker_.kill9();
  for (std::size_t p = 0; p < cuts.size(); ++p) {
    edit(static_cast<int>(p), [&](std::string& bytes) { bytes.resize(bytes.size() - cuts[p]); });
    content_[p].resize(kRecords - kPerBatch);
  }
  restart();
  expect_content();
  append(broker_.address(), "t", content_, 10);  // in the place of the lost ones
  expect_content();
}

TEST_P(Damage, AFlippedBitInTheMiddleStopsItsPartitionOnlyAndSkipsNothing) {
  struct Flip {
    const char* what;
    std::size_t at;  // in the batch
  };
  const std::vector<Flip> flips{{"base offset", 7}, {"length", 10},     {"magic", 16},
                                {"checksum", 18},   {"attributes", 22}, {"last offset delta", 26},
                                {"count", 60},      {"payload", 80}};
  const int sound = static_cast<int>(flips.size());
  make_topic(sound + 1);
  broker_.kill9();
  restart();  // what the shared journal still held would mend the damage
  broker_.kill9();
  std::vector<std::string> originals;
  for (std::size_t p = 0; p < flips.size(); ++p) {
    edit(static_cast<int>(p), [&](std::string& bytes) {
      originals.push_back(bytes);
      const auto starts = batch_starts(bytes);
      flip(bytes, starts[starts.size() / 2] + flips[p].at);
    });
  }
  broker_.start();
  EXPECT_EQ(broker_.start_figure("broken"), sound);
  {
    RawClient raw(broker_.address());
    Producer producer(broker_.address(), {{"message.send.max.retries", "0"}});
    for (int p = 0; p < sound; ++p) {
      const std::string what = flips[static_cast<std::size_t>(p)].what;
      EXPECT_EQ(raw.list_offsets_error("t", p, -1), kStorageError) << what;
      EXPECT_EQ(raw.list_offsets_error("t", p, -2), kStorageError) << what;
      for (const std::int64_t offset : {0, 100, 199, 200})
        EXPECT_EQ(raw.fetch_error("t", p, offset), kStorageError) << what;
      EXPECT_EQ(producer.deliver({.topic = "t", .partition = p, .value = "v"}).error,
                RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR)
          << what;
      const auto lines =
          broker_.log_lines("channel=" + broker_.channel("t", p).filename().string() + " ");
      ASSERT_FALSE(lines.empty()) << what;
      EXPECT_THAT(lines.back(), HasSubstr(" error "));
      EXPECT_THAT(lines.back(), HasSubstr(broker_.active_segment("t", p).filename().string()));
      EXPECT_THAT(lines.back(), HasSubstr(" position "));
    }
    EXPECT_EQ(raw.list_offsets_error("t", sound, -1), 0);
    EXPECT_THAT(Admin(broker_.address()).metadata("t").topics.at("t").leaders, SizeIs(sound + 1));
    Consumer consumer(broker_.address());
    consumer.assign({{"t", sound}});
    EXPECT_THAT(consumer.read_to_end(), SizeIs(kRecords));
  }
  EXPECT_EQ(broker_.terminate(), 0);
  for (std::size_t p = 0; p < flips.size();
       ++p) {  // nothing was touched: a repair brings everything back
    edit(static_cast<int>(p), [&](std::string& bytes) {
      EXPECT_EQ(bytes.size(), originals[p].size()) << flips[p].what;
      bytes = originals[p];
    });
  }
  restart();
  expect_content();
}

/// What is beside the segments of t-0 and of all channels, grouped: each group is damaged at once.
std::vector<std::vector<fs::path>> files_beside(const fs::path& channel) {
  std::vector<std::vector<fs::path>> groups(1);  // the first: all indexes
  for (const fs::path& directory : {channel.parent_path(), channel}) {
    for (const auto& entry : fs::directory_iterator(directory)) {
      const fs::path& path = entry.path();
      if (!entry.is_regular_file() || path.extension() == ".log") continue;
      if (path.extension() == ".kindex")
        groups.front().push_back(path);
      else
        groups.push_back({path});
    }
  }
  return groups;
}

void damage(const fs::path& file, const std::string& how) {
  std::string bytes = read_file(file);
  if (how == "gone") return void(fs::remove(file));
  if (how == "short") bytes.resize(bytes.size() / 2);
  if (how == "wrong" && !bytes.empty()) flip(bytes, bytes.size() / 3);
  write_file(file, bytes);
}

class BesideTheLog : public Damage {
 protected:
  void end(bool clean) {
    if (clean)
      EXPECT_EQ(broker_.terminate(), 0);
    else
      broker_.kill9();
  }
};
INSTANTIATE_TEST_SUITE_P(Acks, BesideTheLog, testing::Values(false),
                         [](const auto&) { return "AfterWrite"; });

TEST_P(BesideTheLog, FilesThatAreDamagedAreMadeAgain) {
  make_topic(1, {{"segment.bytes", "1048576"}});
  for (int i = 0; i < 4; ++i)
    append(broker_.address(), "t", content_, 2'000);  // several segments with indexes
  end(true);
  restart();
  int damaged = 0;
  for (const bool clean : {false, true}) {
    for (const std::string how : {"gone", "short", "wrong"}) {
      end(clean);
      for (const auto& group : files_beside(broker_.channel("t", 0))) {
        if (group.empty()) continue;
        for (const fs::path& file : group) damage(file, how);
        SCOPED_TRACE(group.back().filename().string() + " " + how +
                     (clean ? " after a clean stop" : " after a kill"));
        restart();
        expect_content();
        ++damaged;
        end(clean);
      }
      restart();
    }
  }
  EXPECT_GE(damaged, 9);
}

}  // namespace
}  // namespace kanal::e2e
