// The immutable picture of all topics that requests work on: found by name or id. A change makes a new picture
// that shares all but one shard with the old one. Any thread; hold the shared_ptr while you use it.
#pragma once

#include "kanal/base/ids.hpp"
#include "kanal/coordinator/topic_config.hpp"

#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kanal::broker {

class Partition;

struct Topic {
  std::string name;
  Uuid id;
  std::map<std::string, std::string> overlay;            // configs set on the topic itself
  std::shared_ptr<const coordinator::TopicConfig> config;  // effective
  std::vector<std::shared_ptr<Partition>> partitions;    // by index

  [[nodiscard]] Partition* partition(PartitionIndex index) const noexcept {
    const auto at = index.value();
    return at >= 0 && static_cast<std::size_t>(at) < partitions.size() ? partitions[static_cast<std::size_t>(at)].get()
                                                                       : nullptr;
  }
};
using TopicPtr = std::shared_ptr<const Topic>;

class Topics {
 public:
  Topics();
  [[nodiscard]] TopicPtr find(std::string_view name) const;
  [[nodiscard]] TopicPtr find(const Uuid& id) const;
  [[nodiscard]] std::vector<TopicPtr> sorted() const;    // by name
  [[nodiscard]] std::size_t topic_count() const noexcept;
  [[nodiscard]] std::size_t partition_count() const noexcept;
  /// A new picture with `topic` in place of what had its name.
  [[nodiscard]] std::shared_ptr<const Topics> with(TopicPtr topic) const;
  [[nodiscard]] std::shared_ptr<const Topics> without(std::string_view name) const;

 private:
  static constexpr std::size_t kShards = 64;
  struct NameHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const noexcept { return std::hash<std::string_view>{}(name); }
  };
  using ByName = std::unordered_map<std::string, TopicPtr, NameHash, std::equal_to<>>;
  using ById = std::unordered_map<Uuid, TopicPtr>;
  static std::size_t shard_of(std::string_view name) noexcept;
  static std::size_t shard_of(const Uuid& id) noexcept;

  std::array<std::shared_ptr<const ByName>, kShards> by_name_;
  std::array<std::shared_ptr<const ById>, kShards> by_id_;
  std::size_t topics_ = 0, partitions_ = 0;
};

}  // namespace kanal::broker
