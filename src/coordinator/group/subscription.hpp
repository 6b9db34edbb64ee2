// The topics in a consumer's subscription (Kafka's ConsumerProtocolSubscription). Kafka's broker
// reads nothing else of what members send, and this only for OffsetDelete and the expiry of
// offsets.
#pragma once

#include "kanal/base/bytes.hpp"

#include <optional>
#include <string>
#include <vector>

namespace kanal::coordinator {

/// Nothing if the bytes are no subscription. Read as version 0, with which all others begin.
[[nodiscard]] std::optional<std::vector<std::string>> subscribed_topics(Bytes metadata);

}  // namespace kanal::coordinator
