#include "kanal/wire/writer.hpp"

#include "kanal/wire/reader.hpp"

#include <gtest/gtest.h>

#include <string>

namespace kanal::wire {
namespace {

std::string hex(Bytes bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte octet : bytes) {
    text += kDigits[std::to_integer<int>(octet) >> 4];
    text += kDigits[std::to_integer<int>(octet) & 15];
  }
  return text;
}

TEST(Writer, PrimitivesAreBigEndian) {
  Writer out;
  out.boolean(true);
  out.int16(-2);
  out.int32(256);
  out.int64(1);
  out.float64(1.5);
  EXPECT_EQ(hex(out.bytes()), "01fffe0000010000000000000000013ff8000000000000");
}

TEST(Writer, VariableLengthNumbersAreTheShortest) {
  for (const auto& [value, expected] : {std::pair{0U, "00"},
                                        {127U, "7f"},
                                        {128U, "8001"},
                                        {16383U, "ff7f"},
                                        {16384U, "808001"},
                                        {~0U, "ffffffff0f"}}) {
    Writer out;
    out.uvarint(value);
    EXPECT_EQ(hex(out.bytes()), expected);
  }
}

TEST(Writer, StringsAndBytesInBothForms) {
  Writer out;
  out.text(false, "ab");
  out.text(true, "ab");
  out.nullable_text(false, std::nullopt);
  out.nullable_text(true, std::nullopt);
  out.blob(false, as_bytes("c"));
  out.blob(true, as_bytes("c"));
  out.nullable_blob(false, std::nullopt);
  out.nullable_blob(true, std::nullopt);
  EXPECT_EQ(hex(out.bytes()),
            "00026162"
            "036162"
            "ffff"
            "00"
            "0000000163"
            "0263"
            "ffffffff"
            "00");
}

TEST(Writer, AStringTooLongForTheProtocolIsCut) {
  const std::string longest(40'000, 'x');
  for (const bool flexible : {false, true}) {
    Writer out;
    out.text(flexible, longest);
    Buffer frame(out.bytes().begin(), out.bytes().end());
    Reader in(frame);
    EXPECT_EQ(in.text(flexible, "text").size(), static_cast<std::size_t>(kMaxStringLength));
    EXPECT_EQ(in.remaining(), 0U);
  }
}

TEST(Writer, TimesAreHeldWithinThirtyTwoBits) {
  Writer out;
  out.milliseconds(std::chrono::hours(24 * 365 * 100));
  out.milliseconds(std::chrono::milliseconds(-1));
  EXPECT_EQ(hex(out.bytes()), "7fffffffffffffff");
}

TEST(Writer, ResetKeepsTheMemoryAndReleaseDoesNot) {
  Writer out;
  out.raw(Buffer(10'000));
  const std::size_t capacity = out.capacity();
  const std::byte* place = out.bytes().data();
  out.reset();
  EXPECT_TRUE(out.bytes().empty());
  EXPECT_EQ(out.capacity(), capacity);
  out.int8(1);
  EXPECT_EQ(out.bytes().data(), place);
  out.release();
  EXPECT_EQ(out.capacity(), 0U);
}

TEST(Writer, AFrameSizeCountsTheGaps) {
  Writer out;
  const Writer::Mark first = out.begin_frame();
  out.int32(7);
  ExternalRecords records;
  records.bytes = 1000;
  records.first_slice = 3;
  records.slice_count = 2;
  out.records(true, records);
  out.int8(1);
  out.end_frame(first);
  EXPECT_EQ(hex(out.bytes()),
            "000003ef"
            "00000007"
            "e907"
            "01");  // 4 + 2 + 1000 + 1
  ASSERT_EQ(out.gaps().size(), 1U);
  EXPECT_EQ(out.gaps()[0], (Gap{10, 1000, 3, 2}));
  EXPECT_EQ(out.total_bytes(), 11U + 1000U);

  const Writer::Mark second = out.begin_frame();  // a second frame counts only its own
  out.records(false, records);
  out.end_frame(second);
  EXPECT_EQ(hex(out.bytes().subspan(11)),
            "000003ec"
            "000003e8");
  EXPECT_EQ(out.gaps()[1].position, 19U);
}

TEST(Writer, RecordsAreEmptyRatherThanNullAndInlineOnesAreCopied) {
  Writer out;
  out.records(false, {});
  out.records(true, {});
  ExternalRecords records;
  records.inline_bytes = as_bytes("ab");
  out.records(false, records);
  out.records(true, records);
  EXPECT_EQ(hex(out.bytes()),
            "00000000"
            "01"
            "000000026162"
            "036162");
  EXPECT_TRUE(out.gaps().empty());
}

TEST(Writer, DiscardTakesBackAFrameWithItsGaps) {
  Writer out;
  out.int8(5);
  const Writer::Mark frame = out.begin_frame();
  ExternalRecords records;
  records.bytes = 10;
  out.records(false, records);
  out.discard(frame);
  EXPECT_EQ(hex(out.bytes()), "05");
  EXPECT_TRUE(out.gaps().empty());
  EXPECT_EQ(out.total_bytes(), 1U);
}

TEST(Writer, ATaggedFieldGetsItsSizeInFront) {
  Writer out;
  const std::size_t small = out.begin_tag(1);
  out.int32(9);
  out.end_tag(small);
  const std::size_t large = out.begin_tag(2);
  out.raw(Buffer(300, std::byte{0xaa}));
  out.end_tag(large);
  EXPECT_EQ(hex(out.bytes().first(11)),
            "010400000009"
            "02ac02"
            "aaaa");
  EXPECT_EQ(out.bytes().size(), 6U + 3U + 300U);
}

}  // namespace
}  // namespace kanal::wire
