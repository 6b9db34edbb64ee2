#include "kanal/coordinator/catalog.hpp"

#include "catalog_checks.hpp"
#include "kanal/base/channel.hpp"
#include "kanal/base/check.hpp"
#include "stored.hpp"
#include "stored_record.hpp"

namespace kanal::coordinator {
namespace {

// Kafka's own metadata log: no client may make a topic of that name.
constexpr std::string_view kClusterMetadataTopic = "__cluster_metadata";

bool has_collision_character(std::string_view name) {
  return name.find_first_of("._") != std::string_view::npos;
}

std::string quoted(std::string_view text) {
  return "'" + std::string(text) + "'";
}

Catalog::Effects refuse(Error error) {
  Catalog::Effects effects;
  effects.replies.emplace_back(std::unexpected(std::move(error)));
  return effects;
}

Record record_of(const TopicEntry& topic) {
  return {topic.name, encode_topic(topic)};
}

Result<void> check_configured_name(const std::string& name) {
  if (!name.empty()) return check_topic_name(name);
  return fail(ErrorCode::INVALID_REQUEST, "Default topic resources are not allowed.");
}

Error damaged_topic(const std::string& name, const Error& cause) {
  return damaged("_KAFKA_CONFIG_." + name, cause);
}

}  // namespace

Catalog::Catalog(std::shared_ptr<const BrokerConfig> broker) : broker_(std::move(broker)) {
  CHECK(broker_, "a catalog needs the broker's configs");
  defaults_ = make_topic_config(*broker_, {});
}

Catalog::Effects Catalog::step(Time, const CatalogCommand& command) const {
  if (const auto* create_topic = std::get_if<CreateTopic>(&command)) return create(*create_topic);
  if (const auto* delete_topic = std::get_if<DeleteTopic>(&command)) return remove(*delete_topic);
  if (const auto* partitions = std::get_if<CreatePartitions>(&command)) return grow(*partitions);
  if (const auto* alter = std::get_if<AlterTopicConfigs>(&command)) return alter_configs(*alter);
  return set_configs(std::get<SetTopicConfigs>(command));
}

Catalog::Effects Catalog::create(const CreateTopic& command) const {
  if (const auto name = check_new_name(command.name); !name) return refuse(name.error());
  auto overlay = checked_overlay(command.configs, *broker_);
  if (!overlay) return refuse(overlay.error());
  const auto partitions = partitions_of(command, *broker_);
  if (!partitions) return refuse(partitions.error());
  CHECK(!command.fresh_id.is_zero() && !current().find(command.fresh_id),
        "the command brings a fresh topic id");

  auto topic = std::make_shared<TopicEntry>();
  topic->id = command.fresh_id;
  topic->name = command.name;
  topic->partition_count = *partitions;
  topic->created = command.created;
  topic->config = config_of(*overlay);
  topic->overlay = std::move(*overlay);
  Effects effects;
  if (!command.validate_only) {
    effects.records.push_back(record_of(*topic));
    effects.actions.emplace_back(OpenPartitions{topic->name, topic->id, PartitionIndex(0),
                                                PartitionIndex(topic->partition_count)});
  }
  effects.replies.emplace_back(std::move(topic));
  return effects;
}

// Kafka lets "already exists" win over whatever else is wrong with the name.
Result<void> Catalog::check_new_name(const std::string& name) const {
  if (name == kClusterMetadataTopic) {
    return fail(ErrorCode::INVALID_REQUEST,
                "The topic " + std::string(kClusterMetadataTopic) + " cannot be created.");
  }
  if (current().find(name)) {
    return fail(ErrorCode::TOPIC_ALREADY_EXISTS, "Topic " + quoted(name) + " already exists.");
  }
  if (auto valid = check_topic_name(name); !valid) return valid;
  if (!has_collision_character(name)) return {};
  const auto other = by_collision_form_.find(collision_form(name));
  if (other == by_collision_form_.end()) return {};
  return fail(ErrorCode::INVALID_TOPIC_EXCEPTION,
              "Topic " + quoted(name) + " differs from the existing topic " +
                  quoted(other->second) + " only in '.' against '_'.");
}

Catalog::Effects Catalog::remove(const DeleteTopic& command) const {
  const TopicPtr& topic =
      command.id.is_zero() ? current().find(command.name) : current().find(command.id);
  if (!topic && !command.id.is_zero()) {
    return refuse({ErrorCode::UNKNOWN_TOPIC_ID, "No topic has this id."});
  }
  if (!topic) {
    return refuse({ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, "There is no topic of this name."});
  }
  Effects effects;
  effects.records.push_back({topic->name, {}});
  effects.actions.emplace_back(RemoveTopic{topic->name, topic->id, topic->partition_count});
  effects.replies.emplace_back(topic);
  return effects;
}

Catalog::Effects Catalog::grow(const CreatePartitions& command) const {
  const TopicPtr& topic = current().find(command.name);
  if (!topic) return refuse({ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, {}});  // null text, as Kafka
  if (const auto growth = check_growth(command, topic->partition_count, *broker_); !growth) {
    return refuse(growth.error());
  }
  auto grown = std::make_shared<TopicEntry>(*topic);
  grown->partition_count = command.total_count;
  Effects effects;
  if (!command.validate_only) {
    effects.records.push_back(record_of(*grown));
    effects.actions.emplace_back(OpenPartitions{topic->name, topic->id,
                                                PartitionIndex(topic->partition_count),
                                                PartitionIndex(command.total_count)});
  }
  effects.replies.emplace_back(std::move(grown));
  return effects;
}

Catalog::Effects Catalog::set_configs(const SetTopicConfigs& command) const {
  if (const auto name = check_configured_name(command.name); !name) return refuse(name.error());
  auto overlay = checked_overlay(command.overlay, *broker_);
  if (!overlay) return refuse(overlay.error());
  return put_overlay(command.name, *std::move(overlay), command.validate_only);
}

Catalog::Effects Catalog::alter_configs(const AlterTopicConfigs& command) const {
  const TopicPtr& topic = current().find(command.name);
  auto overlay = altered(topic ? topic->overlay : ConfigMap{}, command.changes, &find_topic_config);
  if (!overlay) return refuse(overlay.error());
  if (const auto name = check_configured_name(command.name); !name) return refuse(name.error());
  if (const auto valid = check_topic_configs(*broker_, *overlay); !valid) {
    return refuse(valid.error());
  }
  return put_overlay(command.name, *std::move(overlay), command.validate_only);
}

Catalog::Effects Catalog::put_overlay(const std::string& name, ConfigMap overlay,
                                      bool validate_only) const {
  const TopicPtr& topic = current().find(name);
  if (!topic) {
    return refuse(
        {ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, "The topic " + quoted(name) + " does not exist."});
  }
  auto changed = std::make_shared<TopicEntry>(*topic);
  changed->config = config_of(overlay);
  changed->overlay = std::move(overlay);
  Effects effects;
  if (!validate_only && changed->overlay != topic->overlay) {
    effects.records.push_back(record_of(*changed));
    effects.actions.emplace_back(ConfigureTopic{topic->id});
  }
  effects.replies.emplace_back(std::move(changed));
  return effects;
}

Result<void> Catalog::apply(const Record& record) {
  if (record.ends_channel()) return end(record.key);
  auto decoded = decode_topic(record.body);
  if (!decoded) return std::unexpected(damaged_topic(record.key, decoded.error()));
  if (decoded->name != record.key) {
    const auto cause = corrupt("holds a record of topic " + quoted(decoded->name));
    return std::unexpected(damaged_topic(record.key, cause.error()));
  }
  const TopicPtr& by_id = current().find(decoded->id);
  const TopicPtr& by_name = current().find(decoded->name);
  if (by_id != by_name) {
    const auto cause = corrupt("topic id " + to_string(decoded->id) +
                               " does not fit what the catalog already has");
    return std::unexpected(damaged_topic(record.key, cause.error()));
  }
  decoded->config = config_of(decoded->overlay);
  if (!by_name && has_collision_character(decoded->name)) {
    by_collision_form_.emplace(collision_form(decoded->name), decoded->name);
  }
  topics_.put(std::make_shared<const TopicEntry>(*std::move(decoded)));
  return {};
}

Result<void> Catalog::end(const std::string& name) {
  const TopicPtr topic = current().find(name);
  if (!topic) return {};
  if (const auto form = by_collision_form_.find(collision_form(name));
      form != by_collision_form_.end() && form->second == name) {
    by_collision_form_.erase(form);
  }
  topics_.remove(*topic);
  return {};
}

std::vector<Buffer> Catalog::snapshot(std::string_view topic) const {
  const TopicPtr& known = current().find(topic);
  if (!known) return {};
  return {encode_topic(*known)};
}

std::uint64_t Catalog::live_records(std::string_view topic) const {
  return current().find(topic) ? 1 : 0;
}

TopicConfig Catalog::config_of(const ConfigMap& overlay) const {
  return overlay.empty() ? defaults_ : make_topic_config(*broker_, overlay);
}

void Catalog::configure(std::shared_ptr<const BrokerConfig> broker) {
  CHECK(broker, "a catalog needs the broker's configs");
  broker_ = std::move(broker);
  defaults_ = make_topic_config(*broker_, {});
  std::vector<TopicPtr> topics;
  topics.reserve(current().topic_count());
  current().for_each([&](const TopicPtr& topic) { topics.push_back(topic); });
  for (const TopicPtr& topic : topics) {
    TopicConfig config = config_of(topic->overlay);
    if (config == topic->config) continue;
    auto changed = std::make_shared<TopicEntry>(*topic);
    changed->config = config;
    topics_.put(std::move(changed));
  }
}

}  // namespace kanal::coordinator
