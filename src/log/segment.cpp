#include "segment.hpp"

#include <charconv>

namespace kanal::log {
namespace {

constexpr std::size_t kDigits = 20;
constexpr std::string_view kSegmentSuffix = ".log";
constexpr std::string_view kIndexSuffix = ".kindex";

std::string file_name(Sequence base, std::string_view suffix) {
  const std::string digits = std::to_string(to_offset(base).value());
  std::string name(kDigits - digits.size(), '0');
  name.append(digits).append(suffix);
  return name;
}

std::optional<Sequence> parse_name(std::string_view name, std::string_view suffix) {
  if (name.size() != kDigits + suffix.size() || !name.ends_with(suffix)) return std::nullopt;
  std::int64_t offset = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + kDigits, offset);
  if (error != std::errc{} || end != name.data() + kDigits || offset < 0 ||
      offset == std::numeric_limits<std::int64_t>::max()) {
    return std::nullopt;
  }
  return to_sequence(Offset(offset));
}

}  // namespace

std::string segment_name(Sequence base) {
  return file_name(base, kSegmentSuffix);
}
std::string index_name(Sequence base) {
  return file_name(base, kIndexSuffix);
}
std::optional<Sequence> parse_segment_name(std::string_view name) {
  return parse_name(name, kSegmentSuffix);
}
std::optional<Sequence> parse_index_name(std::string_view name) {
  return parse_name(name, kIndexSuffix);
}

}  // namespace kanal::log
