// Random histories of commits, transactions, deletions and restarts of one group, against a plain
// model that knows Kafka's rule by numbers: every offset has the number of its record, and the end
// of a transaction puts one only where nothing with a higher number is committed.
#include "group_support.hpp"

#include <array>
#include <random>

namespace kanal::coordinator {
namespace {

using enum ErrorCode;

using Key = std::pair<std::string, std::int32_t>;

struct Value {
  std::int64_t record = 0;
  std::int64_t offset = 0;
  std::uint8_t topic_id = 0;
  Timestamp written = kNoTimestamp;
};

struct Model {
  struct Transaction {
    std::int16_t epoch = 0;
    std::map<Key, Value> offsets;
  };
  std::map<Key, Value> committed;
  std::map<std::int64_t, Transaction> open;

  void put(std::int64_t producer, std::int16_t epoch, const Key& key, const Value& value) {
    Transaction& transaction = open[producer];
    if (transaction.epoch < epoch) transaction.offsets.clear();
    transaction.epoch = epoch;
    transaction.offsets[key] = value;
  }
  void end(std::int64_t producer, std::int16_t epoch, bool commit) {
    const auto found = open.find(producer);
    if (found == open.end() || found->second.epoch > epoch) return;
    for (const auto& [key, value] : found->second.offsets) {
      const auto there = committed.find(key);
      if (commit && (there == committed.end() || there->second.record < value.record)) {
        committed[key] = value;
      }
    }
    open.erase(found);
  }
  template <class Gone>
  void remove_pending(const Gone& gone) {
    for (auto& [producer, transaction] : open) {
      std::erase_if(transaction.offsets, gone);
    }
    std::erase_if(open, [](const auto& each) { return each.second.offsets.empty(); });
  }
  void remove(const Key& key) {
    committed.erase(key);
    remove_pending([&](const auto& each) { return each.first == key; });
  }
  void forget(std::uint8_t topic_id) {
    const auto gone = [&](const auto& each) { return each.second.topic_id == topic_id; };
    std::erase_if(committed, gone);
    remove_pending(gone);
  }
  void expire(Timestamp wall, std::int64_t retention) {
    std::erase_if(committed, [&](const auto& each) {
      return wall - each.second.written >= retention && !pending(each.first, 0);
    });
  }
  [[nodiscard]] bool pending(const Key& key, std::uint8_t topic_id) const {
    for (const auto& [producer, transaction] : open) {
      const auto found = transaction.offsets.find(key);
      if (found == transaction.offsets.end()) continue;
      if (topic_id == 0 || found->second.topic_id == topic_id) return true;
    }
    return false;
  }
  [[nodiscard]] std::size_t size() const {
    std::size_t all = committed.size();
    for (const auto& [producer, transaction] : open) all += transaction.offsets.size();
    return all;
  }
};

class History {
 public:
  explicit History(std::uint32_t seed) : random_(seed) {
    limits_.offsets_retention_ms = 1'000;
    live_ = std::make_unique<LiveGroup>(limits_);
  }

  void act() {
    switch (pick(16)) {
      case 0:
      case 1:
        return commit();
      case 2:
      case 3:
      case 4:
      case 5:
      case 6:
        return commit_pending();
      case 7:
      case 8:
      case 9:
        return end();
      case 10:
        live_->pass(milliseconds{pick(400)});
        return;
      case 11:
        live_->stored() = live_->group().snapshot("g");
        return;
      case 12:
        live_ = live_->restarted();
        return;
      default:
        return rarely();
    }
  }
  void expect_same() const {
    const Group& group = live_->group();
    std::map<Key, std::int64_t> shown, expected;
    group.for_each_offset(
        [&](std::string_view topic, PartitionIndex partition, const CommittedOffset& offset) {
          shown[{std::string(topic), partition.value()}] = offset.offset.value();
        });
    for (const auto& [key, value] : model_.committed) expected[key] = value.offset;
    EXPECT_EQ(shown, expected);
    for (const char* topic : {"a", "b"}) {
      for (std::int32_t partition = 0; partition < 2; ++partition) {
        for (const auto id : std::to_array<std::uint8_t>({0, 1, 2})) {
          EXPECT_EQ(group.has_pending(topic, id == 0 ? Uuid{} : topic_uuid(id),
                                      PartitionIndex(partition)),
                    model_.pending({topic, partition}, id));
        }
      }
    }
    EXPECT_EQ(group.live_records(), model_.size());
    EXPECT_EQ(live_->stored().empty(), model_.size() == 0);
    const auto restarted = live_->restarted();
    EXPECT_EQ(restarted->group().snapshot("g"), group.snapshot("g"));
    EXPECT_EQ(live_->from(group.snapshot("g"))->group().snapshot("g"), group.snapshot("g"));
  }
  std::size_t most_open = 0, ended = 0, overtaken = 0;

