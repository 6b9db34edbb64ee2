#include "names.hpp"

#include "kanal/base/bytes.hpp"
#include "kanal/base/check.hpp"

namespace kanal::reserved {
namespace {

constexpr char kEscape = '\x00';
constexpr char kEscapedZero = '\xFF';
constexpr char kEnd = '\x01';
constexpr std::size_t kNumbers = 16;

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::kCluster:
      return "_KAFKA_CLUSTER_";
    case Kind::kConfig:
      return "_KAFKA_CONFIG_";
    case Kind::kPids:
      return "_KAFKA_PIDS_";
    case Kind::kOffsets:
      return "_KAFKA_OFFSETS_";
    case Kind::kTxn:
      return "_KAFKA_TXN_";
  }
  CHECK(false, "every kind has a name");
}

bool is_kind(std::uint8_t byte) {
  return byte >= static_cast<std::uint8_t>(Kind::kCluster) &&
         byte <= static_cast<std::uint8_t>(Kind::kTxn);
}

void append_number(std::string& key, std::uint64_t number) {
  std::byte bytes[sizeof number];
  store_be(bytes, number);
  key.append(as_text(bytes));
}

std::uint64_t number_at(std::string_view bytes) {
  return load_be<std::uint64_t>(as_bytes(bytes).data());
}

}  // namespace

std::string channel_prefix(const ReservedName& name) {
  std::string prefix;
  prefix.reserve(name.key.size() + 3 + kNumbers);
  prefix.push_back(static_cast<char>(name.kind));
  for (const char c : name.key) {
    prefix.push_back(c);
    if (c == kEscape) prefix.push_back(kEscapedZero);
  }
  prefix.push_back(kEscape);
  prefix.push_back(kEnd);
  return prefix;
}

std::string record_key(std::string_view prefix, std::uint64_t generation, std::uint64_t number) {
  std::string key(prefix);
  append_number(key, generation);
  append_number(key, number);
  return key;
}

std::optional<ParsedKey> parse_key(std::string_view key) {
  if (key.empty() || !is_kind(static_cast<std::uint8_t>(key[0]))) return std::nullopt;
  ParsedKey parsed;
  parsed.name.kind = static_cast<Kind>(key[0]);
  std::size_t at = 1;
  for (;;) {
    if (at >= key.size()) return std::nullopt;
    const char c = key[at++];
    if (c != kEscape) {
      parsed.name.key.push_back(c);
      continue;
    }
    if (at >= key.size()) return std::nullopt;
    const char mark = key[at++];
    if (mark == kEnd) break;
    if (mark != kEscapedZero) return std::nullopt;
    parsed.name.key.push_back(kEscape);
  }
  const std::string_view numbers = key.substr(at);
  if (numbers.empty()) return parsed;
  if (numbers.size() != kNumbers) return std::nullopt;
  parsed.generation = number_at(numbers);
  parsed.number = number_at(numbers.substr(sizeof parsed.generation));
  if (parsed.generation == 0 || parsed.number == 0) return std::nullopt;
  return parsed;
}

std::string to_string(const ReservedName& name) {
  std::string text(kind_name(name.kind));
  if (!name.key.empty()) text.append(1, '.').append(name.key);
  return text;
}

std::string to_string(const ReservedName& name, std::uint64_t generation) {
  return to_string(name) + "." + std::to_string(generation);
}

}  // namespace kanal::reserved
