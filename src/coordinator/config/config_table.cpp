#include "kanal/coordinator/config_table.hpp"

#include "config_number.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace kanal::coordinator {
namespace {

constexpr std::size_t kShownInErrors = 100;     // of a value that a client sent
constexpr std::size_t kMaxValueBytes = 32'767;  // Kafka stores no longer ones

bool same_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

bool consume(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::unexpected<Error> invalid(const ConfigRow& row, std::string_view value, std::string_view why) {
  std::string text = "Invalid value ";
  text += row.type == ConfigType::kPassword ? "[hidden]" : value.substr(0, kShownInErrors);
  if (row.type != ConfigType::kPassword && value.size() > kShownInErrors) text += "…";
  text.append(" for configuration ").append(row.name).append(": ").append(why);
  return fail(ErrorCode::INVALID_CONFIG, std::move(text));
}

/// "[lowest,...,highest]", "[lowest,...]" and "[lowest,...,highest] or -1" of a row.
struct Range {
  std::string_view lowest;
  std::string_view highest;  // empty: none
  bool or_minus_one = false;
};

std::optional<Range> range_of(std::string_view valid) {
  Range range;
  if (!consume(valid, "[")) return std::nullopt;
  const auto dots = valid.find(",...");
  if (dots == std::string_view::npos) return std::nullopt;
  range.lowest = valid.substr(0, dots);
  valid.remove_prefix(dots + 4);
  const auto end = valid.find(']');
  range.highest = valid.substr(0, end);
  if (!range.highest.empty()) range.highest.remove_prefix(1);
  range.or_minus_one = valid.ends_with("or -1");
  return range;
}

template <class Number>
Result<void> check_range(const ConfigRow& row, std::string_view value, Number number) {
  const auto range = range_of(row.valid);
  if (!range || (range->or_minus_one && number == Number(-1))) return {};
  const bool low = number < *parse_number<Number>(range->lowest);
  const bool high = !range->highest.empty() && number > *parse_number<Number>(range->highest);
  if (!low && !high) return {};
  std::string why = "Value must be ";
  if (range->or_minus_one) {
    why.append("between ").append(range->lowest).append(" and ").append(range->highest);
    why += " or equal to -1";
  } else {
    why.append(low ? "at least " : "no more than ").append(low ? range->lowest : range->highest);
  }
  return invalid(row, value, why);
}

template <class Number>
Result<void> check_number(const ConfigRow& row, std::string_view value) {
  const auto number = parse_number<Number>(value);
  if (!number) {
    return invalid(row, value, "Not a number of type " + std::string(name(row.type)));
  }
  return check_range(row, value, *number);
}

/// The words of "[a, b]" or "(case insensitive) [a, b]"; empty where any text will do.
std::vector<std::string_view> words_of(std::string_view valid, bool& ignore_case) {
  ignore_case = consume(valid, "(case insensitive) ");
  if (!valid.starts_with('[') || !valid.ends_with(']')) return {};
  return list_items(valid.substr(1, valid.size() - 2));
}

Result<void> check_word(const ConfigRow& row, std::string_view value) {
  bool ignore_case = false;
  const auto words = words_of(row.valid, ignore_case);
  if (words.empty()) return {};
  const bool known = std::ranges::any_of(words, [&](std::string_view word) {
    return ignore_case ? same_ignoring_case(word, value) : word == value;
  });
  if (known) return {};
  std::string why =
      ignore_case ? "String must be one of (case insensitive): " : "String must be one of: ";
  for (std::size_t i = 0; i < words.size(); ++i) why.append(i ? ", " : "").append(words[i]);
  return invalid(row, value, why);
}

/// "partition:broker" pairs, or the literal *.
bool is_throttle_list(const std::vector<std::string_view>& items) {
  if (items.size() == 1 && items[0] == "*") return true;
  return std::ranges::all_of(items, [](std::string_view item) {
    const auto colon = item.find(':');
    const auto digits = [](std::string_view part) {
      return !part.empty() &&
             std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    };
    return colon != std::string_view::npos && digits(item.substr(0, colon)) &&
           digits(item.substr(colon + 1));
  });
}

Result<void> check_list(const ConfigRow& row, std::string_view value) {
  const auto items = list_items(value);
  if (row.valid == "[partitionId]:[brokerId],[partitionId]:[brokerId],...") {
    if (is_throttle_list(items)) return {};
    return invalid(row, value, "It must be * or a list of partition:broker pairs");
  }
  if (items.empty() && row.valid == "non-empty list") {
    return invalid(row, value, "The list must not be empty");
  }
  for (const std::string_view item : items) {
    if (item.empty()) {
      return fail(ErrorCode::INVALID_CONFIG,
                  "Configuration '" + std::string(row.name) + "' values must not be empty.");
    }
    if (auto fine = check_word(row, item); !fine) return fine;
  }
  return {};
}

Result<void> check_text(const ConfigRow& row, std::string_view value) {
  if (value.empty() && row.valid == "non-empty string") {
    return invalid(row, value, "String must be non-empty");
  }
  return check_word(row, value);
}

std::string shown_list(std::string_view value) {
  std::string out;
  std::vector<std::string_view> seen;
  for (const std::string_view item : list_items(value)) {
    if (std::ranges::find(seen, item) != seen.end()) continue;  // Kafka keeps the first of equals
    if (!seen.empty()) out += ',';
    out += item;
    seen.push_back(item);
  }
  return out;
}

/// Edits (insert, delete, replace, swap of neighbours) that make one word of the other.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        next[j] = std::min(next[j], before[j - 2] + 1);
      }
    }
    std::swap(before, row);
    std::swap(row, next);
  }
  return row[b.size()];
}

