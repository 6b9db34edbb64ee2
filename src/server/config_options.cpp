#include "config_options.hpp"

#include "kanal/coordinator/config_table.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace kanal::server {
namespace {

constexpr std::int64_t kTebibyte = std::int64_t{1} << 40;
constexpr std::int64_t kPebibyte = std::int64_t{1} << 50;

constexpr Option kOptions[] = {
    {"node.id", OptionKind::kNumber, "1", 0, 2'147'483'647, "",
     "Number of this node, as clients see it.", ""},
    {"node.rack", OptionKind::kText, "", 0, 0, "",
     "Rack or zone this node stands in, told to clients; empty for none.", ""},
    {"data_dir", OptionKind::kText, "./kanal-data", 0, 0, "",
     "Directory of everything the broker keeps; made if missing, used by one process at a time.",
     ""},
    {"storage.reserve.bytes", OptionKind::kBytes, "33554432", 0, kTebibyte, "",
     "Bytes on the disk of data_dir that are given up when it is full, so that the broker can "
     "always start, stop, delete and commit; records are refused meanwhile. At most an eighth of "
     "the disk; 0 keeps none.",
     ""},
    {"listeners", OptionKind::kListeners, "PLAINTEXT://127.0.0.1:9092", 0, 0, "",
     "Addresses to accept connections on, each with the address handed out to clients.", ""},
    {"advertised_listeners", OptionKind::kAddresses, "", 0, 0, "",
     "Addresses handed out to clients instead of those under listeners, by listener name.", ""},
    {"threads.io", OptionKind::kNumber, "0", 0, 64, "",
     "Threads that serve connections; 0 is one for each CPU, at most 16.", ""},
    {"threads.helpers", OptionKind::kNumber, "2", 1, 64, "",
     "Threads for what waits for the disk or computes long: opening logs, syncs, cold reads; as "
     "many again, of a low priority, for compaction.",
     ""},
    {"limits.request_memory", OptionKind::kBytes, "0", 0, kTebibyte, "",
     "Bytes of requests read and not yet answered, over all connections; 0 is a quarter of the "
     "memory there is.",
     ""},
    {"limits.requests_per_connection", OptionKind::kNumber, "256", 1, 100'000, "",
     "Requests of one connection that are read and not yet answered; then it is read no further.",
     ""},
    {"limits.answer_bytes_per_connection", OptionKind::kBytes, "16777216", 65'536, kTebibyte, "",
     "Bytes of answers one connection has not yet taken; then it is read no further.", ""},
    {"limits.max_partitions_per_topic", OptionKind::kNumber, "10000", 1, 1'000'000, "",
     "Most partitions of one topic.", "max.partitions.per.topic"},
    {"limits.log_bytes", OptionKind::kBytes, "0", 0, kPebibyte, "",
     "Bytes that all logs together are held to: above it the oldest segments of the topics with "
     "most bytes are deleted, never the newest one of a partition or what cleanup.policy keeps; 0 "
     "is no limit.",
     "log.retention.total.bytes"},
    {"limits.open_log_files", OptionKind::kNumber, "0", 0, 10'000'000, "",
     "Log files kept open; 0 is half of what the system allows the process.", ""},
    {"log.recovery", OptionKind::kWord, "strict", 0, 0, "strict, truncate",
     "What a start does about a log that is damaged in the middle: strict keeps the partition "
     "offline and untouched, truncate cuts the log before the damage and keeps what lay behind it "
     "beside the log. Where the reserved channels lack what the last clean stop left, strict does "
     "not start, truncate goes on without it.",
     ""},
    {"logging.level", OptionKind::kWord, "info", 0, 0, "trace, debug, info, warn, error, off",
     "Least important log lines that are written.", ""},
};

std::optional<std::int64_t> parse_whole(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// 65536, 64KiB, 16 MiB, 2GiB.
std::optional<std::int64_t> parse_bytes(std::string_view text) {
  int shift = 0;
  for (const auto& [unit, bits] :
       {std::pair<std::string_view, int>{"KiB", 10}, {"MiB", 20}, {"GiB", 30}}) {
    if (text.ends_with(unit)) {
      text.remove_suffix(unit.size());
      shift = bits;
    }
  }
  while (shift != 0 && text.ends_with(' ')) text.remove_suffix(1);
  const auto number = parse_whole(text);
  if (!number || *number < 0 || *number > (kPebibyte >> shift)) return std::nullopt;
  return *number << shift;
}

std::optional<std::int64_t> parse_for(const Option& option, std::string_view value) {
  return option.kind == OptionKind::kBytes ? parse_bytes(value) : parse_whole(value);
}

std::uint32_t* number_in(Config& config, std::string_view key) {
  if (key == "threads.io") return &config.io_threads;
  if (key == "threads.helpers") return &config.helper_threads;
  if (key == "limits.requests_per_connection") return &config.requests_per_connection;
  if (key == "limits.open_log_files") return &config.open_log_files;
  return nullptr;
}

void apply_number(std::string_view key, std::int64_t number, Config& config) {
  if (std::uint32_t* place = number_in(config, key)) {
    *place = static_cast<std::uint32_t>(number);
  } else if (key == "node.id") {
    config.node_id = NodeId(static_cast<std::int32_t>(number));
    config.kafka.node.id = config.node_id;
  } else if (key == "limits.max_partitions_per_topic") {
    config.kafka.node.max_partitions_per_topic = static_cast<std::int32_t>(number);
  } else if (key == "limits.log_bytes") {
    config.kafka.node.retention_total_bytes = static_cast<std::uint64_t>(number);
  } else if (key == "storage.reserve.bytes") {
    config.reserve_bytes = static_cast<std::uint64_t>(number);
  } else if (key == "limits.request_memory") {
    config.request_memory = static_cast<std::uint64_t>(number);
  } else if (key == "limits.answer_bytes_per_connection") {
    config.answer_bytes_per_connection = static_cast<std::uint64_t>(number);
  }
}

std::string number_text(std::string_view key, const Config& config) {
  Config copy = config;
  if (const std::uint32_t* place = number_in(copy, key)) return std::to_string(*place);
  if (key == "node.id") return std::to_string(config.node_id.value());
  if (key == "limits.max_partitions_per_topic") {
    return std::to_string(config.kafka.node.max_partitions_per_topic);
  }
  if (key == "limits.log_bytes") return std::to_string(config.kafka.node.retention_total_bytes);
  if (key == "storage.reserve.bytes") return std::to_string(config.reserve_bytes);
  if (key == "limits.request_memory") return std::to_string(config.request_memory);
  return std::to_string(config.answer_bytes_per_connection);
}

}  // namespace

std::span<const Option> options() noexcept {
  return kOptions;
}

const Option* find_option(std::string_view name) noexcept {
  const auto found = std::ranges::find_if(kOptions, [&](const Option& option) {
    return option.key == name || (!option.alias.empty() && option.alias == name);
  });
  return found == std::end(kOptions) ? nullptr : &*found;
}

std::optional<std::string> refuse_option(const Option& option, std::string_view value) {
  switch (option.kind) {
    case OptionKind::kNumber:
    case OptionKind::kBytes: {
      const auto number = parse_for(option, value);
      if (number && *number >= option.lowest && *number <= option.highest) return std::nullopt;
      std::string text = "'" + std::string(value.substr(0, 100)) + "' is ";
      text += number ? "out of range" : "no whole number";
      return text + "; it takes " + range_text(option);
    }
    case OptionKind::kWord: {
      const auto words = coordinator::list_items(option.words);
      if (std::ranges::find(words, value) != words.end()) return std::nullopt;
      return "'" + std::string(value.substr(0, 100)) + "' is none of: " + std::string(option.words);
    }
    default:
      break;
  }
  if (value.find_first_of(std::string_view("\0\n\r", 3)) != std::string_view::npos) {
    return "It holds a line end or a zero byte";
  }
  if (value.empty() && !option.default_text.empty()) return "It must not be empty";
  return std::nullopt;
}

void apply_option(const Option& option, std::string_view value, Config& config) {
  if (const auto number = parse_for(option, value);
      number && (option.kind == OptionKind::kNumber || option.kind == OptionKind::kBytes)) {
    return apply_number(option.key, *number, config);
  }
  if (option.key == "node.rack") {
    config.kafka.node.rack = value.empty() ? std::nullopt : std::optional(std::string(value));
  } else if (option.key == "data_dir") {
    config.data_dir = value;
  } else if (option.key == "log.recovery") {
    config.cut_damaged_logs = value == "truncate";
  } else if (option.key == "logging.level") {
    config.log_level = value;
  }
}

std::string option_text(const Option& option, const Config& config) {
  if (option.kind == OptionKind::kNumber || option.kind == OptionKind::kBytes) {
    return number_text(option.key, config);
  }
  if (option.key == "node.rack") return config.kafka.node.rack.value_or("");
  if (option.key == "data_dir") return config.data_dir;
  if (option.key == "log.recovery") return config.cut_damaged_logs ? "truncate" : "strict";
  return config.log_level;
}

std::string range_text(const Option& option) {
  const std::string bounds =
      std::to_string(option.lowest) + " to " + std::to_string(option.highest);
  switch (option.kind) {
    case OptionKind::kNumber:
      return bounds;
    case OptionKind::kBytes:
      return bounds + " bytes, or with KiB, MiB or GiB";
    case OptionKind::kWord:
      return std::string(option.words);
    case OptionKind::kListeners:
      return "name, bind, advertised; or NAME://host:port,...";
    case OptionKind::kAddresses:
      return "NAME://host:port,...";
    default:
      return "text";
  }
}

std::string environment_name(std::string_view key) {
  std::string out = "KANAL_";
  for (const char c : key) {
    const bool kept = std::isalnum(static_cast<unsigned char>(c)) != 0;
    out += kept ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : '_';
  }
  return out;
}

}  // namespace kanal::server
