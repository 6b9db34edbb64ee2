// What DescribeTransactions and ListTransactions see: states, filters, patterns of ids.
#include "txn_support.hpp"

namespace kanal::coordinator {
namespace {

using enum ErrorCode;
using State = TransactionState;
constexpr std::int64_t kId = LiveTransaction::kFirstId;

bool listed(const LiveTransaction& live, const TransactionFilter& filter) {
  return live.machine().listed(filter, live.wall());
}
TransactionFilter with_states(std::set<State> states) {
  TransactionFilter filter;
  filter.by_state = true;
  filter.states = std::move(states);
  return filter;
}

TEST(TxnList, AnUnknownIdIsNot) {
  LiveTransaction live;
  EXPECT_FALSE(listed(live, {}));
  EXPECT_FALSE(listed(live, with_states({State::kDead})));
  live.init();
  EXPECT_TRUE(listed(live, {}));
}

TEST(TxnList, ByState) {
  LiveTransaction live;
  live.init();
  EXPECT_TRUE(listed(live, with_states({State::kOngoing, State::kEmpty})));
  EXPECT_FALSE(listed(live, with_states({State::kOngoing})));
  EXPECT_FALSE(listed(live, with_states({}))) << "only unknown states were named";
  live.add({kId, 0});
  EXPECT_TRUE(listed(live, with_states({State::kOngoing})));
}

TEST(TxnList, ByProducerId) {
  LiveTransaction live;
  live.init();
  TransactionFilter filter;
  filter.producer_ids = {ProducerId(kId + 1)};
  EXPECT_FALSE(listed(live, filter));
  filter.producer_ids.push_back(ProducerId(kId));
  EXPECT_TRUE(listed(live, filter));
}

TEST(TxnList, ByDurationSinceTheBeginning) {
  LiveTransaction live;
  live.init();
  live.add({kId, 0});
  TransactionFilter filter;
  filter.duration_ms = 1'000;
  live.pass(milliseconds{1'000});
  EXPECT_FALSE(listed(live, filter)) << "longer than";
  live.pass(milliseconds{1});
  EXPECT_TRUE(listed(live, filter));
  filter.duration_ms = 0;
  EXPECT_TRUE(listed(live, filter));
  live.commit({kId, 0});
  EXPECT_TRUE(listed(live, filter)) << "as Kafka, of the last transaction";
  live.init();
  filter.duration_ms = 1'000'000;
  EXPECT_TRUE(listed(live, filter)) << "as Kafka, since ever if there was none";
}

TEST(TxnList, ByPattern) {
  LiveTransaction live("payments-7");
  live.init();
  TransactionFilter filter;
  filter.pattern = NamePattern::compile("pay.*-\\d").value();
  EXPECT_TRUE(listed(live, filter));
  filter.pattern = NamePattern::compile("pay").value();
  EXPECT_FALSE(listed(live, filter)) << "the whole id";
}

TEST(TxnList, StatesAreNamedAsKafkaNamesThem) {
  const std::pair<State, std::string_view> names[] = {
      {State::kEmpty, "Empty"},
      {State::kOngoing, "Ongoing"},
      {State::kPrepareCommit, "PrepareCommit"},
      {State::kPrepareAbort, "PrepareAbort"},
      {State::kCompleteCommit, "CompleteCommit"},
      {State::kCompleteAbort, "CompleteAbort"},
      {State::kDead, "Dead"},
      {State::kPrepareEpochFence, "PrepareEpochFence"}};
  for (const auto& [state, text] : names) {
    EXPECT_EQ(to_string(state), text);
    EXPECT_EQ(transaction_state(text), state);
  }
  EXPECT_EQ(transaction_state("ongoing"), std::nullopt);
  EXPECT_EQ(transaction_state(""), std::nullopt);
}

}  // namespace
}  // namespace kanal::coordinator
