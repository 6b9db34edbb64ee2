#include "kanal/broker/topics.hpp"

#include <algorithm>

namespace kanal::broker {

Topics::Topics() {
  by_name_.fill(std::make_shared<const ByName>());
  by_id_.fill(std::make_shared<const ById>());
}

std::size_t Topics::shard_of(std::string_view name) noexcept { return NameHash{}(name) % kShards; }
std::size_t Topics::shard_of(const Uuid& id) noexcept { return std::hash<Uuid>{}(id) % kShards; }

TopicPtr Topics::find(std::string_view name) const {
  const ByName& shard = *by_name_[shard_of(name)];
  const auto found = shard.find(name);
  return found != shard.end() ? found->second : nullptr;
}

TopicPtr Topics::find(const Uuid& id) const {
  const ById& shard = *by_id_[shard_of(id)];
  const auto found = shard.find(id);
  return found != shard.end() ? found->second : nullptr;
}

std::vector<TopicPtr> Topics::sorted() const {
  std::vector<TopicPtr> all;
  all.reserve(topics_);
  for (const auto& shard : by_name_) {
    for (const auto& [name, topic] : *shard) all.push_back(topic);
  }
  std::ranges::sort(all, {}, [](const TopicPtr& topic) -> const std::string& { return topic->name; });
  return all;
}

std::size_t Topics::topic_count() const noexcept { return topics_; }
std::size_t Topics::partition_count() const noexcept { return partitions_; }

std::shared_ptr<const Topics> Topics::with(TopicPtr topic) const {
  auto next = std::make_shared<Topics>(*without(topic->name));
  ++next->topics_;
  next->partitions_ += topic->partitions.size();
  auto& id_shard = next->by_id_[shard_of(topic->id)];
  auto ids = std::make_shared<ById>(*id_shard);
  (*ids)[topic->id] = topic;
  id_shard = std::move(ids);
  auto& name_shard = next->by_name_[shard_of(topic->name)];
  auto names = std::make_shared<ByName>(*name_shard);
  (*names)[topic->name] = std::move(topic);
  name_shard = std::move(names);
  return next;
}

std::shared_ptr<const Topics> Topics::without(std::string_view name) const {
  auto next = std::make_shared<Topics>(*this);
  const TopicPtr gone = find(name);
  if (gone == nullptr) return next;
  --next->topics_;
  next->partitions_ -= gone->partitions.size();
  auto names = std::make_shared<ByName>(*by_name_[shard_of(name)]);
  names->erase(names->find(name));
  next->by_name_[shard_of(name)] = std::move(names);
  auto ids = std::make_shared<ById>(*by_id_[shard_of(gone->id)]);
  ids->erase(gone->id);
  next->by_id_[shard_of(gone->id)] = std::move(ids);
  return next;
}

}  // namespace kanal::broker
