// A regular expression that whole names are held against (ListTransactions v2, KIP-1152), in the
// dialect Kafka takes there: RE2's, by RE2/J. Not served, so refused as invalid: Unicode classes
// (\p), the flag m, octal escapes; letters are folded (flag i) in ASCII only. Nothing backtracks:
// time is bounded by the length of the name times the size of the pattern, and both are bounded.
// Immutable: any thread.
#pragma once

#include "kanal/base/error.hpp"

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace kanal::coordinator {

class NamePattern {
 public:
  /// INVALID_REGULAR_EXPRESSION says what is wrong with it, or not served, or that it is too large.
  [[nodiscard]] static Result<NamePattern> compile(std::string_view pattern);
  /// Both are UTF-8; a character is a code point. What is no UTF-8 is taken byte by byte.
  [[nodiscard]] bool matches(std::string_view name) const;

  /// Ranges of code points; in a compiled pattern they ascend and do not touch.
  struct Set {
    std::vector<std::pair<char32_t, char32_t>> ranges;
    [[nodiscard]] bool has(char32_t character) const noexcept;
  };
  struct Instruction {
    enum class What : std::uint8_t {
      kSet,     // a character of sets[first]
      kSplit,   // goes on at first and at second
      kBegin,   // only at the begin of the name,
      kEnd,     // at its end,
      kEdge,    // at the edge of a word,
      kNoEdge,  // or where there is none
      kMatch,
    };
    What what = What::kMatch;
    std::uint32_t first = 0, second = 0;
  };

 private:
  class Run;
  std::vector<Instruction> program_;
  std::vector<Set> sets_;
};

}  // namespace kanal::coordinator
