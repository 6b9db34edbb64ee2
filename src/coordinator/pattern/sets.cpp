#include "sets.hpp"

#include <algorithm>

namespace kanal::coordinator {
namespace {

using Set = NamePattern::Set;
using Range = std::pair<char32_t, char32_t>;
constexpr char32_t kLast = 0x10FFFF;

const Set kDigits{{{U'0', U'9'}}};
const Set kSpaces{{{U'\t', U'\n'}, {U'\f', U'\r'}, {U' ', U' '}}};
const Set kWords{{{U'0', U'9'}, {U'A', U'Z'}, {U'_', U'_'}, {U'a', U'z'}}};

struct Named {
  std::string_view name;
  Set set;
};
const std::vector<Named> kPosix = {
    {"alnum", {{{U'0', U'9'}, {U'A', U'Z'}, {U'a', U'z'}}}},
    {"alpha", {{{U'A', U'Z'}, {U'a', U'z'}}}},
    {"ascii", {{{0, 0x7F}}}},
    {"blank", {{{U'\t', U'\t'}, {U' ', U' '}}}},
    {"cntrl", {{{0, 0x1F}, {0x7F, 0x7F}}}},
    {"digit", kDigits},
    {"graph", {{{U'!', U'~'}}}},
    {"lower", {{{U'a', U'z'}}}},
    {"print", {{{U' ', U'~'}}}},
    {"punct", {{{U'!', U'/'}, {U':', U'@'}, {'[', '`'}, {'{', '~'}}}},
    {"space", {{{U'\t', U'\r'}, {U' ', U' '}}}},
    {"upper", {{{U'A', U'Z'}}}},
    {"word", kWords},
    {"xdigit", {{{U'0', U'9'}, {U'A', U'F'}, {U'a', U'f'}}}},
};

}  // namespace

Set every_character() {
  return {{{0, kLast}}};
}

Set but(Set set) {
  std::ranges::sort(set.ranges);
  Set opposite;
  char32_t next = 0;  // the first that no range so far has
  for (const auto& [low, high] : set.ranges) {
    if (low > next) opposite.ranges.emplace_back(next, low - 1);
    next = std::max<char32_t>(next, high + 1);
  }
  if (next <= kLast) opposite.ranges.emplace_back(next, kLast);
  return opposite;
}

void fold(Set& set) {
  const auto other_case = [&](char32_t from, char32_t to) {
    std::vector<Range> added;
    for (const auto& [low, high] : set.ranges) {
      const char32_t first = std::max(low, from), last = std::min<char32_t>(high, from + 25);
      if (first <= last) added.emplace_back(first - from + to, last - from + to);
    }
    return added;
  };
  const auto lower = other_case(U'A', U'a');
  const auto upper = other_case(U'a', U'A');
  set.ranges.insert(set.ranges.end(), lower.begin(), lower.end());
  set.ranges.insert(set.ranges.end(), upper.begin(), upper.end());
}

void merge(Set& set) {
  std::ranges::sort(set.ranges);
  std::vector<Range> merged;
  for (const auto& [low, high] : set.ranges) {
    if (!merged.empty() && low <= merged.back().second + 1) {
      merged.back().second = std::max(merged.back().second, high);
    } else {
      merged.emplace_back(low, high);
    }
  }
  set.ranges = std::move(merged);
}

std::optional<Set> escaped_class(char32_t letter) {
  switch (letter) {
    case U'd':
      return kDigits;
    case U'D':
      return but(kDigits);
    case U's':
      return kSpaces;
    case U'S':
      return but(kSpaces);
    case U'w':
      return kWords;
    case U'W':
      return but(kWords);
    default:
      return std::nullopt;
  }
}

std::optional<Set> posix_class(std::string_view name) {
  const bool negated = name.starts_with("^");
  if (negated) name.remove_prefix(1);
  const auto found = std::ranges::find(kPosix, name, &Named::name);
  if (found == kPosix.end()) return std::nullopt;
  return negated ? but(found->set) : found->set;
}

}  // namespace kanal::coordinator
