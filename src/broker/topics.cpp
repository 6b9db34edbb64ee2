#include "kanal/broker/topics.hpp"

namespace kanal::broker {

Topics::Topics(coordinator::CatalogSnapshotPtr catalog) : catalog_(std::move(catalog)) {
  by_id_.fill(std::make_shared<const ById>());
}

TopicPtr Topics::find(std::string_view name) const {
  const coordinator::TopicPtr& entry = catalog_->find(name);
  return entry != nullptr ? find(entry->id) : nullptr;
}

TopicPtr Topics::find(const Uuid& id) const {
  const ById& shard = *by_id_[shard_of(id)];
  const auto found = shard.find(id);
  return found != shard.end() ? found->second : nullptr;
}

std::shared_ptr<const Topics> Topics::next(coordinator::CatalogSnapshotPtr catalog,
                                           const std::vector<TopicPtr>& changed,
                                           const std::vector<Uuid>& gone) const {
  auto next = std::make_shared<Topics>(*this);
  next->catalog_ = std::move(catalog);
  std::array<std::shared_ptr<ById>, kShards>
      copied;  // one copy a shard, however many of its topics change
  const auto writable = [&](const Uuid& id) -> ById& {
    const std::size_t at = shard_of(id);
    if (copied[at] == nullptr) next->by_id_[at] = copied[at] = std::make_shared<ById>(*by_id_[at]);
    return *copied[at];
  };
  for (const Uuid& id : gone) writable(id).erase(id);
  for (const TopicPtr& topic : changed) writable(topic->id())[topic->id()] = topic;
  return next;
}

}  // namespace kanal::broker
