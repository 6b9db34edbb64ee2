// What every generated message header needs: the types of its fields and the two classes of its
// codec. The messages themselves are plain data: any thread.
#pragma once

#include "kanal/base/bytes.hpp"
#include "kanal/base/error.hpp"
#include "kanal/base/ids.hpp"
#include "kanal/wire/external.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kanal::wire {

class Reader;
class Writer;

[[nodiscard]] inline bool same_bytes(Bytes a, Bytes b) {
  return std::ranges::equal(a, b);
}
template <class View>
[[nodiscard]] bool same_bytes(const std::optional<View>& a, const std::optional<View>& b) {
  return a.has_value() == b.has_value() && (!a || std::ranges::equal(*a, *b));
}

}  // namespace kanal::wire
