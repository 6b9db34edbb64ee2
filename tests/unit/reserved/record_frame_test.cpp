#include "record_frame.hpp"

#include "names.hpp"

#include <gtest/gtest.h>

namespace kanal::reserved {
namespace {

TEST(RecordFrame, UsesCrc32c) {
  EXPECT_EQ(crc32c(0, as_bytes("123456789")), 0xE3069283U);
  EXPECT_EQ(crc32c(crc32c(0, as_bytes("1234")), as_bytes("56789")), 0xE3069283U);
  EXPECT_EQ(crc32c(0, {}), 0U);
}

TEST(RecordFrame, OnDiskIsFixed) {
  using namespace std::string_literals;
  const std::string key = record_key(channel_prefix({Kind::kConfig, "a\0b"s}), 2, 3);
  EXPECT_EQ(key,
            "\x02"
            "a\0\xFF"
            "b\0\x01"
            "\0\0\0\0\0\0\0\x02"
            "\0\0\0\0\0\0\0\x03"s);
  const std::string value = frame("key", as_bytes("record"));
  ASSERT_EQ(value.size(), 11U);
  EXPECT_EQ(value[0], '\x01');
  EXPECT_EQ(load_be<std::uint32_t>(as_bytes(value).data() + 1), crc32c(0, as_bytes("\x01"
                                                                                   "keyrecord")));
  EXPECT_EQ(value.substr(5), "record");
}

TEST(RecordFrame, GivesBackWhatItHolds) {
  for (const std::string record : {"", "x", "a longer record"}) {
    const std::string value = frame("key", as_bytes(record));
    const auto content = unframe("key", as_bytes(value));
    ASSERT_TRUE(content);
    EXPECT_EQ(as_text(*content), record);
  }
}

TEST(RecordFrame, NoticesEveryFlippedBit) {
  const std::string value = frame("key", as_bytes("some record"));
  for (std::size_t bit = 0; bit < value.size() * 8; ++bit) {
    std::string damaged = value;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    const auto content = unframe("key", as_bytes(damaged));
    ASSERT_FALSE(content) << bit;
    EXPECT_EQ(content.error().code, ErrorCode::KAFKA_STORAGE_ERROR);
  }
}

TEST(RecordFrame, NoticesEveryCut) {
  const std::string value = frame("key", as_bytes("some record"));
  for (std::size_t length = 0; length < value.size(); ++length) {
    EXPECT_FALSE(unframe("key", as_bytes(value).first(length))) << length;
  }
}

TEST(RecordFrame, NoticesAValueUnderAnotherKey) {
  const std::string value = frame("key", as_bytes("some record"));
  EXPECT_FALSE(unframe("kez", as_bytes(value)));
  EXPECT_FALSE(unframe("", as_bytes(value)));
}

}  // namespace
}  // namespace kanal::reserved
