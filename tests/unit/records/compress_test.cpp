#include "samples.hpp"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <random>

namespace kanal::records {
namespace {

Buffer pattern(std::size_t size, bool random) {
  std::mt19937 draw(static_cast<unsigned>(size));
  Buffer out(size);
  for (std::size_t i = 0; i < size; ++i)
    out[i] = static_cast<std::byte>(random ? draw() : i / 11 % 7);
  return out;
}

Buffer deflated(Deflater& deflater, Codec codec, int level, Bytes bytes, std::size_t step) {
  Buffer out;
  EXPECT_TRUE(deflater.open(codec, level, out));
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    EXPECT_TRUE(deflater.write(bytes.subspan(at, std::min(step, bytes.size() - at))));
  }
  EXPECT_TRUE(deflater.finish());
  return out;
}

TEST(Codecs, RoundTripAllSizesStepsAndContents) {
  Scratch scratch;
  for (const Codec codec : samples::kCodecs) {
    for (const std::size_t size : {0U, 1U, 100U, 32768U, 65535U, 65536U, 65537U, 150'000U}) {
      for (const bool random : {false, true}) {
        for (const std::size_t step : {7U, 40'000U}) {
          if (step == 7 && size > 70'000) continue;
          const Buffer original = pattern(size, random);
          const Buffer packed =
              deflated(scratch.deflater, codec, Levels().of(codec), original, step);
          Buffer back;
          if (packed.empty()) continue;
          const Result<void> done = inflate_all(scratch.inflater, codec, packed, size, back);
          ASSERT_TRUE(done) << name(codec) << " " << size << " " << done.error().detail;
          EXPECT_EQ(back, original) << name(codec) << " " << size;
        }
      }
    }
  }
}

TEST(Codecs, EveryLevelCanBeReadBack) {
  Scratch scratch;
  const Buffer original = pattern(100'000, false);
  const auto check = [&](Codec codec, int level) {
    Buffer back;
    const Buffer packed = deflated(scratch.deflater, codec, level, original, 50'000);
    ASSERT_TRUE(inflate_all(scratch.inflater, codec, packed, original.size(), back))
        << name(codec) << level;
    EXPECT_EQ(back, original) << name(codec) << level;
    EXPECT_LT(packed.size(), original.size());
  };
  for (int level = 1; level <= 9; ++level) check(Codec::kGzip, level);
  for (int level = 1; level <= 17; ++level) check(Codec::kLz4, level);
  for (const int level : {-100, 1, 3, 12, 22}) check(Codec::kZstd, level);
}

TEST(Codecs, GzipAndZstdOutputIsReadByTheirOwnLibraries) {
  Deflater deflater;
  const Buffer original = pattern(100'000, false);
  const Buffer gzip = deflated(deflater, Codec::kGzip, -1, original, 1000);
  z_stream stream{};
  ASSERT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  Buffer out(original.size() + 10);
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(gzip.data()));
  stream.avail_in = static_cast<uInt>(gzip.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  EXPECT_EQ(stream.total_out, original.size());
  inflateEnd(&stream);
  const Buffer zstd = deflated(deflater, Codec::kZstd, 3, original, 1000);
  EXPECT_EQ(ZSTD_decompress(out.data(), out.size(), zstd.data(), zstd.size()), original.size());
}

TEST(Codecs, CutStreamsNeverInflateSilently) {
  Scratch scratch;
  const Buffer original = pattern(3'000, true);
  for (const Codec codec : samples::kCodecs) {
    if (codec == Codec::kNone) continue;
    const Buffer packed = deflated(scratch.deflater, codec, Levels().of(codec), original, 5'000);
    for (std::size_t size = 0; size < packed.size(); ++size) {
      const Buffer cut(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(size));
      Buffer back;
      const Result<void> done = inflate_all(scratch.inflater, codec, cut, 1U << 20, back);
      EXPECT_TRUE(!done || back.size() < original.size()) << name(codec) << " cut at " << size;
    }
  }
}

TEST(Codecs, DamagedStreamsNeverCrash) {
  Scratch scratch;
  std::mt19937 draw(1);
  for (const Codec codec : samples::kCodecs) {
    if (codec == Codec::kNone) continue;
    for (const bool random : {false, true}) {
      const Buffer packed =
          deflated(scratch.deflater, codec, Levels().of(codec), pattern(5'000, random), 5'000);
      for (int round = 0; round < 1'000; ++round) {
        Buffer damaged = packed;
        for (int i = 0; i < 3; ++i)
          damaged[draw() % damaged.size()] = static_cast<std::byte>(draw());
        Buffer back;
        const Result<void> done = inflate_all(scratch.inflater, codec, damaged, 1U << 20, back);
        if (!done) {
          EXPECT_TRUE(done.error().code == ErrorCode::UNKNOWN_SERVER_ERROR ||
                      done.error().code == ErrorCode::MESSAGE_TOO_LARGE);
        }
      }
    }
  }
}

TEST(Codecs, BombsStopAtTheLimit) {
  Scratch scratch;
  const Buffer zeros(64U << 20);
  for (const Codec codec : {Codec::kGzip, Codec::kLz4, Codec::kZstd, Codec::kSnappy}) {
    const Buffer bomb = deflated(scratch.deflater, codec, Levels().of(codec), zeros, 1U << 20);
    Buffer back;
    const Result<void> done = inflate_all(scratch.inflater, codec, bomb, 1U << 20, back);
    ASSERT_FALSE(done) << name(codec);
    EXPECT_EQ(done.error().code, ErrorCode::MESSAGE_TOO_LARGE);
    EXPECT_LE(back.size(), (1U << 20) + (4U << 20)) << name(codec);
  }
}

TEST(Codecs, UnknownOnesAreRefused) {
  Inflater inflater;
  for (int codec = 5; codec <= 7; ++codec) {
    const Result<void> opened = inflater.open(static_cast<Codec>(codec), as_bytes("abc"));
    EXPECT_EQ(opened.error().code, ErrorCode::UNKNOWN_SERVER_ERROR);
    EXPECT_EQ(name(static_cast<Codec>(codec)), "unknown");
  }
}

TEST(Codecs, AnInflaterIsReusableAfterErrors) {
  Scratch scratch;
  for (const Codec codec : samples::kCodecs) {
    if (codec == Codec::kNone) continue;
    const Buffer original = pattern(200'000, false);
    const Buffer packed = deflated(scratch.deflater, codec, Levels().of(codec), original, 5'000);
    Buffer back;
    EXPECT_FALSE(inflate_all(scratch.inflater, codec, Bytes(packed).first(packed.size() / 2),
                             1U << 20, back) &&
                 back == original);
    back.clear();
    ASSERT_TRUE(inflate_all(scratch.inflater, codec, packed, original.size(), back)) << name(codec);
    EXPECT_EQ(back, original);
  }
}

}  // namespace
}  // namespace kanal::records
