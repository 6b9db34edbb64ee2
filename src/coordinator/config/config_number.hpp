// Reading and showing the scalars of configs the way Java's parseInt, parseLong, parseDouble and
// toString do, without exceptions. Pure functions: any thread.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace kanal::coordinator {

/// Without the spaces and control characters at both ends (Java's trim).
[[nodiscard]] constexpr std::string_view trimmed(std::string_view text) {
  const auto space = [](char c) { return static_cast<unsigned char>(c) <= ' '; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}

/// The whole text as a number of that type; nullopt also where it does not fit. Not NaN.
template <class Number>
[[nodiscard]] std::optional<Number> parse_number(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  if constexpr (std::is_floating_point_v<Number>) {
    if (text.size() > 1 && (text.back() == 'd' || text.back() == 'D')) text.remove_suffix(1);
  }
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<Number>) {
    if (std::isnan(number)) return std::nullopt;
  }
  return number;
}

[[nodiscard]] std::optional<bool> parse_boolean(std::string_view text);

/// Java's Double.toString: 0.5, 1.0E-5, 1.7976931348623157E308.
[[nodiscard]] std::string java_double(double number);

}  // namespace kanal::coordinator
