// Every message in every version, both directions, filled in several ways; cut anywhere; damaged
// anywhere.
#include "unit/wire/message_case.hpp"

#include <gtest/gtest.h>

#include <set>

namespace kanal::wire {
namespace {

constexpr std::uint64_t kRandomSeeds = 20;
constexpr int kDamagedPerVersion = 300;

template <class Body>
void for_every_version(Body body) {
  for (const MessageCase& message : message_cases()) {
    for (int version = message.min_version; version <= message.max_version; ++version) {
      SCOPED_TRACE(std::string(message.name) + " v" + std::to_string(version));
      body(message, static_cast<std::int16_t>(version));
    }
  }
}

TEST(RoundTrip, EveryMessageComesBackAsItWasWritten) {
  for_every_version([](const MessageCase& message, std::int16_t version) {
    Buffer wire;
    for (const Pattern pattern : {Pattern::kFilled, Pattern::kNulls, Pattern::kExtremes}) {
      Filler fill(pattern, 0);
      EXPECT_TRUE(message.round_trip(fill, version, wire))
          << "pattern " << static_cast<int>(pattern);
    }
    for (std::uint64_t seed = 1; seed <= kRandomSeeds; ++seed) {
      Filler fill(Pattern::kRandom, seed);
      EXPECT_TRUE(message.round_trip(fill, version, wire)) << "seed " << seed;
    }
  });
}

TEST(RoundTrip, AMessageThatNobodyFilledHasItsDefaults) {
  for_every_version([](const MessageCase& message, std::int16_t version) {
    EXPECT_TRUE(message.defaults_come_back(version));
  });
}

TEST(RoundTrip, VersionsOutsideTheServedAreRefused) {
  for (const MessageCase& message : message_cases()) {
    Buffer wire(200);
    for (const int version : {message.min_version - 1, message.max_version + 1}) {
      EXPECT_FALSE(message.recode(wire, static_cast<std::int16_t>(version)).has_value())
          << message.name;
    }
  }
}

TEST(Truncation, AMessageCutAtAnyByteIsAnErrorThatNamesItsPlace) {
  for_every_version([](const MessageCase& message, std::int16_t version) {
    Filler fill(Pattern::kFilled, 0);
    const Buffer whole = message.sample(fill, version);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      Buffer cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
      cut.shrink_to_fit();  // so that ASan sees a read behind the end
      const Result<Buffer> result = message.recode(cut, version);
      ASSERT_FALSE(result.has_value()) << "cut at " << length;
      const std::string begin = std::string(message.spoken) + " v" + std::to_string(version) + ": ";
      ASSERT_TRUE(result.error().detail.starts_with(begin)) << result.error().detail;
      ASSERT_NE(result.error().detail.find(" at byte "), std::string::npos)
          << result.error().detail;
    }
  });
}

TEST(Damage, ChangedBytesNeverCrashAndWhatIsAcceptedCanBeWrittenAgain) {
  std::mt19937_64 random(7);
  for_every_version([&random](const MessageCase& message, std::int16_t version) {
    for (int round = 0; round < kDamagedPerVersion; ++round) {
      Filler fill(round % 2 == 0 ? Pattern::kFilled : Pattern::kRandom, random());
      Buffer wire = message.sample(fill, version);
      if (wire.empty()) continue;
      for (std::uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
        const std::byte any[] = {std::byte{0xff}, std::byte{0x7f}, std::byte{0},
                                 static_cast<std::byte>(random())};
        wire[random() % wire.size()] = any[random() % 4];
      }
      Result<Buffer> once = message.recode(wire, version);
      if (!once) continue;
      const Result<Buffer> twice = message.recode(*once, version);
      ASSERT_TRUE(twice.has_value()) << twice.error().detail;
      ASSERT_EQ(*twice, *once);
    }
  });
}

TEST(Damage, BytesBehindTheBodyAreIgnoredAsInKafka) {
  for_every_version([](const MessageCase& message, std::int16_t version) {
    Filler fill(Pattern::kFilled, 0);
    Buffer wire = message.sample(fill, version);
    const Buffer whole = wire;
    wire.insert(wire.end(), 3, std::byte{0x55});
    const Result<Buffer> result = message.recode(wire, version);
    ASSERT_TRUE(result.has_value()) << result.error().detail;
    EXPECT_EQ(*result, whole);
  });
}

TEST(Cases, EveryMessageIsThereOnce) {
  std::set<std::string_view> names;
  for (const MessageCase& message : message_cases())
    EXPECT_TRUE(names.insert(message.name).second) << message.name;
  EXPECT_TRUE(names.contains("ProduceRequest"));
  EXPECT_TRUE(names.contains("RequestHeader"));
  EXPECT_TRUE(names.contains("TopicRecord"));
}

}  // namespace
}  // namespace kanal::wire
