#include "pattern_parser.hpp"

#include "sets.hpp"

#include <algorithm>

namespace kanal::coordinator {

Result<void> PatternParser::parse() {
  if (alternatives() && !more() && emit(What::kMatch)) return {};
  if (why_.empty()) why_ = "a group is closed that was not opened";
  return fail(ErrorCode::INVALID_REGULAR_EXPRESSION, why_);
}

bool PatternParser::alternatives() {
  const std::size_t begin = program.size();
  if (!sequence()) return false;
  if (!take("|")) return true;
  // split(this, the others), and this jumps over them: a jump is a split to one place.
  if (!insert_split(begin)) return false;
  const std::size_t jump = program.size();
  if (!emit(What::kSplit)) return false;
  program[begin].second = static_cast<std::uint32_t>(program.size());
  if (!alternatives()) return false;
  program[jump].first = program[jump].second = static_cast<std::uint32_t>(program.size());
  return true;
}

bool PatternParser::sequence() {
  std::optional<std::size_t> last;  // where the last item begins
  while (more() && !next_is("|") && !next_is(")")) {
    const std::size_t begin = program.size();
    if (flags_alone()) {
      // A quantifier behind them is that of the item before.
      if (last && !repeated(*last)) return false;
    } else if (!why_.empty()) {
      return false;
    } else if (next_is("\\Q")) {
      if (!quoted(last)) return false;
    } else {
      if (!item()) return false;
      last = begin;
    }
    if (!why_.empty()) return false;
  }
  return true;
}

bool PatternParser::flags_alone() {
  if (!next_is("(?") || next_is("(?P<") || next_is("(?<")) return false;
  const std::size_t begin = at_;
  at_ += 2;
  const auto given = flags();
  if (given && take(")")) {
    flags_ = *given;  // for what follows in this group
    return true;
  }
  at_ = begin;
  return false;
}

bool PatternParser::item() {
  const std::size_t begin = program.size();
  bool read = false;
  if (take("(")) {
    read = group();
  } else if (take("[")) {
    read = set();
  } else if (take("\\")) {
    read = escape();
  } else if (take(".")) {
    read = emit_set(flags_.dot_takes_newline ? every_character() : but({{{U'\n', U'\n'}}}));
  } else if (take("^")) {
    read = emit(What::kBegin);
  } else if (take("$")) {
    read = emit(What::kEnd);
  } else if (quantifier()) {
    return refuse("a quantifier without anything to repeat");
  } else if (take("{")) {
    read = why_.empty() && emit_literal('{');
    // RE2/J takes the brace for a quantifier that came first.
    if (quantifier()) return refuse("a quantifier after a brace");
  } else {
    read = why_.empty() && emit_literal(take_character());
  }
  return read && repeated(begin);
}

bool PatternParser::repeated(std::size_t begin) {
  const auto repeats = quantifier();
  if (!repeats) return why_.empty();
  (void)take("?");  // lazy: of a whole match there is only one length
  if (quantifier()) return refuse("a quantifier after a quantifier");
  return why_.empty() && repeat(begin, *repeats);
}

bool PatternParser::repeat(std::size_t begin, const Repeats& repeats) {
  const std::vector<NamePattern::Instruction> unit(
      program.begin() + static_cast<std::ptrdiff_t>(begin), program.end());
  program.resize(begin);
  const auto again = [&] {
    const std::size_t moved = program.size() - begin;
    if (program.size() + unit.size() > kMostInstructions) return refuse("it is too large");
    for (NamePattern::Instruction each : unit) {
      if (each.what == What::kSplit) {
        each.first += static_cast<std::uint32_t>(moved);
        each.second += static_cast<std::uint32_t>(moved);
      }
      program.push_back(each);
    }
    return true;
  };
  for (std::size_t i = 0; i < repeats.least; ++i) {
    if (!again()) return false;
  }
  if (!repeats.most) {  // split(once more and back, on)
    const std::size_t split = program.size();
    if (!emit(What::kSplit, split + 1) || !again() || !emit(What::kSplit, split, split)) {
      return false;
    }
    program[split].second = static_cast<std::uint32_t>(program.size());
    return true;
  }
  for (std::size_t i = repeats.least; i < *repeats.most; ++i) {  // each may be left out
    const std::size_t split = program.size();
    if (!emit(What::kSplit, split + 1) || !again()) return false;
    program[split].second = static_cast<std::uint32_t>(program.size());
  }
  return true;
}

bool PatternParser::group() {
  const Flags outside = flags_;
  if (take("?")) {
    if (take("P<") || take("<")) {
      if (!name()) return false;
    } else {
      const auto given = flags();
      if (!given) return false;
      flags_ = *given;
      if (!take(":")) return refuse("a group of a kind that is not served");
    }
  }
  if (++depth_ > kDeepest) return refuse("groups are nested too deep");
  if (!alternatives()) return false;
  --depth_;
  flags_ = outside;
  return take(")") || refuse("a group is not closed");
}

bool PatternParser::name() {
  const std::size_t begin = at_;
  while (more() && is_word(static_cast<unsigned char>(text_[at_]))) ++at_;
  return (at_ > begin && take(">")) || refuse("a group without a name");
}

std::optional<PatternParser::Flags> PatternParser::flags() {
  Flags given = flags_;
  bool on = true, any_off = false;
  for (; more(); any_off = !on) {
    if (take("i")) {
      given.fold = on;
    } else if (take("s")) {
      given.dot_takes_newline = on;
    } else if (take("U")) {  // which repeats are lazy: all the same for a whole match
    } else if (on && take("-")) {
      on = false;
      if (next_is(")") || next_is(":")) break;
    } else {
      break;
    }
  }
  const bool ends = next_is(")") || next_is(":");
  if (ends && (on || any_off)) return given;
  refuse("flags, or a group of a kind, that are not served");
  return std::nullopt;
}

bool PatternParser::quoted(std::optional<std::size_t>& last) {
  at_ += 2;
  while (more() && !take("\\E")) {
    last = program.size();
    if (!emit_literal(take_character())) return false;
    if (take("\\E")) break;
  }
  return !last || repeated(*last);  // of the last character
}

bool PatternParser::escape() {
  if (!more()) return refuse("it ends in a backslash");
  if (auto set = escaped_class(static_cast<unsigned char>(text_[at_]))) {
    ++at_;
    return emit_set(std::move(*set));
  }
  if (take("A")) return emit(What::kBegin);
  if (take("z")) return emit(What::kEnd);
  if (take("b")) return emit(What::kEdge);
  if (take("B")) return emit(What::kNoEdge);
  const auto character = literal_escape();
  return character && emit_literal(*character);
}

bool PatternParser::set() {
  const bool negated = take("^");
  Set set;
  bool first = true;
  while (more() && (first || !next_is("]"))) {
    if (!set_member(set)) return false;
    first = false;
  }
  if (!take("]")) return refuse("a set is not closed");
  if (flags_.fold) fold(set);
  return emit_set(negated ? but(std::move(set)) : std::move(set));
}

bool PatternParser::set_member(Set& into) {
  if (next_is("[:")) {
    if (named_class(into)) return true;
    if (!why_.empty()) return false;
  }
  if (next_is("\\") && at_ + 1 < text_.size()) {
    if (const auto named = escaped_class(static_cast<unsigned char>(text_[at_ + 1]))) {
      at_ += 2;
      into.ranges.insert(into.ranges.end(), named->ranges.begin(), named->ranges.end());
      return true;
    }
  }
  const bool minus = next_is("-");
  const auto low = set_character();
  if (!low) return false;
  auto high = low;
  const bool range = next_is("-") && !next_is("-]") && at_ + 1 < text_.size();
  if (range) {
    if (minus) return refuse("a range that begins with a minus");
    ++at_;
    high = set_character();
    if (!high) return false;
    if (*high < *low) return refuse("a range that goes backwards");
  }
  into.ranges.emplace_back(*low, *high);
  return true;
}

std::optional<char32_t> PatternParser::set_character() {
  if (!take("\\")) return take_character();
  if (more()) return literal_escape();
  refuse("a set is not closed");
  return std::nullopt;
}

bool PatternParser::named_class(Set& into) {
  const std::size_t end = text_.find(":]", at_ + 2);
  if (end == std::string_view::npos) return false;  // just characters
  const auto named = posix_class(text_.substr(at_ + 2, end - at_ - 2));
  if (!named) return refuse("a class that does not exist");
  into.ranges.insert(into.ranges.end(), named->ranges.begin(), named->ranges.end());
  at_ = end + 2;
  return true;
}

std::optional<char32_t> PatternParser::literal_escape() {
  static constexpr std::string_view kNames = "tnrfav", kMeant = "\t\n\r\f\a\v";
  const char32_t escaped = take_character();
  if (escaped == U'x') return hex();
  const std::size_t found =
      escaped < 0x80 ? kNames.find(static_cast<char>(escaped)) : std::string_view::npos;
  if (found != std::string_view::npos) return static_cast<char32_t>(kMeant[found]);
  if (!is_word(escaped) || escaped == U'_') return escaped;
  refuse("an escape that does not exist or is not served");
  return std::nullopt;
}

std::optional<char32_t> PatternParser::hex() {
  const bool braced = take("{");
  char32_t value = 0;
  std::size_t digits = 0;
  while (more() && (braced || digits < 2)) {
    static constexpr std::string_view kDigits = "0123456789abcdef";
    const char digit = text_[at_];
    const char low = digit >= 'A' && digit <= 'F' ? static_cast<char>(digit - 'A' + 'a') : digit;
    const std::size_t found = kDigits.find(low);
    if (found == std::string_view::npos || value > 0x10FFFF) break;
    value = value * 16 + static_cast<char32_t>(found);
    ++digits;
    ++at_;
  }
  const bool whole = braced ? digits > 0 && take("}") : digits == 2;
  if (whole && value <= 0x10FFFF) return value;
  refuse("an escape without its digits");
  return std::nullopt;
}

std::optional<PatternParser::Repeats> PatternParser::quantifier() {
  if (take("*")) return Repeats{0, std::nullopt};
  if (take("+")) return Repeats{1, std::nullopt};
  if (take("?")) return Repeats{0, 1};
  return braces();
}

std::optional<PatternParser::Repeats> PatternParser::braces() {
  const std::size_t begin = at_;
  const auto just_a_character = [&] {
    at_ = begin;
    return std::nullopt;
  };
  if (!take("{")) return std::nullopt;
  Repeats repeats;
  const auto least = number();
  if (!least) return just_a_character();
  repeats.least = *least;
  if (!take(",")) {
    repeats.most = repeats.least;
  } else if (!next_is("}")) {
    repeats.most = number();
    if (!repeats.most) return just_a_character();
  }
  if (!take("}")) return just_a_character();
  if (repeats.least > kMostRepeats ||
      (repeats.most && (*repeats.most > kMostRepeats || *repeats.most < repeats.least))) {
    refuse("a repetition with wrong bounds");
    return std::nullopt;
  }
  return repeats;
}

std::optional<std::size_t> PatternParser::number() {
  if (next_is("0") && at_ + 1 < text_.size() && text_[at_ + 1] >= '0' && text_[at_ + 1] <= '9') {
    return std::nullopt;  // as RE2: no leading zeros
  }
  std::optional<std::size_t> value;
  while (more() && text_[at_] >= '0' && text_[at_] <= '9') {
    const auto digit = static_cast<std::size_t>(text_[at_++] - '0');
    value = std::min(value.value_or(0) * 10 + digit, kMostRepeats + 1);
  }
  return value;
}

bool PatternParser::emit(What what, std::size_t first, std::size_t second) {
  if (program.size() >= kMostInstructions) return refuse("it is too large");
  program.push_back({what, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(second)});
  return true;
}

bool PatternParser::emit_set(Set set) {
  merge(set);
  sets.push_back(std::move(set));
  return emit(What::kSet, sets.size() - 1);
}

bool PatternParser::emit_literal(char32_t character) {
  Set set{{{character, character}}};
  if (flags_.fold) fold(set);
  return emit_set(std::move(set));
}

bool PatternParser::insert_split(std::size_t begin) {
  if (program.size() >= kMostInstructions) return refuse("it is too large");
  for (std::size_t i = begin; i < program.size(); ++i) {
    if (program[i].what != What::kSplit) continue;
    ++program[i].first;
    ++program[i].second;
  }
  const NamePattern::Instruction split{What::kSplit, static_cast<std::uint32_t>(begin + 1), 0};
  program.insert(program.begin() + static_cast<std::ptrdiff_t>(begin), split);
  return true;
}

char32_t PatternParser::take_character() noexcept {
  const auto [character, length] = code_point(text_, at_);
  at_ += length;
  return character;
}

bool PatternParser::refuse(std::string_view why) {
  if (why_.empty()) why_ = why;
  return false;
}

}  // namespace kanal::coordinator
