// Replay equals life, from the records as from a snapshot; damaged, impossible and newer records
// are errors; the bytes on disk are fixed.
#include "stored_record.hpp"
#include "txn/records.hpp"
#include "txn_support.hpp"

#include <random>

namespace kanal::coordinator {
namespace {

using enum ErrorCode;
using State = TransactionState;
constexpr std::int64_t kId = LiveTransaction::kFirstId;

void expect_same(const LiveTransaction& live) {
  const auto replayed = live.replayed();
  EXPECT_EQ(replayed->facts(), live.machine().facts());
  EXPECT_EQ(replayed->vacant(), live.machine().vacant());
  EXPECT_EQ(replayed->snapshot("t"), live.machine().snapshot("t"));
  EXPECT_EQ(live.machine().live_records(), live.machine().snapshot("t").size());
  Transaction rolled("t", live.settings);
  for (const Buffer& body : live.machine().snapshot("t")) {
    ASSERT_TRUE(rolled.apply({"t", body}));
  }
  EXPECT_EQ(rolled.facts(), live.machine().facts());
}

// Requests as producers of both versions and old ones send them, at random.
class Chaos {
 public:
  explicit Chaos(std::uint32_t seed) : random_(seed) { live.hold_markers(); }

  void act() {
    if (may_fail && pick(10) == 0) live.fail_next_store();
    switch (pick(16)) {
      case 0:
        (void)live.init(pick(2) == 0 ? Identity{} : somebody());
        return;
      case 1:
      case 2:
      case 3:
      case 4:
        (void)live.add(somebody(), partitions(pick(2) == 0 ? "a" : "b", {pick(4), pick(4)}),
                       version());
        return;
      case 5:
        (void)live.add_group(somebody(), pick(2) == 0 ? "g" : "h", version());
        return;
      case 6:
      case 7:
      case 8:
        (void)live.end(somebody(), pick(2) == 0, version());
        return;
      case 9:
      case 10:
      case 11:
        if (live.has_markers()) live.write_markers();
        return;
      case 12:
        if (live.has_markers()) live.tell_delayed();
        return;
      case 13:
        live.pass(seconds{pick(40)});
        return;
      case 14:
        if (pick(8) == 0) live.restart();
        return;
      default:
        return rarely();
    }
  }
  LiveTransaction live;
  bool may_fail = false;
  int jumps = 0;  // how often the epoch was set by hand

