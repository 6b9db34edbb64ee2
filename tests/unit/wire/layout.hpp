// A message's layout in one version, as lines of text, made from our schema or from Kafka's own
// definition: two layouts that are equal put the same bytes on the wire. Test code.
#pragma once

#include "model.hpp"

#include <boost/json/value.hpp>

#include <string>
#include <vector>

namespace kanal::wiregen {

using Layout =
    std::vector<std::string>;  // one line a field, in wire order, tagged ones last by tag

[[nodiscard]] Layout our_layout(const Message& message, int version);
[[nodiscard]] Layout kafka_layout(const boost::json::value& definition, int version);

/// Kafka's definition of a message from tests/golden/kafka-4.4/messages.
[[nodiscard]] boost::json::value kafka_definition(const std::string& message);

/// What differs: "- kafka's line" and "+ our line"; empty if nothing.
[[nodiscard]] std::string difference(const Layout& kafka, const Layout& ours);

/// All versions of a message against Kafka's definition; empty if nothing differs.
[[nodiscard]] std::string difference(const Message& message, const boost::json::value& definition);

}  // namespace kanal::wiregen
