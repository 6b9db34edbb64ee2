#include "names.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace kanal::reserved {
namespace {

using namespace std::string_literals;

// Names that a careless encoding would mix up.
std::vector<std::string> awkward_keys() {
  return {"",
          "orders",
          "orders.1",
          "orders.",
          ".",
          "..",
          "/",
          "a/b",
          "../../etc/passwd",
          "~",
          "orders~1",
          "\0"s,
          "\0\0"s,
          "\0\1"s,
          "\0\xFF"s,
          "a\0"s,
          "a\0b"s,
          "a\0\1"s,
          "a\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1"s,
          "\xFF"s,
          "\xFF\xFF"s,
          "gr\xC3\xBC\xC3\x9F"
          "e \xE2\x9C\x93",
          "\xF0\x9F\x98\x80",
          "\n",
          std::string(1024, 'x'),
          std::string(1024, '\0'),
          std::string(1023, 'x')};
}

constexpr Kind kKinds[] = {Kind::kCluster, Kind::kConfig, Kind::kPids, Kind::kOffsets, Kind::kTxn};

TEST(ReservedKeys, ComeBackAsTheNameTheyWereMadeOf) {
  for (const Kind kind : kKinds) {
    for (const std::string& key : awkward_keys()) {
      const ReservedName name{kind, key};
      const std::string prefix = channel_prefix(name);
      const auto pointer = parse_key(prefix);
      ASSERT_TRUE(pointer) << key;
      EXPECT_EQ(pointer->name, name);
      EXPECT_EQ(pointer->number, 0U);
      const auto record = parse_key(record_key(prefix, 7, 0x0102030405060708));
      ASSERT_TRUE(record) << key;
      EXPECT_EQ(record->name, name);
      EXPECT_EQ(record->generation, 7U);
      EXPECT_EQ(record->number, 0x0102030405060708U);
    }
  }
}

TEST(ReservedKeys, NeverClashAndKeepAChannelTogether) {
  struct Entry {
    std::string key;
    ReservedName name;
  };
  std::vector<Entry> entries;
  for (const Kind kind : kKinds) {
    for (const std::string& key : awkward_keys()) {
      const ReservedName name{kind, key};
      const std::string prefix = channel_prefix(name);
      entries.push_back({prefix, name});
      for (const std::uint64_t generation : {std::uint64_t{1}, std::uint64_t{2}, UINT64_MAX}) {
        for (const std::uint64_t number : {std::uint64_t{1}, std::uint64_t{256}, UINT64_MAX}) {
          entries.push_back({record_key(prefix, generation, number), name});
        }
      }
    }
  }
  std::ranges::sort(entries, {}, &Entry::key);
  std::set<ReservedName> finished;
  for (std::size_t i = 1; i < entries.size(); ++i) {
    ASSERT_NE(entries[i - 1].key, entries[i].key);
    if (entries[i - 1].name == entries[i].name) continue;
    EXPECT_TRUE(finished.insert(entries[i - 1].name).second) << "a channel's keys are split";
    EXPECT_EQ(entries[i].key, channel_prefix(entries[i].name)) << "the pointer comes first";
  }
}

TEST(ReservedKeys, SortRecordsByGenerationThenNumber) {
  const std::string prefix = channel_prefix({Kind::kConfig, "orders"});
  EXPECT_LT(record_key(prefix, 1, 255), record_key(prefix, 1, 256));
  EXPECT_LT(record_key(prefix, 1, UINT64_MAX), record_key(prefix, 2, 1));
}

TEST(ReservedKeys, RefuseForeignBytes) {
  const std::string prefix = channel_prefix({Kind::kConfig, "orders"});
  const std::string record = record_key(prefix, 1, 1);
  EXPECT_FALSE(parse_key(""));
  EXPECT_FALSE(parse_key("\x09orders\0\1"s));
  EXPECT_FALSE(parse_key("\0orders\0\1"s));
  EXPECT_FALSE(parse_key(record_key(prefix, 0, 1)));
  EXPECT_FALSE(parse_key(record_key(prefix, 1, 0)));
  EXPECT_FALSE(parse_key("\2a\0\2"s));
  for (std::size_t length = 0; length < record.size(); ++length) {
    if (length == prefix.size()) continue;
    EXPECT_FALSE(parse_key(record.substr(0, length))) << length;
  }
  EXPECT_FALSE(parse_key(record + "x"));
}

TEST(ReservedNames, AreShownAsTheChannelsOfTheDocumentation) {
  EXPECT_EQ(to_string({Kind::kConfig, "orders"}, 3), "_KAFKA_CONFIG_.orders.3");
  EXPECT_EQ(to_string({Kind::kPids, ""}, 12), "_KAFKA_PIDS_.12");
  EXPECT_EQ(to_string({Kind::kCluster, ""}, 1), "_KAFKA_CLUSTER_.1");
  EXPECT_EQ(to_string({Kind::kOffsets, "g.1"}, 2), "_KAFKA_OFFSETS_.g.1.2");
  EXPECT_EQ(to_string({Kind::kTxn, "id"}, 1), "_KAFKA_TXN_.id.1");
}

}  // namespace
}  // namespace kanal::reserved
