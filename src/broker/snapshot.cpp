#include "kanal/broker/snapshot.hpp"

#include "kanal/base/file_copies.hpp"
#include "kanal/base/logging.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/coordinator/producer_ids.hpp"
#include "kanal/reserved/check.hpp"
#include "snapshot_directory.hpp"
#include "state.hpp"

namespace kanal::broker {
namespace {

using reserved::Kind;
const reserved::ReservedName kPids{Kind::kPids, ""};

/// The last record of the producer ids: the first id that no block has taken.
Result<Buffer> last_block(reserved::Session& session, coordinator::ProducerIds& machine) {
  Buffer last;
  const auto visit = [&](const reserved::ReservedName&, Bytes body) -> Result<void> {
    last.assign(body.begin(), body.end());
    return machine.apply({"", last});
  };
  if (auto done = session.replay_channel(kPids, visit); !done)
    return std::unexpected(std::move(done.error()));
  return last;
}

/// Ids may have been given out, and used in a log, between the copy of the reserved channels and
/// that of the log. Opening the copy also shows that a start can.
Result<void> catch_up_producer_ids(reserved::Session& live, const std::string& copy) {
  coordinator::ProducerIds now, then;
  const auto newest = last_block(live, now);
  if (!newest) return std::unexpected(newest.error());
  auto store = reserved::open_rocks_store(copy);
  if (!store) return std::unexpected(std::move(store.error()));
  auto session = (*store)->open();
  if (!session) return std::unexpected(std::move(session.error()));
  if (auto known = last_block(**session, then); !known)
    return std::unexpected(std::move(known.error()));
  if (now.next_free() > then.next_free()) {
    const Bytes record(*newest);
    auto stored = (*session)->append(kPids, {&record, 1}, reserved::Durability::kSynced);
    if (!stored) return std::unexpected(std::move(stored.error()));
  }
  return (*store)->flush();
}

Result<void> gave_up() {
  return fail(ErrorCode::KAFKA_STORAGE_ERROR, "The snapshot was cancelled.");
}

Result<void> add_partition(log::LogSnapshot& logs, Partition& partition) {
  const auto channel = partition.with_log([](log::Partition& log) { return &log.log(); });
  if (!channel) {
    return fail(ErrorCode::KAFKA_STORAGE_ERROR,
                "The partition " + partition.id().name +
                    " is offline, a copy would lack it: " + channel.error().detail);
  }
  const auto moment = [&]() -> Result<log::Checkpoint> {
    return partition.with_log([](log::Partition& log) { return log.checkpoint(); });
  };
  auto added = logs.add(partition.id(), **channel, moment);
  if (added) return {};
  return fail(ErrorCode::KAFKA_STORAGE_ERROR, "The partition " + partition.id().name +
                                                  " cannot be copied: " + added.error().detail);
}

}  // namespace

Result<SnapshotReport> Broker::snapshot(const std::string& directory,
                                        const std::function<bool()>& cancelled) {
  State& state = *state_;
  auto target = SnapshotDirectory::make(state.base.files, directory);
  if (!target) return std::unexpected(std::move(target.error()));
  const auto links = target->place_for_links(state.options.data_dir);
  if (!links) return std::unexpected(links.error());
  const bool same = *links == target->path();
  const std::string reserved_copy = target->path() + "/reserved";
  const std::string channels = target->path() + "/channels";
  const std::string link_place = same ? channels : *links + "/channels";
  for (const std::string& each : {channels, link_place}) {
    if (auto done = state.base.files.create_directories(each); !done)
      return std::unexpected(std::move(done.error()));
  }
  log::LogSnapshot logs(state.base.files, link_place, channels);
  SnapshotReport report{directory, 0, 0, {}};
  auto pause = state.transactions->pause(cancelled);
  if (!pause) return std::unexpected(std::move(pause.error()));
  std::optional<Transactions::Pause> paused(std::move(*pause));
  // Topics stay as they are until every log has its links; everything else goes on.
  const auto taken = state.catalog->while_unchanged([&](const Topics& topics) -> Result<void> {
    if (auto done = reserved::copy_rocks_store(*state.store, reserved_copy); !done) return done;
    Result<void> outcome;
    topics.for_each([&](const TopicPtr& topic) {
      ++report.topics;
      for (const auto& partition : topic->partitions) {
        if (outcome && cancelled()) outcome = gave_up();
        if (!outcome) return;
        ++report.partitions;
        outcome = add_partition(logs, *partition);
      }
    });
    // Without a topic nobody else asks.
    return outcome && cancelled() ? gave_up() : outcome;
  });
  paused.reset();
  if (!taken) return std::unexpected(taken.error());
  if (auto done = catch_up_producer_ids(*state.session, reserved_copy); !done)
    return std::unexpected(std::move(done.error()));
  auto figures = logs.finish(cancelled);
  if (!figures) return std::unexpected(std::move(figures.error()));
  report.logs = *figures;
  if (auto done = target->finish(*state.directory.meta()); !done)
    return std::unexpected(std::move(done.error()));
  logger("broker").info(
      "A snapshot was made. directory={} topics={} partitions={} linked_bytes={} copied_bytes={}",
      directory, report.topics, report.partitions, figures->linked_bytes, figures->copied_bytes);
  return report;
}

}  // namespace kanal::broker
