// Replay equals life: after any commands, in memory and through a store that fails or crashes at
// any write.
#include "catalog/stored.hpp"
#include "catalog_support.hpp"
#include "kanal/reserved/memory_store.hpp"

#include <random>

namespace kanal::coordinator {
namespace {

const auto kDefaults = broker_config();

CatalogCommand random_command(std::mt19937& random) {
  static constexpr const char* kNames[] = {"a", "b", "a.b", "a_b", "c.c", "c_c", "d", "orders"};
  const std::string name = kNames[random() % std::size(kNames)];
  const bool validate_only = random() % 8 == 0;
  const std::vector<ConfigSetting> configs =
      random() % 2 == 0
          ? std::vector<ConfigSetting>{}
          : std::vector<ConfigSetting>{{"retention.ms", std::to_string(random() % 100)}};
  switch (random() % 5) {
    case 0:
    case 1: {
      CreateTopic command = topic_named(name, static_cast<std::int32_t>(random() % 5) - 1);
      command.configs = configs;
      command.validate_only = validate_only;
      return command;
    }
    case 2:
      return DeleteTopic{name, {}};
    case 3:
      return CreatePartitions{name, static_cast<std::int32_t>(random() % 12), {}, validate_only};
    default:
      return SetTopicConfigs{name, configs, validate_only};
  }
}

TEST(CatalogReplay, EqualsLifeAfterRandomCommands) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    LiveCatalog live;
    for (int i = 0; i < 300; ++i) {
      (void)live.run(random_command(random));
      if (random() % 10 == 0) {
        for (const auto& [name, topic] : plain(live.catalog().current())) {
          if (wants_roll(live.records_in(name), live.catalog().live_records(name))) live.roll(name);
        }
      }
    }
    Catalog replayed = live.replayed();
    EXPECT_EQ(plain(replayed.current()), plain(live.catalog().current())) << "seed " << seed;
    // Names refused for a collision are state too.
    for (const char* name : {"a.b", "a_b", "c.c", "c_c"}) {
      CreateTopic command = topic_named(name);
      command.validate_only = true;
      const auto before = live.catalog().step(Time{}, command).replies.front();
      const auto after = replayed.step(Time{}, command).replies.front();
      EXPECT_EQ(before.has_value(), after.has_value()) << name;
    }
  }
}

TEST(CatalogReplay, TheSnapshotOfAChannelIsItsState) {
  LiveCatalog live;
  ASSERT_TRUE(live.run(topic_named("orders", 1)));
  for (int i = 2; i < 100; ++i) ASSERT_TRUE(live.run(CreatePartitions{"orders", i, {}, false}));
  EXPECT_TRUE(wants_roll(live.records_in("orders"), live.catalog().live_records("orders")));
  live.roll("orders");
  EXPECT_EQ(live.records_in("orders"), 1U);
  EXPECT_EQ(plain(live.replayed().current()), plain(live.catalog().current()));
  EXPECT_TRUE(live.catalog().snapshot("missing").empty());
  EXPECT_EQ(live.catalog().live_records("missing"), 0U);
}

TEST(CatalogReplay, RollsOnlyWhatHasGrownWellPastItsState) {
  EXPECT_FALSE(wants_roll(64, 1));
  EXPECT_TRUE(wants_roll(65, 1));
  EXPECT_TRUE(wants_roll(65, 0));
  EXPECT_FALSE(wants_roll(400, 100));
  EXPECT_TRUE(wants_roll(401, 100));
}

TEST(CatalogReplay, DamageNamesTheChannel) {
  const auto error = [](const Record& record, const Record* first = nullptr) {
    Catalog catalog(broker_config());
    if (first != nullptr) {
      EXPECT_TRUE(catalog.apply(*first));
    }
    const auto applied = catalog.apply(record);
    EXPECT_FALSE(applied);
    return applied ? Error{} : applied.error();
  };
  TopicEntry topic;
  topic.name = "orders";
  topic.id = uuid(1);
  topic.partition_count = 1;
  const Record good{"orders", encode_topic(topic)};
  for (std::size_t length = 1; length < good.body.size(); ++length) {
    Record cut = good;
    cut.body.resize(length);
    const Error damage = error(cut);
    EXPECT_EQ(damage.code, ErrorCode::KAFKA_STORAGE_ERROR);
    EXPECT_NE(damage.detail.find("_KAFKA_CONFIG_.orders"), std::string::npos) << damage.detail;
  }
  EXPECT_NE(error({"other", good.body}).detail.find("_KAFKA_CONFIG_.other"), std::string::npos);
  TopicEntry changed = topic;
  changed.id = uuid(2);
  const Record other_id{"orders", encode_topic(changed)};
  EXPECT_NE(error(other_id, &good).detail.find("topic id"), std::string::npos);
  changed = topic;
  changed.name = "copy";
  const Record same_id{"copy", encode_topic(changed)};
  EXPECT_NE(error(same_id, &good).detail.find("topic id"), std::string::npos);
  changed = topic;
  changed.partition_count = 0;
  EXPECT_FALSE(error({"orders", encode_topic(changed)}).detail.empty());
  EXPECT_FALSE(error({"orders", encode_next_producer_id(ProducerId(5))}).detail.empty());
}

