// The catalog machine: which topics exist. State is one record a topic in _KAFKA_CONFIG_.{topic}:
// id, partition count, config overlay, creation time; the last record of a channel is its state.
// step and apply: under the catalog's lock (rank 0), one writer. snapshot(): the same; the returned
// CatalogSnapshot is for any thread. Records are synced before anything is answered. Checks and
// codes are Kafka 4.4's (controller), in its order; Error::detail is the client's error_message,
// empty where Kafka sends null. What concerns a whole request (a name twice, authorization,
// deadlines) is the handler's.
#pragma once

#include "kanal/coordinator/catalog_snapshot.hpp"
#include "kanal/coordinator/config_change.hpp"
#include "kanal/coordinator/machine.hpp"

#include <map>
#include <optional>
#include <span>
#include <variant>

namespace kanal::coordinator {

struct PartitionAssignment {
  PartitionIndex partition;
  std::vector<NodeId> nodes;
};
struct ConfigSetting {
  std::string name;
  std::optional<std::string> value;  // null is refused
};

struct CreateTopic {
  std::string name;
  std::int32_t partitions = -1;          // -1: num.partitions
  std::int16_t replication_factor = -1;  // -1: default.replication.factor
  std::vector<PartitionAssignment> assignments;
  std::vector<ConfigSetting> configs;
  bool validate_only = false;
  Uuid fresh_id;  // becomes the topic's id
  Timestamp created = kNoTimestamp;
};
struct DeleteTopic {
  std::string name;  // used if id is zero
  Uuid id;
};
struct CreatePartitions {
  std::string name;
  std::int32_t total_count = 0;
  std::optional<std::vector<std::vector<NodeId>>> assignments;  // of the new partitions
  bool validate_only = false;
};
struct SetTopicConfigs {
  std::string name;
  std::vector<ConfigSetting> overlay;  // replaces the whole overlay
  bool validate_only = false;
};
struct AlterTopicConfigs {
  std::string name;
  std::vector<ConfigAlteration> changes;  // of what is set when the command is carried out
  bool validate_only = false;
};
using CatalogCommand =
    std::variant<CreateTopic, DeleteTopic, CreatePartitions, SetTopicConfigs, AlterTopicConfigs>;

/// The topic as the command leaves it (as it would, with validate_only; as it was, after a delete),
/// or what the client got wrong. One reply a command.
using CatalogReply = Result<TopicPtr>;

struct OpenPartitions {  // [first, end) of the topic are new
  std::string topic;
  Uuid id;
  PartitionIndex first, end;
};
struct RemoveTopic {  // its partitions [0, partition_count) are gone from the catalog
  std::string topic;
  Uuid id;
  std::int32_t partition_count = 0;
};
struct ConfigureTopic {  // its config has changed
  Uuid id;
};
using CatalogAction = std::variant<OpenPartitions, RemoveTopic, ConfigureTopic>;

/// Kafka's limit on one CreateTopics request: more than 10,000 partitions in all refuse the whole
/// request with POLICY_VIOLATION. Asked by the handler, before the topics.
[[nodiscard]] Result<void> check_partitions_of_request(std::span<const CreateTopic> topics,
                                                       const BrokerConfig& broker);

class Catalog {
 public:
  using Command = CatalogCommand;
  using Effects = coordinator::Effects<CatalogReply, CatalogAction>;
  static constexpr bool kSynced = true;

  explicit Catalog(std::shared_ptr<const BrokerConfig> broker);

  [[nodiscard]] Effects step(Time now, const CatalogCommand& command) const;
  Result<void> apply(const Record& record);
  [[nodiscard]] std::vector<Buffer> snapshot(std::string_view topic) const;
  /// Records that snapshot() would give.
  [[nodiscard]] std::uint64_t live_records(std::string_view topic) const;

  /// New broker configs: defaults of later commands, and the configs in force of every topic.
  void configure(std::shared_ptr<const BrokerConfig> broker);
  /// The state for readers. Cheap, but not free: once after a group of applies.
  [[nodiscard]] CatalogSnapshotPtr publish() { return topics_.publish(); }
  /// The writer's own view, valid until the next apply.
  [[nodiscard]] const CatalogSnapshot& current() const noexcept { return topics_.current(); }

 private:
  [[nodiscard]] Effects create(const CreateTopic& command) const;
  [[nodiscard]] Effects remove(const DeleteTopic& command) const;
  [[nodiscard]] Effects grow(const CreatePartitions& command) const;
  [[nodiscard]] Effects set_configs(const SetTopicConfigs& command) const;
  [[nodiscard]] Effects alter_configs(const AlterTopicConfigs& command) const;
  [[nodiscard]] Effects put_overlay(const std::string& name, ConfigMap overlay,
                                    bool validate_only) const;
  [[nodiscard]] Result<void> check_new_name(const std::string& name) const;
  Result<void> end(const std::string& name);

  [[nodiscard]] TopicConfig config_of(const ConfigMap& overlay) const;

  std::shared_ptr<const BrokerConfig> broker_;
  TopicConfig defaults_;  // of a topic without an overlay, as most are
  CatalogSnapshotBuilder topics_;
  // Of names with '.' or '_': Kafka's metric form -> the one topic that may have it.
  std::map<std::string, std::string, std::less<>> by_collision_form_;
};
static_assert(Machine<Catalog>);

}  // namespace kanal::coordinator
