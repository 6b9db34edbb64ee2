#include "segment.hpp"

#include <charconv>

namespace kanal::log {
namespace {

constexpr std::size_t kDigits = 20;
constexpr std::string_view kSegmentSuffix = ".log";
constexpr std::string_view kIndexSuffix = ".kindex";

std::string file_name(SegmentId id, std::string_view suffix) {
  const std::string digits = std::to_string(to_offset(id.base).value());
  std::string name(kDigits - digits.size(), '0');
  name.append(digits);
  // Kafka's tools take the offset from what comes before the first dot.
  if (id.generation != 0) name.append(".").append(std::to_string(id.generation));
  return name.append(suffix);
}

std::optional<SegmentId> parse(std::string_view name, std::string_view suffix) {
  if (name.size() < kDigits + suffix.size() || !name.ends_with(suffix)) return std::nullopt;
  std::int64_t offset = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + kDigits, offset);
  if (error != std::errc{} || end != name.data() + kDigits || offset < 0 ||
      Offset(offset) >= to_offset(kLargestSequence)) {
    return std::nullopt;
  }
  SegmentId id{to_sequence(Offset(offset)), 0};
  std::string_view middle = name.substr(kDigits, name.size() - kDigits - suffix.size());
  if (middle.empty()) return id;
  if (middle.size() < 2 || middle[0] != '.' || middle[1] == '0') return std::nullopt;
  middle.remove_prefix(1);
  const auto [last, bad] =
      std::from_chars(middle.data(), middle.data() + middle.size(), id.generation);
  if (bad != std::errc{} || last != middle.data() + middle.size()) return std::nullopt;
  return id;
}

}  // namespace

std::string segment_name(SegmentId id) {
  return file_name(id, kSegmentSuffix);
}
std::string index_name(SegmentId id) {
  return file_name(id, kIndexSuffix);
}
std::optional<SegmentId> parse_segment(std::string_view name) {
  return parse(name, kSegmentSuffix);
}
std::optional<SegmentId> parse_index(std::string_view name) {
  return parse(name, kIndexSuffix);
}

}  // namespace kanal::log