/// What the broker's driver does, in small: store, apply, roll.
class StoredCatalog {
 public:
  explicit StoredCatalog(reserved::MemoryStore& store) : session_(*store.open()) {
    const auto visit = [&](const reserved::ReservedName& name, Bytes body) {
      return catalog_.apply({name.key, Buffer(body.begin(), body.end())});
    };
    EXPECT_TRUE(session_->replay(visit));
  }
  bool run(const CatalogCommand& command) {
    const auto effects = catalog_.step(Time{}, command);
    for (const Record& record : effects.records) {
      const reserved::ReservedName name{reserved::Kind::kConfig, record.key};
      const Bytes body(record.body);
      const auto stored = record.ends_channel()
                              ? session_->erase(name, reserved::Durability::kSynced)
                              : session_->append(name, {&body, 1}, reserved::Durability::kSynced);
      if (!stored) return false;
      EXPECT_TRUE(catalog_.apply(record));
      if (!wants_roll(session_->records_in(name), catalog_.live_records(record.key))) continue;
      const auto snapshot = catalog_.snapshot(record.key);
      const std::vector<Bytes> bodies(snapshot.begin(), snapshot.end());
      if (!session_->roll(name, bodies, reserved::Durability::kSynced)) return false;
    }
    return true;
  }
  PlainState state() const { return plain(catalog_.current()); }

 private:
  Catalog catalog_{kDefaults};
  std::unique_ptr<reserved::Session> session_;
};

/// Two hundred changes of one topic, so that its channel rolls, and some of others.
std::vector<CatalogCommand> script() {
  std::vector<CatalogCommand> commands{topic_named("orders"), topic_named("a.b")};
  for (int i = 2; i < 80; ++i) commands.emplace_back(CreatePartitions{"orders", i, {}, false});
  commands.emplace_back(DeleteTopic{"a.b", {}});
  commands.emplace_back(topic_named("a_b"));
  commands.emplace_back(DeleteTopic{"orders", {}});
  commands.emplace_back(topic_named("orders", 3));
  return commands;
}

TEST(CatalogReplay, ACrashAtAnyWriteKeepsWhatWasAnswered) {
  const auto commands = script();
  std::vector<std::uint64_t> writes{1, 2, 3, 30};
  for (std::uint64_t write = 62; write <= 70; ++write)
    writes.push_back(write);  // the channel rolls
  for (std::uint64_t left = 0; left < 7; ++left) writes.push_back(commands.size() + 2 - left);
  using Failure = reserved::MemoryStore::Failure;
  for (const Failure failure : {Failure::kNothingWritten, Failure::kWrittenUnsynced}) {
    for (const bool power_cut : {false, true}) {
      for (const std::uint64_t write : writes) {
        reserved::MemoryStore store;
        store.fail_write(write, failure);
        std::vector<PlainState> states{PlainState{}};
        {
          StoredCatalog live(store);
          for (const CatalogCommand& command : commands) {
            if (!live.run(command)) break;
            states.push_back(live.state());
          }
          states.push_back(live.state());  // with the failed command, if only its roll failed
        }
        power_cut ? store.power_cut(0) : store.kill();
        StoredCatalog restarted(store);
        PlainState with_failed = states.back();
        const bool as_answered = restarted.state() == states.back();
        // A write whose error came after its bytes may be there: the command's other outcome.
        LiveCatalog other(kDefaults);
        for (std::size_t i = 0; i + 1 < states.size() && i < commands.size(); ++i) {
          (void)other.run(commands[i]);
        }
        EXPECT_TRUE(as_answered || (!power_cut && failure == Failure::kWrittenUnsynced &&
                                    restarted.state() == plain(other.catalog().current())))
            << "write " << write;
      }
    }
  }
}

}  // namespace
}  // namespace kanal::coordinator