 private:
  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  Key some_key() { return {pick(3) == 0 ? "b" : "a", pick(2)}; }
  OffsetArgs args(const Key& key, const Value& value) {
    return {.topic = key.first,
            .partition = key.second,
            .offset = value.offset,
            .topic_id = value.topic_id};
  }
  Value some_value() {
    return {++record_, pick(1'000), static_cast<std::uint8_t>(pick(8) == 0 ? 2 : 1), live_->wall()};
  }

  void commit() {
    const Key key = some_key();
    const Value value = some_value();
    CommitCommand command;
    command.offsets.push_back(to_commit(args(key, value)));
    EXPECT_EQ(live_->commit(std::move(command)), std::vector{NONE});
    model_.committed[key] = value;
  }
  void commit_pending() {
    const std::int64_t producer = pick(3);
    const auto open = model_.open.find(producer);
    const bool stale = open != model_.open.end() && pick(10) == 0 && epochs_[producer] > 0;
    if (pick(10) == 0) ++epochs_[producer];
    const auto epoch =
        static_cast<std::int16_t>(stale ? open->second.epoch - 1 : epochs_[producer]);
    std::vector<Key> keys;
    std::vector<Value> values;
    std::vector<OffsetArgs> offsets;
    for (int i = 0; i <= pick(3); ++i) keys.push_back(some_key());
    for (const Key& key : keys) {
      values.push_back(some_value());
      offsets.push_back(args(key, values.back()));
    }
    const auto errors = live_->commit_pending({.id = producer, .epoch = epoch}, offsets);
    EXPECT_EQ(errors, std::vector(offsets.size(), stale ? INVALID_PRODUCER_EPOCH : NONE));
    if (stale) return;
    for (std::size_t i = 0; i < keys.size(); ++i) model_.put(producer, epoch, keys[i], values[i]);
    most_open = std::max(most_open, model_.open.size());
  }
  void end() {
    const std::int64_t producer = pick(3);
    const bool commit = pick(3) != 0;
    const bool second = pick(2) == 0;  // the marker has the raised epoch
    auto epoch = static_cast<std::int16_t>(epochs_[producer] + (second ? 1 : 0));
    if (pick(10) == 0 && epoch > 0) --epoch;
    if (const auto open = model_.open.find(producer);
        commit && open != model_.open.end() && open->second.epoch <= epoch) {
      ++ended;
      for (const auto& [key, value] : open->second.offsets) {
        const auto there = model_.committed.find(key);
        if (there != model_.committed.end() && there->second.record > value.record) ++overtaken;
      }
    }
    EXPECT_EQ(live_->end_transaction({.id = producer, .epoch = epoch}, commit), NONE);
    model_.end(producer, epoch, commit);
    if (second) epochs_[producer] = epoch;
  }
  void rarely() {
    switch (pick(6)) {
      case 0: {
        const Key key = some_key();
        (void)live_->delete_offsets({{key.first, key.second}});
        model_.remove(key);
        break;
      }
      case 1: {
        const auto id = static_cast<std::uint8_t>(1 + pick(2));
        live_->forget_topics({topic_uuid(id)});
        model_.forget(id);
        break;
      }
      case 2:
      case 3:
        live_->expire_offsets();
        model_.expire(live_->wall(), limits_.offsets_retention_ms);
        EXPECT_EQ(live_->group().vacant(), model_.size() == 0);
        break;
      case 4:
        if (pick(5) != 0) break;
        (void)live_->delete_group();
        model_ = {};
        break;
      default:
        break;
    }
  }

  std::mt19937 random_;
  GroupLimits limits_;
  std::unique_ptr<LiveGroup> live_;
  Model model_;
  std::map<std::int64_t, std::int16_t> epochs_;
  std::int64_t record_ = 0;
};

TEST(PendingModel, RandomHistoriesEndAsKafkasRuleSays) {
  std::size_t most_open = 0, ended = 0, overtaken = 0;
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    History history(seed);
    for (int i = 0; i < 400 && !testing::Test::HasFailure(); ++i) {
      history.act();
      history.expect_same();
    }
    most_open = std::max(most_open, history.most_open);
    ended += history.ended;
    overtaken += history.overtaken;
  }
  EXPECT_EQ(most_open, 3U) << "the histories reach what they are for";
  EXPECT_GT(ended, 200U);
  EXPECT_GT(overtaken, 50U);
}

}  // namespace
}  // namespace kanal::coordinator
