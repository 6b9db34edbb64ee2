// A broker in which transactional producers of both versions begin, write and end, for its tests.
#pragma once

#include "group_world.hpp"
#include "kanal/broker/transactions.hpp"
#include "unit/log/transactional.hpp"

#include <boost/asio/io_context.hpp>

#include <span>

namespace kanal::broker::test {

using coordinator::TransactionReply;
using coordinator::TransactionState;
using coordinator::TransactionVersion;

/// A transactional producer, as its client keeps it.
struct Producer {
  std::string id;
  ProducerId producer_id = kNoProducerId;
  ProducerEpoch epoch = kNoProducerEpoch;
  TransactionVersion version = TransactionVersion::k2;
  std::map<std::pair<std::string, std::int32_t>, std::int32_t> next_sequence;
};

class TransactionWorld : public GroupWorld {
 protected:
  using Reply = std::shared_ptr<std::optional<TransactionReply>>;

  /// Whose request is parked must not be left behind; nothing more is written for it.
  void kill() {
    broker->release_parked();
    for (const auto& io : threads) (void)io->poll();
    GroupWorld::kill();
  }

  /// Power goes: the logs had reached the disk, of the ids' channels nothing since `keep()`.
  void keep() { EXPECT_TRUE(store.flush()); }
  void lose_what_was_not_kept() {
    store.power_cut(0);
    kill();
  }

  Transactions& transactions() { return broker->transactions(); }

  /// Begun, not waited for: the reply comes when it comes.
  template <class Command>
  Reply begin_init(std::string_view id, Command command) {
    return ask(id, [command](Context& context, std::string_view of) {
      return context.broker.transactions().init(context, of, command);
    });
  }
  Reply begin_end(const Producer& producer, bool commit) {
    coordinator::EndTransactionCommand command{.producer_id = producer.producer_id,
                                               .producer_epoch = producer.epoch,
                                               .commit = commit,
                                               .version = producer.version};
    return ask(producer.id, [command](Context& context, std::string_view of) {
      return context.broker.transactions().end(context, of, command);
    });
  }

  Producer init(std::string_view id, TransactionVersion version = TransactionVersion::k2,
                std::chrono::milliseconds timeout = 60s) {
    Producer producer;
    producer.id = std::string(id);
    producer.version = version;
    const Reply reply = begin_init(id, coordinator::InitProducerIdCommand{.timeout = timeout});
    settle();
    EXPECT_TRUE(*reply);
    if (*reply) {
      EXPECT_EQ((*reply)->error, ErrorCode::NONE);
      producer.producer_id = (*reply)->producer_id;
      producer.epoch = (*reply)->producer_epoch;
    }
    return producer;
  }

  ErrorCode add(const Producer& producer, std::string_view topic, std::int32_t partition = 0) {
    coordinator::AddToTransactionCommand command{.producer_id = producer.producer_id,
                                                 .producer_epoch = producer.epoch,
                                                 .partitions = {{topic, PartitionIndex(partition)}},
                                                 .group = std::nullopt};
    return transactions().add(producer.id, std::move(command));
  }

  /// What the log, or else the transaction, says to a batch of one record.
  ErrorCode write(Producer& producer, std::string_view topic, std::int32_t partition = 0) {
    ErrorCode outcome = ErrorCode::UNKNOWN_SERVER_ERROR;
    std::int32_t& sequence = producer.next_sequence[{std::string(topic), partition}];
    const coordinator::TransactionPartition named{topic, PartitionIndex(partition)};
    transactions().write(writer(producer), {&named, 1}, [&](std::span<const ErrorCode> errors) {
      outcome = errors[0];
      if (outcome != ErrorCode::NONE) return;
      auto appended = append(topic, partition,
                             log::test::encode({.producer = producer.producer_id.value(),
                                                .epoch = producer.epoch.value(),
                                                .sequence = sequence}));
      outcome = appended ? ErrorCode::NONE : appended.error().code;
      if (appended) ++sequence;
    });
    return outcome;
  }

  static TransactionWriter writer(const Producer& producer) {
    return {.id = producer.id,
            .producer_id = producer.producer_id,
            .producer_epoch = producer.epoch,
            .version = producer.version};
  }

  /// What an EndTxn answers at once; takes the epoch over.
  ErrorCode end(Producer& producer, bool commit) {
    const Reply reply = begin_end(producer, commit);
    settle();
    return take(producer, reply);
  }
  static ErrorCode take(Producer& producer, const Reply& reply) {
    if (!*reply) return ErrorCode::REQUEST_TIMED_OUT;  // none yet
    if ((*reply)->error == ErrorCode::NONE && producer.version == TransactionVersion::k2) {
      if ((*reply)->producer_epoch != producer.epoch) producer.next_sequence.clear();
      producer.producer_id = (*reply)->producer_id;
      producer.epoch = (*reply)->producer_epoch;
    }
    return (*reply)->error;
  }

  /// One thing on each I/O thread; no helper.
  void run_one() {
    for (const auto& io : threads) io->context().poll_one();
  }

  log::Watermarks marks(std::string_view topic, std::int32_t partition = 0) {
    return this->partition(topic, partition)
        ->with_log([](log::Partition& log) { return log.watermarks(); })
        .value();
  }
  /// Nothing is open, and there is something.
  bool stable(std::string_view topic, std::int32_t partition = 0) {
    const log::Watermarks at = marks(topic, partition);
    return at.last_stable == at.high_watermark && at.high_watermark > Offset(0);
  }
  std::size_t aborted(std::string_view topic, std::int32_t partition = 0) {
    return this->partition(topic, partition)
        ->with_log([](log::Partition& log) { return log::test::aborted_in(log).size(); })
        .value();
  }
  TransactionState state(std::string_view id) {
    TransactionState state = TransactionState::kDead;
    (void)transactions().visit(id, [&](const coordinator::Transaction& transaction) {
      state = transaction.facts().state;
    });
    return state;
  }

 private:
  struct Request {
    Request(Broker& broker, IoThread& io, Peer& peer, std::string_view of)
        : context{.broker = broker, .io = io, .peer = peer, .client_id = {}, .slices = {}},
          id(of) {}
    Context context;
    std::string id;
  };
  template <class Ask>
  Reply ask(std::string_view id, Ask asking) {
    const auto reply = std::make_shared<std::optional<TransactionReply>>();
    IoThread& io = *threads[requests_++ % threads.size()];
    const auto request = std::make_shared<Request>(*broker, io, peer, id);
    auto task = [](std::shared_ptr<Request> of, Reply to, Ask how) -> Task<void> {
      *to = co_await how(of->context, of->id);
    };
    begin(task(request, reply, std::move(asking)), io);
    return reply;
  }
  std::size_t requests_ = 0;
};

}  // namespace kanal::broker::test
