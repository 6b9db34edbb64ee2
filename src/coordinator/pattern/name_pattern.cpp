#include "kanal/coordinator/name_pattern.hpp"

#include "pattern_parser.hpp"

#include <algorithm>
#include <tuple>

namespace kanal::coordinator {

std::pair<char32_t, std::size_t> code_point(std::string_view text, std::size_t at) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  std::size_t length = 1;
  if (byte(0) >= 0xF0 && byte(0) < 0xF8) {
    length = 4;
  } else if (byte(0) >= 0xE0) {
    length = 3;
  } else if (byte(0) >= 0xC0) {
    length = 2;
  }
  if (length == 1 || byte(0) >= 0xF8 || at + length > text.size()) return {byte(0), 1};
  char32_t value = byte(0) & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {byte(0), 1};
    value = (value << 6U) | (byte(i) & 0x3FU);
  }
  if (value > 0x10FFFF) return {byte(0), 1};
  return {value, length};
}

Result<NamePattern> NamePattern::compile(std::string_view pattern) {
  PatternParser parser(pattern);
  if (auto parsed = parser.parse(); !parsed) return std::unexpected(std::move(parsed.error()));
  NamePattern compiled;
  compiled.program_ = std::move(parser.program);
  compiled.sets_ = std::move(parser.sets);
  return compiled;
}

bool NamePattern::Set::has(char32_t character) const noexcept {
  const auto after = std::ranges::upper_bound(ranges, character, {},
                                              [](const auto& range) { return range.first; });
  return after != ranges.begin() && character <= (after - 1)->second;
}

// All places in the program at once (Thompson): each is entered once for each character.
class NamePattern::Run {
 public:
  Run(const NamePattern& pattern, std::string_view name)
      : program_(pattern.program_),
        sets_(pattern.sets_),
        name_(name),
        entered_(program_.size(), 0) {}

  bool matches() {
    std::vector<std::uint32_t> here, there;
    look_ahead();
    enter(0, here);
    while (at_ < name_.size() && !here.empty()) {
      const char32_t character = next_;
      at_ += next_length_;
      after_word_ = is_word(character);
      look_ahead();
      ++turn_;
      there.clear();
      for (const std::uint32_t place : here) {
        if (sets_[program_[place].first].has(character)) enter(place + 1, there);
      }
      std::swap(here, there);
    }
    return at_ == name_.size() && matched_at_ == turn_;
  }

 private:
  void look_ahead() {
    if (at_ == name_.size()) {
      before_word_ = false;
      return;
    }
    std::tie(next_, next_length_) = code_point(name_, at_);
    before_word_ = is_word(next_);
  }

  /// Whether the place goes on to the next one without a character.
  [[nodiscard]] bool passes(Instruction::What what) const {
    switch (what) {
      case Instruction::What::kBegin:
        return at_ == 0;
      case Instruction::What::kEnd:
        return at_ == name_.size();
      case Instruction::What::kEdge:
        return after_word_ != before_word_;
      case Instruction::What::kNoEdge:
        return after_word_ == before_word_;
      default:
        return false;
    }
  }

  /// Follows what takes no character; the places that take one go to `into`.
  void enter(std::uint32_t place, std::vector<std::uint32_t>& into) {
    pending_.push_back(place);
    while (!pending_.empty()) {
      const std::uint32_t now = pending_.back();
      pending_.pop_back();
      if (entered_[now] == turn_) continue;
      entered_[now] = turn_;
      const Instruction& instruction = program_[now];
      if (instruction.what == Instruction::What::kSet) {
        into.push_back(now);
      } else if (instruction.what == Instruction::What::kSplit) {
        pending_.push_back(instruction.second);
        pending_.push_back(instruction.first);
      } else if (instruction.what == Instruction::What::kMatch) {
        matched_at_ = turn_;
      } else if (passes(instruction.what)) {
        pending_.push_back(now + 1);
      }
    }
  }

  const std::vector<Instruction>& program_;
  const std::vector<Set>& sets_;
  std::string_view name_;
  std::size_t at_ = 0, next_length_ = 0;
  char32_t next_ = 0;
  bool after_word_ = false, before_word_ = false;
  std::uint64_t turn_ = 1, matched_at_ = 0;
  std::vector<std::uint64_t> entered_;
  std::vector<std::uint32_t> pending_;
};

bool NamePattern::matches(std::string_view name) const {
  return Run(*this, name).matches();
}

}  // namespace kanal::coordinator
