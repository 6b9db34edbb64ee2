#include "kanal/coordinator/txn.hpp"

#include "kanal/base/check.hpp"
#include "records.hpp"
#include "stored_record.hpp"
#include "transitions.hpp"

#include <algorithm>
#include <array>

namespace kanal::coordinator {
namespace {

using enum ErrorCode;
using State = TransactionState;

ErrorCode fenced(bool knows_fenced) {
  return knows_fenced ? PRODUCER_FENCED : INVALID_PRODUCER_EPOCH;
}

std::optional<Claim> claim_of(const TransactionFacts& facts, const InitProducerIdCommand& command) {
  if (command.producer_id == kNoProducerId) return std::nullopt;
  // A producer whose id expired may go on with a new one.
  if (!facts.exists()) return Claim::kCurrent;
  return claim(facts, command.producer_id, command.producer_epoch);
}

// KIP-890: an end of version 2 raised the epoch, so who repeats it has the one before. Not so if
// another producer had it raised.
bool repeats_end(const TransactionFacts& facts, const EndTransactionCommand& command) {
  return claim(facts, command.producer_id, command.producer_epoch) == Claim::kRepeated;
}

}  // namespace

struct Transaction::Turn {
  Time now;
  const TransactionCommand& command;
  Effects& effects;

  void reply(ErrorCode error, ProducerId id = kNoProducerId,
             ProducerEpoch epoch = kNoProducerEpoch) const {
    effects.replies.push_back({command.waiter, error, id, epoch});
  }
};

Transaction::Transaction(std::string id, const TransactionSettings& settings)
    : id_(std::move(id)), settings_(&settings) {}

Transaction::Effects Transaction::step(Time now, const TransactionCommand& command) {
  Effects effects;
  const Turn turn{now, command, effects};
  if (const auto* add_to = std::get_if<AddToTransactionCommand>(&command.what)) {
    add(turn, *add_to);
  } else if (const auto* ended = std::get_if<EndTransactionCommand>(&command.what)) {
    end(turn, *ended);
  } else if (const auto* written = std::get_if<MarkersWritten>(&command.what)) {
    complete(turn, written->end);
  } else if (const auto* asked = std::get_if<InitProducerIdCommand>(&command.what)) {
    init(turn, *asked);
  } else if (const auto* delayed = std::get_if<MarkersDelayed>(&command.what)) {
    if (end_ && end_->end == delayed->end) answer_end(turn, completed(facts_, command.wall));
  } else if (std::holds_alternative<ExpireTransactionalId>(command.what)) {
    expire(turn);
  } else if (std::holds_alternative<ReplaceProducerId>(command.what)) {
    replace(turn);
  } else if (std::holds_alternative<PassTime>(command.what)) {
    if (const auto due = next_deadline(); due && now >= *due) {
      // The broker's own ends are of version 2: the epoch fences the producer it gave up on.
      end_ongoing(turn, false, TransactionVersion::k2, std::nullopt);
    }
  }
  return effects;
}

// InitProducerId

void Transaction::init(const Turn& turn, const InitProducerIdCommand& command) {
  const ErrorCode error = check_init(command);
  if (error != NONE) {
    turn.reply(error);
    return;
  }
  if (facts_.state == State::kOngoing) {
    // The epoch that fences the open transaction is never handed out: as in Kafka the producer
    // asks again and gets the one after it. It is told so when that can succeed.
    end_ongoing(turn, false, TransactionVersion::k2, PendingEnd::For::kInitProducerId);
    return;
  }
  const TransactionFacts next = initialized(facts_, {.timeout = command.timeout,
                                                     .wall = turn.command.wall,
                                                     .fresh = turn.command.fresh,
                                                     .claim = claim_of(facts_, command)});
  turn.effects.records.push_back({id_, encode_transaction(next)});
  turn.reply(NONE, next.producer_id, next.producer_epoch);
}

ErrorCode Transaction::check_init(const InitProducerIdCommand& command) const noexcept {
  if ((command.producer_id == kNoProducerId) != (command.producer_epoch == kNoProducerEpoch)) {
    return INVALID_REQUEST;
  }
  if (id_.empty()) return INVALID_REQUEST;
  if (command.enable_2pc) return TRANSACTIONAL_ID_AUTHORIZATION_FAILED;  // switched off, KIP-939
  if (command.keep_prepared) return UNSUPPORTED_VERSION;
  if (command.timeout <= std::chrono::milliseconds::zero() ||
      command.timeout > settings_->max_timeout) {
    return INVALID_TRANSACTION_TIMEOUT;
  }
  if (!facts_.exists()) return NONE;
  if (facts_.prepared()) return CONCURRENT_TRANSACTIONS;
  if (command.producer_id == kNoProducerId) return NONE;
  // As Kafka: an open transaction is aborted for an older epoch too, which is fenced next time.
  const bool may = facts_.state == State::kOngoing ? command.producer_id == facts_.producer_id
                                                   : claim_of(facts_, command) != Claim::kNone;
  return may ? NONE : fenced(command.knows_fenced);
}

// Partitions and groups

void Transaction::add(const Turn& turn, const AddToTransactionCommand& command) {
  const ErrorCode error = check_add(command);
  if (error != NONE) {
    turn.reply(error);
    return;
  }
  TransactionAddition addition;
  addition.version = command.version;
  addition.added = turn.command.wall;
  for (const TransactionPartition& partition : command.partitions) {
    if (contains(facts_.topics, partition)) continue;
    insert(addition.topics, partition.topic, partition.partition);
  }
  if (command.group && !facts_.groups.contains(*command.group)) {
    if (facts_.groups.size() >= kMaxGroups) {
      turn.reply(POLICY_VIOLATION);
      return;
    }
    addition.groups.emplace(*command.group);
  }
  const bool begins = facts_.state != State::kOngoing;
  if (begins || !addition.empty()) {
    turn.effects.records.push_back({id_, encode_addition(addition)});
  }
  if (begins) deadline_ = turn.now + facts_.timeout;
  turn.reply(NONE);
}

ErrorCode Transaction::check_add(const AddToTransactionCommand& command) const noexcept {
  if (id_.empty()) return INVALID_REQUEST;
  if (!facts_.exists()) return INVALID_PRODUCER_ID_MAPPING;
  // First of all: what is ending may be about to change the producer id.
  if (facts_.prepared()) return CONCURRENT_TRANSACTIONS;
  if (command.producer_id != facts_.producer_id) return INVALID_PRODUCER_ID_MAPPING;
  if (command.producer_epoch != facts_.producer_epoch) return fenced(command.knows_fenced);
  return NONE;
}

ErrorCode Transaction::verify(ProducerId producer_id, ProducerEpoch epoch,
                              const TransactionPartition& partition) const noexcept {
  const ErrorCode error = verify_producer(producer_id, epoch);
  if (error != NONE) return error;
  return contains(facts_.topics, partition) ? NONE : TRANSACTION_ABORTABLE;
}

ErrorCode Transaction::verify_group(ProducerId producer_id, ProducerEpoch epoch,
                                    std::string_view group) const noexcept {
  const ErrorCode error = verify_producer(producer_id, epoch);
  if (error != NONE) return error;
  return facts_.groups.contains(group) ? NONE : TRANSACTION_ABORTABLE;
}

ErrorCode Transaction::verify_producer(ProducerId producer_id, ProducerEpoch epoch) const noexcept {
  if (id_.empty()) return INVALID_REQUEST;
  if (!facts_.exists() || producer_id != facts_.producer_id) return INVALID_PRODUCER_ID_MAPPING;
  if (epoch != facts_.producer_epoch) return PRODUCER_FENCED;
  return facts_.prepared() ? CONCURRENT_TRANSACTIONS : NONE;
}

ErrorCode writer_error(ErrorCode error, bool knows_transaction_abortable) noexcept {
  // A producer that writes with an old epoch asks for a new one, or learns there that it is fenced.
  if (error == PRODUCER_FENCED) return INVALID_PRODUCER_EPOCH;
  if (error == TRANSACTION_ABORTABLE && !knows_transaction_abortable) return INVALID_TXN_STATE;
  return error;
}

// The end

void Transaction::end(const Turn& turn, const EndTransactionCommand& command) {
  const ErrorCode error = check_end(command);
  if (error != NONE) {
    turn.reply(error);
    return;
  }
  const bool second = command.version == TransactionVersion::k2;
  if (facts_.state == State::kOngoing) {
    end_ongoing(turn, command.commit, command.version, PendingEnd::For::kEndTxn);
  } else if (!second) {
    turn.reply(NONE);  // the same again
  } else if (repeats_end(facts_, command)) {
    turn.reply(NONE, facts_.producer_id, facts_.producer_epoch);
  } else {
    // Of version 2: the client may not know whether anything was added. Nothing is to be marked.
    const TransactionFacts next = completed(prepared(facts_, {.commit = false,
                                                              .version = command.version,
                                                              .wall = turn.command.wall,
                                                              .fresh = turn.command.fresh}),
                                            turn.command.wall);
    turn.effects.records.push_back({id_, encode_transaction(next)});
    turn.reply(NONE, next.producer_id, next.producer_epoch);
  }
}

/// NONE: an open transaction ends; or it is a repeat, which is answered as the first time; or, of
/// version 2, an abort of nothing.
ErrorCode Transaction::check_end(const EndTransactionCommand& command) const noexcept {
  if (id_.empty()) return INVALID_REQUEST;
  if (!facts_.exists()) return INVALID_PRODUCER_ID_MAPPING;
  const bool complete =
      facts_.state == State::kCompleteCommit || facts_.state == State::kCompleteAbort;
  const bool same =
      facts_.state == (command.commit ? State::kCompleteCommit : State::kCompleteAbort);
  if (command.version == TransactionVersion::k1) {
    if (command.producer_id != facts_.producer_id) return INVALID_PRODUCER_ID_MAPPING;
    if (command.producer_epoch != facts_.producer_epoch) return fenced(command.knows_fenced);
    if (facts_.prepared()) return CONCURRENT_TRANSACTIONS;
    return facts_.state == State::kOngoing || same ? NONE : INVALID_TXN_STATE;
  }
  if (facts_.prepared()) return CONCURRENT_TRANSACTIONS;
  if (complete && repeats_end(facts_, command)) return same ? NONE : INVALID_TXN_STATE;
  if (command.producer_id != facts_.producer_id) return INVALID_PRODUCER_ID_MAPPING;
  if (command.producer_epoch != facts_.producer_epoch) return fenced(command.knows_fenced);
  return facts_.state == State::kOngoing || !command.commit ? NONE : INVALID_TXN_STATE;
}

void Transaction::end_ongoing(const Turn& turn, bool commit, TransactionVersion version,
                              std::optional<PendingEnd::For> answered) {
  const TransactionFacts next = prepared(facts_, {.commit = commit,
                                                  .version = version,
                                                  .wall = turn.command.wall,
                                                  .fresh = turn.command.fresh});
  begin_end(turn, next, answered);
}

void Transaction::replace(const Turn& turn) {
  if (!facts_.exists() || facts_.prepared()) return;
  const TransactionFacts next = prepared(facts_, {.commit = false,
                                                  .version = TransactionVersion::k2,
                                                  .wall = turn.command.wall,
                                                  .fresh = turn.command.fresh,
                                                  .replace = true});
  begin_end(turn, next, std::nullopt);
}

void Transaction::begin_end(const Turn& turn, const TransactionFacts& next,
                            std::optional<PendingEnd::For> answered) {
  PendingEnd pending;
  pending.end = turn.command.waiter;
  if (answered) {
    pending.waiter = turn.command.waiter;
    pending.what = *answered;
  }
  end_ = pending;
  deadline_ = Time::max();
  if (next.topics.empty() && next.groups.empty()) {
    const TransactionFacts done = completed(next, turn.command.wall);
    turn.effects.records.push_back({id_, encode_transaction(done)});
    answer_end(turn, done);
    end_.reset();
    return;
  }
  turn.effects.records.push_back({id_, encode_transaction(next)});
  turn.effects.actions.push_back(markers(turn.command.waiter, next));
}

WriteMarkers Transaction::markers(WaiterId end, const TransactionFacts& prepared) const {
  return {.end = end,
          .commit = prepared.state == State::kPrepareCommit,
          .producer_id = prepared.producer_id,
          .producer_epoch = prepared.producer_epoch,
          .coordinator_epoch = settings_->coordinator_epoch,
          .version = prepared.version,
          .topics = prepared.topics,
          .groups = prepared.groups};
}

void Transaction::complete(const Turn& turn, WaiterId end) {
  if (!end_ || end_->end != end) return;  // told twice, or of an object that was rebuilt since
  CHECK(facts_.prepared(), "an end is prepared until its markers are written");
  const TransactionFacts done = completed(facts_, turn.command.wall);
  turn.effects.records.push_back({id_, encode_transaction(done)});
  answer_end(turn, done);
  end_.reset();
}

void Transaction::answer_end(const Turn& turn, const TransactionFacts& completed) {
  if (!end_->waiter) return;
  TransactionReply reply{.waiter = *end_->waiter};
  if (end_->what == PendingEnd::For::kInitProducerId) {
    reply.error = CONCURRENT_TRANSACTIONS;
  } else if (completed.version == TransactionVersion::k2) {
    reply.producer_id = completed.producer_id;
    reply.producer_epoch = completed.producer_epoch;
  }
  turn.effects.replies.push_back(reply);
  end_->waiter.reset();
}

void Transaction::expire(const Turn& turn) const {
  if (!facts_.exists() || facts_.prepared() || facts_.state == State::kOngoing) return;
  if (turn.command.wall - facts_.updated < settings_->id_expiration.count()) return;
  turn.effects.records.push_back({id_, {}});
}

// Saved state

Result<void> Transaction::apply(const Record& record) {
  CHECK(record.key == id_, "the record is of this transactional id");
  if (record.ends_channel()) {
    facts_ = {};
    return {};
  }
  const auto refuse = [&](const Error& why) {
    return std::unexpected(damaged("_KAFKA_TXN_." + record.key, why));
  };
  auto change = decode_transaction_record(record.body);
  if (!change) return refuse(change.error());
  if (auto* whole = std::get_if<TransactionFacts>(&*change)) {
    if (auto checked = check_successor(facts_, *whole); !checked) return refuse(checked.error());
    facts_ = std::move(*whole);
    return {};
  }
  if (!facts_.exists() || facts_.prepared()) {
    return refuse({.detail = "something is added without a transaction to add to"});
  }
  coordinator::add(facts_, std::get<TransactionAddition>(*change));
  return {};
}

Transaction::Effects Transaction::loaded(Time now, Timestamp wall, WaiterId number) {
  CHECK(!end_ && deadline_ == Time::max(), "an id is loaded before its first step");
  Effects effects;
  if (facts_.state == State::kOngoing) {
    const std::chrono::milliseconds left{facts_.started.value() + facts_.timeout.count() -
                                         wall.value()};
    deadline_ = now + std::clamp(left, std::min(kGrace, facts_.timeout), facts_.timeout);
  } else if (facts_.prepared()) {
    PendingEnd pending;
    pending.end = number;
    end_ = pending;
    effects.actions.push_back(markers(number, facts_));
  }
  return effects;
}

std::vector<Buffer> Transaction::snapshot(std::string_view) const {
  if (!facts_.exists()) return {};
  return {encode_transaction(facts_)};
}

bool Transaction::needs_producer_id(const TransactionCommand& command) const noexcept {
  if (const auto* asked = std::get_if<InitProducerIdCommand>(&command.what)) {
    if (check_init(*asked) != NONE) return false;
    if (facts_.state == State::kOngoing) return facts_.exhausted();
    return takes_new_id(facts_, claim_of(facts_, *asked));
  }
  if (const auto* ended = std::get_if<EndTransactionCommand>(&command.what)) {
    return facts_.exhausted() && ended->version == TransactionVersion::k2 &&
           check_end(*ended) == NONE && !repeats_end(facts_, *ended);
  }
  if (std::holds_alternative<ReplaceProducerId>(command.what))
    return facts_.exists() && !facts_.prepared();
  return std::holds_alternative<PassTime>(command.what) && facts_.state == State::kOngoing &&
         facts_.exhausted();
}

// Asking

std::optional<Time> Transaction::next_deadline() const noexcept {
  // As Kafka's: the longest timeout stands for none (KIP-939).
  constexpr std::chrono::milliseconds kNoTimeout{2'147'483'647};
  if (facts_.state != State::kOngoing || facts_.timeout == kNoTimeout) return std::nullopt;
  return deadline_;
}

bool Transaction::listed(const TransactionFilter& filter, Timestamp wall) const {
  if (!facts_.exists()) return false;
  if (!filter.producer_ids.empty() &&
      std::ranges::find(filter.producer_ids, facts_.producer_id) == filter.producer_ids.end()) {
    return false;
  }
  if (filter.by_state && !filter.states.contains(facts_.state)) return false;
  // As Kafka: of the last transaction if none is open, and since ever if there was none.
  if (filter.duration_ms >= 0 && wall - facts_.started <= filter.duration_ms) return false;
  return !filter.pattern || filter.pattern->matches(id_);
}

namespace {

constexpr std::array<std::string_view, 8> kStateNames = {
    "Empty",          "Ongoing",       "PrepareCommit", "PrepareAbort",
    "CompleteCommit", "CompleteAbort", "Dead",          "PrepareEpochFence"};

}  // namespace

std::string_view to_string(TransactionState state) noexcept {
  return kStateNames.at(static_cast<std::size_t>(state));
}

std::optional<TransactionState> transaction_state(std::string_view name) noexcept {
  const auto* found = std::ranges::find(kStateNames, name);
  if (found == kStateNames.end()) return std::nullopt;
  return static_cast<TransactionState>(found - kStateNames.begin());
}

}  // namespace kanal::coordinator
