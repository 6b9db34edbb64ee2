#include "config_number.hpp"

#include <algorithm>
#include <array>

namespace kanal::coordinator {
namespace {

bool is_word(std::string_view text, std::string_view lower) {
  return std::ranges::equal(text, lower, [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

}  // namespace

std::optional<bool> parse_boolean(std::string_view text) {
  if (is_word(text, "true")) return true;
  if (is_word(text, "false")) return false;
  return std::nullopt;
}

std::string java_double(double number) {
  if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
  std::array<char, 64> buffer{};
  const double size = std::fabs(number);
  const bool plain = size == 0 || (size >= 1e-3 && size < 1e7);
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto [end, error] =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, format);
  std::string text(buffer.data(), end);
  if (plain) return text.find('.') == std::string::npos ? text + ".0" : text;
  // "1e-05" and "1.5e+308" become "1.0E-5" and "1.5E308".
  const auto e = text.find('e');
  std::string mantissa = text.substr(0, e);
  if (mantissa.find('.') == std::string::npos) mantissa += ".0";
  std::string exponent = text.substr(e + 1);
  const bool negative = exponent.front() == '-';
  exponent.erase(0, std::min(exponent.find_first_not_of("+-0"), exponent.size() - 1));
  return mantissa + (negative ? "E-" : "E") + exponent;
}

}  // namespace kanal::coordinator
