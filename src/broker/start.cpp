// How a broker comes up: lock and meta, reserved channels, the next leader epoch (synced before
// anything is served), then every partition.
#include "driver.hpp"
#include "kanal/base/logging.hpp"
#include "room_session.hpp"
#include "state.hpp"

#include <cerrno>

namespace kanal::broker {

Result<void> Broker::State::open_directory() {
  auto opened = DataDirectory::open(base.files, options.data_dir);
  if (!opened) return std::unexpected(opened.error());
  directory = std::move(*opened);
  const auto& meta = directory.meta();
  if (meta && meta->node != config->node.id) {
    return fail(ErrorCode::INVALID_CONFIG, "the data directory '" + options.data_dir +
                                               "' belongs to node.id " +
                                               std::to_string(meta->node.value()) + ", not " +
                                               std::to_string(config->node.id.value()) +
                                               ": set node.id or name another --data-dir");
  }
  return {};
}

Result<void> Broker::State::open_reserved() {
  const std::string where = options.data_dir + "/reserved";
  auto opened = base.open_store(where);
  if (!opened && DiskRoom::is_full(opened.error()) && room.give_up()) {
    opened = base.open_store(where);
  }
  if (!opened) return std::unexpected(opened.error());
  store = std::move(*opened);
  auto begun = store->open();
  if (!begun) return std::unexpected(begun.error());
  session = std::make_unique<RoomSession>(std::move(*begun), room);
  if (auto done = check_last_stop(); !done) return done;

  configs = std::make_unique<ConfigDriver>(*session, base.clock, config);
  auto started = configs->start({fresh_uuid(base.random), config->node.id});
  if (!started) return std::unexpected(started.error());
  facts = *started;
  config = configs->config();
  cluster_id = to_string(facts.cluster_id);

  const DirectoryMeta meta{cluster_id, facts.node};
  if (!directory.meta()) return directory.write_meta(base.files, meta);
  if (*directory.meta() != meta) {
    return fail(ErrorCode::KAFKA_STORAGE_ERROR,
                "meta and the reserved channels of '" + options.data_dir +
                    "' name different clusters: part of it was copied from elsewhere");
  }
  return {};
}

Result<void> Broker::State::open_logs(log::CommitSink& sink, StartReport& report) {
  const log::SegmentStoreOptions segments{.directory = options.data_dir + "/channels",
                                          .max_open_files = options.max_open_log_files,
                                          .cut_damage = options.cut_damaged_logs};
  logs = log::make_segment_store(base.files, base.helpers, base.clock, with_journal(segments));
  logs->start(sink);  // before any channel opens: it reads what the last shutdown left
  start_syncs(sink);
  catalog = std::make_unique<CatalogDriver>(
      CatalogDriver::Stage{*store, *session, *logs, channels, base.clock, facts.leader_epoch,
                           config, [this] { groups->forget_deleted_topics(); }});
  groups = std::make_unique<Groups>(Groups::Stage{*session, base.helpers, base.clock, stalls,
                                                  config, [this] { return catalog->topics(); }});
  producer_ids = std::make_unique<ProducerIdSource>(*session, base.clock);
  if (auto ready = producer_ids->start(); !ready) return ready;
  if (auto ready = catalog->start(report); !ready) return ready;
  sync_recovered(report);
  retention = std::make_unique<Retention>(
      Retention::Stage{base.helpers, base.clock, *logs, [this] { return catalog->topics(); },
                       [this] { return configs->config(); }, [this] { return room.refuses(); }});
  compactor = std::make_unique<Compactor>(
      Compactor::Stage{at_ease(), base.clock, base.random, [this] { return catalog->topics(); },
                       [this] { return configs->config(); }, [this] { return room.refuses(); }});
  configs->listen([this](const ConfigDriver::Config& next) {
    const auto topics = coordinator::make_topic_config(*next, {});
    acks_after_sync = topics.flush_messages == 1;
    groups->limit_records(topics.max_message_bytes);
    catalog->configure(next);
  });
  return {};
}

log::SegmentStoreOptions Broker::State::with_journal(log::SegmentStoreOptions segments) const {
  segments.journal_bytes = options.journal_bytes;
  segments.journal_id = base.random.next();
  return segments;
}

/// A journal that was cut looks like one that a kill or a power cut ended; but not below a clean
/// stop.
Result<void> Broker::State::check_last_stop() {
  const auto left = read_stop(base.files, options.data_dir);
  if (!left && left.error().os_error == ENOENT) return {};
  if (!left) {
    logger("broker").warn("What the last clean stop left is not known. reason=\"{}\"",
                          left.error().detail);
    return {};
  }
  if (store->journal_position() >= *left) return {};
  const std::string lost = "The reserved channels in '" + options.data_dir +
                           "/reserved' are not what the last clean stop left: changes of topics, "
                           "configurations or offsets are lost.";
  if (!options.cut_damaged_logs) {
    return fail(ErrorCode::KAFKA_STORAGE_ERROR,
                lost +
                    " Put a sound copy of the directory in its place, or start once with "
                    "log.recovery=truncate to go on without them.");
  }
  logger("broker").error("{}", lost);
  return directory.write_stop(base.files, store->journal_position());
}

void Broker::State::note_stop() const {
  if (auto done = directory.write_stop(base.files, store->journal_position()); !done) {
    logger("broker").warn("The next start will not know what this stop left. reason=\"{}\"",
                          done.error().detail);
  }
}

void Broker::State::start_syncs(log::CommitSink& sink) {
  flusher = std::make_unique<Flusher>(syncs(), *logs, facts.leader_epoch);
  flusher->start(sink);
  background_sync = std::make_unique<BackgroundSync>(
      BackgroundSync::Stage{base.helpers, base.clock, [this] { write_back(); }});
  reserved_sync = std::make_unique<ReservedSync>(syncs(), *store);
}

void Broker::State::sync_recovered(const StartReport& report) {
  if (report.recovered == 0) return;
  base.helpers.post([this] { write_back(); });
}

void Broker::State::write_back() const {
  if (auto done = base.files.sync_all(options.data_dir); !done) {
    logger("broker").error("Not everything could be written back to the disk. why=\"{}\"",
                           done.error().detail);
  }
}

Result<void> Broker::State::open_groups(StartReport& report) {
  GroupsReport loaded;
  if (auto done = groups->start(loaded); !done) return done;
  report.groups = loaded.groups;
  return {};
}

/// Last of all: what was prepared is ended in the logs and groups.
Result<void> Broker::State::open_transactions(Broker& broker, StartReport& report) {
  transactions = std::make_unique<Transactions>(
      Transactions::Stage{broker, *session, *producer_ids, *reserved_sync, base.helpers, stalls,
                          config, facts.leader_epoch});
  TransactionsReport loaded;
  if (auto done = transactions->start(loaded); !done) return done;
  report.transactional_ids = loaded.ids;
  report.ended_transactions = loaded.ended;
  return {};
}

Result<std::unique_ptr<Broker>> Broker::start(const Foundations& foundations,
                                              const BrokerOptions& options, StartReport& report) {
  auto state = std::make_unique<State>(foundations, options);
  if (auto done = state->open_directory(); !done) return std::unexpected(done.error());
  state->room.prepare();
  if (auto done = state->open_reserved(); !done) return std::unexpected(done.error());
  auto broker = std::unique_ptr<Broker>(new Broker(std::move(state)));
  if (auto done = broker->state_->open_logs(*broker, report); !done)
    return std::unexpected(done.error());
  if (auto done = broker->state_->open_groups(report); !done) return std::unexpected(done.error());
  if (auto done = broker->state_->open_transactions(*broker, report); !done)
    return std::unexpected(done.error());
  return broker;
}

}  // namespace kanal::broker
