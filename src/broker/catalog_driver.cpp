#include "catalog_driver.hpp"

#include "driver.hpp"
#include "kanal/base/logging.hpp"

namespace kanal::broker {
namespace {

using coordinator::CatalogAction;
using coordinator::CatalogCommand;
using coordinator::CatalogReply;

log::LogOptions log_options(const coordinator::TopicConfig& config) {
  log::LogOptions options;
  options.segment_bytes = config.segment_bytes;
  options.segment_ms = config.segment_ms;
  options.segment_jitter_ms = config.segment_jitter_ms;
  options.file_delete_delay_ms = config.file_delete_delay_ms;
  options.ack_after_sync = config.flush_messages == 1;
  options.log_append_time = config.timestamp_type == coordinator::TimestampKind::kLogAppendTime;
  return options;
}

SyncRules sync_rules(const coordinator::TopicConfig& config) {
  return {config.flush_messages, config.flush_ms};
}

}  // namespace

CatalogDriver::CatalogDriver(Stage stage) : stage_(std::move(stage)) {
  auto empty = std::make_unique<coordinator::Catalog>(stage_.config);
  topics_.store(std::make_shared<const Topics>(empty->publish()));
}

Result<void> CatalogDriver::start(StartReport& report) {
  return catalog_.with([&](Catalog& catalog) -> Result<void> {
    if (auto built = rebuild(catalog); !built) return built;
    reconcile(*catalog.machine, &report);
    stage_.logs.all_opened();
    return {};
  });
}

std::vector<CatalogReply> CatalogDriver::change(std::span<const CatalogCommand> commands) {
  return catalog_.with([&](Catalog& catalog) {
    std::vector<CatalogReply> replies;
    auto fail_all = [&](const Error& why) {
      logger("broker").error("A change of topics could not be stored. reason={}", why.detail);
      catalog.stale = true;
      replies.assign(commands.size(),
                     fail(ErrorCode::KAFKA_STORAGE_ERROR, "The change could not be stored."));
    };
    if (catalog.stale) {
      if (auto built = rebuild(catalog); !built) return fail_all(built.error()), replies;
      reconcile(*catalog.machine, nullptr);
    }
    auto actions = store(catalog, commands, replies);
    if (!actions) return fail_all(actions.error()), replies;
    if (!actions->empty()) publish(*catalog.machine, *actions);
    return replies;
  });
}

void CatalogDriver::configure(std::shared_ptr<const coordinator::BrokerConfig> config) {
  catalog_.with([&](Catalog& catalog) {
    stage_.config = config;
    if (catalog.stale) return;  // the next change rebuilds it, from stage_.config
    catalog.machine->configure(std::move(config));
    const std::shared_ptr<const Topics> before = topics_.load();
    std::vector<CatalogAction> actions;
    catalog.machine->current().for_each([&](const coordinator::TopicPtr& entry) {
      const TopicPtr topic = before->find(entry->id);
      if (topic == nullptr || topic->config() == entry->config) return;
      actions.emplace_back(coordinator::ConfigureTopic{entry->id});
    });
    if (!actions.empty()) publish(*catalog.machine, actions);
  });
}

Result<void> CatalogDriver::rebuild(Catalog& catalog) {
  auto machine = std::make_unique<coordinator::Catalog>(stage_.config);
  if (auto replayed = replay_into(stage_.session, reserved::Kind::kConfig, *machine); !replayed)
    return replayed;
  catalog.machine = std::move(machine);
  catalog.stale = false;
  return {};
}

Result<std::vector<CatalogAction>> CatalogDriver::store(Catalog& catalog,
                                                        std::span<const CatalogCommand> commands,
                                                        std::vector<CatalogReply>& replies) {
  std::vector<CatalogAction> actions;
  bool written = false;
  // Many changes of one request share one sync; nothing of them is seen or answered before it.
  const auto durability =
      commands.size() == 1 ? reserved::Durability::kSynced : reserved::Durability::kWritten;
  for (const CatalogCommand& command : commands) {
    auto effects = catalog.machine->step(stage_.clock.now(), command);
    written |= !effects.records.empty();
    auto stored = store_and_apply(stage_.session, reserved::Kind::kConfig, *catalog.machine,
                                  effects.records, durability);
    if (!stored) return std::unexpected(stored.error());
    for (auto& reply : effects.replies) replies.push_back(std::move(reply));
    for (auto& action : effects.actions) actions.push_back(std::move(action));
  }
  if (written && durability == reserved::Durability::kWritten) {
    if (auto synced = stage_.store.flush(); !synced) return std::unexpected(synced.error());
  }
  return actions;
}

void CatalogDriver::publish(coordinator::Catalog& machine, std::span<const CatalogAction> actions) {
  const std::shared_ptr<const Topics> before = topics_.load();
  std::vector<Uuid> gone;
  std::vector<TopicPtr> dropped;
  std::unordered_map<Uuid, TopicPtr> changed;
  const auto reopen = [&](const Uuid& id) {
    const coordinator::TopicPtr& entry = machine.current().find(id);
    if (entry == nullptr) return;  // made and deleted in one group
    const TopicPtr old = changed.contains(id) ? changed[id] : before->find(id);
    changed[id] = open_topic(entry, old.get(), nullptr);
  };
  for (const CatalogAction& action : actions) {
    if (const auto* open = std::get_if<coordinator::OpenPartitions>(&action)) {
      reopen(open->id);
      logger("broker").info("{} topic={} id={} partitions={}",
                            open->first.value() == 0 ? "Topic made." : "Topic grew.", open->topic,
                            to_string(open->id), open->end.value());
    }
    if (const auto* configure = std::get_if<coordinator::ConfigureTopic>(&action))
      reopen(configure->id);
    if (const auto* remove = std::get_if<coordinator::RemoveTopic>(&action)) {
      gone.push_back(remove->id);
      logger("broker").info("Topic deleted. topic={} id={} partitions={}", remove->topic,
                            to_string(remove->id), remove->partition_count);
      changed.erase(remove->id);
      if (TopicPtr topic = before->find(remove->id)) dropped.push_back(std::move(topic));
    }
  }
  std::vector<TopicPtr> topics;
  for (auto& [id, topic] : changed) topics.push_back(std::move(topic));
  topics_.store(before->next(machine.publish(), topics, gone));
  for (const TopicPtr& topic : dropped) drop(topic);
  if (!dropped.empty() && stage_.on_deleted) stage_.on_deleted();
}

void CatalogDriver::reconcile(coordinator::Catalog& machine, StartReport* report) {
  const std::shared_ptr<const Topics> before = topics_.load();
  std::vector<TopicPtr> changed, dropped;
  std::vector<Uuid> gone;
  before->for_each([&](const TopicPtr& topic) {
    if (machine.current().find(topic->id()) != nullptr) return;
    gone.push_back(topic->id());
    dropped.push_back(topic);
  });
  machine.current().for_each([&](const coordinator::TopicPtr& entry) {
    changed.push_back(open_topic(entry, before->find(entry->id).get(), report));
  });
  topics_.store(before->next(machine.publish(), changed, gone));
  for (const TopicPtr& topic : dropped) drop(topic);
  if (!dropped.empty() && stage_.on_deleted) stage_.on_deleted();
  if (report == nullptr) return;
  report->topics = changed.size();
  for (const TopicPtr& topic : changed) report->partitions += topic->partitions.size();
}

TopicPtr CatalogDriver::open_topic(const coordinator::TopicPtr& entry, const Topic* before,
                                   StartReport* report) {
  auto topic = std::make_shared<Topic>();
  topic->entry = entry;
  if (before != nullptr) {
    topic->partitions = before->partitions;
    if (before->config() != entry->config) {
      const auto options = log_options(entry->config);
      const auto rules = sync_rules(entry->config);
      for (const auto& partition : topic->partitions) partition->configure(options, rules);
    }
  }
  topic->partitions.reserve(static_cast<std::size_t>(entry->partition_count));
  while (topic->partitions.size() < static_cast<std::size_t>(entry->partition_count)) {
    const PartitionIndex index(static_cast<std::int32_t>(topic->partitions.size()));
    topic->partitions.push_back(open_partition(*entry, index, report));
  }
  return topic;
}

std::shared_ptr<Partition> CatalogDriver::open_partition(const coordinator::TopicEntry& entry,
                                                         PartitionIndex index,
                                                         StartReport* report) {
  ChannelId id{channel_name(entry.name, index), entry.id, index};
  const ChannelHandle handle = stage_.channels.reserve();
  log::RecoveryReport found;
  const log::Opening opening{id, handle, stage_.epoch, log_options(entry.config)};
  auto log = log::Partition::open(stage_.logs, opening, &found);
  if (report != nullptr) {
    report->recovered += found.scanned ? 1 : 0;
    report->cut_bytes += found.cut_bytes;
    report->broken += log ? 0 : 1;
    report->cut_logs += found.damage_cut ? 1 : 0;
  }
  if (found.damage_cut) {
    logger("broker").error(
        "A DAMAGED LOG WAS CUT, as log.recovery=truncate asks; what lay behind the damage is kept "
        "beside it. channel={} kept_bytes={} where={}",
        id.name, found.set_aside_bytes, found.detail);
  }
  if (found.cut_bytes > 0) {
    logger("broker").warn("Recovery cut a torn tail. channel={} bytes={} where={}", id.name,
                          found.cut_bytes, found.detail);
  }
  std::shared_ptr<Partition> partition;
  if (log) {
    partition = std::make_shared<Partition>(id, handle, std::move(*log));
    partition->configure(opening.options, sync_rules(entry.config));
  } else {
    logger("broker").error(
        "A partition could not be opened and answers KAFKA_STORAGE_ERROR. channel={} reason={}",
        id.name, log.error().detail);
    partition = std::make_shared<Partition>(
        id, handle, Error{ErrorCode::KAFKA_STORAGE_ERROR, log.error().detail});
  }
  stage_.channels.set(handle, partition);
  return partition;
}

void CatalogDriver::drop(const TopicPtr& topic) {
  for (const auto& partition : topic->partitions) {
    partition->mark_deleted();
    if (auto removed = stage_.logs.remove(partition->id()); !removed) {
      logger("broker").error(
          "The files of a deleted channel could not be removed. channel={} reason={}",
          partition->id().name, removed.error().detail);
    }
  }
}

}  // namespace kanal::broker
