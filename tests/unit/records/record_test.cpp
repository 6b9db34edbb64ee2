#include "samples.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace kanal::records {
namespace {

template <class Int>
std::size_t round_trip(Int value) {
  std::byte bytes[kMaxVarlong];
  std::size_t size = 0;
  Int read = 0;
  const std::byte* at = bytes;
  if constexpr (sizeof(Int) == 4) {
    size = write_varint(bytes, value);
    EXPECT_EQ(varint_size(value), size);
    EXPECT_TRUE(read_varint(at, bytes + size, read));
  } else {
    size = write_varlong(bytes, value);
    EXPECT_EQ(varlong_size(value), size);
    EXPECT_TRUE(read_varlong(at, bytes + size, read));
  }
  EXPECT_EQ(read, value);
  EXPECT_EQ(at, bytes + size);
  at = bytes;
  if constexpr (sizeof(Int) == 4) {
    EXPECT_FALSE(read_varint(at, bytes + size - 1, read)) << "cut";
  }
  return size;
}

TEST(Varint, RoundTripsWithKafkasSizes) {
  EXPECT_EQ(round_trip(std::int32_t{0}), 1U);
  EXPECT_EQ(round_trip(std::int32_t{-1}), 1U);
  EXPECT_EQ(round_trip(std::int32_t{63}), 1U);
  EXPECT_EQ(round_trip(std::int32_t{-64}), 1U);
  EXPECT_EQ(round_trip(std::int32_t{64}), 2U);
  EXPECT_EQ(round_trip(std::int32_t{8191}), 2U);
  EXPECT_EQ(round_trip(std::int32_t{8192}), 3U);
  EXPECT_EQ(round_trip(std::numeric_limits<std::int32_t>::max()), 5U);
  EXPECT_EQ(round_trip(std::numeric_limits<std::int32_t>::min()), 5U);
  EXPECT_EQ(round_trip(std::int64_t{1} << 40), 6U);
  EXPECT_EQ(round_trip(std::numeric_limits<std::int64_t>::max()), 10U);
  EXPECT_EQ(round_trip(std::numeric_limits<std::int64_t>::min()), 10U);
}

TEST(Varint, IsRefusedWhenTooLong) {
  const std::string six = "\x80\x80\x80\x80\x80\x01";
  const std::byte* at = as_bytes(six).data();
  std::int32_t value = 0;
  EXPECT_FALSE(read_varint(at, at + six.size(), value));
  const std::string eleven(11, '\x80');
  at = as_bytes(eleven).data();
  std::int64_t wide = 0;
  EXPECT_FALSE(read_varlong(at, at + eleven.size(), wide));
}

TEST(Records, ComeBackAsTheyWereBuilt) {
  const std::vector<samples::PlainRecord> records = samples::records_of(samples::three());
  const std::vector<samples::PlainRecord> expected{
      {0, 0, "k0", "value zero", {}},
      {5, 1, "k1", std::nullopt, {}},
      {2, 2, "", "", {{"trace", "abc"}, {"none", std::nullopt}}}};
  EXPECT_EQ(records, expected);
}

TEST(Records, WalkStopsWhenToldTo) {
  const Buffer batch = samples::three();
  int seen = 0;
  const auto walked = walk(payload(batch), 3, [&seen](const RecordView&) { return ++seen < 2; });
  EXPECT_TRUE(walked);
  EXPECT_EQ(seen, 2);
}

TEST(Records, MustUseUpAllBytes) {
  Buffer batch = samples::three();
  const auto all = [](const RecordView&) { return true; };
  EXPECT_FALSE(walk(payload(batch), 2, all));
  EXPECT_FALSE(walk(payload(batch), 4, all));
  batch.push_back(std::byte{0});
  EXPECT_FALSE(walk(payload(batch), 3, all));
}

TEST(Records, CutAnywhereAreMalformed) {
  const Buffer batch = samples::three();
  const Bytes records = payload(batch);
  for (std::size_t size = 0; size < records.size(); ++size) {
    const Buffer cut(records.begin(), records.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(walk(cut, 3, [](const RecordView&) { return true; })) << size;
  }
}

const char* parse(std::string_view body) {
  RecordView record;
  const Bytes bytes = as_bytes(body);
  const Buffer exact(bytes.begin(), bytes.end());  // so that ASan sees a read past the end
  return parse_body(exact.data(), exact.data() + exact.size(), record);
}

TEST(Records, FieldsAreChecked) {
  using namespace std::string_view_literals;
  EXPECT_EQ(parse("\0\0\0\x01\x02"
                  "a\0"sv),
            nullptr);
  EXPECT_EQ(parse("\0\0\0\x03\x03\0"sv), nullptr) << "sizes of -2 are null";
  EXPECT_NE(parse(""sv), nullptr);
  EXPECT_NE(parse("\0\0\0\x01\x20"
                  "a\0"sv),
            nullptr)
      << "value longer than the record";
  EXPECT_NE(parse("\0\0\0\x01\x01\x01"sv), nullptr) << "-1 headers";
  EXPECT_NE(parse("\0\0\0\x01\x01\x20"sv), nullptr) << "more headers than bytes";
  EXPECT_NE(parse("\0\0\0\x01\x01\x02\x01\x01"sv), nullptr) << "header without key";
  EXPECT_EQ(parse("\0\0\0\x01\x01\x02\0\x01"sv), nullptr) << "header with empty key, null value";
  EXPECT_NE(parse("\0\0\0\x01\x01\0\0"sv), nullptr) << "bytes behind the headers";
}

}  // namespace
}  // namespace kanal::records
