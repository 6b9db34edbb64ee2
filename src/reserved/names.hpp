// Keys of the reserved channels inside the store, and their names for people. A key is
//   kind (1 byte) | channel key, escaped | generation (8 bytes) | record number (8 bytes), big
//   endian,
// and the same without generation and number for a channel's generation pointer, which therefore
// sorts right before its records. Escaping keeps any bytes apart and in order: 00 becomes 00 FF,
// the end is 00 01. Pure functions: any thread.
#pragma once

#include "kanal/reserved/store.hpp"

#include <optional>
#include <string_view>

namespace kanal::reserved {

/// kind | escaped key | end mark: the generation pointer's key and the prefix of all its records.
[[nodiscard]] std::string channel_prefix(const ReservedName& name);
[[nodiscard]] std::string record_key(std::string_view prefix, std::uint64_t generation,
                                     std::uint64_t number);

struct ParsedKey {
  ReservedName name;
  std::uint64_t generation = 0;  // both 0: the generation pointer
  std::uint64_t number = 0;
};
/// Nothing for bytes that no channel could have written.
[[nodiscard]] std::optional<ParsedKey> parse_key(std::string_view key);

/// "_KAFKA_CONFIG_.orders": the name without a generation.
[[nodiscard]] std::string to_string(const ReservedName& name);

}  // namespace kanal::reserved
