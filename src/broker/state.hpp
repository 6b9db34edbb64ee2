// Everything a Broker owns, in the order it is made. Only broker.cpp and start.cpp see it.
#pragma once

#include "background_sync.hpp"
#include "catalog_driver.hpp"
#include "checkpointer.hpp"
#include "compactor.hpp"
#include "config_driver.hpp"
#include "data_directory.hpp"
#include "disk_room.hpp"
#include "flusher.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/broker/groups.hpp"
#include "kanal/broker/transactions.hpp"
#include "kanal/coordinator/cluster_state.hpp"
#include "producer_ids.hpp"
#include "reserved_sync.hpp"
#include "retention.hpp"
#include "stalls.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace kanal::broker {

struct Broker::State {
  State(const Foundations& foundations, const BrokerOptions& given)
      : base(foundations),
        options(given),
        config(std::make_shared<const coordinator::BrokerConfig>(given.kafka)),
        room({foundations.files, foundations.helpers, foundations.clock, given.data_dir,
              given.reserve_bytes}),
        stalls(foundations.clock),
        checkpointer(foundations.helpers),
        sessions(static_cast<std::size_t>(std::max(given.kafka.fetch_session_slots, 0))) {}

  Foundations base;
  BrokerOptions options;
  std::shared_ptr<const coordinator::BrokerConfig> config;  // in force at the start
  DataDirectory directory;
  DiskRoom room;
  Stalls stalls;
  std::unique_ptr<reserved::Store> store;
  std::unique_ptr<reserved::Session> session;
  std::unique_ptr<ConfigDriver> configs;
  coordinator::ClusterFacts facts;
  std::string cluster_id;  // Kafka's text form
  std::unique_ptr<log::LogStore> logs;
  ChannelTable channels;
  std::unique_ptr<CatalogDriver> catalog;
  std::unique_ptr<ProducerIdSource> producer_ids;
  std::unique_ptr<Groups> groups;
  std::unique_ptr<Flusher> flusher;
  std::unique_ptr<BackgroundSync> background_sync;
  std::unique_ptr<ReservedSync> reserved_sync;
  std::unique_ptr<Transactions> transactions;
  Checkpointer checkpointer;
  std::unique_ptr<Retention> retention;
  std::unique_ptr<Compactor> compactor;
  FetchSessions sessions;

  std::vector<IoThread*> io_threads;
  std::atomic<bool> stopping{false};
  std::atomic<bool> acks_after_sync{false};  // of the whole broker
  std::atomic<Time> last_producer_expiry{Time{}};

  [[nodiscard]] Executor& syncs() const noexcept {
    return base.syncs != nullptr ? *base.syncs : base.helpers;
  }
  [[nodiscard]] Executor& at_ease() const noexcept {
    return base.at_ease != nullptr ? *base.at_ease : base.helpers;
  }
  Result<void> check_last_stop();
  void note_stop() const;
  [[nodiscard]] log::SegmentStoreOptions with_journal(log::SegmentStoreOptions segments) const;
  /// Once the store of the logs is made.
  void start_syncs(log::CommitSink& sink);
  /// What a killed process had not synced becomes durable soon, as it would have.
  void sync_recovered(const StartReport& report);
  void write_back() const;
  // The start, step by step.
  Result<void> open_directory();
  Result<void> open_reserved();
  Result<void> open_logs(log::CommitSink& sink, StartReport& report);
  Result<void> open_groups(StartReport& report);
  Result<void> open_transactions(Broker& broker, StartReport& report);
};

}  // namespace kanal::broker
