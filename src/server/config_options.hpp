// The option table of kanald's own part: key, default, range, doc; and one value as it was set
// somewhere. Parsing, --print-config, docs/configuration.md and config/kanal.yaml all go by it.
// For config*.cpp alone. Constant data and plain values: any thread.
#pragma once

#include "config.hpp"

#include <span>

namespace kanal::server {

enum class OptionKind : std::uint8_t { kNumber, kBytes, kText, kWord, kListeners, kAddresses };

struct Option {
  std::string_view key;
  OptionKind kind;
  std::string_view default_text;
  std::int64_t lowest = 0;  // numbers and bytes
  std::int64_t highest = 0;
  std::string_view words;  // kWord: "a, b"; else empty
  std::string_view doc;    // one line
  std::string_view alias;  // another name, in the kafka: part too; may be empty
};

[[nodiscard]] std::span<const Option> options() noexcept;
/// By key or alias; null if there is none.
[[nodiscard]] const Option* find_option(std::string_view name) noexcept;

/// One listener as it was written; what was left out is nullopt.
struct ListenerText {
  std::optional<std::string> name;
  std::string bind;
  std::optional<std::string> advertised;
  int line = 0;
};

/// One value and where it was set. Kafka's configs have keys that begin with "kafka.".
struct Setting {
  std::string key;
  std::string value;
  std::string origin;
  int line = 0;
  std::vector<ListenerText> listeners;  // where `listeners` was written as a list
};

/// The reason a value is refused; nullopt if it is fine. Not for listeners and addresses.
[[nodiscard]] std::optional<std::string> refuse_option(const Option& option,
                                                       std::string_view value);
/// Puts a value that was not refused in its place.
void apply_option(const Option& option, std::string_view value, Config& config);
/// The value in force as text that is taken back. Not for listeners and addresses.
[[nodiscard]] std::string option_text(const Option& option, const Config& config);
/// "1 to 64", "bytes, 0 to …", "debug, info, …", …
[[nodiscard]] std::string range_text(const Option& option);

/// "KANAL_" and the key in upper case, with _ for . and what else is no letter or digit.
[[nodiscard]] std::string environment_name(std::string_view key);

/// Listeners in the form of one text: "NAME://host:port,…"; the name may be left out.
[[nodiscard]] std::expected<std::vector<ListenerText>, std::string> parse_listeners(
    std::string_view text);
/// Makes listeners of what was written, `advertised` on top by name; problems carry lines.
void resolve_listeners(const Setting& written, const Setting* advertised,
                       std::vector<ListenerOptions>& into, ConfigProblems& problems);

/// Settings of a file, flat; aliases followed, lists of a Kafka config joined by commas.
[[nodiscard]] std::vector<Setting> read_yaml(const std::string& text, const std::string& file,
                                             ConfigProblems& problems);

}  // namespace kanal::server
