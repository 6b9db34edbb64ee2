// Random requests, crashes and failed writes against a ledger that knows only what was asked and
// answered: every request is answered once; what was added and nothing else gets its markers;
// only its owner's word commits; a decision stands.
#include "txn_support.hpp"

#include <map>
#include <optional>
#include <random>
#include <set>

namespace kanal::coordinator {
namespace {

using enum ErrorCode;
using State = TransactionState;

/// What clients and logs have seen of one transactional id.
struct Ledger {
  struct Open {
    TransactionTopics topics;
    TransactionGroups groups;
  };
  std::optional<Open> open;
  std::optional<WriteMarkers> decided;  // markers to be written
  std::optional<bool> last;             // how the last one ended
  std::set<WaiterId> waiting;
  int commits = 0, aborts = 0, repeats = 0;
};

class Desk {
 public:
  explicit Desk(std::uint32_t seed) : random_(seed) {
    machine_ = std::make_unique<Transaction>("t", settings_);
  }

  void act() {
    const int what = pick(20);
    if (what < 2) return ask(init());
    if (what < 8) return ask(add());
    if (what < 12) return ask(end());
    if (what < 15 && number_of_end_ != 0) return tell(MarkersWritten{number_of_end_});
    if (what == 15) return tell(MarkersDelayed{number_of_end_ + (pick(4) == 0 ? 1U : 0U)});
    if (what == 16) return pass_time();
    if (what == 17) return restart();
    if (what == 18 && pick(5) == 0) {
      wall_ = wall_ + settings_.id_expiration.count();
      return tell(ExpireTransactionalId{});
    }
    if (what == 19) fail_ = true;
  }
  const Transaction& machine() { return *machine_; }
  Ledger ledger;

 private:
  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  const TransactionFacts& facts() { return machine_->facts(); }
  template <class What>
  void name_somebody(What& command) {
    command.producer_id = facts().producer_id;
    command.producer_epoch = facts().producer_epoch;
    const auto before = static_cast<std::int16_t>(facts().producer_epoch.value() - 1);
    if (facts().exists() && pick(8) == 0) command.producer_epoch = ProducerEpoch(before);
    if (pick(6) == 0) command.producer_epoch = ProducerEpoch(static_cast<std::int16_t>(pick(5)));
    if (pick(12) == 0) command.producer_id = ProducerId(pick(static_cast<int>(next_id_) + 1));
    command.knows_fenced = pick(2) == 0;
  }
  InitProducerIdCommand init() {
    InitProducerIdCommand command;
    command.timeout = seconds{1 + pick(60)};
    if (pick(2) == 0) name_somebody(command);
    return command;
  }
  AddToTransactionCommand add() {
    AddToTransactionCommand command;
    name_somebody(command);
    command.version = pick(2) == 0 ? k1 : k2;
    for (int i = pick(4); i > 0; --i) {
      command.partitions.push_back({pick(2) == 0 ? "a" : "b", PartitionIndex(pick(3))});
    }
    if (pick(3) == 0) command.group = pick(2) == 0 ? "g" : "h";
    return command;
  }
  EndTransactionCommand end() {
    EndTransactionCommand command;
    name_somebody(command);
    command.commit = pick(2) == 0;
    command.version = pick(2) == 0 ? k1 : k2;
    return command;
  }

  template <class What>
  void ask(What what) {
    ledger.waiting.insert(number_ + 1);
    run(std::move(what));
  }
  template <class What>
  void tell(What what) {
    run(std::move(what));
  }
  void pass_time() {
    if (!machine_->next_deadline()) return;
    now_ = std::max(now_, *machine_->next_deadline());
    run(PassTime{});
  }
  template <class What>
  void run(What what) {
    wall_ = wall_ + 1;
    TransactionCommand command{
        .waiter = ++number_, .wall = wall_, .fresh = kNoProducerId, .what = std::move(what)};
    if (machine_->needs_producer_id(command)) command.fresh = ProducerId(next_id_++);
    const TransactionFacts before = facts();
    const auto effects = machine_->step(now_, command);
    ASSERT_LE(effects.records.size(), 1U);
    const bool failed = std::exchange(fail_, false) && !effects.records.empty();
    // Nobody knows whether a write that failed was stored.
    if (!failed || pick(2) == 0) {
      store(effects);
      note(command, before);
    }
    if (failed) return restart();
    for (const WriteMarkers& markers : effects.actions) expect_markers(markers, command.waiter);
    for (const TransactionReply& reply : effects.replies) answered(reply, command, before);
    EXPECT_EQ(ledger.waiting.size(), waits_ ? 1U : 0U) << "only an end's request waits";
  }
  void store(const Transaction::Effects& effects) {
    for (const Record& record : effects.records) {
      record.ends_channel() ? stored_.clear() : stored_.push_back(record.body);
      const auto applied = machine_->apply(record);
      ASSERT_TRUE(applied) << applied.error().detail;
    }
    if (pick(10) == 0) stored_ = machine_->snapshot("t");
  }

