#include "kanal/coordinator/catalog_snapshot.hpp"

#include "kanal/base/check.hpp"

#include <algorithm>
#include <functional>

namespace kanal::coordinator {
namespace {

constexpr std::size_t kMaxRun = 128;
const TopicPtr kNone;

std::uint64_t hash_of(std::string_view name) {
  return std::hash<std::string_view>{}(name);
}
std::uint64_t hash_of(const Uuid& id) {
  return std::hash<Uuid>{}(id);
}

// The top bits choose the shard, all of them the place inside.
std::size_t shard_of(std::uint64_t hash) {
  return hash >> 58;
}

auto first_of_hash(auto& slots, std::uint64_t hash) {
  return std::lower_bound(slots.begin(), slots.end(), hash,
                          [](const auto& slot, std::uint64_t h) { return slot.hash < h; });
}

template <class Matches>
const TopicPtr& find_slot(const auto& shard, std::uint64_t hash, Matches&& matches) {
  if (!shard) return kNone;
  for (auto at = first_of_hash(shard->slots, hash); at != shard->slots.end() && at->hash == hash;
       ++at) {
    if (matches(*at->topic)) return at->topic;
  }
  return kNone;
}

auto place_in(auto& topics, std::string_view name) {
  return std::lower_bound(
      topics.begin(), topics.end(), name,
      [](const TopicPtr& topic, std::string_view n) { return topic->name < n; });
}

}  // namespace

const TopicPtr& CatalogSnapshot::find(std::string_view name) const noexcept {
  const std::uint64_t hash = hash_of(name);
  return find_slot(by_name_[shard_of(hash)], hash,
                   [&](const TopicEntry& topic) { return topic.name == name; });
}

const TopicPtr& CatalogSnapshot::find(const Uuid& id) const noexcept {
  const std::uint64_t hash = hash_of(id);
  return find_slot(by_id_[shard_of(hash)], hash,
                   [&](const TopicEntry& topic) { return topic.id == id; });
}

CatalogSnapshot::RunPosition CatalogSnapshot::lower_bound(std::string_view name) const noexcept {
  const auto run = std::partition_point(runs_.begin(), runs_.end(), [&](const auto& candidate) {
    return candidate->topics.back()->name < name;
  });
  if (run == runs_.end()) return {runs_.size(), 0};
  const auto at = place_in((*run)->topics, name);
  return {static_cast<std::size_t>(run - runs_.begin()),
          static_cast<std::size_t>(at - (*run)->topics.begin())};
}

void CatalogSnapshotBuilder::put(TopicPtr topic) {
  const TopicPtr known = working_.find(topic->name);
  CHECK(!known || known->id == topic->id, "a topic keeps its id");
  if (!known) ++working_.topics_;
  working_.partitions_ += topic->partition_count - (known ? known->partition_count : 0);
  put_slot(working_.by_name_, hash_of(topic->name), topic);
  put_slot(working_.by_id_, hash_of(topic->id), topic);
  put_in_order(topic);
}

void CatalogSnapshotBuilder::remove(const TopicEntry& topic) {
  const TopicPtr known = working_.find(topic.name);
  CHECK(known && known->id == topic.id, "only a known topic is removed");
  remove_slot(working_.by_name_, hash_of(known->name), known->id);
  remove_slot(working_.by_id_, hash_of(known->id), known->id);
  remove_in_order(known->name);
  --working_.topics_;
  working_.partitions_ -= known->partition_count;
}

CatalogSnapshotPtr CatalogSnapshotBuilder::publish() {
  ++version_;  // from here on every piece may have readers
  return std::make_shared<const CatalogSnapshot>(working_);
}

template <class Piece>
Piece& CatalogSnapshotBuilder::own(std::shared_ptr<Piece>& piece) {
  if (!piece) {
    piece = std::make_shared<Piece>();
  } else if (piece->made_for != version_) {
    piece = std::make_shared<Piece>(*piece);
  }
  piece->made_for = version_;
  return *piece;
}

void CatalogSnapshotBuilder::put_slot(CatalogSnapshot::Shards& shards, std::uint64_t hash,
                                      const TopicPtr& topic) {
  auto& slots = own(shards[shard_of(hash)]).slots;
  auto at = first_of_hash(slots, hash);
  for (; at != slots.end() && at->hash == hash; ++at) {
    if (at->topic->id == topic->id) {
      at->topic = topic;
      return;
    }
  }
  slots.insert(at, {hash, topic});
}

void CatalogSnapshotBuilder::remove_slot(CatalogSnapshot::Shards& shards, std::uint64_t hash,
                                         const Uuid& id) {
  auto& slots = own(shards[shard_of(hash)]).slots;
  const auto at = std::find_if(first_of_hash(slots, hash), slots.end(),
                               [&](const auto& slot) { return slot.topic->id == id; });
  CHECK(at != slots.end(), "every topic is in both maps");
  slots.erase(at);
}

void CatalogSnapshotBuilder::put_in_order(const TopicPtr& topic) {
  auto& runs = working_.runs_;
  if (runs.empty()) runs.emplace_back();
  const std::size_t index =
      std::min(working_.runs_[0] ? working_.lower_bound(topic->name).run : 0, runs.size() - 1);
  auto& topics = own(runs[index]).topics;
  const auto at = place_in(topics, topic->name);
  if (at != topics.end() && (*at)->name == topic->name) {
    *at = topic;
    return;
  }
  topics.insert(at, topic);
  if (topics.size() <= kMaxRun) return;
  auto upper = std::make_shared<Run>();
  upper->made_for = version_;
  upper->topics.assign(topics.begin() + kMaxRun / 2, topics.end());
  topics.resize(kMaxRun / 2);
  runs.insert(runs.begin() + static_cast<std::ptrdiff_t>(index) + 1, std::move(upper));
}

void CatalogSnapshotBuilder::remove_in_order(const std::string& name) {
  auto& runs = working_.runs_;
  const auto [index, at] = working_.lower_bound(name);
  CHECK(index < runs.size(), "every topic is in the order");
  auto& topics = own(runs[index]).topics;
  topics.erase(topics.begin() + static_cast<std::ptrdiff_t>(at));
  const auto place = runs.begin() + static_cast<std::ptrdiff_t>(index);
  if (topics.empty()) {
    runs.erase(place);
  } else if (index + 1 < runs.size() && topics.size() + place[1]->topics.size() <= kMaxRun / 2) {
    topics.insert(topics.end(), place[1]->topics.begin(), place[1]->topics.end());
    runs.erase(place + 1);
  }
}

}  // namespace kanal::coordinator
