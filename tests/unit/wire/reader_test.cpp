#include "kanal/wire/reader.hpp"

#include <gtest/gtest.h>

#include <initializer_list>

namespace kanal::wire {
namespace {

Buffer bytes_of(std::initializer_list<int> octets) {
  Buffer buffer;
  for (const int octet : octets) buffer.push_back(static_cast<std::byte>(octet));
  return buffer;
}

std::string detail_of(const Reader& reader) {
  return reader.error("Test request", 3).detail;
}

TEST(Reader, NumbersAreBigEndian) {
  Buffer frame = bytes_of({0x01, 0xff, 0xfe, 0,    0,    1,    0, 0x80, 0, 0, 0, 0, 0,
                           0,    1,    0xff, 0xff, 0x3f, 0xf8, 0, 0,    0, 0, 0, 0});
  Reader reader(frame);
  EXPECT_TRUE(reader.boolean("a"));
  EXPECT_EQ(reader.int16("b"), -2);
  EXPECT_EQ(reader.int32("c"), 256);
  EXPECT_EQ(reader.int64("d"), std::numeric_limits<std::int64_t>::min() + 1);
  EXPECT_EQ(reader.uint16("e"), 65535);
  EXPECT_EQ(reader.float64("f"), 1.5);
  EXPECT_EQ(reader.remaining(), 0U);
  EXPECT_FALSE(reader.failed());
}

TEST(Reader, TheFirstErrorSticksAndLaterReadsGiveNothing) {
  Buffer frame = bytes_of({0, 1, 2});
  Reader reader(frame);
  EXPECT_EQ(reader.int16("first"), 1);
  EXPECT_EQ(reader.int32("second"), 0);
  EXPECT_EQ(reader.int8("third"), 0);  // one byte was left, but after an error there is none
  EXPECT_EQ(reader.text(true, "fourth"), "");
  EXPECT_EQ(detail_of(reader), "Test request v3: second at byte 2: 4 bytes announced, only 1 left");
}

TEST(Reader, TheFieldPathIsBuiltFromInsideOut) {
  Buffer frame = bytes_of({0});
  Reader reader(frame);
  static_cast<void>(reader.int16("index"));
  reader.inside("partitions", 2);
  reader.inside("state");
  EXPECT_TRUE(
      detail_of(reader).starts_with("Test request v3: state.partitions[2].index at byte 0: "));
}

TEST(Reader, VariableLengthNumbersAreKafkas) {
  const auto read = [](std::initializer_list<int> octets) {
    Buffer frame = bytes_of(octets);
    Reader reader(frame);
    const std::uint32_t value = reader.uvarint("n");
    return reader.failed() ? std::string("error") : std::to_string(value);
  };
  EXPECT_EQ(read({0}), "0");
  EXPECT_EQ(read({0x7f}), "127");
  EXPECT_EQ(read({0x80, 0x01}), "128");
  EXPECT_EQ(read({0xff, 0xff, 0xff, 0xff, 0x0f}), "4294967295");
  EXPECT_EQ(read({0x80, 0x80, 0x80, 0x80, 0x7f}), "4026531840");  // bits above the 32nd are dropped
  EXPECT_EQ(read({0x80, 0x80, 0x80, 0x80, 0x80, 0x00}), "error");
  EXPECT_EQ(read({0x80}), "error");
  EXPECT_EQ(read({}), "error");
}

TEST(Reader, EveryNegativeLengthIsNull) {
  for (const int length : {0xffff, 0xfffe, 0x8000}) {
    Buffer frame = bytes_of({length >> 8, length & 0xff, 'x'});
    Reader reader(frame);
    EXPECT_EQ(reader.nullable_text(false, "a"), std::nullopt);
    EXPECT_EQ(reader.remaining(), 1U);
  }
  Buffer frame = bytes_of({0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0});
  Reader reader(frame);
  EXPECT_EQ(reader.nullable_blob(false, "b"), std::nullopt);
  EXPECT_EQ(reader.nullable_array_size(false, {4, 4}, "c"), std::nullopt);
  EXPECT_EQ(reader.nullable_text(true, "d"), std::nullopt);
  EXPECT_FALSE(reader.failed());
}

TEST(Reader, NullWhereThereIsNoNullIsAnError) {
  Buffer frame = bytes_of({0xff, 0xff, 0xff, 0xff});
  Reader text(frame);
  EXPECT_EQ(text.text(false, "name"), "");
  EXPECT_EQ(detail_of(text),
            "Test request v3: name at byte 2: null where this version has no null");
  Reader array(frame);
  EXPECT_EQ(array.array_size(false, {1, 1}, "topics"), 0U);
  EXPECT_TRUE(array.failed());
  Reader blob(frame);
  EXPECT_TRUE(blob.blob(false, "data").empty());
  EXPECT_TRUE(blob.failed());
}

TEST(Reader, ViewsPointIntoTheFrame) {
  Buffer frame = bytes_of({4, 'a', 'b', 'c', 0, 0, 0, 2, 1, 2});
  Reader reader(frame);
  EXPECT_EQ(reader.text(true, "a").data(), reinterpret_cast<const char*>(frame.data() + 1));
  const MutableBytes blob = reader.blob(false, "b");
  blob[0] = std::byte{9};
  EXPECT_EQ(frame[8], std::byte{9});
}

TEST(Reader, InvalidUtf8IsAcceptedAndReplacedAsInKafka) {
  Buffer frame = bytes_of({0, 2, 0xff, 0xc0});
  Reader reader(frame);
  EXPECT_EQ(reader.text(false, "a"), "\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_FALSE(reader.failed());
}

TEST(Reader, ACompactStringHasTheLimitOfAPlainOne) {
  Buffer frame(40'000);
  frame[0] = std::byte{0x81};  // 32,768 + 1
  frame[1] = std::byte{0x80};
  frame[2] = std::byte{0x02};
  Reader reader(frame);
  EXPECT_EQ(reader.text(true, "a"), "");
  EXPECT_EQ(detail_of(reader),
            "Test request v3: a at byte 3: a string of 32768 bytes, over the limit of 32767");
}

TEST(Reader, AnArrayIsNoLongerThanItsBytesAllow) {
  Buffer frame = bytes_of({0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0});
  Reader reader(frame);
  EXPECT_EQ(reader.array_size(false, {2, 64}, "topics"), 0U);
  EXPECT_EQ(detail_of(reader),
            "Test request v3: topics at byte 4: 2147483647 elements announced, only 5 bytes left");
  Buffer exact = bytes_of({0, 0, 0, 2, 0, 0, 0, 0});
  Reader fits(exact);
  EXPECT_EQ(fits.array_size(false, {2, 64}, "topics"), 2U);
  Buffer small = bytes_of({0, 0, 0, 3, 0, 0, 0, 0});
  Reader too_many(small);
  EXPECT_EQ(too_many.array_size(false, {2, 64}, "topics"), 0U);
  EXPECT_TRUE(too_many.failed());
}

TEST(Reader, ArraysOfOneMessageShareAMemoryBudget) {
  Buffer frame(100, std::byte{0});
  frame[3] = frame[7] = frame[11] = std::byte{10};
  Reader reader(frame, 250);
  EXPECT_EQ(reader.array_size(false, {1, 10}, "a"), 10U);
  EXPECT_EQ(reader.array_size(false, {1, 10}, "b"), 10U);
  EXPECT_EQ(reader.array_size(false, {1, 10}, "c"), 0U);
  EXPECT_TRUE(detail_of(reader).ends_with("over the memory limit of one request"))
      << detail_of(reader);
}

TEST(Reader, AMillionElementsAreTheMost) {
  Buffer frame(kMaxArrayLength + 10);
  store_be(frame.data(), kMaxArrayLength + 1);
  Reader reader(frame);
  EXPECT_EQ(reader.array_size(false, {1, 1}, "a"), 0U);
  EXPECT_TRUE(reader.failed());
  store_be(frame.data(), kMaxArrayLength);
  Reader most(frame);
  EXPECT_EQ(most.array_size(false, {1, 1}, "a"), static_cast<std::size_t>(kMaxArrayLength));
}

TEST(Reader, UnknownTaggedFieldsAreSkippedWithinBounds) {
  Buffer frame = bytes_of({2, 0, 1, 0xaa, 0x85, 0x01, 2, 0xbb, 0xcc, 7});
  Reader reader(frame);
  reader.skip_tags();
  EXPECT_FALSE(reader.failed());
  EXPECT_EQ(reader.int8("next"), 7);
  for (const auto& bad : {bytes_of({1, 0, 3, 0, 0}), bytes_of({5, 0, 0}), bytes_of({1, 0}),
                          bytes_of({1, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 0})}) {
    Buffer copy = bad;
    Reader broken(copy);
    broken.skip_tags();
    EXPECT_TRUE(broken.failed());
  }
  Buffer many(kMaxTaggedFields * 3, std::byte{0});
  many[0] = std::byte{0x91};  // 10,001
  many[1] = std::byte{0x4e};
  Reader flood(many);
  flood.skip_tags();
  EXPECT_TRUE(flood.failed());
}

}  // namespace
}  // namespace kanal::wire
