#include "kanal/broker/check_data.hpp"

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "data_directory.hpp"
#include "kanal/base/file_copies.hpp"
#include "kanal/coordinator/catalog.hpp"
#include "kanal/coordinator/cluster_state.hpp"
#include "kanal/coordinator/group.hpp"
#include "kanal/coordinator/producer_ids.hpp"
#include "kanal/coordinator/txn.hpp"

namespace kanal::broker {
namespace {

using Weight = Finding::Weight;
using reserved::Kind;

/// Replays the reserved channels as a start does, going on after what cannot be replayed.
class Machines {
 public:
  Machines()
      : catalog_(std::make_shared<const coordinator::BrokerConfig>(
            coordinator::make_broker_config({}, {}).value())) {}

  Result<void> apply(const reserved::ReservedName& name, Bytes body) {
    const coordinator::Record record{name.key, Buffer(body.begin(), body.end())};
    switch (name.kind) {
      case Kind::kCluster:
        return cluster_.apply(record);
      case Kind::kConfig:
        return catalog_.apply(record);
      case Kind::kPids:
        return pids_.apply(record);
      case Kind::kOffsets:
        return group(name.key).apply(record);
      case Kind::kTxn:
        return transaction(name.key).apply(record);
    }
    return {};
  }
  const coordinator::ClusterState& cluster() const { return cluster_; }
  const coordinator::Catalog& catalog() const { return catalog_; }
  const std::map<std::string, coordinator::Group>& groups() const { return groups_; }
  const std::map<std::string, coordinator::Transaction>& transactions() const {
    return transactions_;
  }

 private:
  coordinator::Group& group(const std::string& id) {
    return groups_.try_emplace(id, id, limits_).first->second;
  }

  coordinator::Transaction& transaction(const std::string& id) {
    return transactions_.try_emplace(id, id, settings_).first->second;
  }

  const coordinator::GroupLimits limits_;
  const coordinator::TransactionSettings settings_;
  coordinator::ClusterState cluster_;
  coordinator::Catalog catalog_;
  coordinator::ProducerIds pids_;
  std::map<std::string, coordinator::Group> groups_;
  std::map<std::string, coordinator::Transaction> transactions_;
};

class Check {
 public:
  Check(FileSystem& files, const DataCheck& check)
      : files_(files), check_(check), found_([this](Finding finding) {
          ++report_.findings[static_cast<std::size_t>(finding.weight)];
          check_.found(std::move(finding));
        }) {}
  Result<DataReport> run();

 private:
  [[nodiscard]] std::string path(std::string_view name) const {
    return check_.directory + "/" + std::string(name);
  }
  void tell(Weight weight, const std::string& file, std::string text) {
    found_({weight, file, std::nullopt, std::move(text)});
  }
  Result<void> take_lock();
  Result<void> look_over();
  Result<void> check_meta();
  Result<void> check_reserved();
  Result<void> check_logs();
  void check_offsets();
  void check_transactions();

