// The same commits, in and beside transactions, to the machine as to Apache Kafka 4.4:
// tests/golden/groups/pending_offsets.tsv has what it answered and what OffsetFetch then said, once
// no marker was outstanding. A line:
//   new member/none (another group, with a stable member or without) | pend PRODUCER EPOCH VERSION
//   WHO OFFSETS | commit WHO OFFSETS | end PRODUCER EPOCH commit/abort (the marker's epoch) |
//   delete PARTITION; tab; an error for each partition; tab; what is committed for each, '!' if
//   RequireStable gets UNSTABLE_OFFSET_COMMIT. Offsets are TOPIC PARTITION = OFFSET, "ta1=7".
// WHO: none, the member, it with the generation before (old) or after (next) or none (nogen), a
// stranger, the generation alone (nameless).
#include "group_support.hpp"

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
  void run(const std::string& line) {
    const Words columns = words(line, '\t');
    ASSERT_EQ(columns.size(), 3U) << line;
    const Words asked = words(columns[0]);
    if (asked[0] == "new") return start(asked[1] == "member");
    EXPECT_EQ(answer(asked), columns[1]);
    EXPECT_EQ(then(), columns[2]);
    if (++steps_ % 7 == 0 && live_->group().live_records() > 0)
      live_ = live_->from(live_->group().snapshot("g"));
  }

 private:
  void start(bool with_member) {
    live_ = std::make_unique<LiveGroup>();
    member_ = with_member ? live_->stable_alone({.session = milliseconds{1'800'000}}) : "";
  }

  std::string answer(const Words& asked) {
    if (asked[0] == "pend") {
      return text(live_->commit_pending(producer(asked), offsets(asked[5]), who(asked[4]),
                                        std::stoi(asked[3])));
    }
    if (asked[0] == "commit") {
      CommitCommand command;
      const MemberArgs by = who(asked[1]);
      command.generation = by.generation;
      command.member_id = by.member;
      for (const OffsetArgs& each : offsets(asked[2])) command.offsets.push_back(to_commit(each));
      return text(live_->commit(std::move(command)));
    }
    if (asked[0] == "end") {
      return text({live_->end_transaction(producer(asked), asked[3] == "commit")});
    }
    EXPECT_EQ(asked[0], "delete");
    const PartitionErrors errors =
        live_->delete_offsets({{asked[1].substr(0, 2), std::stoi(asked[1].substr(2))}});
    return errors.group != ErrorCode::NONE ? text({errors.group}) : text(errors.partitions);
  }

  std::string then() {
    std::string all;
    for (const char* topic : {"ta", "tb"}) {
      for (const std::int32_t index : {0, 1}) {
        const PartitionIndex partition(index);
        const CommittedOffset* offset = live_->group().committed(topic, Uuid{}, partition);
        all += (all.empty() ? "" : " ") + std::string(topic) + std::to_string(index) + "=" +
               (offset != nullptr ? std::to_string(offset->offset.value()) : "-") +
               (live_->group().has_pending(topic, Uuid{}, partition) ? "!" : "");
      }
    }
    return all;
  }

  static ProducerArgs producer(const Words& asked) {
    return {.id = std::stoi(asked[1]), .epoch = static_cast<std::int16_t>(std::stoi(asked[2]))};
  }
  std::vector<OffsetArgs> offsets(const std::string& listed) {
    static constexpr std::string_view kTopics[] = {"ta", "tb"};
    std::vector<OffsetArgs> all;
    for (const std::string& each : words(listed, ',')) {
      all.push_back({.topic = kTopics[each[1] - 'a'],
                     .partition = each[2] - '0',
                     .offset = std::stoi(each.substr(4))});
    }
    return all;
  }
  [[nodiscard]] MemberArgs who(const std::string& name) const {
    if (name == "member") return {.member = member_, .generation = 1};
    if (name == "old") return {.member = member_, .generation = 0};
    if (name == "next") return {.member = member_, .generation = 2};
    if (name == "nogen") return {.member = member_, .generation = -1};
    if (name == "nameless") return {.member = "", .generation = 1};
    if (name == "stranger") {
      return {.member = "stranger", .generation = member_.empty() ? 0 : 1};
    }
    if (name == "strange-nogen") return {.member = "stranger", .generation = -1};
    EXPECT_EQ(name, "none");
    return {.member = "", .generation = -1};
  }
  static std::string text(const std::vector<ErrorCode>& errors) {
    std::string all;
    for (const ErrorCode error : errors) {
      all += (all.empty() ? "" : ",") + std::string(name(error));
    }
    return all;
  }

  std::unique_ptr<LiveGroup> live_;
  std::string member_;
  int steps_ = 0;
};

TEST(PendingAsKafka, RandomCommitsInAndBesideTransactions) {
  std::ifstream file(std::string(KANAL_GOLDEN_DIR) + "/groups/pending_offsets.tsv");
  ASSERT_TRUE(file.is_open());
  Trace trace;
  int number = 0;
  for (std::string line; std::getline(file, line) && !testing::Test::HasFailure();) {
    ++number;
    if (line.starts_with("#")) continue;
    SCOPED_TRACE("line " + std::to_string(number) + ": " + line);
    trace.run(line);
  }
  EXPECT_GT(number, 1'000);
}

}  // namespace
}  // namespace kanal::coordinator
