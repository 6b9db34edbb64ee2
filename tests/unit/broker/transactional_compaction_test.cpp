// A compacted topic with transactions that are open, committed and aborted, cleaned by the broker:
// what readers of either kind see before, between and after.
#include "transaction_world.hpp"
#include "unit/log/keyed.hpp"

#include <map>
#include <set>

namespace kanal::broker::test {
namespace {

using Values = std::map<std::string, std::string>;

class TransactionalCompactionTest : public TransactionWorld {
 protected:
  TransactionalCompactionTest() {
    restart_with({{"log.cleaner.backoff.ms", "1000"}});
    create("t", 1,
           {{"cleanup.policy", "compact"},
            {"min.cleanable.dirty.ratio", "0.01"},
            {"delete.retention.ms", "5000"},
            {"internal.segment.bytes", "500"}});
  }
  void plain(const std::string& key, const std::string& value) {
    log::test::KeyedBatch batch;
    batch.records = {{key, value, clock.wall().value()}};
    ASSERT_TRUE(GroupWorld::append("t", 0, log::test::encode(batch)));
    settle();
  }
  void fill(int count) {
    for (int i = 0; i < count; ++i) plain("fill", std::to_string(filled_++));
  }
  void put(Producer& producer, const std::string& key, const std::string& value) {
    std::int32_t& sequence = producer.next_sequence[{"t", 0}];
    const coordinator::TransactionPartition named{"t", PartitionIndex(0)};
    transactions().write(writer(producer), {&named, 1}, [&](std::span<const ErrorCode> errors) {
      ASSERT_EQ(errors[0], ErrorCode::NONE);
      ASSERT_TRUE(GroupWorld::append("t", 0,
                                     log::test::encode({.producer = producer.producer_id.value(),
                                                        .epoch = producer.epoch.value(),
                                                        .sequence = sequence++,
                                                        .key = key,
                                                        .value = value})));
    });
    settle();
  }

  struct Seen {
    Values last;
    std::multiset<std::string> all;
    std::size_t markers = 0;
  };
  /// As a consumer reads it, fetch by fetch.
  Seen read(bool committed) {
    Seen seen;
    const log::Watermarks at = marks("t");
    for (Offset from = at.log_start; from < (committed ? at.last_stable : at.high_watermark);) {
      std::vector<log::Slice> slices;
      const auto got = partition("t")->read(from, {300, true, committed}, slices, nullptr);
      if (!got && std::holds_alternative<log::Miss>(got.error())) {
        load(std::get<log::Miss>(got.error()));
        continue;
      }
      if (!got || got->records.next <= from) {
        ADD_FAILURE() << "stands still at " << from.value();
        break;
      }
      take(log::test::bytes_of(slices), got->aborted, seen);
      from = got->records.next;
    }
    return seen;
  }

 private:
  static void take(const Buffer& bytes, std::vector<log::AbortedTransaction> aborted, Seen& seen) {
    std::ranges::sort(aborted, std::ranges::greater{}, &log::AbortedTransaction::first);
    std::set<ProducerId> skipped;
    for (Bytes rest(bytes); !rest.empty();) {
      const auto header = records::parse_header(rest).value();
      const Bytes batch = rest.first(header.size());
      rest = rest.subspan(header.size());
      for (; !aborted.empty() && aborted.back().first <= header.last_offset(); aborted.pop_back())
        skipped.insert(aborted.back().producer);
      if (header.is_control()) {
        const auto marker = records::parse_marker(batch).value();
        if (!marker) continue;
        ++seen.markers;
        if (marker->type == records::ControlType::kAbort) skipped.erase(header.producer_id);
        continue;
      }
      if (header.is_transactional() && skipped.contains(header.producer_id)) continue;
      for (const auto& record : log::test::decode(batch).records) {
        seen.last[*record.key] = *record.value;
        seen.all.insert(*record.key + "=" + *record.value);
      }
    }
  }
  void load(const log::Miss& miss) {
    Context context{
        .broker = *broker, .io = *threads[0], .peer = peer, .client_id = {}, .slices = {}};
    auto loading = [](Context& asking, log::Miss what) -> Task<void> {
      EXPECT_TRUE(co_await asking.broker.load(asking, what));
    };
    run(loading(context, miss), *threads[0]);
  }
  int filled_ = 0;
};

TEST_F(TransactionalCompactionTest, EndsWithWhatWasCommittedAndNothingOfWhatWasAborted) {
  for (const char* key : {"a", "b", "c"}) plain(key, "0");
  Producer commits = init("commits"), aborts = init("aborts"),
           waits = init("waits", TransactionVersion::k2, 10min);
  put(commits, "a", "1");
  put(aborts, "b", "bad");
  EXPECT_EQ(end(commits, true), ErrorCode::NONE);
  EXPECT_EQ(end(aborts, false), ErrorCode::NONE);
  fill(10);
  put(waits, "c", "1");
  put(aborts, "a", "bad");
  fill(20);
  EXPECT_EQ(end(aborts, false), ErrorCode::NONE);

  pass(20s);
  Seen committed = read(true), uncommitted = read(false);
  EXPECT_EQ(committed.last, (Values{{"a", "1"}, {"b", "0"}, {"c", "0"}, {"fill", "9"}}));
  EXPECT_EQ(uncommitted.last["c"], "1");
  EXPECT_EQ(uncommitted.all.count("b=bad"), 0U) << "it was aborted and is cleaned";
  EXPECT_EQ(uncommitted.all.count("a=0"), 0U);
  EXPECT_EQ(uncommitted.all.count("a=bad"), 1U) << "nothing from the open transaction on is";
  EXPECT_EQ(uncommitted.all.count("fill=10"), 1U);

  EXPECT_EQ(end(waits, true), ErrorCode::NONE);
  fill(10);
  pass(20s);
  const Values last{{"a", "1"}, {"b", "0"}, {"c", "1"}, {"fill", "39"}};
  EXPECT_EQ(read(true).last, last);
  EXPECT_EQ(read(false).all.count("a=bad"), 0U);
  EXPECT_EQ(read(false).all.count("c=0"), 0U);
  EXPECT_TRUE(stable("t"));
  const std::size_t markers = read(false).markers;
  EXPECT_GT(markers, 0U);

  for (int checkpoints = 0; checkpoints < 3; ++checkpoints) {  // one has to forget what was aborted
    fill(10);
    pass(120s);
  }
  EXPECT_LT(read(false).markers, markers) << "those of transactions that have no records left";
  const Values end_values{{"a", "1"}, {"b", "0"}, {"c", "1"}, {"fill", "69"}};
  EXPECT_EQ(read(true).last, end_values);
  kill();
  EXPECT_EQ(read(true).last, end_values);
  EXPECT_TRUE(stable("t"));
}

}  // namespace
}  // namespace kanal::broker::test