 private:
  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  TransactionVersion version() { return pick(2) == 0 ? k1 : k2; }
  Identity somebody() {  // mostly the owner
    Identity identity = live.identity();
    if (pick(6) == 0) identity.epoch -= 1;
    if (pick(20) == 0) identity.id -= 1;
    return identity;
  }
  void rarely() {
    switch (pick(4)) {
      case 0:
        live.set_wall(live.wall() + 604'800'000);
        live.expire();
        break;
      case 1:  // nearly exhausted, as after 32,765 ends
        if (live.state() == State::kEmpty || live.state() == State::kCompleteAbort) {
          TransactionFacts facts = live.machine().facts();
          facts.producer_epoch = ProducerEpoch(static_cast<std::int16_t>(32'764 + pick(3)));
          facts.last_producer_epoch = kNoProducerEpoch;
          live.start_with(encode_transaction(facts));
          ++jumps;
        }
        break;
      case 2:
        live.roll();
        break;
      default:
        (void)live.commit({pick(3), pick(3)}, version());
        break;
    }
  }

  std::mt19937 random_;
};

TEST(TxnReplay, EqualsLifeAfterRandomCommands) {
  std::map<State, int> seen;
  std::int64_t rotated = 0;
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Chaos chaos(seed);
    for (int i = 0; i < 400 && !testing::Test::HasFailure(); ++i) {
      const Identity before = chaos.live.identity();
      const bool existed = !chaos.live.machine().vacant();
      chaos.act();
      ++seen[chaos.live.state()];
      expect_same(chaos.live);
      const Identity after = chaos.live.identity();
      if (existed && before.id != after.id && after.epoch == 0) ++rotated;
      // What a client may hold never comes back, and one epoch is always left to fence with.
      if (before.id == after.id) {
        EXPECT_GE(after.epoch, std::min(before.epoch, 32'764));
      }
      const TransactionFacts& facts = chaos.live.machine().facts();
      EXPECT_TRUE(facts.producer_epoch.value() <= 32'766 || facts.prepared());
    }
  }
  for (const State state :
       {State::kEmpty, State::kOngoing, State::kPrepareCommit, State::kPrepareAbort,
        State::kCompleteCommit, State::kCompleteAbort, State::kDead}) {
    EXPECT_GT(seen[state], 50) << "the commands reach " << to_string(state);
  }
  EXPECT_GT(rotated, 10) << "and exhausted epochs";
}

// What a producer has had and lost, it never has again: not after restarts and failed writes
// either.
TEST(TxnReplay, NoProducerIdAndEpochComesBack) {
  for (std::uint32_t seed = 200; seed < 220; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Chaos chaos(seed);
    chaos.may_fail = true;
    std::set<std::pair<std::int64_t, int>> gone;
    std::pair<std::int64_t, int> now{-1, -1};
    int jumps = 0;
    for (int i = 0; i < 400; ++i) {
      chaos.act();
      if (jumps != chaos.jumps) {
        gone.clear();
        now = {-1, -1};
        jumps = chaos.jumps;
      }
      const Identity identity = chaos.live.identity();
      const std::pair<std::int64_t, int> next{identity.id, identity.epoch};
      if (next == now) continue;
      if (now.first >= 0) gone.insert(now);
      now = next;
      if (identity.id < 0) continue;
      ASSERT_FALSE(gone.contains(now)) << identity.id << "/" << identity.epoch;
      for (const auto& [id, epoch] : gone) {
        ASSERT_NE(chaos.live.verify({id, epoch}, "a"), NONE);
      }
    }
  }
}

// Every transaction that was open gets its markers once, but for restarts in between.
TEST(TxnReplay, NoTransactionEndsTwiceOrNotAtAll) {
  for (std::uint32_t seed = 100; seed < 110; ++seed) {
    Chaos chaos(seed);
    std::size_t prepared = 0;
    for (int i = 0; i < 400; ++i) {
      const bool was = chaos.live.machine().facts().prepared();
      chaos.act();
      const bool is = chaos.live.machine().facts().prepared();
      if (!was && is) ++prepared;
      EXPECT_EQ(is, chaos.live.has_markers());
    }
    EXPECT_EQ(chaos.live.written().size() + (chaos.live.has_markers() ? 1 : 0), prepared);
  }
}

TEST(TxnReplay, AnOpenTransactionGoesOn) {
  LiveTransaction live;
  live.init();
  live.add({kId, 0}, kOrders0, k2);
  live.add_group({kId, 0}, "g", k2);
  live.restart();
  EXPECT_FALSE(live.has_markers());
  EXPECT_EQ(live.verify({kId, 0}), NONE);
  EXPECT_EQ(live.verify_group({kId, 0}, "g"), NONE);
  EXPECT_EQ(live.commit({kId, 0}, k2), granted({kId, 1}));
}

TransactionFacts some_facts(State state = State::kOngoing) {
  TransactionFacts facts;
  facts.producer_id = ProducerId(7);
  facts.producer_epoch = ProducerEpoch(3);
  facts.last_producer_epoch = ProducerEpoch(2);
  facts.version = k2;
  facts.state = state;
  facts.timeout = seconds{60};
  facts.started = Timestamp(1'000);
  facts.updated = Timestamp(2'000);
  if (state == State::kOngoing || facts.prepared()) {
    facts.topics = {{"a", {PartitionIndex(0), PartitionIndex(2)}}, {"b", {PartitionIndex(1)}}};
    facts.groups = {"g", "h"};
  }
  return facts;
}

Error error_of(std::vector<Buffer> bodies) {
  TransactionSettings settings;
  Transaction machine("payments", settings);
  const Buffer last = bodies.back();
  bodies.pop_back();
  for (const Buffer& body : bodies) {
    EXPECT_TRUE(machine.apply({"payments", body}));
  }
  const TransactionFacts before = machine.facts();
  const auto applied = machine.apply({"payments", last});
  EXPECT_EQ(machine.facts(), before) << "nothing of it is taken over";
  EXPECT_FALSE(applied);
  return applied ? Error{} : applied.error();
}
void expect_damaged(std::vector<Buffer> bodies, std::string_view what) {
  const Error error = error_of(std::move(bodies));
  EXPECT_EQ(error.code, KAFKA_STORAGE_ERROR);
  EXPECT_NE(error.detail.find("_KAFKA_TXN_.payments: "), std::string::npos) << error.detail;
  EXPECT_NE(error.detail.find(what), std::string::npos) << error.detail;
}

TransactionAddition some_addition() {
  TransactionAddition addition;
  addition.version = k2;
  addition.added = Timestamp(3'000);
  addition.topics = {{"c", {PartitionIndex(4)}}};
  addition.groups = {"i"};
  return addition;
}

TEST(TxnReplay, DamagedAndNewerRecordsNameTheChannel) {
  const Buffer first = encode_transaction(some_facts());
  for (Buffer record : {encode_transaction(some_facts()), encode_addition(some_addition())}) {
    const bool whole = record[1] == std::byte{8};
    const auto with = [&](const Buffer& damaged) {
      return whole ? std::vector<Buffer>{damaged} : std::vector<Buffer>{first, damaged};
    };
    for (std::size_t length = 1; length < record.size(); ++length) {
      expect_damaged(with({record.begin(), record.begin() + static_cast<std::ptrdiff_t>(length)}),
                     "");
    }
    record[3] = std::byte{1};
    expect_damaged(with(record), "version is not served");
  }
  wire::OffsetTombstoneRecord other;
  other.topic = "orders";
  expect_damaged({encode_record(other)}, "another channel's");
}

TEST(TxnReplay, ValuesThatDoNotGoTogetherAreDamage) {
  const auto damaged = [](State state, const auto& change, std::string_view what) {
    TransactionFacts facts = some_facts(state);
    change(facts);
    expect_damaged({encode_transaction(facts)}, what);
  };
  const State open = State::kOngoing;
  damaged(open, [](auto& f) { f.producer_id = kNoProducerId; }, "no producer id");
  damaged(open, [](auto& f) { f.producer_epoch = kNoProducerEpoch; }, "no producer id or epoch");
  damaged(open, [](auto& f) { f.producer_epoch = ProducerEpoch(32'767); }, "exhausted");
  damaged(open, [](auto& f) { f.next_producer_id = ProducerId(8); }, "exhausted");
  damaged(State::kPrepareAbort, [](auto& f) { f.next_producer_id = ProducerId(8); }, "exhausted");
  damaged(open, [](auto& f) { f.last_producer_epoch = ProducerEpoch(-2); }, "out of range");
  damaged(open, [](auto& f) { f.last_producer_epoch = ProducerEpoch(32'767); }, "out of range");
  damaged(open, [](auto& f) { f.previous_producer_id = ProducerId(-2); }, "out of range");
  damaged(open, [](auto& f) { f.version = static_cast<TransactionVersion>(1); }, "version");
  damaged(open, [](auto& f) { f.state = State::kDead; }, "state");
  damaged(open, [](auto& f) { f.state = State::kPrepareEpochFence; }, "state");
  damaged(open, [](auto& f) { f.state = static_cast<State>(-1); }, "state");
  damaged(open, [](auto& f) { f.timeout = milliseconds{0}; }, "timeout");
  damaged(open, [](auto& f) { f.started = kNoTimestamp; }, "without start");
  damaged(State::kEmpty, [](auto&) {}, "without start");
  damaged(open, [](auto& f) { f.updated = kNoTimestamp; }, "time");
  for (const std::int64_t never : {INT64_MAX, INT64_MIN, INT64_MAX / 2}) {
    damaged(open, [&](auto& f) { f.started = Timestamp(never); }, "without start");
    damaged(open, [&](auto& f) { f.updated = Timestamp(never); }, "time");
    TransactionAddition addition = some_addition();
    addition.added = Timestamp(never);
    expect_damaged({encode_transaction(some_facts()), encode_addition(addition)}, "time");
  }
  for (const State closed : {State::kCompleteAbort, State::kCompleteCommit}) {
    damaged(closed, [](auto& f) { f.groups = {"g"}; }, "without an open transaction");
    damaged(closed, [](auto& f) { f.topics = {{"a", {PartitionIndex(0)}}}; }, "without an open");
  }
  damaged(open, [](auto& f) { f.topics[""] = {PartitionIndex(0)}; }, "without name");
  damaged(open, [](auto& f) { f.topics["c"] = {}; }, "missing");
  damaged(open, [](auto& f) { f.topics["c"] = {PartitionIndex(-1)}; }, "negative");
  damaged(open, [](auto& f) { f.topics["a"] = {PartitionIndex(1), PartitionIndex(1)}; }, "order");
}

TEST(TxnReplay, OfThingsTwiceOrOutOfOrderIsDamage) {
  wire::TransactionAddRecord record;
  record.added = Timestamp(1);
  record.groups = {"h", "g"};
  const Buffer first = encode_transaction(some_facts());
  expect_damaged({first, encode_record(record)}, "groups without order");
  record.groups = {};
  for (const char* name : {"b", "b"}) {
    auto& topic = record.topics.emplace_back();
    topic.name = name;
    topic.partitions = {PartitionIndex(0)};
  }
  expect_damaged({first, encode_record(record)}, "without name or order");
}

TEST(TxnReplay, StepsThatCannotBeAreDamage) {
  const auto cannot = [](State from, const auto& change, std::string_view what) {
    TransactionFacts facts = some_facts(from);
    if (from == State::kEmpty) facts.started = kNoTimestamp;
    const Buffer first = encode_transaction(facts);
    change(facts);
    expect_damaged({first, encode_transaction(facts)}, what);
  };
  const auto to = [](State state) {
    return [state](TransactionFacts& facts) {
      facts = some_facts(state);
      if (state == State::kEmpty) facts.started = kNoTimestamp;
    };
  };
  cannot(State::kOngoing, to(State::kOngoing), "Ongoing cannot follow Ongoing");
  cannot(State::kOngoing, to(State::kEmpty), "cannot follow");
  cannot(State::kEmpty, to(State::kPrepareCommit), "cannot follow");
  cannot(State::kEmpty, to(State::kCompleteCommit), "cannot follow");
  cannot(State::kCompleteAbort, to(State::kCompleteCommit), "cannot follow");
  cannot(State::kPrepareCommit, to(State::kCompleteAbort), "cannot follow");
  cannot(State::kPrepareAbort, to(State::kCompleteCommit), "cannot follow");
  cannot(State::kPrepareCommit, to(State::kPrepareCommit), "cannot follow");
  cannot(State::kPrepareAbort, to(State::kEmpty), "cannot follow");
  for (const int epoch : {2, 5}) {
    cannot(
        State::kOngoing,
        [&](auto& f) {
          f.state = State::kPrepareAbort;
          f.producer_epoch = ProducerEpoch(static_cast<std::int16_t>(epoch));
        },
        "goes back or jumps");
  }
  cannot(
      State::kCompleteAbort, [](auto& f) { f.producer_id = ProducerId(8); }, "goes back or jumps");
  cannot(
      State::kOngoing,
      [](auto& f) {
        f.state = State::kPrepareCommit;
        f.topics.erase("b");
      },
      "other partitions or groups");
  cannot(
      State::kOngoing,
      [](auto& f) {
        f.state = State::kPrepareCommit;
        f.groups.erase("g");
      },
      "other partitions or groups");
  TransactionAddition addition = some_addition();
  expect_damaged({encode_addition(addition)}, "without a transaction");
  expect_damaged({encode_transaction(some_facts(State::kPrepareCommit)), encode_addition(addition)},
                 "without a transaction");
}

std::string hex(const Buffer& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[static_cast<unsigned>(byte) >> 4U];
    text += kDigits[static_cast<unsigned>(byte) & 15U];
  }
  return text;
}

TEST(StoredFormat, OfATransactionalId) {
  TransactionFacts facts = some_facts(State::kPrepareCommit);
  facts.producer_epoch = ProducerEpoch(32'767);
  facts.last_producer_epoch = ProducerEpoch(32'766);
  facts.next_producer_id = ProducerId(9);
  EXPECT_EQ(hex(encode_transaction(facts)),
            "00080000"          // type, version
            "0000000000000007"  // producer id
            "7fff"              // epoch
            "7ffe"              // the one before
            "ffffffffffffffff"  // previous and
            "0000000000000009"  // next id
            "02"                // transaction version
            "02"                // PrepareCommit
            "0000ea60"          // timeout
            "00000000000003e8"  // started
            "00000000000007d0"  // updated
            "03"                // two topics: name, partitions, tagged fields
            "0261"
            "03"
            "00000000"
            "00000002"
            "00"
            "0262"
            "02"
            "00000001"
            "00"
            "03"
            "0267"
            "0268"  // two groups
            "00");  // tagged fields
  const auto back = decode_transaction_record(encode_transaction(facts));
  ASSERT_TRUE(back);
  EXPECT_EQ(std::get<TransactionFacts>(*back), facts);
}

TEST(StoredFormat, OfWhatATransactionTakesIn) {
  const TransactionAddition addition = some_addition();
  EXPECT_EQ(hex(encode_addition(addition)),
            "00090000"          // type, version
            "02"                // transaction version
            "0000000000000bb8"  // added
            "02"
            "0263"
            "02"
            "00000004"
            "00"
            "02"
            "0269"
            "00");
  const auto back = decode_transaction_record(encode_addition(addition));
  ASSERT_TRUE(back);
  const auto& read = std::get<TransactionAddition>(*back);
  EXPECT_EQ(read.version, addition.version);
  EXPECT_EQ(read.added, addition.added);
  EXPECT_EQ(read.topics, addition.topics);
  EXPECT_EQ(read.groups, addition.groups);
}

}  // namespace
}  // namespace kanal::coordinator