  FileSystem& files_;
  const DataCheck& check_;
  DataReport report_;
  const FindingSink found_;
  std::unique_ptr<FileLock> lock_;
  std::optional<DirectoryMeta> meta_;
  Machines machines_;
  std::map<std::pair<Uuid, PartitionIndex>, Offset> ends_;
};

Result<DataReport> Check::run() {
  if (auto done = take_lock(); !done) return std::unexpected(std::move(done.error()));
  if (auto done = look_over(); !done) return std::unexpected(std::move(done.error()));
  if (auto done = check_meta(); !done) return std::unexpected(std::move(done.error()));
  if (auto done = check_reserved(); !done) return std::unexpected(std::move(done.error()));
  if (auto done = check_logs(); !done) return std::unexpected(std::move(done.error()));
  check_offsets();
  check_transactions();
  return std::move(report_);
}

Result<void> Check::take_lock() {
  auto lock = lock_shared(path("lock"));
  if (!lock && lock.error().os_error == EWOULDBLOCK) {
    return fail(ErrorCode::KAFKA_STORAGE_ERROR,
                "the data directory '" + check_.directory +
                    "' is in use by a running kanald: stop it, or check a snapshot of it");
  }
  if (!lock && lock.error().os_error != ENOENT && lock.error().os_error != ENOTDIR)
    return std::unexpected(std::move(lock.error()));
  if (lock) lock_ = std::move(*lock);
  return {};
}

/// Whether it is a data directory at all, and what else is in it.
Result<void> Check::look_over() {
  auto entries = files_.list(check_.directory);
  if (!entries) return std::unexpected(std::move(entries.error()));
  std::ranges::sort(*entries, {}, &DirectoryEntry::name);
  const auto has = [&](std::string_view name) {
    return std::ranges::find(*entries, name, &DirectoryEntry::name) != entries->end();
  };
  if (!has("meta") && !has("reserved") && !has("channels")) {
    return fail(ErrorCode::KAFKA_STORAGE_ERROR,
                "'" + check_.directory + "' is not a data directory of kanald");
  }
  for (const DirectoryEntry& entry : *entries) {
    static constexpr std::string_view kOurs[] = {"meta",    "lock",    "reserved", "channels",
                                                 "control", "reserve", "stopped"};
    if (std::ranges::find(kOurs, entry.name) != std::end(kOurs)) continue;
    tell(Weight::kNote, path(entry.name), "not looked at");
  }
  return {};
}

Result<void> Check::check_meta() {
  auto meta = read_meta(files_, check_.directory);
  if (meta) {
    meta_ = std::move(*meta);
  } else if (meta.error().os_error == ENOENT) {
    tell(
        Weight::kRecoverable, path("meta"),
        "it is missing: the first start did not get that far, or it was removed; it is made again");
  } else if (meta.error().os_error == 0) {
    tell(Weight::kDamage, path("meta"), meta.error().detail + ": the daemon does not start");
  } else {
    return std::unexpected(meta.error());
  }
  return {};
}

Result<void> Check::check_reserved() {
  const std::string where = path("reserved");
  const auto exists = files_.exists(where);
  if (!exists) return std::unexpected(exists.error());
  if (!*exists) {
    tell(Weight::kDamage, where,
         "it is missing: topics, configurations, groups and producer ids are lost");
    return {};
  }
  report_.reserved = reserved::check_rocks_store(
      where,
      [this](const reserved::ReservedName& name, Bytes record) {
        return machines_.apply(name, record);
      },
      found_);
  if (const auto left = read_stop(files_, check_.directory)) {
    if (report_.reserved.readable && report_.reserved.journal_position < *left) {
      tell(Weight::kDamage, where,
           "it is not what the last clean stop left: changes of topics, configurations or offsets "
           "are lost. The daemon does not start, but with log.recovery=truncate");
    }
  } else if (left.error().os_error != ENOENT) {
    tell(Weight::kRecoverable, path("stopped"), left.error().detail);
  }
  const auto& facts = machines_.cluster().facts();
  if (!facts) return {};
  report_.cluster_id = to_string(facts->cluster_id);
  report_.node = facts->node;
  report_.leader_epoch = facts->leader_epoch;
  if (meta_ && (meta_->cluster_id != report_.cluster_id || meta_->node != facts->node)) {
    tell(Weight::kDamage, path("meta"),
         "it names cluster " + meta_->cluster_id + ", node " + std::to_string(meta_->node.value()) +
             ", the reserved channels " + report_.cluster_id + ", node " +
             std::to_string(facts->node.value()) +
             ": parts of two copies. The daemon does not start");
  }
  return {};
}

Result<void> Check::check_logs() {
  log::ChannelCheck channels;
  channels.directory = path("channels");
  channels.newest = report_.leader_epoch;
  channels.found = found_;
  channels.progress = check_.progress;
  channels.bounds = [this](const ChannelId& id, Offset, Offset end) {
    ends_[{id.topic_id, id.partition}] = end;
  };
  // Half a catalog would call the other half's channels strangers.
  if (report_.reserved.readable) {
    auto& all = channels.channels.emplace();
    machines_.catalog().current().for_each([&](const coordinator::TopicPtr& topic) {
      ++report_.topics;
      for (std::int32_t i = 0; i < topic->partition_count; ++i) {
        const PartitionIndex index(i);
        all.push_back({channel_name(topic->name, index), topic->id, index});
      }
    });
    report_.partitions = all.size();
  }
  const auto clean = files_.exists(channels.directory + "/clean-shutdown");
  report_.clean = clean && *clean;
  auto figures = log::check_channels(files_, channels);
  if (!figures) return std::unexpected(std::move(figures.error()));
  report_.logs = *figures;
  return {};
}

/// Offsets that were committed beyond the end of their log.
void Check::check_offsets() {
  for (const auto& [id, group] : machines_.groups()) {
    if (group.vacant()) continue;
    ++report_.groups;
    group.for_each_offset([&](std::string_view topic, PartitionIndex partition,
                              const coordinator::CommittedOffset& offset) {
      ++report_.committed_offsets;
      const auto end = ends_.find({offset.topic_id, partition});
      if (end == ends_.end() || offset.offset <= end->second) return;
      // Not damage: a power cut takes records of the default mode, and anybody may commit anything.
      tell(Weight::kNote, path("reserved"),
           "group " + id + " has committed offset " + std::to_string(offset.offset.value()) +
               " of " + std::string(topic) + "-" + std::to_string(partition.value()) +
               ", whose log ends at " + std::to_string(end->second.value()) +
               ": records were lost in a power cut, or it was committed so; its members start by "
               "their auto.offset.reset");
    });
  }
}

/// Ends that were decided and are not in all logs yet.
void Check::check_transactions() {
  for (const auto& [id, transaction] : machines_.transactions()) {
    if (transaction.vacant()) continue;
    ++report_.transactional_ids;
    if (!transaction.facts().prepared()) continue;
    tell(Weight::kRecoverable, path("reserved"),
         "transactional id " + id + " is in state " +
             std::string(coordinator::to_string(transaction.facts().state)) +
             ": the next start writes its markers");
  }
}

}  // namespace

Result<DataReport> check_data(FileSystem& files, const DataCheck& check) {
  return Check(files, check).run();
}

}  // namespace kanal::broker
