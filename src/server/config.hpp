// kanald's configuration: our own options (one table: key, default, range, doc) and Kafka's broker
// configs under `kafka:`. Defaults < file < KANAL_* environment < command line. Read once at start
// by main; a Config does not change. Everything a person can get wrong comes back as
// ConfigProblems, all of them at once, with file and line.
#pragma once

#include "kanal/base/ids.hpp"
#include "kanal/coordinator/broker_config.hpp"

#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kanal::server {

struct HostPort {
  std::string host;  // an IPv6 address without its brackets
  std::uint16_t port = 0;
  friend bool operator==(const HostPort&, const HostPort&) = default;
};
/// "host:port", "[::1]:9092"; nullopt if it is neither.
[[nodiscard]] std::optional<HostPort> parse_host_port(std::string_view text);
[[nodiscard]] std::string to_string(const HostPort& address);

struct ListenerOptions {
  std::string name;  // unique, upper case, e.g. PLAINTEXT
  HostPort bind;     // port 0: the system chooses
  /// Never a wildcard host; port 0 only together with bind port 0: then the port that was bound.
  HostPort advertised;
};

struct Config {
  NodeId node_id{1};
  std::string data_dir = "./kanal-data";
  std::uint64_t reserve_bytes = 33'554'432;  // kept on its disk; 0: none
  std::vector<ListenerOptions> listeners;
  std::uint32_t io_threads = 0;  // 0: resolved_io_threads
  std::uint32_t helper_threads = 2;
  std::uint64_t request_memory = 0;             // 0: resolved_request_memory
  std::uint32_t requests_per_connection = 256;  // decoded and not yet answered, per connection
  /// Made and not yet sent, per connection; a single answer may be larger.
  std::uint64_t answer_bytes_per_connection = 16'777'216;
  std::uint32_t open_log_files = 0;  // 0: half of the file limit
  bool cut_damaged_logs = false;     // log.recovery: truncate
  std::string log_level = "info";
  /// Kafka's configs in force; layers.fixed also holds node.id, listeners, log.dirs as
  /// DescribeConfigs shows them.
  coordinator::BrokerConfig kafka;
};

/// Threads and bytes in force. Threads 0: CPUs the process may use, at most 16. Memory: Kafka's
/// queued.max.request.bytes where it is on, else limits.request_memory, and where that is 0 a
/// quarter of the cgroup's or machine's memory, at least 64 MiB. Reads /proc and /sys.
[[nodiscard]] std::uint32_t resolved_io_threads(const Config& config);
[[nodiscard]] std::uint64_t resolved_request_memory(const Config& config);
/// data_dir from the root of the file system, as log.dirs and DescribeLogDirs show it.
[[nodiscard]] std::string resolved_data_dir(const std::string& data_dir);

struct CommandLine {
  std::optional<std::string> config_file;
  std::optional<std::string> ready_file;
  std::vector<std::string> listen;  // --listen HOST:PORT, each one listener
  std::vector<std::pair<std::string, std::string>> settings;  // --data-dir and --set, in order
  bool print_config = false;
  bool check_config = false;
  std::optional<std::string> check_data;  // the directory
  std::optional<std::string> snapshot;    // where to
  bool version = false;
  bool help = false;
};

/// `origin` is the file, "environment KANAL_*" or "command line --…"; line 0 where there is none.
struct ConfigProblem {
  std::string origin;
  int line = 0;
  std::string key;
  std::string text;
};
using ConfigProblems = std::vector<ConfigProblem>;
/// One line: "kanal.yaml:12: kafka.num.partitons: unknown key; did you mean num.partitions?"
[[nodiscard]] std::string to_string(const ConfigProblem& problem);

using Environment = std::map<std::string, std::string, std::less<>>;
/// The KANAL_* variables of the process.
[[nodiscard]] Environment read_environment();

/// Exit codes of main: 0 fine, 1 failed while running, 2 bad command line or configuration.
inline constexpr int kExitBadConfig = 2;

[[nodiscard]] std::expected<CommandLine, ConfigProblems> parse_command_line(
    std::span<const char* const> arguments);
/// `file_text` is the content of `command.config_file`, nullopt if none was named. Without
/// arguments a valid default.
[[nodiscard]] std::expected<Config, ConfigProblems> load_config(
    const CommandLine& command, const Environment& environment,
    const std::optional<std::string>& file_text);
/// Content of the file (at most 1 MiB) or the problem.
[[nodiscard]] std::expected<std::string, ConfigProblems> read_config_file(const std::string& path);

/// The effective configuration as YAML that load_config takes back. Secrets are shown as they are:
/// for the operator.
[[nodiscard]] std::string print_config(const Config& config);
[[nodiscard]] std::string help_text();
/// docs/configuration.md and config/kanal.yaml, from the tables; a test compares the committed
/// files.
[[nodiscard]] std::string configuration_document();
[[nodiscard]] std::string default_config_file();

}  // namespace kanal::server
