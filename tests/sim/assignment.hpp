// What the simulated leader hands out and the members get back: who made it, for which generation
// and member, and the partitions. In a form of our own; the broker does not look inside. Plain
// data.
#pragma once

#include "kanal/base/bytes.hpp"
#include "kanal/base/ids.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kanal::sim {

struct Assignment {
  std::int32_t generation = 0;
  std::string leader, member;
  std::vector<std::pair<std::string, std::int32_t>> partitions;  // topic, index
};
[[nodiscard]] Buffer encode_assignment(const Assignment& assignment);
/// Nothing for bytes that are none.
[[nodiscard]] std::optional<Assignment> decode_assignment(Bytes bytes);

}  // namespace kanal::sim
