#include "utf8.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "kanal/wire/reader.hpp"

namespace kanal::wire {
namespace {

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

/// A string field of version 0 with these bytes.
Buffer framed(std::string_view text) {
  Buffer frame;
  frame.push_back(static_cast<std::byte>(text.size() >> 8U));
  frame.push_back(static_cast<std::byte>(text.size() & 0xffU));
  for (const char c : text) frame.push_back(static_cast<std::byte>(c));
  return frame;
}

TEST(Utf8, IsReadAsJavaReadsIt) {
  std::ifstream file(KANAL_GOLDEN_DIR "/utf8.tsv");
  std::size_t rows = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream columns(line);
    std::string given, read;
    columns >> given >> read;
    const std::string bytes = from_hex(given);
    EXPECT_EQ(replace_malformed_utf8(bytes), from_hex(read)) << given;
    EXPECT_EQ(is_utf8(bytes), given == read) << given;
    Buffer frame = framed(bytes);
    Reader reader(frame);
    EXPECT_EQ(reader.text(false, "name"), from_hex(read)) << given;
    ++rows;
  }
  EXPECT_GT(rows, 500U);
}

TEST(Utf8, ValidTextStaysInTheFrame) {
  for (const std::string_view text : {"", "orders", "twelve bytes", "zwölf Bytes, und noch mehr",
                                      "\xf0\x9f\x98\x80", "end \xe2\x82\xac"}) {
    Buffer frame = framed(text);
    Reader reader(frame);
    const std::string_view read = reader.text(false, "name");
    EXPECT_EQ(read, text);
    EXPECT_EQ(static_cast<const void*>(read.data()), static_cast<const void*>(frame.data() + 2));
  }
}

TEST(Utf8, ReplacedTextMovesWithTheReader) {
  Buffer frame = framed("caf\xe9 and a tail that is too long for a string's own buffer");
  Reader first(frame);
  const std::string_view read = first.text(false, "name");
  const Reader second = std::move(first);
  EXPECT_EQ(read, "caf\xef\xbf\xbd and a tail that is too long for a string's own buffer");
  EXPECT_FALSE(second.failed());
}

TEST(Utf8, WhatNoAnswerCouldCarryIsRefused) {
  Buffer frame = framed(std::string(20'000, '\xff'));
  Reader reader(frame);
  EXPECT_EQ(reader.text(false, "name"), "");
  ASSERT_TRUE(reader.failed());
  EXPECT_NE(reader.error("Test request", 0).detail.find("not UTF-8"), std::string::npos);
}

TEST(Utf8, ReplacedTextCountsAgainstTheMemoryOfTheRequest) {
  Buffer frame = framed(std::string(100, '\xff'));
  Reader reader(frame, 299);
  EXPECT_EQ(reader.text(false, "name"), "");
  EXPECT_TRUE(reader.failed());
}

}  // namespace
}  // namespace kanal::wire
