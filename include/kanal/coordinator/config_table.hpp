// What topic, broker and group configs have in common: one row a config (KIP-133, KIP-226), its
// check, its text form, and one entry of a DescribeConfigs answer. Rows are constant data,
// everything else plain values: any thread. A value is Kafka's text: numbers in decimal, booleans
// "true"/"false", lists joined by commas; nullopt is null. Checks answer INVALID_CONFIG with the
// reason worded for the client.
#pragma once

#include "kanal/base/error.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kanal::coordinator {

/// Overrides by name; ordered, so that answers and stored records do not depend on a hash.
using ConfigMap = std::map<std::string, std::string, std::less<>>;

/// DescribeConfigs' config_type (KIP-569).
enum class ConfigType : std::int8_t {
  kUnknown = 0,
  kBoolean = 1,
  kString = 2,
  kInt = 3,
  kShort = 4,
  kLong = 5,
  kDouble = 6,
  kList = 7,
  kClass = 8,
  kPassword = 9,
};

/// DescribeConfigs' config_source.
enum class ConfigSource : std::int8_t {
  kUnknown = 0,
  kTopic = 1,
  kDynamicBroker = 2,
  kDynamicDefaultBroker = 3,
  kStaticBroker = 4,
  kDefault = 5,
  kDynamicBrokerLogger = 6,
  kClientMetrics = 7,
  kGroup = 8,
};

/// What this broker makes of a config.
enum class Treatment : std::uint8_t {
  kActs,       // the broker does what it says
  kFulfilled,  // true on one node whatever the value
  kStored,     // kept and shown; what it would steer does not exist here
  kOwnKey,  // broker only: refused in the start-up file, a key of our own says it (`note` names it)
  kRefused,  // broker only: refused in the start-up file, it has no meaning here (`note` says why)
};

/// One config. `default_value` is the text that is shown; `valid` is spelled as in Kafka's
/// reference
/// ("[1,...]", "[1,...,9] or -1", "[a, b]", "non-empty string", …) and is what check_value goes by.
struct ConfigRow {
  std::string_view name;
  ConfigType type;
  std::optional<std::string_view> default_value;  // nullopt: null, or required
  std::string_view valid;
  Treatment treatment;
  std::string_view note;           // why refused, or the key to use instead; else empty
  std::string_view documentation;  // one sentence
};

struct ConfigSynonym {
  std::string name;
  std::optional<std::string> value;  // null for secrets
  ConfigSource source;
};

/// One config of a DescribeConfigs answer. Synonyms and documentation are always filled; the
/// handler drops what was not asked for.
struct ConfigEntry {
  std::string name;
  std::optional<std::string> value;  // null for secrets and for what has no value
  ConfigSource source = ConfigSource::kDefault;
  bool read_only = false;
  bool sensitive = false;
  ConfigType type = ConfigType::kUnknown;
  std::string_view documentation;
  std::vector<ConfigSynonym> synonyms;
};

/// The row named `name` of a table sorted by name, or null.
[[nodiscard]] const ConfigRow* find_row(std::span<const ConfigRow> table,
                                        std::string_view name) noexcept;

/// Type and range of a value, as Kafka checks it; spaces around it are ignored.
[[nodiscard]] Result<void> check_value(const ConfigRow& row, std::string_view value);

/// A checked value the way Kafka shows it: trimmed, lists without spaces, booleans in lower case,
/// numbers plain.
[[nodiscard]] std::string shown_value(const ConfigRow& row, std::string_view value);

/// Name for documents: BOOLEAN, STRING, INT, …
[[nodiscard]] std::string_view name(ConfigType type) noexcept;

/// Items of a list value, trimmed; empty for an empty text.
[[nodiscard]] std::vector<std::string_view> list_items(std::string_view value);

/// The name of `candidates` nearest to `name`, if near enough to be what was meant; else empty.
[[nodiscard]] std::string_view nearest_name(std::string_view name,
                                            std::span<const std::string_view> candidates);

}  // namespace kanal::coordinator
