// Sets of characters of a NamePattern: the named ones, the opposite of one, and one without regard
// to case (in ASCII). Plain functions.
#pragma once

#include "kanal/coordinator/name_pattern.hpp"

#include <optional>

namespace kanal::coordinator {

[[nodiscard]] NamePattern::Set every_character();
[[nodiscard]] NamePattern::Set but(NamePattern::Set set);
void fold(NamePattern::Set& set);
/// Puts its ranges in order, those that meet into one.
void merge(NamePattern::Set& set);
/// \d \D \s \S \w \W by their letter.
[[nodiscard]] std::optional<NamePattern::Set> escaped_class(char32_t letter);
/// What is between [: and :], with ^ the opposite.
[[nodiscard]] std::optional<NamePattern::Set> posix_class(std::string_view name);

}  // namespace kanal::coordinator
