// Text as Java's UTF-8 decoder gives it to Kafka: what is malformed becomes U+FFFD, one for the
// longest piece that could have begun a character, one for an encoded surrogate. So a name that a
// careless client sent is the same name for every client. Plain functions: any thread.
#pragma once

#include <string>
#include <string_view>

namespace kanal::wire {

[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

[[nodiscard]] std::string replace_malformed_utf8(std::string_view text);

}  // namespace kanal::wire
