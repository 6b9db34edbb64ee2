// Patterns of names: as RE2/J takes them, bounded whatever they say.
#include "kanal/coordinator/name_pattern.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

namespace kanal::coordinator {
namespace {

bool matches(std::string_view pattern, std::string_view name) {
  const auto compiled = NamePattern::compile(pattern);
  EXPECT_TRUE(compiled) << pattern << ": " << (compiled ? "" : compiled.error().detail);
  return compiled && compiled->matches(name);
}
void expect_refused(std::string_view pattern, std::string_view why) {
  const auto compiled = NamePattern::compile(pattern);
  ASSERT_FALSE(compiled) << pattern;
  EXPECT_EQ(compiled.error().code, ErrorCode::INVALID_REGULAR_EXPRESSION);
  EXPECT_NE(compiled.error().detail.find(why), std::string::npos)
      << pattern << ": " << compiled.error().detail;
}

TEST(NamePattern, MatchesWholeNames) {
  struct Case {
    std::string_view pattern;
    std::vector<std::string_view> yes, no;
  };
  const std::vector<Case> cases = {
      {"", {""}, {"a"}},
      {"abc", {"abc"}, {"ab", "abcd", "xabc", ""}},
      {"a.c",
       {"abc", "a.c",
        "a\xC3\xA9"
        "c",
        "a\rc"},
       {"ac", "a\nc", "abbc"}},
      {"(?s)a.c", {"a\nc"}, {"ac"}},
      {"a*", {"", "a", "aaaa"}, {"b", "aab"}},
      {"a+b?", {"a", "aab"}, {"", "b", "abb"}},
      {"(ab|cd)+", {"ab", "cdab"}, {"", "abc", "ac"}},
      {"a|b|c|", {"a", "b", "c", ""}, {"d", "ab"}},
      {"(?:x|(?P<n>y)|(?<m_1>w))z", {"xz", "yz", "wz"}, {"z", "xyz"}},
      {"[a-cx]{2}", {"ab", "xc"}, {"a", "abc", "ad"}},
      {"[^a-c]", {"d", "-", "\n"}, {"a", "", "dd"}},
      {"[]a]", {"]", "a"}, {"b"}},
      {"[^]a]", {"b"}, {"]", "a"}},
      {"[a\\-z-]+", {"a-z"}, {"b"}},
      {"[-a]+", {"a-"}, {"b"}},
      {"[[a]+", {"[a"}, {"b"}},
      {"[[:a]+", {"[a:"}, {"b"}},
      {"[\\d_]+", {"1_2"}, {"a"}},
      {"[\\Da]+", {"xa"}, {"1"}},
      {"[[:alpha:]-]+", {"a-B"}, {"1"}},
      {"[[:^digit:]]", {"a"}, {"1"}},
      {"x{2,3}", {"xx", "xxx"}, {"x", "xxxx"}},
      {"x{2,}y", {"xxy", "xxxxxy"}, {"xy"}},
      {"x{0}y", {"y"}, {"xy"}},
      {"(a{1,2}){2}", {"aa", "aaaa"}, {"a", "aaaaa"}},
      {"a{", {"a{"}, {"a"}},
      {"a{,2}", {"a{,2}"}, {"aa"}},
      {"{a}]", {"{a}]"}, {"a"}},
      {"\\d\\D\\w\\W\\s\\S", {"1a_- x"}, {"aa_- x"}},
      {"\\x41\\x{e9}\\t\\.\\_", {"A\xC3\xA9\t._"}, {"A"}},
      {"\\Qa.b*\\E+c", {"a.b*c", "a.b***c"}, {"axb*c"}},
      {"\\Q\\E\\Qa", {"a"}, {""}},
      {"^app-.*$", {"app-", "app-7"}, {"my-app-7"}},
      {"\\Aa\\z", {"a"}, {"aa"}},
      {"a$b", {}, {"a", "ab", "a$b"}},
      {"^*a", {"a"}, {"^a"}},
      {"ab(?i)+c", {"abbC"}, {"abB"}},
      {"a\\b-\\bb\\B_", {"a-b_"}, {"ab_"}},
      {"(a*)*", {"", "aaa"}, {"b"}},
      {"(|a)+", {"", "aa"}, {"b"}},
      {"()*", {""}, {"b"}},
      {".*?x.*", {"x", "axb"}, {"ab"}},
      {"\xE6\xBC\xA2+", {"\xE6\xBC\xA2\xE6\xBC\xA2"}, {"\xE6\xBC"}},
      {"(?i)ab[C-E]", {"abc", "ABC", "aBe"}, {"abf"}},
      {"(?i:a)b", {"Ab", "ab"}, {"AB"}},
      {"(a(?i)b)c", {"abc", "aBc"}, {"aBC", "ABc"}},
      {"(?i)a(?-i)b", {"Ab"}, {"AB"}},
      {"(?i)[^a]", {"b"}, {"a", "A"}},
      {"[c-ea-bf]+", {"abcdef"}, {"g", "`"}},
      {"....", {"\xF5\x80\x80\x80", "\xF4\x90\x80\x80"}, {"\xF4\x8F\xBF\xBF"}},
  };
  for (const Case& each : cases) {
    for (const auto name : each.yes)
      EXPECT_TRUE(matches(each.pattern, name)) << each.pattern << name;
    for (const auto name : each.no)
      EXPECT_FALSE(matches(each.pattern, name)) << each.pattern << name;
  }
}

TEST(NamePattern, WhatIsWrongOrNotServedIsRefused) {
  expect_refused("(", "not closed");
  expect_refused("(a", "not closed");
  expect_refused("a)", "not opened");
  expect_refused("[a", "not closed");
  expect_refused("[", "not closed");
  expect_refused("[a\\", "not closed");
  expect_refused("*a", "without anything to repeat");
  expect_refused("a|+", "without anything to repeat");
  expect_refused("(?i)*", "without anything to repeat");
  expect_refused("a**", "after a quantifier");
  expect_refused("a++", "after a quantifier");
  expect_refused("a{2}{3}", "after a quantifier");
  expect_refused("a{*", "after a brace");
  expect_refused("a{3,2}", "bounds");
  expect_refused("a{1001}", "bounds");
  expect_refused("a{99999999999999999999}", "bounds");
  expect_refused("a\\", "backslash");
  expect_refused("\\q", "does not exist");
  expect_refused("\\1", "does not exist");
  expect_refused("\\pL", "not served");
  expect_refused("\\x4", "digits");
  expect_refused("\\x{110000}", "digits");
  expect_refused("[z-a]", "backwards");
  expect_refused("[[:words:]]", "does not exist");
  expect_refused("(?=a)", "not served");
  expect_refused("(?<=a)", "name");
  expect_refused("(?P<a", "name");
  expect_refused("(?m)a", "not served");
  expect_refused("(?i-)a", "not served");
}

TEST(NamePattern, IsBoundedWhateverItSays) {
  expect_refused("(a{100}){100}", "too large");
  expect_refused("((((a{0,9}){0,9}){0,9}){0,9}){0,9}", "too large");
  expect_refused(std::string(4'001, 'a'), "too large");
  expect_refused(std::string(101, '(') + std::string(101, ')'), "too deep");
  // Exponential for an engine that backtracks.
  EXPECT_FALSE(matches("(a|a)*b", std::string(20'000, 'a')));
  EXPECT_FALSE(matches("(a*)*(a*)*b", std::string(20'000, 'a')));
}

TEST(NamePattern, ASetOfManyRangesCostsLittleMoreThanOneOfFew) {
  std::string pattern = "([";
  for (char32_t c = 0x800; c < 0x800 + 2 * 10'000; c += 2) {
    pattern += static_cast<char>(0xE0U | (c >> 12U));
    pattern += static_cast<char>(0x80U | ((c >> 6U) & 0x3FU));
    pattern += static_cast<char>(0x80U | (c & 0x3FU));
  }
  pattern += "a]?){900}";
  EXPECT_TRUE(matches(pattern, std::string(900, 'a')));
  EXPECT_FALSE(matches(pattern, std::string(901, 'a')));
}

TEST(NamePattern, AnyBytesCompileOrAreRefused) {
  std::uint32_t state = 1;
  const std::string_view pieces = "a(|)[]{}*+?^$.\\-,12dQE<:>=xuiPb\xC3\xA9&";
  for (int i = 0; i < 20'000; ++i) {
    std::string pattern;
    for (std::uint32_t n = 0; n < 12; ++n) {
      state = state * 1'664'525 + 1'013'904'223;
      if ((state >> 28U) == 0) break;
      pattern += pieces[(state >> 8U) % pieces.size()];
    }
    const auto compiled = NamePattern::compile(pattern);
    if (!compiled) continue;
    (void)compiled->matches("");
    (void)compiled->matches("aa1(\xC3");
  }
}

// tests/golden/patterns/re2j.tsv: what ListTransactions of Apache Kafka 4.4 let through. A line is
// a pattern; "invalid", or the names it matched, in quotes.
TEST(NamePattern, AsKafka) {
  std::ifstream file(std::string(KANAL_GOLDEN_DIR) + "/patterns/re2j.tsv");
  ASSERT_TRUE(file);
  std::vector<std::string> names;
  std::size_t number = 0;
  for (std::string line; std::getline(file, line); ++number) {
    const std::size_t tab = line.find('\t');
    ASSERT_NE(tab, std::string::npos) << line;
    const std::string pattern = line.substr(0, tab), verdict = line.substr(tab + 1);
    if (number == 0) {
      for (std::size_t at = 1; at < verdict.size();) {
        const std::size_t end = verdict.find('"', at);
        names.push_back(verdict.substr(at, end - at));
        at = end + 2;
      }
      continue;
    }
    const auto compiled = NamePattern::compile(pattern);
    std::string ours = compiled ? "" : "invalid";
    if (compiled) {
      for (const std::string& name : names) {
        if (compiled->matches(name)) ours += "\"" + name + "\"";
      }
    }
    EXPECT_EQ(ours, verdict) << "line " << number + 1 << ": " << pattern
                             << (compiled ? "" : ": " + compiled.error().detail);
  }
  EXPECT_GT(number, 100U);
}

}  // namespace
}  // namespace kanal::coordinator
