// The same requests to the machine as to Apache Kafka 4.4: tests/golden/transactions/*.tsv have
// what it answered and what DescribeTransactions then said, once no marker was outstanding. A line:
//   init VERSION TIMEOUT ID EPOCH | add VERSION ID EPOCH TOPIC PARTITIONS | offsets VERSION ID
//   EPOCH GROUP | verify ID EPOCH TOPIC PARTITION | end VERSION ID EPOCH commit/abort | spin EPOCH
//   (ends of version 2 until that epoch) | new (another transactional id); tab; error, id, epoch;
//   tab; state, id, epoch, timeout, partitions. Ids are numbered as they came up: P0, P1; X: of
//   nobody.
#include "txn_support.hpp"

#include <fstream>
#include <sstream>

namespace kanal::coordinator {
namespace {

using Words = std::vector<std::string>;

Words words(const std::string& text, char separator = ' ') {
  Words all;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, separator);) all.push_back(word);
  return all;
}

class Trace {
 public:
  Trace() { start(); }

  void run(const std::string& line) {
    const Words columns = words(line, '\t');
    ASSERT_EQ(columns.size(), 3U) << line;
    const Words asked = words(columns[0]);
    if (asked[0] == "new") return start();
    if (lost_) return;
    const std::string ours = answer(asked);
    if (ours != columns[1] && !differs(asked, ours, columns[1])) {
      EXPECT_EQ(ours, columns[1]);
    }
    if (columns[2] != "-" && !lost_) {
      EXPECT_EQ(then(), columns[2]);
    }
  }

 private:
  void start() {
    live_ = std::make_unique<LiveTransaction>();
    ids_.clear();
    lost_ = false;
  }

  /// Where it is on purpose: docs/transactions.md.
  [[nodiscard]] bool differs(const Words& asked, const std::string& ours,
                             const std::string& theirs) {
    const TransactionFacts& facts = live_->machine().facts();
    if (asked[0] == "end" && asked[1] == "5" && facts.last_producer_epoch == kNoProducerEpoch) {
      // Kafka takes the epoch before for a repeat, also where another producer fenced it.
      return ours == "PRODUCER_FENCED - -1" && theirs != ours &&
             std::stoi(asked[3]) + 1 == facts.producer_epoch.value();
    }
    if (asked[0] == "init" && theirs == "UNKNOWN_SERVER_ERROR - -1") {
      // Kafka fails where the epoch before the last one is named, be it a repeat or a zombie.
      lost_ = true;  // ours is in another state from here on
      return asked[4] != "32766" && facts.producer_epoch.value() == 32'766;
    }
    return false;
  }

  std::string answer(const Words& asked) {
    const int version = asked[0] == "verify" || asked[0] == "spin" ? 0 : std::stoi(asked[1]);
    if (asked[0] == "init") {
      InitProducerIdCommand command;
      command.timeout = milliseconds{std::stoi(asked[2])};
      command.producer_id = ProducerId(id(asked[3]));
      command.producer_epoch = ProducerEpoch(static_cast<std::int16_t>(std::stoi(asked[4])));
      command.knows_fenced = version >= 4;
      return text(live_->init_raw(command));
    }
    if (asked[0] == "add") {
      std::vector<TransactionPartition> added;
      if (asked[5] != "-") {
        for (const std::string& each : words(asked[5], '+')) {
          added.push_back({asked[4], PartitionIndex(std::stoi(each))});
        }
      }
      const ErrorCode error =
          live_->add(producer(asked, 2), added, version >= 4 ? k2 : k1, version >= 2);
      return added.empty() ? "-" : std::string(name(error));
    }
    if (asked[0] == "offsets") {
      return std::string(name(live_->add_group(producer(asked, 2), asked[4], k1, version >= 2)));
    }
    if (asked[0] == "verify") {
      return std::string(name(live_->verify(producer(asked, 1), asked[3], std::stoi(asked[4]))));
    }
    if (asked[0] == "end") {
      return text(live_->end(producer(asked, 2), asked[4] == "commit", version >= 5 ? k2 : k1,
                             version >= 2));
    }
    EXPECT_EQ(asked[0], "spin");
    while (live_->identity().epoch < std::stoi(asked[1])) {
      if (live_->abort(live_->identity(), k2).error != ErrorCode::NONE) return "stuck";
      live_->roll();
    }
    return "-";
  }

  std::string then() {
    const TransactionFacts& facts = live_->machine().facts();
    if (!facts.exists()) return "TRANSACTIONAL_ID_NOT_FOUND";
    std::string all;
    for (const auto& [topic, partitions] : facts.topics) {
      all += (all.empty() ? "" : ",") + topic;
      for (std::size_t i = 0; i < partitions.size(); ++i) {
        all += (i == 0 ? ":" : "+") + std::to_string(partitions[i].value());
      }
    }
    return std::string(to_string(facts.state)) + " " + label(facts.producer_id.value()) + " " +
           std::to_string(facts.producer_epoch.value()) + " " +
           std::to_string(facts.timeout.count()) + " " + (all.empty() ? "-" : all);
  }

  std::string text(const Answer& answer) {
    return std::string(name(answer.error)) + " " + label(answer.identity.id) + " " +
           std::to_string(answer.identity.epoch);
  }
  std::string label(std::int64_t number) {
    if (number == -1) return "-";
    auto found = std::ranges::find(ids_, number);
    if (found == ids_.end()) found = ids_.insert(ids_.end(), number);
    return "P" + std::to_string(found - ids_.begin());
  }
  [[nodiscard]] std::int64_t id(const std::string& label) const {
    if (label == "-") return -1;
    if (label == "X") return 999'999;
    return ids_.at(static_cast<std::size_t>(std::stoi(label.substr(1))));
  }
  [[nodiscard]] Identity producer(const Words& asked, std::size_t at) const {
    return {id(asked[at]), std::stoi(asked[at + 1])};
  }

  std::unique_ptr<LiveTransaction> live_;
  std::vector<std::int64_t> ids_;
  bool lost_ = false;
};

void expect_as_kafka(const std::string& name) {
  const std::string path = std::string(KANAL_GOLDEN_DIR) + "/transactions/" + name;
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  Trace trace;
  std::size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.starts_with("#")) continue;
    SCOPED_TRACE(name + ":" + std::to_string(number) + ": " + line);
    trace.run(line);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(number, 100U);
}

TEST(TxnAsKafka, RandomRequestsOfBothVersions) {
  expect_as_kafka("random.tsv");
}

TEST(TxnAsKafka, RandomRequestsWhereEpochsRunOut) {
  expect_as_kafka("exhausted.tsv");
}

}  // namespace
}  // namespace kanal::coordinator
