#include "catalog_support.hpp"

#include <random>

namespace kanal::coordinator {
namespace {

TopicPtr entry(const std::string& name, const Uuid& id, std::int32_t partitions = 1) {
  auto topic = std::make_shared<TopicEntry>();
  topic->name = name;
  topic->id = id;
  topic->partition_count = partitions;
  return topic;
}

using Model = std::map<std::string, TopicPtr>;

void expect_same(const CatalogSnapshot& snapshot, const Model& model) {
  ASSERT_EQ(snapshot.topic_count(), model.size());
  std::int64_t partitions = 0;
  auto expected = model.begin();
  snapshot.for_each([&](const TopicPtr& topic) {
    ASSERT_NE(expected, model.end());
    ASSERT_EQ(topic, expected->second) << "in name order";
    ++expected;
  });
  EXPECT_EQ(expected, model.end());
  for (const auto& [name, topic] : model) {
    ASSERT_EQ(snapshot.find(name), topic);
    ASSERT_EQ(snapshot.find(topic->id), topic);
    partitions += topic->partition_count;
  }
  EXPECT_EQ(snapshot.partition_count(), partitions);
}

TEST(CatalogSnapshot, OfNothingFindsNothing) {
  const CatalogSnapshot empty;
  EXPECT_FALSE(empty.find("orders"));
  EXPECT_FALSE(empty.find(uuid(1)));
  empty.for_each([](const TopicPtr&) { ADD_FAILURE(); });
  empty.visit_from("", [](const TopicPtr&) { return ADD_FAILURE(), true; });
}

TEST(CatalogSnapshot, FollowsRandomChangesAndKeepsOldPictures) {
  for (const std::uint32_t seed : {1U, 2U, 3U}) {
    std::mt19937 random(seed);
    CatalogSnapshotBuilder builder;
    Model model;
    std::vector<std::pair<CatalogSnapshotPtr, Model>> pictures;
    const std::uint32_t names = seed == 1 ? 40 : 2'000;
    for (std::uint32_t i = 0; i < 12'000; ++i) {
      const std::string name = "topic-" + std::to_string(random() % names);
      const auto known = model.find(name);
      // Grows at first, then shrinks to nothing, so that runs split and merge.
      const bool add = random() % 100 < (i < 6'000 ? 80U : 15U);
      if (add) {
        const Uuid id = known == model.end() ? uuid(i) : known->second->id;
        model[name] = entry(name, id, static_cast<std::int32_t>(random() % 9 + 1));
        builder.put(model[name]);
      } else if (known != model.end()) {
        builder.remove(*known->second);
        model.erase(known);
      }
      if (i % 1'500 == 700) pictures.emplace_back(builder.publish(), model);
    }
    expect_same(builder.current(), model);
    for (const auto& [picture, then] : pictures) expect_same(*picture, then);
  }
}

TEST(CatalogSnapshot, IteratesFromAnyName) {
  CatalogSnapshotBuilder builder;
  std::vector<std::string> names;
  for (int i = 0; i < 1'000; ++i) {
    names.push_back("t" + std::to_string(1'000 + i * 2));
    builder.put(entry(names.back(), uuid(static_cast<std::uint32_t>(i))));
  }
  const auto picture = builder.publish();
  for (int i = 999; i < 3'001; ++i) {
    const std::string from = "t" + std::to_string(i);
    const auto first = std::lower_bound(names.begin(), names.end(), from);
    std::vector<std::string> found;
    picture->visit_from(from, [&](const TopicPtr& topic) {
      found.push_back(topic->name);
      return found.size() < 3;
    });
    const auto last = names.end() - first > 3 ? first + 3 : names.end();
    ASSERT_EQ(found, std::vector<std::string>(first, last)) << from;
  }
}

TEST(CatalogSnapshot, TopicsWithCollidingHashesAreKeptApart) {
  // std::hash of a Uuid may be weak; ids that differ in one half only must still be told apart.
  CatalogSnapshotBuilder builder;
  Model model;
  for (std::uint32_t i = 0; i < 64; ++i) {
    Uuid id;
    id.bytes[i % 16] = static_cast<std::uint8_t>(1U << (i / 16));
    const std::string name = "n" + std::to_string(i);
    builder.put(model[name] = entry(name, id));
  }
  expect_same(builder.current(), model);
}

}  // namespace
}  // namespace kanal::coordinator