  /// What the change of state means for the transaction that was open.
  void note(const TransactionCommand& command, const TransactionFacts& before) {
    if (facts() == before) return;
    if (facts().state == State::kOngoing) {
      const auto& added = std::get<AddToTransactionCommand>(command.what);
      EXPECT_EQ(added.producer_id, before.producer_id);
      EXPECT_EQ(added.producer_epoch, before.producer_epoch);
      if (before.state != State::kOngoing) {
        EXPECT_FALSE(ledger.open || ledger.decided);
        ledger.open.emplace();
      }
      for (const auto& [topic, partition] : added.partitions) {
        auto& known = ledger.open->topics[std::string(topic)];
        if (std::ranges::find(known, partition) == known.end()) known.push_back(partition);
        std::ranges::sort(known);
      }
      if (added.group) ledger.open->groups.emplace(*added.group);
    } else if (before.state == State::kOngoing) {
      decide(command, before);
    } else if (before.prepared()) {
      ASSERT_TRUE(ledger.decided);
      EXPECT_EQ(facts().state,
                ledger.decided->commit ? State::kCompleteCommit : State::kCompleteAbort);
      ledger.decided.reset();
      number_of_end_ = 0;
    } else if (facts().state != State::kEmpty && facts().exists()) {  // an abort of nothing
      EXPECT_EQ(facts().state, State::kCompleteAbort);
      ledger.last = false;
    }
  }
  void decide(const TransactionCommand& command, const TransactionFacts& before) {
    ASSERT_TRUE(ledger.open);
    const bool commit =
        facts().state == State::kPrepareCommit || facts().state == State::kCompleteCommit;
    const auto* ended = std::get_if<EndTransactionCommand>(&command.what);
    if (ended != nullptr) {
      EXPECT_EQ(ended->producer_id, before.producer_id);
      EXPECT_EQ(ended->producer_epoch, before.producer_epoch);
      EXPECT_EQ(ended->commit, commit);
    }
    EXPECT_TRUE(ended != nullptr || !commit) << "nobody asked for it";
    EXPECT_TRUE(std::holds_alternative<EndTransactionCommand>(command.what) ||
                std::holds_alternative<InitProducerIdCommand>(command.what) ||
                std::holds_alternative<PassTime>(command.what));
    ++(commit ? ledger.commits : ledger.aborts);
    ledger.last = commit;
    const bool raises = ended == nullptr || ended->version == k2;
    WriteMarkers markers;
    markers.commit = commit;
    markers.producer_id = before.producer_id;
    markers.producer_epoch = before.producer_epoch;
    markers.version = raises ? k2 : k1;
    markers.topics = ledger.open->topics;
    markers.groups = ledger.open->groups;
    if (raises) ++markers.producer_epoch;
    const bool nothing = markers.topics.empty() && markers.groups.empty();
    EXPECT_EQ(nothing, !facts().prepared());
    ledger.open.reset();
    if (!nothing) ledger.decided = std::move(markers);
  }
  void expect_markers(const WriteMarkers& markers, WaiterId number) {
    ASSERT_TRUE(ledger.decided);
    EXPECT_EQ(markers.end, number);
    EXPECT_EQ(markers.commit, ledger.decided->commit);
    EXPECT_EQ(markers.producer_id, ledger.decided->producer_id);
    EXPECT_EQ(markers.producer_epoch, ledger.decided->producer_epoch);
    EXPECT_EQ(markers.version, ledger.decided->version);
    EXPECT_EQ(markers.topics, ledger.decided->topics);
    EXPECT_EQ(markers.groups, ledger.decided->groups);
    number_of_end_ = number;
    waits_ = ledger.waiting.contains(number);
  }

  void answered(const TransactionReply& reply, const TransactionCommand& command,
                const TransactionFacts& before) {
    ASSERT_EQ(ledger.waiting.erase(reply.waiter), 1U) << "answered twice, or nobody";
    if (reply.waiter != command.waiter) waits_ = false;
    const auto* ended = std::get_if<EndTransactionCommand>(&command.what);
    if (ended == nullptr || reply.error != NONE || reply.waiter != command.waiter) return;
    // At once: a repeat, or of a transaction without members.
    EXPECT_EQ(ledger.last, ended->commit);
    if (facts() == before) ++ledger.repeats;
    if (ended->version == k2) {
      EXPECT_EQ(reply.producer_id, facts().producer_id);
      EXPECT_EQ(reply.producer_epoch, facts().producer_epoch);
    }
  }

  void restart() {
    machine_ = std::make_unique<Transaction>("t", settings_);
    for (const Buffer& body : stored_) ASSERT_TRUE(machine_->apply({"t", body}));
    ledger.waiting.clear();
    waits_ = false;
    const auto effects = machine_->loaded(now_, wall_, ++number_);
    EXPECT_TRUE(effects.records.empty() && effects.replies.empty());
    EXPECT_EQ(effects.actions.size(), ledger.decided ? 1U : 0U);
    for (const WriteMarkers& markers : effects.actions) expect_markers(markers, number_);
  }

  std::mt19937 random_;
  TransactionSettings settings_;
  std::unique_ptr<Transaction> machine_;
  std::vector<Buffer> stored_;
  bool fail_ = false, waits_ = false;
  WaiterId number_ = 0, number_of_end_ = 0;
  std::int64_t next_id_ = 100;
  Time now_{seconds{1'000}};
  Timestamp wall_{1'700'000'000'000};
};

TEST(TxnLedger, HoldsWhateverComesInWhateverOrder) {
  Ledger all;
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Desk desk(seed);
    for (int i = 0; i < 1'000 && !testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE(i);
      desk.act();
      EXPECT_EQ(desk.ledger.open.has_value(), desk.machine().facts().state == State::kOngoing);
      EXPECT_EQ(desk.ledger.decided.has_value(), desk.machine().facts().prepared());
    }
    all.commits += desk.ledger.commits;
    all.aborts += desk.ledger.aborts;
    all.repeats += desk.ledger.repeats;
  }
  EXPECT_GT(all.commits, 500);
  EXPECT_GT(all.aborts, 1'000);
  EXPECT_GT(all.repeats, 500);
}

}  // namespace
}  // namespace kanal::coordinator
