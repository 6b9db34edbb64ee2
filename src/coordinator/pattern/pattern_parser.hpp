// Turns the text of a NamePattern into its program: recursive descent that emits as it reads, and
// repeats by emitting again. Used within one compile().
#pragma once

#include "kanal/coordinator/name_pattern.hpp"

#include <optional>
#include <string>

namespace kanal::coordinator {

/// The code point at `at` and its length; a byte that begins none is itself.
[[nodiscard]] std::pair<char32_t, std::size_t> code_point(std::string_view text,
                                                          std::size_t at) noexcept;
[[nodiscard]] constexpr bool is_word(char32_t c) noexcept {
  return (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z') || (c >= U'0' && c <= U'9') ||
         c == U'_';
}

class PatternParser {
 public:
  static constexpr std::size_t kMostInstructions = 4'000, kDeepest = 100, kMostRepeats = 1'000;

  explicit PatternParser(std::string_view pattern) : text_(pattern) {}
  [[nodiscard]] Result<void> parse();
  std::vector<NamePattern::Instruction> program;
  std::vector<NamePattern::Set> sets;

 private:
  using What = NamePattern::Instruction::What;
  using Set = NamePattern::Set;
  struct Repeats {
    std::size_t least = 0;
    std::optional<std::size_t> most;  // none: any number
  };
  struct Flags {
    bool fold = false, dot_takes_newline = false;
  };

  // Each appends to `program`; false: why_ says what is wrong.
  bool alternatives();
  bool sequence();
  bool flags_alone();  // false and no why_: something else is next
  bool item();
  bool repeated(std::size_t begin);
  bool repeat(std::size_t begin, const Repeats& repeats);
  bool group();
  bool name();
  std::optional<Flags> flags();
  bool escape();
  bool quoted(std::optional<std::size_t>& last);
  bool set();
  bool set_member(Set& into);
  std::optional<char32_t> set_character();
  bool named_class(Set& into);
  std::optional<char32_t> literal_escape();
  std::optional<char32_t> hex();

  /// Nothing if there is no quantifier here: a brace may be just a character.
  std::optional<Repeats> quantifier();
  std::optional<Repeats> braces();
  std::optional<std::size_t> number();

  bool emit(What what, std::size_t first = 0, std::size_t second = 0);
  bool emit_set(Set set);
  bool emit_literal(char32_t character);
  /// Puts a split before what was emitted from `begin` on.
  bool insert_split(std::size_t begin);

  [[nodiscard]] bool more() const noexcept { return at_ < text_.size(); }
  [[nodiscard]] bool next_is(std::string_view what) const noexcept {
    return text_.substr(at_).starts_with(what);
  }
  bool take(std::string_view what) noexcept {
    if (!next_is(what)) return false;
    at_ += what.size();
    return true;
  }
  char32_t take_character() noexcept;
  bool refuse(std::string_view why);

  std::string_view text_;
  std::size_t at_ = 0, depth_ = 0;
  Flags flags_;
  std::string why_;
};

}  // namespace kanal::coordinator