/// The letters and digits alone, in lower case: numPartitions, num_partitions and num.partitions
/// are one word.
std::string bare(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return out;
}

}  // namespace

const ConfigRow* find_row(std::span<const ConfigRow> table, std::string_view name) noexcept {
  const auto found = std::ranges::lower_bound(table, name, {}, &ConfigRow::name);
  return found != table.end() && found->name == name ? &*found : nullptr;
}

Result<void> check_value(const ConfigRow& row, std::string_view value) {
  if (value.size() > kMaxValueBytes) {
    return invalid(row, value, "The value is longer than 32767 bytes");
  }
  value = trimmed(value);
  switch (row.type) {
    case ConfigType::kBoolean:
      if (parse_boolean(value)) return {};
      return invalid(row, value, "Expected value to be either true or false");
    case ConfigType::kInt:
      return check_number<std::int32_t>(row, value);
    case ConfigType::kShort:
      return check_number<std::int16_t>(row, value);
    case ConfigType::kLong:
      return check_number<std::int64_t>(row, value);
    case ConfigType::kDouble:
      return check_number<double>(row, value);
    case ConfigType::kList:
      return check_list(row, value);
    default:
      return check_text(row, value);
  }
}

std::string shown_value(const ConfigRow& row, std::string_view value) {
  value = trimmed(value);
  switch (row.type) {
    case ConfigType::kBoolean:
      if (const auto parsed = parse_boolean(value)) return *parsed ? "true" : "false";
      return std::string(value);
    case ConfigType::kInt:
    case ConfigType::kShort:
    case ConfigType::kLong:
      if (const auto parsed = parse_number<std::int64_t>(value)) return std::to_string(*parsed);
      return std::string(value);
    case ConfigType::kDouble:
      if (const auto parsed = parse_number<double>(value)) return java_double(*parsed);
      return std::string(value);
    case ConfigType::kList:
      return shown_list(value);
    default:
      return std::string(value);
  }
}

std::string_view name(ConfigType type) noexcept {
  static constexpr std::array<std::string_view, 10> kNames = {
      "UNKNOWN", "BOOLEAN", "STRING", "INT",   "SHORT",
      "LONG",    "DOUBLE",  "LIST",   "CLASS", "PASSWORD"};
  return kNames[static_cast<std::size_t>(type)];
}

std::vector<std::string_view> list_items(std::string_view value) {
  value = trimmed(value);
  std::vector<std::string_view> items;
  if (value.empty()) return items;
  while (true) {
    const auto comma = value.find(',');
    items.push_back(trimmed(value.substr(0, comma)));
    if (comma == std::string_view::npos) return items;
    value.remove_prefix(comma + 1);
  }
}

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates) {
  if (name.size() > 200) return {};
  const std::string wanted = bare(name);
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(1, wanted.size() / 4) + 1;
  for (const std::string_view candidate : candidates) {
    const std::string other = bare(candidate);
    const std::size_t gap =
        other.size() > wanted.size() ? other.size() - wanted.size() : wanted.size() - other.size();
    if (gap >= best_distance) continue;
    const std::size_t distance = edit_distance(wanted, other);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace kanal::coordinator
