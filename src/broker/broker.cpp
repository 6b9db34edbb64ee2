#include "kanal/broker/broker.hpp"

#include <algorithm>

#include "kanal/base/logging.hpp"
#include "kanal/broker/transactions.hpp"
#include "state.hpp"

namespace kanal::broker {
namespace {

/// What a stop writes at most, about: the state of every channel, and the store's tables.
std::uint64_t bytes_of_stop(const Topics& topics) {
  constexpr std::uint64_t kStore = 2 << 20, kEach = 512;
  std::uint64_t partitions = 0;
  topics.for_each([&](const TopicPtr& topic) { partitions += topic->partitions.size(); });
  return kStore + partitions * kEach;
}

}  // namespace

Broker::Broker(std::unique_ptr<State> state) : state_(std::move(state)) {}
Broker::~Broker() = default;

std::shared_ptr<const Topics> Broker::topics() const noexcept {
  return state_->catalog->topics();
}
std::shared_ptr<const coordinator::BrokerConfig> Broker::config() const noexcept {
  return state_->configs->config();
}
std::shared_ptr<const coordinator::DynamicConfigs> Broker::dynamic_configs() const {
  return state_->configs->stored();
}
void Broker::on_config_change(std::function<void(const coordinator::BrokerConfig&)> listener) {
  state_->configs->listen([told = std::move(listener)](const auto& config) { told(*config); });
}
const std::string& Broker::cluster_id() const noexcept {
  return state_->cluster_id;
}
NodeId Broker::node_id() const noexcept {
  return state_->facts.node;
}
LeaderEpoch Broker::leader_epoch() const noexcept {
  return state_->facts.leader_epoch;
}
Offset Broker::metadata_end() const {
  return Offset(static_cast<std::int64_t>(state_->store->journal_position()));
}
const Clock& Broker::clock() const noexcept {
  return state_->base.clock;
}
Random& Broker::random() const noexcept {
  return state_->base.random;
}
FileSystem& Broker::files() noexcept {
  return state_->base.files;
}
const std::string& Broker::data_dir() const noexcept {
  return state_->options.data_dir;
}
NodeId Broker::leader(const ChannelId&) const noexcept {
  return state_->facts.node;
}
Groups& Broker::groups() noexcept {
  return *state_->groups;
}
Transactions& Broker::transactions() noexcept {
  return *state_->transactions;
}
FetchSessions& Broker::fetch_sessions() noexcept {
  return state_->sessions;
}

bool Broker::is_committed(std::span<const Ticket> tickets) {
  return std::ranges::all_of(tickets, [](const Ticket& ticket) {
    return ticket.partition->committed(ticket.last) == Partition::Commit::kDone;
  });
}

ErrorCode Broker::outcome(const Ticket& ticket) {
  switch (ticket.partition->committed(ticket.last)) {
    case Partition::Commit::kDone:
      return ErrorCode::NONE;
    case Partition::Commit::kLost:
      return ErrorCode::KAFKA_STORAGE_ERROR;
    case Partition::Commit::kDeleted:
      return ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    case Partition::Commit::kPending:
      break;
  }
  return ErrorCode::REQUEST_TIMED_OUT;
}

Task<void> Broker::committed(Context& context, std::span<const Ticket> tickets, Time deadline) {
  const auto pending = [](const Ticket& ticket) {
    return ticket.partition->committed(ticket.last) == Partition::Commit::kPending;
  };
  while (std::ranges::any_of(tickets, pending) && !context.cancelled && clock().now() < deadline) {
    const auto wait =
        std::make_shared<FetchWait>(context.io, std::numeric_limits<std::int64_t>::max());
    for (const Ticket& ticket : tickets) {
      if (pending(ticket)) ticket.partition->watch_commits(*wait);
    }
    // Asked again now that we are watching: a commit in between must not be slept through.
    if (std::ranges::any_of(tickets, pending)) co_await park(context, *wait, deadline);
    wait->leave();
  }
}

Task<void> Broker::park(Context& context, FetchWait& wait, Time deadline) {
  return park(context, wait.event(), deadline);
}

Task<void> Broker::park(Context& context, Event& event, Time deadline) {
  // Who comes after release_parked() is told what the parked ones were, or it would ask for ever.
  context.cancelled |= state_->stopping.load(std::memory_order_relaxed);
  if (context.cancelled) co_return;
  context.parked = &event;
  context.io.parked().insert(&context);
  if (context.observer != nullptr) context.observer->on_parked(context);
  co_await event.wait_until(deadline);
  context.io.parked().erase(&context);
  context.parked = nullptr;
}

Task<void> Broker::on_helper(Context& context, std::move_only_function<void()> work) {
  const auto done = std::make_shared<Event>(context.io);
  auto job = [done, held = std::move(work)]() mutable {
    held();
    IoThread& io = done->io();
    io.post([event = std::move(done)] { event->fire(); });
  };
  state_->base.helpers.post(std::move(job));
  co_await done->wait_until(Time::max());
}

Task<Result<void>> Broker::load(Context& context, log::Miss miss) {
  const auto done = std::make_shared<Event>(context.io);
  const auto result = std::make_shared<Result<void>>();
  auto on_loaded = [done, result](Result<void> loaded) {
    *result = std::move(loaded);
    done->io().post([event = done] { event->fire(); });
  };
  state_->logs->load(miss, std::move(on_loaded));
  co_await done->wait_until(Time::max());
  co_return std::move(*result);
}

Result<log::AppendResult> Broker::Together::append(const std::shared_ptr<Partition>& partition,
                                                   records::CheckedBatch& batch,
                                                   const log::AppendTerms& terms) {
  State& state = *broker_.state_;
  if (state.room.refuses()) return std::unexpected(state.room.refusal());
  AppendNews news;
  auto appended = partition->append(batch, broker_.clock().wall(), news, terms);
  follow(partition, appended, news);
  return appended;
}

Result<log::AppendResult> Broker::Together::append_marker(
    const std::shared_ptr<Partition>& partition, const log::EndMarker& marker) {
  AppendNews news;
  auto appended = partition->append_marker(marker, broker_.clock().wall(), news);
  follow(partition, appended, news);
  return appended;
}

void Broker::Together::follow(const std::shared_ptr<Partition>& partition,
                              const Result<log::AppendResult>& appended, const AppendNews& news) {
  State& state = *broker_.state_;
  if (news.became_dirty) state.checkpointer.became_dirty(partition, broker_.clock().now());
  if (news.checkpoint_due) state.checkpointer.due(partition);
  if (!appended) {
    state.room.met(appended.error());
  } else if (!appended->duplicate) {
    if (appended->committed)
      state.background_sync->appended(partition, news, news.bytes);
    else
      staged_.push_back(partition);
  }
}

Broker::Together::~Together() {
  if (!staged_.empty()) broker_.state_->flusher->add(std::move(staged_));
}

bool Broker::acks_after_sync() const noexcept {
  return state_->acks_after_sync.load(std::memory_order_relaxed);
}

Task<Result<void>> Broker::reserved_synced(Context& context, bool also) {
  if (!also && !acks_after_sync()) co_return Result<void>{};
  const auto wait = state_->reserved_sync->join(context.io);
  co_await wait->event.wait_until(Time::max());
  co_return wait->outcome;
}

Task<std::vector<coordinator::CatalogReply>> Broker::change_catalog(
    Context& context, std::vector<coordinator::CatalogCommand> commands) {
  std::vector<coordinator::CatalogReply> replies;
  auto work = [&] { replies = state_->catalog->change(commands); };
  co_await on_helper(context, std::move(work));
  co_return replies;
}

Task<std::vector<Result<void>>> Broker::change_configs(
    Context& context, std::vector<coordinator::AlterConfigs> commands) {
  std::vector<Result<void>> replies;
  auto work = [&] { replies = state_->configs->change(commands); };
  co_await on_helper(context, std::move(work));
  co_return replies;
}

Task<Result<ProducerIdentity>> Broker::new_producer_id(Context& context) {
  for (;;) {
    if (const auto id = state_->producer_ids->take())
      co_return ProducerIdentity{*id, ProducerEpoch(0)};
    Result<void> filled;
    auto work = [&] { filled = state_->producer_ids->refill(); };
    co_await on_helper(context, std::move(work));
    if (!filled) co_return std::unexpected(filled.error());
  }
}

void Broker::attach(IoThread& io) {
  state_->io_threads.push_back(&io);
  state_->background_sync->attach(io);
  state_->stalls.attach(io);
  state_->groups->attach(io);
  state_->transactions->attach(io);
}

void Broker::tick() {
  const Time now = clock().now();
  state_->checkpointer.tick(now);
  state_->background_sync->tick();
  state_->stalls.tick();
  state_->groups->tick();
  state_->transactions->tick();
  state_->retention->tick();
  state_->room.tick();
  state_->compactor->tick();
  const std::chrono::milliseconds every(config()->producer_id_expiration_check_interval_ms);
  if (now - state_->last_producer_expiry.load() < every) return;
  state_->last_producer_expiry.store(now);
  state_->base.helpers.post([this] {
    const std::int64_t expiration = config()->producer_id_expiration_ms;
    topics()->for_each([&](const TopicPtr& topic) {
      for (const auto& partition : topic->partitions) {
        (void)partition->with_log(
            [&](log::Partition& log) { return log.expire_producers(clock().wall(), expiration); });
      }
    });
  });
}

void Broker::release_parked() {
  state_->stopping.store(true);
  state_->groups->stop();
  state_->transactions->stop();
  for (IoThread* io : state_->io_threads) {
    io->post([io] {
      for (Context* context : io->parked()) {
        context->cancelled = true;
        context->parked->fire();
      }
    });
  }
}

Result<void> Broker::stop(Deadline deadline) {
  state_->stopping.store(true);
  state_->retention->stop();
  state_->compactor->stop();
  state_->background_sync->stop();
  state_->logs->prepare_stop();
  state_->room.prepare_stop(bytes_of_stop(*topics()));
  Result<void> outcome;
  topics()->for_each([&](const TopicPtr& topic) {
    for (const auto& partition : topic->partitions) {
      auto done = partition->checkpoint();
      if (!done && outcome) outcome = done;
    }
  });
  auto logs_done = state_->logs->stop(deadline);
  auto store_done = state_->store->flush();
  if (store_done) state_->note_stop();
  state_->room.finish_stop();
  if (!logs_done) return logs_done;
  return store_done ? outcome : store_done;
}

void Broker::committed(std::span<const log::Progress> progress) noexcept {
  for (const log::Progress& news : progress) {
    if (const auto partition = state_->channels.find(news.channel))
      partition->commit(news.committed_end);
  }
}

void Broker::lost(std::span<const log::Loss> losses) noexcept {
  for (const log::Loss& loss : losses) {
    const auto partition = state_->channels.find(loss.channel);
    if (partition == nullptr) continue;
    logger("broker").error(
        "The log failed for good and takes no more records. channel={} reason={}",
        partition->id().name, loss.why.detail);
    partition->lost(loss.why);
  }
}

}  // namespace kanal::broker
