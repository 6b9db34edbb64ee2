// For tests of the catalog: ids, a catalog with its records kept, and its state as plain values.
#pragma once

#include "kanal/base/random.hpp"
#include "kanal/coordinator/catalog.hpp"

#include <gtest/gtest.h>

#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace kanal::coordinator {

inline constexpr NodeId kNode{7};

inline Uuid uuid(std::uint32_t number) {
  Uuid id;
  store_be(reinterpret_cast<std::byte*>(id.bytes.data() + 12), number + 1);
  id.bytes[0] = static_cast<std::uint8_t>(number * 37U);
  return id;
}

inline std::shared_ptr<const BrokerConfig> broker_config(ConfigMap fixed = {},
                                                         std::int32_t max_partitions = 10'000) {
  ConfigLayers layers;
  layers.fixed = std::move(fixed);
  NodeOptions node;
  node.id = kNode;
  node.max_partitions_per_topic = max_partitions;
  auto config = make_broker_config(std::move(layers), node);
  if (!config) throw std::runtime_error(config.error().detail);
  return std::make_shared<const BrokerConfig>(std::move(*config));
}

using PlainTopic = std::tuple<Uuid, std::int32_t, std::int64_t, ConfigMap>;
using PlainState = std::map<std::string, PlainTopic>;

inline PlainState plain(const CatalogSnapshot& snapshot) {
  PlainState state;
  snapshot.for_each([&](const TopicPtr& topic) {
    state[topic->name] = {topic->id, topic->partition_count, topic->created.value(),
                          topic->overlay};
  });
  return state;
}

inline CreateTopic topic_named(const std::string& name, std::int32_t partitions = 1) {
  static std::uint32_t fresh = 1'000'000;
  CreateTopic command;
  command.name = name;
  command.partitions = partitions;
  command.fresh_id = uuid(++fresh);
  command.created = Timestamp(1'700'000'000'000);
  return command;
}

/// A catalog and the records of its channels, as a driver without a disk would keep them.
class LiveCatalog {
 public:
  explicit LiveCatalog(std::shared_ptr<const BrokerConfig> config = broker_config())
      : catalog_(std::move(config)) {}

  CatalogReply run(const CatalogCommand& command) {
    effects_ = catalog_.step(Time{}, command);
    EXPECT_EQ(effects_.replies.size(), 1U) << "one reply a command";
    EXPECT_TRUE(effects_.replies.front() || (effects_.records.empty() && effects_.actions.empty()))
        << "what is refused changes nothing";
    for (const Record& record : effects_.records) {
      auto& channel = channels_[record.key];
      channel.push_back(record.body);
      if (record.ends_channel()) channels_.erase(record.key);
      EXPECT_TRUE(catalog_.apply(record));
    }
    return effects_.replies.front();
  }
  ErrorCode code(const CatalogCommand& command) {
    const auto reply = run(command);
    return reply ? ErrorCode::NONE : reply.error().code;
  }
  void roll(const std::string& topic) { channels_[topic] = catalog_.snapshot(topic); }

  [[nodiscard]] Catalog replayed(
      std::shared_ptr<const BrokerConfig> config = broker_config()) const {
    Catalog fresh(std::move(config));
    for (const auto& [topic, records] : channels_) {
      for (const Buffer& body : records) EXPECT_TRUE(fresh.apply({topic, body}));
    }
    return fresh;
  }

  Catalog& catalog() { return catalog_; }
  const Catalog::Effects& effects() const { return effects_; }
  const TopicEntry& topic(const std::string& name) const { return *catalog_.current().find(name); }
  std::size_t records_in(const std::string& topic) { return channels_[topic].size(); }

 private:
  Catalog catalog_;
  Catalog::Effects effects_;
  std::map<std::string, std::vector<Buffer>> channels_;
};

}  // namespace kanal::coordinator
